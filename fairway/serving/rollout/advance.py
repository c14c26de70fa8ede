"""The next status of a rollout, computed from its present status.

Forward, batch by batch: every cluster of the batch gets the new revision as fast as the service can
bear it. Once the clusters are ready, the batch soaks, its gates are evaluated and a user approves,
as configured. A batch that makes no progress in time, or fails its gates, has failed: the rollout
pauses, or rolls back to the last good revision. A rollback has no batches, no soak and no approval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec.structs import replace

from fairway.api.rollout import (
    ClusterRevision,
    RolloutPhase,
    RolloutStatus,
    approval_of,
    failure_of,
)
from fairway.serving.rollout import gates
from fairway.serving.rollout.allowance import is_there
from fairway.serving.rollout.batches import WHOLE, Goal, batches_of
from fairway.serving.rollout.case import RolloutCase
from fairway.serving.rollout.stages import advance_stages, are_there, keep_stages, ready_replicas

LATE, REFUSED, UNHEARD = "ProgressDeadlineExceeded", "GateFailed", "GateInconclusive"
STUCK, WAITS = "RollbackStuck", "WaitsForReplicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced:
    """The next status, and when to look again even if nothing else happens."""

    status: RolloutStatus
    wake_at: float | None = None


def advance(case: RolloutCase) -> Advanced:
    """The next status of a rollout."""
    status = _resume(case, _begin(case))
    if not status.stable:
        return _first(case, status)
    if case.spec.paused:
        waits = "it is paused"
        return _say(case, keep_stages(case, status), "Paused", "PausedByUser", waits)
    if status.going_back or status.target == status.stable:
        return _back(case, status)
    if status.failure:
        rests = keep_stages(case, status)
        return _say(case, rests, "Paused", status.failure, rests.message)
    return _forward(case, status)


def _begin(case: RolloutCase) -> RolloutStatus:
    """The status with the present target; a changed template restarts the rollout."""
    status = case.status
    if status.target == case.target:
        if status.phase == "Paused" and not case.spec.paused and not status.failure:
            return replace(status, progressed_at=_moment(case.now))
        return status
    history = tuple(
        replace(revision, outcome="Superseded")
        if revision.mark == status.target and not revision.outcome
        else revision
        for revision in status.history
    )
    return replace(
        status,
        phase="Progressing",
        target=case.target,
        history=history,
        revision=max((revision.revision for revision in history), default=0),
        going_back=False,
        failure="",
        failures=0,
        message="",
        **_new_batch(case, 0),
    )


def _new_batch(case: RolloutCase, number: int) -> dict[str, object]:
    return {
        "current_batch": number,
        "progressed_at": _moment(case.now),
        "progress": 0,
        "batch_ready_at": None,
        "gates": (),
    }


def _resume(case: RolloutCase, status: RolloutStatus) -> RolloutStatus:
    """The status without a failure that a user has forgiven: its batch is tried again."""
    if not status.failure or case.resumed != failure_of(status):
        return status
    number = 0 if status.going_back else status.current_batch
    return replace(status, failure="", message="", going_back=False, **_new_batch(case, number))


def _first(case: RolloutCase, status: RolloutStatus) -> Advanced:
    """The revision present when the Rollout is created: it is everywhere, and nothing changes."""
    status = replace(status, stable=status.target, stable_revision=status.revision)
    return _complete(case, keep_stages(case, status))


# Forward.


def _forward(case: RolloutCase, status: RolloutStatus) -> Advanced:
    plan = batches_of(case.spec.strategy, case.places, is_divisible=case.is_divisible)
    number = min(status.current_batch, len(plan) - 1)
    status = replace(status, current_batch=number, batches=len(plan))
    goal = plan[number]
    status = _progress(case, advance_stages(case, status, status.target, goal), status.target, goal)
    if not are_there(case, status.clusters, status.target, goal):
        return _under_way(case, status)
    is_last = number == len(plan) - 1
    if number and goal == plan[number - 1]:
        # The batch adds nothing to the one before, which is over.
        return _complete(case, status) if is_last else _next(case, status)
    status = replace(status, batch_ready_at=status.batch_ready_at or _moment(case.now))
    result = _soaking(case, status)
    if isinstance(result, Advanced):
        return result
    if is_last:
        return _complete(case, result)
    if _needs_approval(case, number) and case.approved != approval_of(result):
        waits = f"batch {number + 1} of {len(plan)} is well and waits for an approval"
        return _say(case, result, "AwaitingApproval", "", waits, wake_at=_gates_due(case, result))
    return _next(case, result)


def _next(case: RolloutCase, status: RolloutStatus) -> Advanced:
    return _forward(case, replace(status, **_new_batch(case, status.current_batch + 1)))


def _needs_approval(case: RolloutCase, number: int) -> bool:
    approval = case.spec.strategy.approval
    is_canary = case.spec.strategy.canary is not None and number == 0
    return approval == "EachBatch" or (approval == "AfterCanary" and is_canary)


def _progress(case: RolloutCase, status: RolloutStatus, mark: str, goal: Goal) -> RolloutStatus:
    """Updates the time of progress: more replicas are ready than ever, or a cluster began."""
    there = ready_replicas(case, mark, goal)
    has_begun = _describe(status.clusters) != _describe(case.status.clusters)
    if there <= status.progress and not has_begun:
        return status
    most = max(there, status.progress)
    return replace(status, progress=most, progressed_at=_moment(case.now))


def _describe(stages: Sequence[ClusterRevision]) -> set[tuple[str, str, int | None]]:
    return {(stage.cluster, stage.mark, stage.share) for stage in stages}


def _under_way(case: RolloutCase, status: RolloutStatus) -> Advanced:
    if status.batch_ready_at is not None:
        status = _relapse(case, status, status.batch_ready_at.timestamp())
    if not _is_awaited(case, status, status.target):
        return _say(case, status, "Progressing", WAITS, _lacking(status))
    due = _deadline(case, status)
    if case.now >= due:
        return _fail(case, status, LATE, _lacking(status))
    return _say(case, status, "Progressing", "", _lacking(status), wake_at=due)


def _relapse(case: RolloutCase, status: RolloutStatus, ready_at: float) -> RolloutStatus:
    """Gives a batch that was ready and no longer is time to recover.

    It gets the whole deadline if it was ready for that long; else what was left of it, so that a
    flapping batch fails in the end.
    """
    was_well = case.now - ready_at
    since = status.progressed_at.timestamp() if status.progressed_at else ready_at
    begins = case.now if was_well >= case.spec.progress_deadline_seconds else since + was_well
    return replace(status, batch_ready_at=None, progressed_at=_moment(min(begins, case.now)))


def _is_awaited(case: RolloutCase, status: RolloutStatus, mark: str) -> bool:
    """Whether a cluster has been given the revision and is not ready with it yet.

    A revision is not to blame for the other clusters.
    """
    stages = {cluster.cluster: cluster for cluster in status.clusters if cluster.mark == mark}
    return any(
        place.is_heard and not is_there(place, mark, stages[place.cluster].share)
        for place in case.places
        if place.cluster in stages
    )


def _soaking(case: RolloutCase, status: RolloutStatus) -> Advanced | RolloutStatus:
    """The status of a batch that has soaked and passed its gates; else the present result."""
    asked = case.spec.strategy.gates
    status = replace(status, gates=gates.heard(asked, status.gates, case.answers))
    refused = gates.failed_gate(asked, status.gates)
    if refused:
        return _fail(case, status, REFUSED, refused)
    assert status.batch_ready_at is not None, "only a batch that is well soaks"
    until = status.batch_ready_at.timestamp() + case.spec.strategy.soak_seconds
    silent = gates.waiting_gates(asked, status.gates)
    if case.now >= until and not silent:
        return status
    given_up_at = until + case.spec.progress_deadline_seconds
    if case.now >= given_up_at:
        return _fail(case, status, UNHEARD, f"no good answer from {', '.join(silent)}")
    waits = f"soaks until {_moment(until):%H:%M:%S}Z"
    if case.now >= until:
        waits = f"no good answer yet from {', '.join(silent)}"
    wake_at = min(until if case.now < until else given_up_at, _gates_due(case, status))
    return _say(case, status, "Soaking", "", waits, wake_at=wake_at)


def _gates_due(case: RolloutCase, status: RolloutStatus) -> float:
    asked = case.spec.strategy.gates
    return min((gates.due_at(gate, status.gates) for gate in asked), default=float("inf"))


def _complete(case: RolloutCase, status: RolloutStatus) -> Advanced:
    history = tuple(
        replace(revision, outcome="Completed") if revision.mark == status.target else revision
        for revision in status.history
    )
    status = replace(
        status, stable=status.target, stable_revision=status.revision, history=history, failure=""
    )
    return _say(case, status, "Completed", "", "")


# Failure and rollback.


def _fail(case: RolloutCase, status: RolloutStatus, reason: str, message: str) -> Advanced:
    history = tuple(
        replace(revision, outcome=reason) if revision.mark == status.target else revision
        for revision in status.history
    )
    status = replace(
        status,
        phase="RollingBack",
        failure=reason,
        failures=status.failures + 1,
        message=message[:1024],
        history=history,
        batch_ready_at=None,
    )
    if case.spec.on_failure == "Pause":
        return _say(case, status, "Paused", reason, message)
    back = replace(status, going_back=True, progress=0, progressed_at=_moment(case.now))
    return _back(case, back)


def _back(case: RolloutCase, status: RolloutStatus) -> Advanced:
    """Rolls back to the last good revision everywhere, as fast as the service can bear it."""
    goal: Goal = {place.cluster: WHOLE for place in case.places}
    mark = status.stable
    status = _progress(case, advance_stages(case, status, mark, goal), mark, goal)
    is_wished = status.target == status.stable
    if all(cluster.mark == mark for cluster in status.clusters) and are_there(
        case, status.clusters, mark, goal
    ):
        if is_wished:
            return _complete(case, replace(status, going_back=False))
        return _say(case, status, "RolledBack", status.failure, status.message)
    if status.phase in ("Completed", "RolledBack"):
        # Pods come and go in a service that has reached its goal; that is no rollout.
        return _say(case, status, status.phase, status.reason, status.message)
    due = _deadline(case, status)
    message = _lacking(status) if is_wished else status.message
    if not _is_awaited(case, status, mark):
        return _say(case, status, "RollingBack", status.failure, message)
    if case.now >= due:
        return _say(case, status, "Failed", STUCK, _lacking(status))
    return _say(case, status, "RollingBack", status.failure, message, wake_at=due)


# Words.


def _deadline(case: RolloutCase, status: RolloutStatus) -> float:
    since = status.progressed_at.timestamp() if status.progressed_at else case.now
    return since + case.spec.progress_deadline_seconds


def _lacking(status: RolloutStatus) -> str:
    """A message on replicas that have not reached their goal."""
    late = [
        f"{part.cluster} {part.ready}/{part.replicas if part.share is None else part.share}"
        for part in status.clusters
        if part.ready < (part.replicas if part.share is None else min(part.share, part.replicas))
    ]
    if not late:
        return "the next cluster waits until enough replicas are ready"
    more = f" and {len(late) - 5} more" if len(late) > 5 else ""
    return f"ready of their revision: {', '.join(late[:5])}{more}"


def _say(
    case: RolloutCase,
    status: RolloutStatus,
    phase: RolloutPhase,
    reason: str,
    message: str,
    *,
    wake_at: float | None = None,
) -> Advanced:
    places = case.places
    status = replace(
        status,
        phase=phase,
        reason=reason,
        message=message[:1024],
        replicas=sum(place.replicas for place in places),
        updated=sum(place.of(status.target).ready for place in places),
        ready=sum(place.ready for place in places),
    )
    return Advanced(status=status, wake_at=None if wake_at == float("inf") else wake_at)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
