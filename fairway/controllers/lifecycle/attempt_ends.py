"""How attempts end: the history, the placements to release, and when to retry.

When an attempt ends, its placements move to `releasing`, where they are charged until they are
confirmed gone. With none to wait for, the workload takes its next phase at once. A workload that
will not be retried gets `finishedAt` while it still stops, so a hub that crashed knows that it is
over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from fairway.api.claim import Claim, PastAttempt, Placement
from fairway.api.doc import SECONDS_MAX
from fairway.api.reasons import REFUSALS, Code
from fairway.api.workload import Requeue, WorkloadStatus
from fairway.controllers.lifecycle import leaving_replicas
from fairway.controllers.lifecycle.case import LifecycleCase
from fairway.controllers.lifecycle.recovery import Blame, back_off
from fairway.controllers.lifecycle.tasks import swept
from fairway.controllers.lifecycle.troubles import Trouble
from fairway.controllers.workload_events import TASKS_DONE
from fairway.core.preemption.holders import lost_of_tasks
from fairway.core.task_numbers import count_of

HISTORY_MOST = 10
AVOIDED_SECONDS = 600  # how long a workload avoids a cluster that failed it
_AVOIDED_MOST = 64
_TEXT_MOST = 1024
# After these the workload goes to the end of its queue: it could not use its turn.
_LOSES_ITS_TURN = (Code.NOT_READY_IN_TIME.value, Code.PENDING_TOO_LONG.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Why an attempt ends, and what follows."""

    reason: str
    message: str = ""
    blame: Blame = "Decision"
    exit_code: int | None = None
    is_retried: bool = True
    is_counted: bool = False
    avoids: tuple[str, ...] = ()
    waits: bool = False
    uncharged: frozenset[str] = frozenset()  # clusters whose placements are not waited for


def moment(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC)


def end_of(troubles: Sequence[Trouble]) -> End:
    """The end of a whole attempt from the troubles of its placements: the gravest names it."""
    first = min(
        troubles,
        key=lambda trouble: (
            trouble.is_retried,
            not trouble.exit_code,
            trouble.blame == "Decision",
        ),
    )
    return End(
        reason=first.reason,
        message=first.message,
        blame=first.blame,
        exit_code=first.exit_code,
        is_retried=first.is_retried,
        is_counted=any(trouble.is_counted for trouble in troubles),
        avoids=tuple(trouble.placement.cluster for trouble in troubles if trouble.avoids_cluster),
        waits=any(trouble.waits for trouble in troubles),
        uncharged=frozenset(
            trouble.placement.cluster for trouble in troubles if not trouble.is_charged
        ),
    )


def end_attempt(case: LifecycleCase, status: WorkloadStatus, end: End) -> WorkloadStatus:
    """The status of a workload whose attempt ends."""
    claim = status.claim
    assert claim is not None, "only what holds a claim can end"
    history = (*status.history, past_attempt(case, claim, end))[-HISTORY_MOST:]
    requeue, is_final = _requeue(case, status, end, history)
    leaving = tuple(
        placement
        for placement in claim.placements
        if placement.cluster
        and placement.cluster not in end.uncharged
        and not (is_final and _is_over(case, placement))
    )
    loses_turn = end.reason in _LOSES_ITS_TURN
    stopping = replace(
        status,
        phase="Stopping",
        reason=end.reason,
        message=end.message[:_TEXT_MOST],
        claim=None,
        releasing=(*status.releasing, *with_attempt(leaving, claim)),
        history=history,
        requeue=requeue,
        ran_seconds=status.ran_seconds + ran_seconds(claim, case.now),
        replicas=0,
        finished_at=moment(case.now) if is_final else None,
        queued_at=moment(case.now)
        if loses_turn
        else status.queued_at or case.workload.metadata.creation_timestamp,
        increased_at=None,
    )
    return settle(case, stopping)


