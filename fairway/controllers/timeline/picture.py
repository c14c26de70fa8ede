"""Spans as a picture: grouped, the largest of each group one by one, the others summed.

Areas stay true whatever is left out: spans that are not drawn one by one are summed as GPUs in use
over time. A span names its workload only where the caller may know it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, Literal

from fairway.controllers.glance import Reserved
from fairway.controllers.scheduling.expected_starts import Ahead
from fairway.controllers.timeline.spans import Span
from fairway.loops import in_slices

MOST: Final = 100  # default number of spans of a group that are drawn one by one
_SPANS_MOST: Final = 4_000  # in one picture
_LEAST: Final = 5
_GROUPS_MOST: Final = 200
_BINS: Final = 120  # points in time of each sum

By = Literal["cluster", "queue"]
Sort = Literal["ran", "starts", "runs", "reserved", "expected"]
MayName = Callable[[str], bool]  # whether workloads of a namespace may be named


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which picture to draw."""

    by: By
    start: float
    end: float
    most: int = MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A span in the picture, with the end by which its area is computed."""

    workload: str
    cluster: str
    queue: str
    flavor: str
    gpus: int
    start: float
    end: float
    sort: Sort
    ready: float | None = None
    until: float | None = None
    ended: str = ""

    def area(self, wanted: Wanted) -> float:
        """GPU-seconds within the picture, in thousandths."""
        return self.gpus * max(0.0, min(self.end, wanted.end) - max(self.start, wanted.start))

    def render(self, may_name: MayName) -> dict[str, Any]:
        namespace, _, _ = self.workload.partition("/")
        rendered: dict[str, Any] = {
            "cluster": self.cluster,
            "queue": self.queue,
            "flavor": self.flavor,
            "gpus": self.gpus / 1000,
            "from": self.start,
            "sort": self.sort,
        }
        if may_name(namespace):
            rendered["workload"] = self.workload
        if self.sort == "ran":
            rendered["to"] = self.end
        for key, value in (("ready", self.ready), ("until", self.until), ("ended", self.ended)):
            if value is not None and value != "":
                rendered[key] = value
        return rendered


def of_span(span: Span, now: float) -> Drawn:
    """A span that is over, or still held."""
    is_over = span.ended_at is not None
    until = None if is_over else span.until(now)
    lasts = until if until is not None else float("inf")
    return Drawn(
        workload=span.workload,
        cluster=span.cluster,
        queue=span.queue,
        flavor=span.flavor,
        gpus=span.gpus,
        start=span.decided_at,
        end=span.ended_at if span.ended_at is not None else lasts,
        sort="ran" if is_over else "runs" if span.ready_at is not None else "starts",
        ready=span.ready_at,
        until=until,
        ended=span.ended,
    )


def of_ahead(
    ahead: Iterable[Ahead], reserved: Mapping[str, tuple[str, Reserved]]
) -> Iterable[Drawn]:
    """Expected spans; room reserved for a workload without a known start is left out."""
    for expected in ahead:
        said = reserved.get(expected.workload)
        start = expected.start if expected.start is not None else said[1].start if said else None
        if start is not None:
            yield Drawn(
                workload=expected.workload,
                cluster=expected.cluster,
                queue=expected.queue,
                flavor=expected.flavor,
                gpus=expected.gpus,
                start=start,
                end=expected.until if expected.until is not None else float("inf"),
                sort="reserved" if expected.is_reserved else "expected",
                until=expected.until,
            )


@dataclass(slots=True)
class _Group:
    name: str
    drawn: list[Drawn] = field(default_factory=list)
    area: float = 0.0


async def picture(
    drawn: Iterable[Drawn],
    wanted: Wanted,
    *,
    rooms: Mapping[str, Mapping[str, int]],
    may_name: MayName,
) -> dict[str, Any]:
    """Groups, those with the most room first; `rooms` is the capacity of each, by flavor."""
    groups: dict[str, _Group] = {name: _Group(name) for name in rooms}
    async for row in _within(drawn, wanted):
        name = row.cluster if wanted.by == "cluster" else row.queue
        group = groups.get(name) or groups.setdefault(name, _Group(name))
        group.drawn.append(row)
        group.area += row.area(wanted)
    result = sorted(
        groups.values(),
        key=lambda group: (-sum(rooms.get(group.name, {}).values()), -group.area, group.name),
    )
    shown = result[:_GROUPS_MOST]
    most = min(wanted.most, max(_LEAST, _SPANS_MOST // max(1, len(shown))))
    rendered = [
        _render(group, wanted, most=most, room=rooms.get(group.name, {}), may_name=may_name)
        async for group in in_slices(shown, 8)
    ]
    return {"groups": rendered, "groupsLeft": len(result) - len(shown)}


async def _within(drawn: Iterable[Drawn], wanted: Wanted) -> AsyncIterator[Drawn]:
    async for row in in_slices(drawn):
        if row.end > wanted.start and row.start < wanted.end:
            yield row


def _render(
    group: _Group, wanted: Wanted, *, most: int, room: Mapping[str, int], may_name: MayName
) -> dict[str, Any]:
    drawn = sorted(
        group.drawn, key=lambda row: (-row.area(wanted), row.start, row.workload, row.cluster)
    )
    first = sorted(drawn[:most], key=lambda row: (row.start, row.workload, row.cluster, row.flavor))
    return {
        "name": group.name,
        "room": {flavor: gpus / 1000 for flavor, gpus in sorted(room.items())},
        "spans": [row.render(may_name) for row in first],
        "more": _sum(drawn[most:], wanted),
    }


def _sum(rest: Sequence[Drawn], wanted: Wanted) -> list[dict[str, Any]]:
    """Spans that are not drawn one by one: their number, and the GPUs of each flavor over time."""
    by_flavor: dict[str, list[Drawn]] = {}
    for row in rest:
        by_flavor.setdefault(row.flavor, []).append(row)
    return [
        {"flavor": flavor, "count": len(many), "gpus": _bins(many, wanted)}
        for flavor, many in sorted(by_flavor.items())
    ]


def _bins(many: Sequence[Drawn], wanted: Wanted) -> list[float]:
    """Average GPUs in each bin, so that areas are true."""
    width = (wanted.end - wanted.start) / _BINS
    bins = [0.0] * _BINS
    steps = [0] * (_BINS + 1)  # change of the GPUs in use throughout a bin, against the bin before
    for row in many:
        start, end = max(row.start, wanted.start), min(row.end, wanted.end)
        first = min(_BINS - 1, int((start - wanted.start) / width))
        last = min(_BINS - 1, int((end - wanted.start) / width))
        if first == last:
            bins[first] += row.gpus * (end - start)
            continue
        bins[first] += row.gpus * (wanted.start + (first + 1) * width - start)
        bins[last] += row.gpus * (end - wanted.start - last * width)
        steps[first + 1] += row.gpus
        steps[last] -= row.gpus
    throughout = accumulate(steps)
    return [
        round((value / width + more) / 1000, 3)
        for value, more in zip(bins, throughout, strict=False)
    ]
