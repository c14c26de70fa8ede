"""What happened to a workload, from its status before and after a write: one event for each turn.

An event has a reason, which programs compare, and a message for people. Why something happened is
worded by `api.reasons`. A message names no workload of another namespace, since events are read by
all who may read the namespace. Counts, codes and times that change within a phase are no events,
nor are the batches of tasks that a sweep goes through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fairway.api.claim import Claim, PastAttempt
from fairway.api.discretion import ANOTHER
from fairway.api.names import OVER
from fairway.api.reasons import Code, Reason, sentence
from fairway.api.workload import Workload, WorkloadStatus

TASKS_DONE: Final = "TasksDone"  # why a batch of tasks of a sweep ended
COPIES_DONE: Final = "CopiesDone"  # why an attempt ended whose copies succeeded; others wait
_AT_FAULT = ("Place", "Program")
_CODES = frozenset(code.value for code in Code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event on a workload."""

    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


def happening(workload: Workload, after: WorkloadStatus) -> Happening | None:
    """What a write of this status means for a workload; None: nothing that is worth an event."""
    before = workload.status
    was, phase = before.phase, after.phase
    if phase not in OVER and (done := _done_since(before, after)):
        where = ", ".join(done)
        return Happening(reason="CopySucceeded", message=f"Its copy in {where} succeeded")
    if phase == was:
        return _elsewhere(workload, after)
    if phase not in OVER and (_is_next_batch(before) or _is_next_batch(after)):
        return None
    match phase:
        case "Waiting":
            return _pending(workload, after)
        case "Claimed" | "Running" if after.claim is not None:
            return _placed(after.claim, has_started=phase == "Running")
        case "Stopping":
            return _ending(after)
        case "Held":
            return Happening(reason="Held", message=_capital(sentence(Reason(code=Code.HELD))))
        case "Succeeded" | "Failed" | "Cancelled":
            return _over(after, phase)
        case _:
            return None


def _pending(workload: Workload, after: WorkloadStatus) -> Happening:
    before = workload.status
    queue = after.queue or workload.spec.queue
    where = f" in queue {queue}" if queue else ""
    if before.claim is not None and _is_preempted(after):
        return _ending(after)
    if before.phase in ("Stopping", "Claimed", "Running") and after.history:
        past = after.history[-1]
        return Happening(
            reason="Requeued",
            message=f"Pending again{where} after {_attempt(past)}: {_why(past, queue)}",
            type="Warning" if past.blame in _AT_FAULT else "Normal",
        )
    why = "no longer held" if before.phase == "Held" else after.reason
    return Happening(reason="Queued", message=f"Pending{where}" + (f": {why}" if why else ""))


def _placed(claim: Claim, *, has_started: bool) -> Happening:
    where = f" in {claim.summary}" if claim.summary else ""
    if has_started:
        return Happening(reason="Started", message=f"Attempt {claim.attempt} runs{where}")
    first = [
        *(["what it preempts is gone"] if _waits(claim, "Preemption") else ()),
        *(["new nodes have come"] if _waits(claim, "Provision") else ()),
    ]
    later = f" as soon as {' and '.join(first)}" if first else ""
    return Happening(reason="Admitted", message=f"Attempt {claim.attempt} starts{where}{later}")


def _waits(claim: Claim, sort: str) -> bool:
    return any(awaited.type == sort for awaited in claim.waits_for)


def _ending(after: WorkloadStatus) -> Happening:
    if not after.history:
        return Happening(reason="Stopping", message=f"Stopping: {after.reason}")
    past = after.history[-1]
    is_preempted = _is_preempted(after)
    return Happening(
        reason="Preempted" if is_preempted else "Stopping",
        message=f"{_capital(_attempt(past))} {'was' if is_preempted else 'ends:'} "
        f"{_why(past, after.queue)}",
        type="Warning" if past.blame in _AT_FAULT else "Normal",
    )


def _over(after: WorkloadStatus, phase: Literal["Succeeded", "Failed", "Cancelled"]) -> Happening:
    past = after.history[-1] if after.history else None
    if phase == "Cancelled":
        return Happening(
            reason=phase, message=_capital(sentence(Reason(code=Code.CANCELLED, queue=after.queue)))
        )
    attempt = _capital(_attempt(past)) if past is not None else "It"
    if phase == "Succeeded":
        return Happening(reason=phase, message=f"{attempt} succeeded")
    why = _why(past, after.queue) if past is not None else after.message or after.reason
    return Happening(reason=phase, message=f"{attempt} failed: {why}", type="Warning")


def _elsewhere(workload: Workload, after: WorkloadStatus) -> Happening | None:
    """A claim in force that lost clusters, or has others than before."""
    before = workload.status
    if before.claim is None or after.claim is None or workload.spec.mode == "Independent":
        return None
    was = {placement.cluster for placement in before.claim.placements}
    is_ = {placement.cluster for placement in after.claim.placements}
    if was == is_:
        return None
    now = f"now in {after.claim.summary}" if after.claim.summary else "now in no cluster"
    new = after.history[-1] if after.history[-1:] != before.history[-1:] else None
    if new is not None:
        message = f"{_capital(_attempt(new))} ends: {_why(new, after.queue)}; {now}"
        is_fault = new.blame in _AT_FAULT
        return Happening(
            reason="Evicted", message=message, type="Warning" if is_fault else "Normal"
        )
    new_in = sorted(is_ - was) or sorted(is_)
    why = f": {_code_words(after.reason, new_in, after.queue)}" if after.reason else ""
    return Happening(reason="Moved", message=f"{_capital(now)}{why}")


def _done_since(before: WorkloadStatus, after: WorkloadStatus) -> list[str]:
    """The clusters whose copy of a workload has succeeded since."""
    return sorted(set(after.succeeded_clusters) - set(before.succeeded_clusters))


def _is_next_batch(status: WorkloadStatus) -> bool:
    return bool(status.history) and status.history[-1].reason == TASKS_DONE


def _is_preempted(status: WorkloadStatus) -> bool:
    past = status.history[-1] if status.history else None
    return past is not None and past.reason == status.reason and past.preempted_by is not None


def _attempt(past: PastAttempt) -> str:
    where = f" in {' and '.join(past.clusters)}" if past.clusters else ""
    return f"attempt {past.attempt}{where}"


def _why(past: PastAttempt, queue: str) -> str:
    """Why an attempt ended: what its cluster said, else the reason in English."""
    if past.message:
        return past.message
    by = past.preempted_by
    if by is not None:
        other = f"{by.namespace}/{by.name}" if by.name else ANOTHER
        return _code_words(past.reason, past.clusters, by.queue, other=other)
    code = f" (exit code {past.exit_code})" if past.exit_code else ""
    return f"{_code_words(past.reason, past.clusters, queue)}{code}"


def _code_words(code: str, clusters: Sequence[str], queue: str, other: str = "") -> str:
    """A code in English; one that is not of the closed set, as a cause of a failure, as it is."""
    if code not in _CODES:
        return code
    where = " and ".join(clusters)
    return sentence(Reason(code=Code(code), cluster=where, queue=queue, other=other))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