def rest(case: LifecycleCase, status: WorkloadStatus, reason: str = TASKS_DONE) -> WorkloadStatus:
    """The status of a sweep whose placed tasks are all over while others are still pending.

    Or of copies, of which others are still pending.

    Nothing was lost, and no attempt has failed. So consecutive batches share one entry of the
    history. It keeps the attempt of the last batch, so that the next work gets a higher one.
    """
    claim = status.claim
    assert claim is not None, "only what holds a claim can end"
    over = frozenset(placement.cluster for placement in claim.placements)
    workload_status = end_attempt(case, status, End(reason=reason, uncharged=over))
    lot = replace(workload_status.history[-1], lost_seconds=0)
    earlier = workload_status.history[:-1]
    if earlier and earlier[-1].reason == reason:
        first = earlier[-1]
        clusters = tuple(dict.fromkeys((*first.clusters, *lot.clusters)))
        lot = replace(lot, started_at=first.started_at or lot.started_at, clusters=clusters)
        earlier = earlier[:-1]
    return replace(workload_status, history=(*earlier, lot))


def settle(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """The status of a stopping workload once all it leaves is confirmed gone."""
    if status.phase != "Stopping" or status.releasing:
        return status
    spec = case.workload.spec
    if status.finished_at is not None:
        is_cancelled = status.reason == Code.CANCELLED.value
        return replace(status, phase="Cancelled" if is_cancelled else "Failed")
    if spec.cancelled:
        return cancel(case, status)
    if spec.hold != "None":
        return replace(status, phase="Held", reason=Code.HELD.value, message="")
    if status.reason in REFUSALS:  # people must see what the cluster said
        return replace(status, phase="Waiting", reason=Code.TEMPLATE_REFUSED.value)
    not_before = status.requeue.not_before if status.requeue else None
    waits = not_before is not None and not_before.timestamp() > case.now
    return replace(status, phase="Waiting", reason=Code.BACK_OFF.value if waits else "", message="")


def cancel(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    return replace(
        status,
        phase="Cancelled",
        reason=Code.CANCELLED.value,
        message="",
        finished_at=moment(case.now),
        reservation=None,
    )


def succeed(case: LifecycleCase, status: WorkloadStatus) -> WorkloadStatus:
    """The status of a workload that succeeded."""
    claim = status.claim
    history, ran = status.history, status.ran_seconds
    at = moment(_finished_at(case, claim) if claim else case.now)
    if claim is not None:
        end = End(reason="Succeeded", blame="Program")
        history = (*history, replace(past_attempt(case, claim, end), ended_at=at, lost_seconds=0))
        ran += ran_seconds(claim, at.timestamp())
    return replace(
        status,
        phase="Succeeded",
        reason="Succeeded",
        message="",
        started_at=status.started_at or (claim.ready_at or at if claim else at),
        finished_at=at,
        claim=None,
        requeue=None,
        history=history[-HISTORY_MOST:],
        ran_seconds=ran,
        replicas=0,
    )


def shrunk(
    case: LifecycleCase, status: WorkloadStatus, troubles: Sequence[Trouble]
) -> WorkloadStatus:
    """The status of a workload that loses some of its placements and keeps the others.

    The attempt increases, so that a later placement in the same cluster differs from this one.
    """
    claim = status.claim
    assert claim is not None, "only what holds a claim can shrink"
    leaving = {trouble.placement.cluster: trouble for trouble in troubles}
    kept = tuple(placement for placement in claim.placements if placement.cluster not in leaving)
    gone = tuple(placement for placement in claim.placements if placement.cluster in leaving)
    history = status.history
    for placement in gone:
        end = end_of([leaving[placement.cluster]])
        history = (*history, past_attempt(case, replace(claim, placements=(placement,)), end))
    history = history[-HISTORY_MOST:]
    requeue, _ = _requeue(case, status, end_of(troubles), history)
    charged = tuple(
        leaving_replicas.leave_place(case, placement, leaving[placement.cluster].reason)
        for placement in gone
        if leaving[placement.cluster].is_charged
    )
    return replace(
        status,
        reason=troubles[0].reason,
        message=troubles[0].message[:_TEXT_MOST],
        claim=replace(claim, attempt=claim.attempt + 1, placements=with_attempt(kept, claim)),
        releasing=(*status.releasing, *with_attempt(charged, claim)),
        history=history,
        requeue=requeue,
        replicas=sum(placement.replicas or 0 for placement in kept),
    )


def is_final(case: LifecycleCase, status: WorkloadStatus, end: End) -> bool:
    """Whether a workload that ends this way is not retried."""
    count = (status.requeue.count if status.requeue else 0) + end.is_counted
    return not end.is_retried or (end.is_counted and count > case.settings.retry.limit)


def avoid(case: LifecycleCase, before: Requeue | None, clusters: Sequence[str]) -> Requeue | None:
    """A requeue that also avoids the given clusters for a while."""
    if not clusters:
        return before
    requeue = before or Requeue()
    every = tuple(dict.fromkeys((*requeue.avoid, *clusters)))[-_AVOIDED_MOST:]
    until = moment(case.now) + timedelta(seconds=AVOIDED_SECONDS)
    return replace(requeue, avoid=every, avoid_until=until)


def _requeue(
    case: LifecycleCase, status: WorkloadStatus, end: End, history: Sequence[PastAttempt]
) -> tuple[Requeue | None, bool]:
    final = is_final(case, status, end)
    requeue = avoid(case, status.requeue, () if final else end.avoids)
    if end.is_counted and not final:
        requeue = requeue or Requeue()
        requeue = replace(requeue, count=requeue.count + 1)
    if end.waits and not final:
        seconds = back_off(case.settings.retry, history)
        not_before = moment(case.now) + timedelta(seconds=seconds)
        requeue = replace(requeue or Requeue(), not_before=not_before)
        if requeue.avoid:
            # The time for which the cluster is avoided begins after the backoff.
            requeue = replace(requeue, avoid_until=not_before + timedelta(seconds=AVOIDED_SECONDS))
    return requeue, final


def past_attempt(case: LifecycleCase, claim: Claim, end: End) -> PastAttempt:
    return PastAttempt(
        attempt=claim.attempt,
        clusters=tuple(placement.cluster for placement in claim.placements if placement.cluster),
        started_at=claim.ready_at,
        ended_at=moment(case.now),
        reason=end.reason,
        message=end.message[:_TEXT_MOST],
        blame=end.blame,
        lost_seconds=_lost_seconds(case, claim, is_asked=end.blame == "Decision"),
        exit_code=end.exit_code,
    )


def ran_seconds(claim: Claim, now: float) -> int:
    return max(0, int(now - claim.ready_at.timestamp())) if claim.ready_at else 0


def _lost_seconds(case: LifecycleCase, claim: Claim, *, is_asked: bool) -> int:
    """Work since the last checkpoint; 0 if it saves on a signal and a decision stopped it."""
    ran = min(_run_since(case, claim), SECONDS_MAX)  # a clock may be years ahead
    checkpoint = case.workload.spec.checkpoint
    if checkpoint is None:
        return ran
    if is_asked and checkpoint.signal:
        return 0
    return ran % checkpoint.interval_seconds if checkpoint.interval_seconds else ran


def _run_since(case: LifecycleCase, claim: Claim) -> int:
    """How long the attempt has run; for a sweep, how long its running tasks have."""
    ran, spec, status = ran_seconds(claim, case.now), case.workload.spec, case.workload.status
    if spec.tasks is None:
        return ran
    number = lost_of_tasks(
        ran,
        before=status.ran_seconds,
        running=sum(count_of(placement.tasks) for placement in claim.placements),
        over=count_of(status.succeeded_tasks) + count_of(status.failed_tasks),
        task_seconds=spec.run_seconds.estimate,
    )
    return int(number)


def _finished_at(case: LifecycleCase, claim: Claim) -> float:
    """When the last placement ended by the agents' clocks, bounded since they may be wrong."""
    seen = [case.observation_of(placement) for placement in claim.placements]
    times = [
        observation.finished_at
        for observation in seen
        if observation is not None and observation.finished_at is not None
    ]
    return min(case.now, max(max(times, default=case.now), claim.decided_at.timestamp()))


def _is_over(case: LifecycleCase, placement: Placement) -> bool:
    """Whether nothing of a placement can run any more.

    A cluster that is done with the tasks it has may still get more of the same attempt.
    """
    seen, tasks = case.observation_of(placement), case.workload.spec.tasks
    if seen is None or not seen.is_over:
        return False
    return tasks is None or placement.cluster not in {
        unfinished.cluster for unfinished in swept(case, tasks).placements
    }


def with_attempt(placements: Sequence[Placement], claim: Claim) -> tuple[Placement, ...]:
    return tuple(
        placement if placement.attempt else replace(placement, attempt=claim.attempt)
        for placement in placements
    )
