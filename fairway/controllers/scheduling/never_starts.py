"""What is written of a workload that can never start as the fleet is.

While that is so its condition `CanStart` is False and says why. If its queue refuses such workloads
when they are new, it has failed: a final state, on which people and their programs need not wait.
All functions are pure.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from msgspec.structs import replace

from fairway.api.meta import Condition
from fairway.api.reasons import Reason, sentence
from fairway.api.workload import Workload, WorkloadStatus
from fairway.controllers.statuses import with_condition

CAN_START: Final = "CanStart"
_TEXT_MOST = 1_024


def with_never(
    workload: Workload, status: WorkloadStatus, never: Reason | None, now: datetime
) -> WorkloadStatus:
    """The status, with why the workload can never start; None: it can, or that is not known."""
    if never is None:
        kept = tuple(item for item in status.conditions if item.type != CAN_START)
        return status if len(kept) == len(status.conditions) else replace(status, conditions=kept)
    condition = _condition(workload, CAN_START, "False", never, now)
    return replace(status, conditions=with_condition(status.conditions, condition))


def refuse(workload: Workload, never: Reason, now: datetime) -> WorkloadStatus:
    """The workload fails before it was ever pending."""
    status = with_never(workload, workload.status, never, now)
    finished = _condition(workload, "Finished", "True", never, now)
    return replace(
        status,
        observed_generation=workload.metadata.generation,
        phase="Failed",
        reason=never.code.value,
        message=_text(never),
        queue=status.queue or workload.spec.queue,
        finished_at=now,
        reservation=None,
        conditions=with_condition(status.conditions, finished),
    )


def _condition(
    workload: Workload, kind: str, status: Literal["True", "False"], never: Reason, now: datetime
) -> Condition:
    return Condition(
        type=kind,
        status=status,
        reason=never.code.value,
        message=_text(never),
        last_transition_time=now,
        observed_generation=workload.metadata.generation,
    )


def _text(never: Reason) -> str:
    return f"it can never start as the fleet is: {sentence(never)}"[:_TEXT_MOST]
