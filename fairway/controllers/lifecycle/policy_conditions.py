"""Conditions of a running workload that breaks rules of fleet policies.

`PolicyViolated` and `PolicyWarning` say which enforced rules and which other rules it breaks.
`PolicyStop` says that it is stopped for one of them; the grace period counts from then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from fairway.api.meta import Condition
from fairway.api.reasons import violation_sentence
from fairway.api.workload import WorkloadStatus
from fairway.controllers.governance import Breach
from fairway.controllers.lifecycle.attempt_ends import moment
from fairway.controllers.lifecycle.case import LifecycleCase
from fairway.controllers.lifecycle.troubles import POLICY_STOP
from fairway.controllers.statuses import with_condition

VIOLATED, WARNING = "PolicyViolated", "PolicyWarning"
_TYPES = (VIOLATED, WARNING, POLICY_STOP)
_TEXT_MOST = 1_024


def with_conditions(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """The status with what policies say of a workload that runs."""
    groups = {
        VIOLATED: [item for item in case.breaches if item.enforcement == "Enforce"],
        WARNING: [item for item in case.breaches if item.enforcement == "Warn"],
        POLICY_STOP: [item for item in case.breaches if item.grace_seconds is not None],
    }
    conditions = status.conditions
    for kind, group in groups.items():
        before = next((other for other in conditions if other.type == kind), None)
        if not group and (before is None or before.status == "False"):
            continue
        condition = _condition(case, kind, group)
        said = (condition.status, condition.message)
        if before is None or (before.status, before.message) != said:
            conditions = with_condition(conditions, condition)
    return status if conditions == status.conditions else replace(status, conditions=conditions)


def without_conditions(status: WorkloadStatus) -> WorkloadStatus:
    """The status of a workload that holds nothing."""
    kept = tuple(item for item in status.conditions if item.type not in _TYPES)
    return status if len(kept) == len(status.conditions) else replace(status, conditions=kept)


def _condition(case: LifecycleCase, kind: str, group: Sequence[Breach]) -> Condition:
    said = dict.fromkeys(violation_sentence(breach.violation) for breach in group)
    rules = [breach.violation.rule for breach in group]
    return Condition(
        type=kind,
        status="True" if group else "False",
        reason=rules[0][0].upper() + rules[0][1:] if rules else "Allowed",
        message="; ".join(said)[:_TEXT_MOST],
        last_transition_time=moment(case.now),
        observed_generation=case.workload.metadata.generation,
    )


def news(before: WorkloadStatus, after: WorkloadStatus) -> Iterator[Condition]:
    """Conditions of policies that begin to hold, or say something else."""
    known = {(item.type, item.message) for item in before.conditions if item.status == "True"}
    for condition in after.conditions:
        is_new = (condition.type, condition.message) not in known
        if condition.type in _TYPES and condition.status == "True" and is_new:
            yield condition
