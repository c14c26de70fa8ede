"""The condition of a workload that runs where its policy or its queue no longer allows it.

What follows is the core's to decide: a service leaves such a cluster, unless its policy lets it
stay; gangs and sweeps stay until they end.
"""

from __future__ import annotations

from msgspec.structs import replace

from fairway.api.meta import Condition
from fairway.api.reasons import Code
from fairway.api.workload import WorkloadStatus
from fairway.controllers.lifecycle.attempt_ends import moment
from fairway.controllers.lifecycle.case import LifecycleCase

_ALLOWED = "Allowed"


def with_allowance(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """The status with the condition Allowed if that is False, and without it otherwise."""
    placements = status.claim.placements if status.claim is not None else ()
    outside = sorted({placement.cluster for placement in placements} & case.outside)
    old = next((each for each in status.conditions if each.type == _ALLOWED), None)
    others = tuple(each for each in status.conditions if each.type != _ALLOWED)
    if not outside:
        return status if old is None else replace(status, conditions=others)
    message = f"it runs in {', '.join(outside)}, which its policy or its queue no longer allows"
    if old is not None and old.message == message:
        return status
    condition = Condition(
        type=_ALLOWED,
        status="False",
        reason=Code.NO_LONGER_ALLOWED.value,
        message=message[:1024],
        last_transition_time=old.last_transition_time if old else moment(case.now),
        observed_generation=case.workload.metadata.generation,
    )
    return replace(status, conditions=(*others, condition))
