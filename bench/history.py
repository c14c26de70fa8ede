"""What a history costs a hub: looking at a fleet of full size, writing it down, telling it.

1,000 queues in three levels, 100 clusters of 5,000 nodes and 1,000 services over four clusters
each. One queue in ten and one service in ten differ from moment to moment, which is more than a
busy fleet does in ten seconds. Times are of CPU, since machines are shared. The planner looks in a
process of its own; all the rest takes the hub's time.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from bench import fleets
from bench.figures import Report
from fairway.controllers.history.answers import Asked, answer
from fairway.controllers.history.book import Book, NamedParts
from fairway.controllers.history.book_lines import Journal
from fairway.controllers.history.samples import Sights
from fairway.core.explain.samples import Gauges, gauges
from fairway.core.snapshot import Snapshot

T = TypeVar("T")
NOW = 1_800_000_000
HOUR = 360  # moments


class Scales:
    """Weighs lines instead of keeping them."""

    is_full = False

    def __init__(self) -> None:
        self.bytes = 0

    def read(self) -> Iterable[Iterable[bytes]]:
        return ()

    def begin(self, whole: Iterator[bytes]) -> None:
        self.bytes = sum(map(len, whole))

    def write(self, line: bytes) -> None:
        self.bytes += len(line)


def run(report: Report, *, scale: float) -> None:
    size = fleets.Size(
        clusters=max(4, round(100 * scale)),
        nodes=max(500, round(5_000 * min(1.0, scale * 5))),
        queues=max(30, round(1_000 * scale)),
        waiting=max(500, round(20_000 * scale)),
        held=max(100, round(20_000 * scale)),
        forms=300,
    )
    services = max(30, round(1_000 * scale))
    print(f"History: {size.clusters} clusters, {size.queues} queues, {services} services")
    snapshot = Snapshot(fleets.fleet(size))
    seconds, found = _timed(lambda: gauges(snapshot))
    report.add("one look, in the planner's process", seconds * 1000, "ms")
    packed = pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
    taken, _ = _timed(lambda: pickle.loads(packed))
    report.add("reading the planner's answer, in the hub", taken * 1000, "ms")
    book, scales = Book(), Scales()
    written = _written(found, services, book, scales)
    report.add("writing a moment down, in the hub", written * 1000, "ms")
    report.add("an hour in memory", sum(track.bytes for track in book.tracks) / 2**20, "MiB")
    report.add("an hour on disk, before packing", scales.bytes / 2**20, "MiB")
    for what, names in (("one queue", 1), ("100 queues", 100)):
        asked = Asked(series="queues", names=list(found.queues)[:names], since=3600, points=120)
        told, _ = _timed(lambda asked=asked: answer(book, asked, NOW + 10 * HOUR))
        report.add(f"telling an hour of {what}", told * 1000, "ms")


def _timed(call: Callable[[], T], times: int = 5) -> tuple[float, T]:
    found = call()
    began = time.process_time()
    for _ in range(times):
        found = call()
    return (time.process_time() - began) / times, found


def _written(found: Gauges, services: int, book: Book, scales: Scales) -> float:
    """Seconds for a moment, over an hour of them."""
    sights, journal = Sights(), Journal(scales)
    journal.begin(book)
    spent = 0.0
    for moment in range(HOUR):
        seen = {f"team/service-{at}": _service(at, moment) for at in range(services)}
        look = _later(found, moment)
        began = time.process_time()
        now = NOW + 10 * moment
        is_renumbered = book.see(now, sights.of(look, seen))
        journal.write(book, now, is_renumbered=is_renumbered)
        spent += time.process_time() - began
    return spent / HOUR


def _later(found: Gauges, moment: int) -> Gauges:
    """The same fleet, where one queue in ten has one more or one less in use."""
    queues = dict(found.queues)
    for name in list(queues)[moment % 10 :: 10]:
        gauge = queues[name]
        holdings = tuple(
            holding._replace(used=holding.used + moment % 3) for holding in gauge.holdings
        )
        queues[name] = gauge._replace(used=gauge.used + moment % 3, holdings=holdings)
    return replace(found, queues=queues)


def _service(at: int, moment: int) -> NamedParts:
    wanted = 8 + (moment // 10 + at) % 3 if (at + moment) % 10 == 0 else 8
    placed = tuple((f"cluster-{number}", (wanted / 4,)) for number in range(4))
    return (("", (wanted, wanted, wanted)), *placed)
