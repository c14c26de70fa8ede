"""The lifecycle of a workload: from its status to the next one.

One function for each phase. Each checks what is over, what users request, and what went wrong, in
that order: a workload that succeeded stays so even if it is cancelled. Nothing is written if
nothing changed, and the function is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as with_fields

from msgspec.structs import replace

from fairway.api.claim import Claim, Placement
from fairway.api.names import FINALIZER, OVER
from fairway.api.reasons import Code
from fairway.api.workload import WorkloadStatus
from fairway.controllers.lifecycle import (
    attempt_ends,
    copies,
    counts,
    leaving_replicas,
    policy_conditions,
    refusals,
    resize,
)
from fairway.controllers.lifecycle.allowance import with_allowance
from fairway.controllers.lifecycle.attempt_ends import End, end_attempt, moment, settle
from fairway.controllers.lifecycle.case import Change, LifecycleCase
from fairway.controllers.lifecycle.takeovers import brought_back, overtaken, taken_over
from fairway.controllers.lifecycle.tasks import Swept, swept, text
from fairway.controllers.lifecycle.troubles import NEVER, Trouble, gives_up_at, trouble_of
from fairway.controllers.scheduling.claims import summary_of
from fairway.controllers.work_states import has_succeeded


def next_status(case: LifecycleCase) -> Change:
    """The change to a workload, and when to look again."""
    phase = case.workload.status.phase or "Waiting"
    if case.workload.metadata.deletion_timestamp is not None and _holds_nothing(case):
        has_finalizer = FINALIZER in case.workload.metadata.finalizers
        return Change(releases=has_finalizer and not case.awaits_clusters)
    return _finish(case, _PHASES[phase](case))


def _holds_nothing(case: LifecycleCase) -> bool:
    """Whether nothing of a workload is left, nor runs that an agent brought back."""
    status = case.workload.status
    is_over = status.phase in OVER
    is_free = status.claim is None and not _still_there(case, status)
    return is_free and (is_over or brought_back(case) is None)


def _finish(case: LifecycleCase, change: Change) -> Change:
    """Adds conditions to a changed status; conditions alone are no reason to write."""
    status, before = change.status, case.workload.status
    if status is None:
        return change
    status = with_allowance(case, status)
    if status == before:
        return with_fields(change, status=None)
    generation = case.workload.metadata.generation
    status = replace(status, observed_generation=generation)
    if status.claim is None:
        status = policy_conditions.without_conditions(status)
    return with_fields(
        change,
        status=replace(
            status,
            conditions=counts.conditions_of(status, now=case.now, generation=generation),
        ),
    )


# Pending, held and finished workloads.


def _waiting(case: LifecycleCase) -> Change:
    status, spec = copies.with_memory(case, case.workload.status), case.workload.spec
    claim = brought_back(case)
    if claim is not None:
        # The hub had forgotten what runs; requests of users are handled next.
        return Change(status=taken_over(status, claim))
    if spec.cancelled:
        return Change(status=attempt_ends.cancel(case, status))
    if spec.hold != "None":
        if status.phase == "Held":
            return Change()
        held = replace(status, phase="Held", reason=Code.HELD.value, reservation=None)
        return Change(status=held)
    if status.phase == "Held":
        status = replace(status, phase="Waiting", reason="")
    status = _with_wishes(case, _no_longer_avoiding(case, status))
    until = status.requeue.avoid_until if status.requeue else None
    return Change(status=status, wake_at=until.timestamp() if until else None)


def _no_longer_avoiding(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    requeue = status.requeue
    if requeue is None or requeue.avoid_until is None:
        return status
    if requeue.avoid_until.timestamp() > case.now:
        return status
    left = replace(requeue, avoid=(), avoid_until=None)
    return replace(
        refusals.forgotten(status), requeue=left if left.count or left.not_before else None
    )


def _with_wishes(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """Takes a changed queue or priority over into the status."""
    spec = case.workload.spec
    if status.queue and spec.queue and status.claim is None:
        status = replace(status, queue=spec.queue)
    if status.queue and spec.priority is not None:
        status = replace(status, priority=spec.priority)
    return status


def _over(case: LifecycleCase) -> Change:
    """A finished workload is kept for a while; its pods are gone, its works stay for their logs.

    A sweep may be over while a placement that it left earlier is still stopping.
    """
    status = case.workload.status
    left = _still_there(case, status)
    if len(left) != len(status.releasing):
        return Change(status=replace(status, releasing=left))
    moments = [gives_up_at(case, placement) for placement in left]
    seconds = case.settings.finished_seconds
    if seconds is not None and status.finished_at is not None:
        due = status.finished_at.timestamp() + seconds
        if due <= case.now:
            return Change(delete=True)
        moments.append(due)
    wake_at = min(moments, default=NEVER)
    return Change(wake_at=None if wake_at == NEVER else wake_at)


# Stopping workloads.


def _stopping(case: LifecycleCase) -> Change:
    status = copies.with_memory(case, case.workload.status)
    later = brought_back(case) if status.finished_at is None else None
    if later is not None:
        # A restored hub: the workload had gone on since, and what it left then still leaves.
        return Change(status=taken_over(status, later))
    left = _still_there(case, status)
    if len(left) != len(status.releasing) or not left:
        status = replace(status, releasing=left, pods=counts.count_pods(case, status))
        status = settle(case, status)
    due = min((gives_up_at(case, placement) for placement in left), default=NEVER)
    return Change(status=status, wake_at=None if due == NEVER else due)


def _still_there(case: LifecycleCase, status: WorkloadStatus) -> tuple[Placement, ...]:
    """The released placements that are not confirmed gone."""
    return tuple(
        placement for placement in status.releasing if not _is_gone(case, placement, status)
    )


def _is_gone(case: LifecycleCase, placement: Placement, status: WorkloadStatus) -> bool:
    """Whether a released placement is gone; `status` has what the workload still holds."""
    if not placement.cluster or gives_up_at(case, placement) <= case.now:
        return True
    if leaving_replicas.stays(placement) and status.claim is not None:
        return False
    seen = case.works.get(placement.cluster)
    if seen is None or seen.attempt < placement.attempt:
        return False
    if seen.phase == "Gone" or seen.attempt > placement.attempt:
        return True
    # Some replicas leave and others stay: they are gone once no more pods are there than stay.
    counts = leaving_replicas.pods_that_stay(placement, status)
    if counts is None:
        return False
    return bool(seen.pods) and all(
        pods.total <= counts.get(name, 0) for name, pods in seen.pods.items()
    )


# Claimed and running workloads.


def _claim(case: LifecycleCase) -> Change:
    if (later := overtaken(case)) is not None:
        return Change(status=later)
    status = case.workload.status
    status = replace(status, releasing=_still_there(case, status))
    status = leaving_replicas.let_go(case, copies.with_memory(case, status))
    status = _no_longer_avoiding(case, _with_wishes(case, status))
    status = policy_conditions.with_conditions(case, status)
    sweep = swept(case, case.workload.spec.tasks) if case.workload.spec.tasks else None
    end = _outcome(case, status, sweep)
    if end is None and case.awaits_clusters:
        # What runs may have ended since a backup: only its end counts until its agent reports.
        return Change()
    if end is None:
        status = copies.without_finished(case, status)
        end = _ask(case, status) or _limit(case, status)
    if end is not None:
        return Change(status=_trim(case, end))
    if sweep is not None:
        status = _with_tasks(case, status, sweep)
        if status.claim is None:
            return Change(status=status)
    return _place(case, status)


def _outcome(
    case: LifecycleCase, status: WorkloadStatus, sweep: Swept | None
) -> WorkloadStatus | None:
    """The end of a workload that succeeded, or of a sweep with too many failed tasks."""
    assert status.claim is not None, "only what holds a claim is looked at"
    if sweep is not None:
        most = case.workload.spec.tasks.failed_max if case.workload.spec.tasks else 0
        with_tasks = replace(
            status,
            succeeded_tasks=text(sweep.succeeded),
            failed_tasks=text(sweep.failed),
        )
        if len(sweep.failed) > (most or 0):
            end = End(reason=Code.TASKS_FAILED.value, blame="Program", is_retried=False)
            return end_attempt(case, with_tasks, end)
        return attempt_ends.succeed(case, with_tasks) if sweep.is_over else None
    if case.is_copied:
        return copies.outcome(case, status)
    if has_succeeded(status.claim, case.works.get):
        counted = counts.count_pods(case, status)
        return replace(attempt_ends.succeed(case, status), pods=counted)
    return None


def _ask(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus | None:
    """The end of an attempt that users request: delete, cancel or drain."""
    spec = case.workload.spec
    if case.workload.metadata.deletion_timestamp is not None:
        return end_attempt(case, status, End(reason=Code.DELETED.value, is_retried=False))
    if spec.cancelled:
        return end_attempt(case, status, End(reason=Code.CANCELLED.value, is_retried=False))
    if spec.hold == "HoldAndDrain":
        return end_attempt(case, status, End(reason=Code.DRAINED.value))
    if case.settings.queue_hold == "HoldAndDrain" and case.may_move:
        return end_attempt(case, status, End(reason=Code.QUEUE_DRAINED.value))
    return None


def _limit(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus | None:
    if case.now < _limit_at(case, status):
        return None
    end = End(reason=Code.RUN_LIMIT_EXCEEDED.value, blame="Program", is_retried=False)
    return end_attempt(case, status, end)


def _limit_at(case: LifecycleCase, status: WorkloadStatus) -> float:
    """When all attempts together reach the run limit."""
    claim, limit = status.claim, case.settings.run_limit
    if limit is None or claim is None or claim.ready_at is None:
        return NEVER
    return claim.ready_at.timestamp() + max(0, limit - status.ran_seconds)


def _with_tasks(case: LifecycleCase, status: WorkloadStatus, sweep: Swept) -> WorkloadStatus:
    """Removes finished tasks from the claim; if none is left in it, the other tasks wait."""
    claim = status.claim
    assert claim is not None, "only what holds a claim is looked at"
    status = replace(status, succeeded_tasks=text(sweep.succeeded), failed_tasks=text(sweep.failed))
    if sweep.placements:
        # A later placement in a finished cluster must differ from the one that ended there.
        rises = len(sweep.placements) < len(claim.placements)
        attempt = claim.attempt + rises
        placements = attempt_ends.with_attempt(sweep.placements, claim)
        return replace(status, claim=replace(claim, attempt=attempt, placements=placements))
    return attempt_ends.rest(case, status)


def _place(case: LifecycleCase, status: WorkloadStatus) -> Change:
    """Handles troubles first; without any, the workload may become Running."""
    assert status.claim is not None, "only what holds a claim is looked at"
    looks = [trouble_of(case, placement) for placement in status.claim.placements]
    troubles = [item for item in looks if isinstance(item, Trouble)]
    times = [item for item in looks if isinstance(item, float)]
    if troubles:
        return _troubled(case, status, troubles, times)
    status = resize.resize(case, _with_readiness(case, status))
    status = _with_counts(case, counts.with_finished(case, status))
    return Change(status=status, wake_at=_wake_at(case, status, times))


def _troubled(
    case: LifecycleCase, status: WorkloadStatus, troubles: list[Trouble], times: list[float]
) -> Change:
    assert status.claim is not None, "only what holds a claim is looked at"
    is_whole = case.workload.spec.mode == "Gang" or len(troubles) == len(status.claim.placements)
    is_whole = is_whole and not leaving_replicas.may_outlast(case, status, troubles)
    before = sum(placement.replicas or 0 for placement in status.claim.placements)
    stuck = [trouble for trouble in troubles if resize.leaves_some(case, trouble)]
    if stuck:
        status = resize.taken_back(case, status, stuck)
        troubles = [trouble for trouble in troubles if trouble not in stuck]
        is_whole = False
    nodes = tuple(trouble.node for trouble in troubles if trouble.node is not None)
    moves = sum(trouble.is_move for trouble in (*troubles, *stuck))
    if troubles:
        end = attempt_ends.end_of(troubles)
        if attempt_ends.is_final(case, status, end):
            status = end_attempt(case, status, copies.named(case, end, troubles))
        elif is_whole:
            status = end_attempt(case, status, end)
        else:
            status = attempt_ends.shrunk(case, status, troubles)
            status = copies.with_missing(case, status, len(troubles))
        status = refusals.noted(case, status, troubles)
    if status.claim is not None:
        after = sum(placement.replicas or 0 for placement in status.claim.placements)
        status = _summarise(leaving_replicas.undo_lost_moves(status, before - after))
        status = _with_readiness(case, status)  # the rest may be ready, or done
        if case.workload.spec.tasks is None:
            status = _outcome(case, status, None) or status
    status = _trim(case, status)
    return Change(
        status=status, wake_at=_wake_at(case, status, times), nodes_aside=nodes, moves=moves
    )


def _summarise(status: WorkloadStatus) -> WorkloadStatus:
    """Updates the summary of the claim."""
    assert status.claim is not None, "only what holds a claim is looked at"
    text = summary_of(status.claim.placements)
    return replace(status, claim=replace(status.claim, summary=text))


def _trim(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """Drops released placements that are already gone, and updates the counts."""
    left = _still_there(case, status)
    status = settle(case, replace(status, releasing=left))
    if status.phase == "Succeeded":
        return status
    return replace(status, pods=counts.count_pods(case, status))


_READY: Mapping[str, Callable[[LifecycleCase, Sequence[Placement]], bool]] = {
    "Gang": lambda case, placed: all(counts.is_ready(case, placement) for placement in placed),
    "Divided": lambda case, placed: any(
        counts.has_ready_pod(case, placement) for placement in placed
    ),
    "Independent": lambda case, placed: any(
        counts.has_started(case, placement) for placement in placed
    ),
}


def _with_readiness(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    claim = status.claim
    assert claim is not None, "only what holds a claim is looked at"
    if not claim.placements or claim.ready_at is not None:
        return status
    if not _READY[case.workload.spec.mode](case, claim.placements):
        return status
    at = moment(_ready_at(case, claim))
    requeue = status.requeue
    if requeue is not None and requeue.avoid and case.workload.spec.mode == "Gang":
        requeue = replace(requeue, avoid=(), avoid_until=None)
    return replace(
        status,
        phase="Running",
        reason="",
        message="",
        started_at=status.started_at or at,
        claim=replace(claim, ready_at=at),
        requeue=requeue,
        selector=counts.selector_of(case.workload),
    )


def _ready_at(case: LifecycleCase, claim: Claim) -> float:
    """When it became ready by the agents' clocks; not before the decision, and not after now."""
    seen = [case.observation_of(placement) for placement in claim.placements]
    times = [
        observation.ready_at
        for observation in seen
        if observation is not None and observation.ready_at is not None
    ]
    latest = max(times, default=case.now)
    return min(case.now, max(latest, claim.decided_at.timestamp()))


