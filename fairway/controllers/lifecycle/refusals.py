"""The condition of a workload whose template some cluster refused.

The reason of its status is that of its phase, and goes once it runs elsewhere. The condition
`TemplateAccepted` stays `False` for as long as the workload avoids clusters that refused it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from fairway.api.meta import Condition
from fairway.api.reasons import REFUSALS, Code
from fairway.api.workload import WorkloadStatus
from fairway.controllers.lifecycle.attempt_ends import moment
from fairway.controllers.lifecycle.case import LifecycleCase
from fairway.controllers.lifecycle.troubles import Trouble
from fairway.controllers.statuses import with_condition

ACCEPTED = "TemplateAccepted"
_TEXT_MOST = 1_024


def noted(
    case: LifecycleCase, status: WorkloadStatus, troubles: Sequence[Trouble]
) -> WorkloadStatus:
    """The status with what clusters have just refused."""
    refused = [item for item in troubles if item.reason in REFUSALS]
    if not refused:
        return status
    said = "; ".join(f"{item.placement.cluster}: {item.message}" for item in refused)
    condition = Condition(
        type=ACCEPTED,
        status="False",
        reason=Code.TEMPLATE_REFUSED.value,
        message=said[:_TEXT_MOST],
        last_transition_time=moment(case.now),
        observed_generation=case.workload.metadata.generation,
    )
    return replace(status, conditions=with_condition(status.conditions, condition))


def forgotten(status: WorkloadStatus) -> WorkloadStatus:
    """The status of a workload that avoids no cluster any more."""
    kept = tuple(item for item in status.conditions if item.type != ACCEPTED)
    return status if len(kept) == len(status.conditions) else replace(status, conditions=kept)
