"""What a change of a workload adds to counters and histograms.

A workload is kept in the few values that the next change is compared with. Labels are names of
queues, and codes of closed sets: what a cluster says is shown only if it is such a code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import Final, NamedTuple

from fairway.api.fleet_metrics import (
    ADMISSION_WAIT,
    EVICTIONS,
    FORECAST_ERROR,
    LOST_WORK,
    MOVES,
    OTHER,
    PREEMPTIONS,
    START_WAIT,
    Metric,
)
from fairway.api.names import OVER
from fairway.api.reasons import Code
from fairway.controllers.glance import Attempt, Claim, Glance
from fairway.controllers.lifecycle.recovery import causes
from fairway.controllers.timeline.spans import ENDINGS
from fairway.controllers.workload_events import COPIES_DONE, TASKS_DONE
from fairway.core.plan import Admit, Move, Preempt, Step

NOT_YET_KNOWN: Final = "NotYetKnown"
_THOUSANDTHS: Final = 1_000  # GPUs are counted in them
_DONE = frozenset({"Succeeded", TASKS_DONE, COPIES_DONE})
_BLAMES = frozenset({"Place", "Program", "Decision"})


class Seen(NamedTuple):
    """A workload as last seen."""

    uid: str = ""
    queue: str = ""
    waits_for: str | None = None  # the code of why it waits; None: it does not
    since: float | None = None  # when it began to wait
    decided_at: float | None = None
    ready_at: float | None = None
    last_attempt: int = 0
    gpus: Mapping[str, int] | None = None  # thousandths that its claim has, by cluster


@dataclass(frozen=True, slots=True)
class Turn:
    """Something to add: to a counter, or as an observation to a histogram."""

    metric: Metric
    labels: tuple[str, ...]
    value: float = 1.0


def seen_of(glance: Glance) -> Seen | None:
    """What to keep of a workload; None once it is over."""
    status, claim = glance.status, glance.status.claim
    if status.phase in OVER:
        return None
    waits = claim is None and status.phase in ("", "Waiting")
    return Seen(
        uid=glance.metadata.uid,
        queue=intern(glance.charged_queue or glance.spec.queue),
        waits_for=_code(status.reason or NOT_YET_KNOWN) if waits else None,
        since=glance.pending_since,
        decided_at=glance.decided_at,
        ready_at=glance.ready_at,
        last_attempt=glance.last_attempt,
        gpus=_gpus_by_cluster(claim) if claim is not None else None,
    )


def turns(before: Seen, after: Glance, forecast: float | None = None) -> Iterator[Turn]:
    """What happened to a workload since; `forecast` is when it was expected to start."""
    queue = after.charged_queue or after.spec.queue or before.queue
    for attempt in after.status.history:
        if attempt.attempt > before.last_attempt and attempt.reason not in _DONE:
            yield from _ended(attempt, queue, before.gpus or {})
    since, decided, ready = after.pending_since, after.decided_at, after.ready_at
    if decided is not None and before.decided_at is None and since is not None:
        yield Turn(ADMISSION_WAIT, (queue,), max(0.0, decided - since))
    if ready is not None and before.ready_at is None:
        if since is not None:
            yield Turn(START_WAIT, (queue,), max(0.0, ready - since))
        if forecast is not None:
            direction = "early" if ready < forecast else "late"
            yield Turn(FORECAST_ERROR, (direction,), abs(ready - forecast))


def decided(steps: Iterable[Step], queues: Mapping[str, str]) -> Iterator[Turn]:
    """What steps that were written add; `queues` has the queues of their workloads."""
    for step in steps:
        match step:
            case Preempt():
                metric = PREEMPTIONS
            case Move():
                metric = MOVES
            case Admit() if step.leaving:
                metric = MOVES
            case _:
                continue
        reason = step.reasons[0].code.value if step.reasons else OTHER
        yield Turn(metric, (queues.get(step.workload, ""), reason))


def _ended(attempt: Attempt, queue: str, gpus: Mapping[str, int]) -> Iterator[Turn]:
    """An attempt that ended before its work was done, or the part of one in some clusters."""
    cause = _code(attempt.reason)
    blame = attempt.blame if attempt.blame in _BLAMES else "Unknown"
    yield Turn(EVICTIONS, (queue, cause, blame))
    if ENDINGS.get(attempt.reason) == "Moved":
        yield Turn(MOVES, (queue, cause))
    lost = attempt.lost_seconds * sum(gpus.get(cluster, 0) for cluster in attempt.clusters)
    if lost:
        yield Turn(LOST_WORK, (queue, cause), lost / _THOUSANDTHS)


def _gpus_by_cluster(claim: Claim) -> dict[str, int]:
    result: dict[str, int] = {}
    for placement in claim.placements:
        gpus = sum(pods.gpus for pods in placement.pod_sets)
        result[placement.cluster] = result.get(placement.cluster, 0) + gpus
    return result


def _code(code: str) -> str:
    return _codes().get(code, OTHER)


@lru_cache(maxsize=1)
def _codes() -> Mapping[str, str]:
    """Every code that is shown; the same text for all workloads."""
    codes = (*(code.value for code in Code), *(cause.cause for cause in causes()), NOT_YET_KNOWN)
    return {code: code for code in codes}
