"""Spans: what each workload held, where and for how long, kept as claims come and go.

A span lasts from the decision until the pods are confirmed gone, which is how long it is charged.
What is held is known from the claims, so a hub that starts knows it at once. Ended spans are kept
for a day, up to a number of spans, and outlive the hub if a keeper stores them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

import msgspec

from fairway.api.reasons import Code
from fairway.clock import Clock, parse_timestamp
from fairway.controllers.cache import Cache
from fairway.controllers.glance import Glance, Reserved, glance
from fairway.controllers.kept_lines import LineKeeper, NoLineKeeper
from fairway.core.costs.accounts import ClusterFlavor
from fairway.store.interface import Stored
from fairway.store.keys import WORKLOADS
from fairway.store.mirrors import Name

_log = logging.getLogger(__name__)

KEPT_SECONDS: Final = 25 * 3600.0
_ENDED_MOST = 20_000
_OVERDUE_SECONDS_MIN = 60.0

Ending = Literal["", "Succeeded", "Failed", "Preempted", "Moved", "Cancelled", "Stopped", "Resized"]

ENDINGS: Final[dict[str, Ending]] = {
    "Succeeded": "Succeeded",
    "TasksDone": "Succeeded",
    Code.CANCELLED.value: "Cancelled",
    Code.DELETED.value: "Cancelled",
    Code.RETURNS_HOME.value: "Moved",
    Code.CLUSTER_DRAINED.value: "Moved",
    Code.CLUSTER_TAINTED.value: "Moved",
    Code.CLUSTER_LOST.value: "Moved",
    Code.CLUSTER_REMOVED.value: "Moved",
    Code.PENDING_TOO_LONG.value: "Moved",
    Code.NOT_READY_IN_TIME.value: "Moved",
    Code.HELD.value: "Stopped",
    Code.DRAINED.value: "Stopped",
    Code.QUEUE_DRAINED.value: "Stopped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """GPUs of one flavor in one cluster, held by one workload for some time."""

    workload: str  # namespace/name
    cluster: str
    queue: str
    flavor: str
    gpus: int  # thousandths
    decided_at: float
    ready_at: float | None = None  # when its pods became ready; None: not yet, or never
    ended_at: float | None = None
    ended: Ending = ""
    run_seconds: float | None = None  # expected total run time
    uid: str = ""  # of the workload: another may reuse its name

    def until(self, now: float) -> float | None:
        """When a lasting span is likely to end, computed as in forecasts; None: not known."""
        if self.run_seconds is None:
            return None
        left = (self.ready_at if self.ready_at is not None else now) + self.run_seconds - now
        return now + (left if left > 0 else max(_OVERDUE_SECONDS_MIN, -left))


class Spans:
    """All spans of the last day."""

    def __init__(self, cache: Cache, clock: Clock, keeper: LineKeeper | None = None) -> None:
        self._clock = clock
        self._keeper = keeper or NoLineKeeper()
        self._open: dict[Name, dict[ClusterFlavor, Span]] = {}
        self.reserved: dict[str, tuple[str, Reserved]] = {}  # workload -> queue, its reservation
        self._ended: deque[Span] = deque()
        self._told_until: dict[
            tuple[str, ClusterFlavor], float
        ] = {}  # ends of spans kept by the last hub, which may last on
        self.since = clock.now()  # from when on no span is missing
        self._take_up()
        cache.mirror(WORKLOADS).followers.append(self._follow)

    def _take_up(self) -> None:
        """Takes up the spans of the last hub; some may be missing between its end and now."""
        try:
            spans = [read for line in self._keeper.read() if (read := _read(line)) is not None]
        except OSError as fault:
            _log.warning("the spans of the last hub cannot be read: %s", fault)
            return
        self.since = min((self.since, *(span.decided_at for span in spans)))
        if len(spans) >= _ENDED_MOST:  # there were more
            self.since = max(self.since, spans[0].ended_at or 0.0)
        for span in spans:
            self._put(span)
            place = (span.cluster, span.flavor)
            self._told_until[span.workload, place] = span.ended_at or 0.0

    def ended_after(self, moment: float) -> Iterator[Span]:
        """Spans that ended after a moment; some are seen long after they ended."""
        return (span for span in self._ended if (span.ended_at or 0.0) > moment)

    def open_spans(self) -> Iterator[Span]:
        for places in self._open.values():
            yield from places.values()

    def _follow(self, name: Name, stored: Stored | None) -> None:
        seen = glance(stored) if stored is not None else None
        if stored is not None and seen is None:
            return
        key = f"{name[0]}/{name[1]}"
        if seen is not None and seen.status.reservation is not None:
            self.reserved[key] = (_queue(seen), seen.status.reservation)
        else:
            self.reserved.pop(key, None)
        before, now = self._open.pop(name, {}), self._clock.now()
        if seen is not None and any(span.uid != seen.metadata.uid for span in before.values()):
            for span in before.values():
                self._end(span, None, now, stays=False)
            before = {}
        held = seen.gpus_by_place() if seen is not None else {}
        for place, span in before.items():
            if held.get(place) != span.gpus:
                self._end(span, seen, now, stays=place in held)
        if seen is not None and held:
            self._open[name] = {
                place: self._span_at(key, seen, place, gpus, before=before.get(place), now=now)
                for place, gpus in held.items()
            }

    def _span_at(
        self,
        key: str,
        seen: Glance,
        place: ClusterFlavor,
        gpus: int,
        *,
        before: Span | None,
        now: float,
    ) -> Span:
        """The present span of a place: the same as before, or a new one."""
        ready = seen.ready_at
        if before is not None and before.gpus == gpus:
            if ready is None or before.ready_at is not None:
                return before
            return replace(before, ready_at=max(ready, before.decided_at))
        decided = seen.decided_at
        start = now if decided is None or before is not None else decided
        start = max(start, self._told_until.pop((key, place), 0.0))
        return Span(
            workload=key,
            cluster=place[0],
            queue=_queue(seen),
            flavor=place[1],
            gpus=gpus,
            decided_at=start,
            ready_at=max(ready, start) if ready is not None else None,
            run_seconds=seen.run_seconds,
            uid=seen.metadata.uid,
        )

    def _end(self, span: Span, seen: Glance | None, now: float, *, stays: bool) -> None:
        ending: Ending = "Resized" if stays else ending_of(span, seen)
        end = seen.status.history[-1].ended_at if seen and seen.status.history else ""
        at = min(now, parse_timestamp(end)) if end and ending == "Succeeded" else now
        ended = replace(span, ended_at=max(at, span.decided_at), ended=ending)
        self._put(ended)
        try:
            self._keeper.keep(_encode(ended))
        except OSError as fault:
            _log.warning("a span is not kept: %s", fault)

    def _put(self, span: Span) -> None:
        ended = self._ended
        ended.append(span)
        oldest = self._clock.now() - KEPT_SECONDS
        while ended and (len(ended) > _ENDED_MOST or (ended[0].ended_at or 0.0) < oldest):
            self.since = max(self.since, ended.popleft().ended_at or 0.0)


def ending_of(span: Span, seen: Glance | None) -> Ending:
    """How a span ended, according to the later status of its workload."""
    if seen is None:
        return "Cancelled"
    for past in reversed(seen.status.history):
        if past.ended_at and parse_timestamp(past.ended_at) + 1 < span.decided_at:
            break  # of an earlier span
        if past.preempted_by is not None or past.reason.startswith("Preempted"):
            return "Preempted"
        return ENDINGS.get(past.reason, "Failed")
    if seen.status.claim is not None:
        return "Moved"
    return ENDINGS.get(seen.status.phase, "Stopped")


def _queue(seen: Glance) -> str:
    return seen.charged_queue or seen.spec.queue


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Span).decode


def _read(line: bytes) -> Span | None:
    """A span that was kept; None for a truncated line."""
    try:
        return _decode(line)
    except msgspec.MsgspecError:
        return None
