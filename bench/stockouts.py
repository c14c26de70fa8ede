"""How learned stock-outs compare with fixed back-off: `python -m bench.stockouts`.

Three stock traces are generated from fixed seeds, each of three zones over weeks:

- scarce bursts: stock comes and goes, out for about half an hour every hour or two;
- day and night: out in working hours, a little earlier or later each day;
- long outage: the cheapest zone is out for days, the others now and then.

Requests for nodes arrive at random. Each asks the cheapest zone that is not believed to be out;
whether it is, is known after a minute, and then the next is asked. Where all are believed to be
out, requests wait, and one of them tries a zone that may have stock again. A zone that has stock
brings nodes after three minutes.
Counted are provisions that failed, the time from a request to its nodes, and what they cost: who
leaves a zone alone for too long pays for a dearer one.
"""

from __future__ import annotations

import heapq
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from fairway.core.provisioning import stock_outs
from fairway.core.provisioning.stock_outs import Belief

_HOUR = 3600.0
_DAY = 24 * _HOUR
_TOLD_AFTER = 60.0
_COMES_AFTER = 180.0

Outages = Sequence[tuple[float, float]]
# What is believed after a provision failed.
AfterFailure = Callable[[Belief, float], Belief]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """When each zone is out of stock, and when nodes are asked for."""

    name: str
    zones: tuple[Outages, ...]  # from the cheapest
    arrivals: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came of one way to wait."""

    requests: int
    failed: int
    mean_seconds: float  # to capacity
    late_seconds: float  # of one request in twenty, or longer
    price: float  # of the mean node; the cheapest zone costs 1


def traces(seed: int = 1) -> tuple[Trace, ...]:
    chance = random.Random(seed)
    return (_bursts(chance), _days(chance), _outage(chance))


def _bursts(chance: random.Random) -> Trace:
    return Trace(
        name="scarce bursts",
        zones=tuple(
            tuple(_random_outages(chance, 14 * _DAY, out=0.5 * _HOUR, gap=1.5 * _HOUR))
            for _ in range(3)
        ),
        arrivals=_arrivals(chance, 14 * _DAY),
    )


def _days(chance: random.Random) -> Trace:
    hours = ((8.0, 20.0), (9.0, 18.0), (10.0, 15.0))
    return Trace(
        name="day and night",
        zones=tuple(
            tuple(
                (
                    day * _DAY + (first + chance.uniform(-0.5, 0.5)) * _HOUR,
                    day * _DAY + (last + chance.uniform(-0.5, 0.5)) * _HOUR,
                )
                for day in range(28)
            )
            for first, last in hours
        ),
        arrivals=_arrivals(chance, 28 * _DAY),
    )


def _outage(chance: random.Random) -> Trace:
    others = (
        tuple(_random_outages(chance, 14 * _DAY, out=0.5 * _HOUR, gap=6 * _HOUR)) for _ in range(2)
    )
    return Trace(
        name="long outage",
        zones=(((2 * _DAY, 9 * _DAY),), *others),
        arrivals=_arrivals(chance, 14 * _DAY),
    )


def _random_outages(
    chance: random.Random, end: float, *, out: float, gap: float
) -> Iterator[tuple[float, float]]:
    now = chance.expovariate(1 / gap)
    while now < end:
        until = now + chance.gammavariate(4, out / 4)
        yield now, until
        now = until + chance.expovariate(1 / gap)


def _arrivals(chance: random.Random, end: float) -> tuple[float, ...]:
    found, now = [], 0.0
    while (now := now + chance.expovariate(1 / 300)) < end:
        found.append(now)
    return tuple(found)


def fixed(seconds: float) -> AfterFailure:
    """Waits for the same time each time."""
    return lambda belief, at: Belief(
        out_since=at, failed_at=at, try_at=at + seconds, out_until=at + seconds
    )


def doubling(first: float, most: float) -> AfterFailure:
    """Waits for twice as long each time, until nodes come."""

    def after(belief: Belief, at: float) -> Belief:
        until = at + min(most, first * 2**belief.tries)
        return Belief(
            out_since=at, failed_at=at, try_at=until, out_until=until, tries=belief.tries + 1
        )

    return after


WAYS: Mapping[str, AfterFailure] = {
    "fixed, 1 minute": fixed(60),
    "fixed, 3 minutes": fixed(180),
    "fixed, 5 minutes": fixed(300),
    "fixed, 15 minutes": fixed(900),
    "doubling, 5 to 30 minutes": doubling(300, 1800),
    "learned": stock_outs.after_failure,
}


def replayed(trace: Trace, after_failure: AfterFailure) -> Figures:
    """Plays a trace with one way to wait."""
    return _Replay(trace, after_failure).play()


@dataclass(slots=True)
class _Replay:
    trace: Trace
    after_failure: AfterFailure
    beliefs: list[Belief] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)  # when those arrived who may ask nobody
    events: list[tuple[float, int, float, bool]] = field(default_factory=list)
    failed: int = 0
    waits: list[float] = field(default_factory=list)
    prices: list[float] = field(default_factory=list)

    def play(self) -> Figures:
        self.beliefs = [Belief() for _ in self.trace.zones]
        # (when, zone that tells or -1 for none, arrival of whom it tells, whether nodes come)
        self.events = [(at, -1, at, False) for at in self.trace.arrivals]
        while self.events:
            now, zone, arrived, comes = heapq.heappop(self.events)
            if zone >= 0:
                self._hear(zone, now, comes)
            if arrived >= 0 and not comes:
                self.waiting.append(arrived)
            self._serve(now)
        return Figures(
            requests=len(self.waits),
            failed=self.failed,
            mean_seconds=statistics.fmean(self.waits),
            late_seconds=statistics.quantiles(self.waits, n=20)[-1],
            price=statistics.fmean(self.prices),
        )

    def _hear(self, zone: int, now: float, comes: bool) -> None:
        belief = self.beliefs[zone]
        if comes:
            self.beliefs[zone] = stock_outs.came(belief, now)
            return
        self.failed += 1
        self.beliefs[zone] = found = self.after_failure(belief, now)
        for moment in (found.try_at, found.out_until):
            assert moment is not None, "it has just failed"
            heapq.heappush(self.events, (moment, -1, -1.0, False))

    def _serve(self, now: float) -> None:
        """Lets those ask who wait, the first come first, as long as there is anyone to ask."""
        for at, arrived in enumerate(self.waiting):
            zone = self._choice(now)
            if zone is None:
                self.waiting = self.waiting[at:]
                return
            comes = not _is_out(self.trace.zones[zone], now)
            heapq.heappush(self.events, (now + _TOLD_AFTER, zone, arrived, comes))
            self.beliefs[zone] = stock_outs.after_ask(self.beliefs[zone], now, within=_TOLD_AFTER)
            if comes:
                self.waits.append(now + _COMES_AFTER - arrived)
                self.prices.append(1.0 + 0.5 * zone)
        self.waiting = []

    def _choice(self, now: float) -> int | None:
        zones = enumerate(self.beliefs)
        sure = (
            zone for zone, value in zones if not value.is_out(now) and not value.is_doubtful(now)
        )
        last = (zone for zone, belief in enumerate(self.beliefs) if not belief.is_out(now))
        return next(sure, next(last, None))


def _is_out(outages: Outages, now: float) -> bool:
    return any(begin <= now < end for begin, end in outages if begin <= now)


def main() -> None:
    for trace in traces():
        assert all(value[1] <= two[0] for zone in trace.zones for value, two in pairwise(zone)), (
            "stock-outs of a zone follow one another"
        )
        print(f"\n{trace.name}: {len(trace.arrivals)} requests")
        head = ("back-off", "failed", "to capacity", "one in 20", "price")
        print(f"{head[0]:<28}{head[1]:>10}{head[2]:>14}{head[3]:>12}{head[4]:>8}")
        for name, way in WAYS.items():
            one = replayed(trace, way)
            print(
                f"{name:<28}{one.failed:>10}{one.mean_seconds:>12.0f} s{one.late_seconds:>10.0f} s"
                f"{one.price:>8.2f}"
            )


if __name__ == "__main__":
    main()