def _with_counts(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """Updates counts and feedback if something else is written or they are worth a write."""
    pods = counts.count_pods(case, status)
    feedback = counts.feedback_of([case.sent[name] for name in sorted(case.sent)])
    changed = replace(status, pods=pods, feedback=feedback)
    if status != case.workload.status or feedback != status.feedback:
        return changed
    if status.phase != "Running" or pods == status.pods:
        return status
    is_news = case.refreshes or counts.is_worth_writing(status.pods, pods)
    return changed if is_news else status


def _wake_at(case: LifecycleCase, status: WorkloadStatus, times: Sequence[float]) -> float | None:
    until = status.requeue.avoid_until if status.requeue else None
    due = [
        *times,
        _limit_at(case, status),
        case.breach_at,
        *(gives_up_at(case, placement) for placement in status.releasing),
        *(placement.leaves_by.timestamp() for placement in status.releasing if placement.leaves_by),
        until.timestamp() if until else NEVER,
    ]
    earliest = min(due)
    return None if earliest == NEVER else earliest


_PHASES: Mapping[str, Callable[[LifecycleCase], Change]] = {
    "Waiting": _waiting,
    "Held": _waiting,
    "Claimed": _claim,
    "Running": _claim,
    "Stopping": _stopping,
    **dict.fromkeys(OVER, _over),
}
