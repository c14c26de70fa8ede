"""Breakers: what the hub did in the past hour, and whether it must stop.

Pure values: counts per minute for an hour. A breaker is open while the past hour's count is at the
fleet's limit. It closes by itself as the hour moves on, or when the limit is raised. The price
breaker is open while elastic nodes cost as much per hour as the fleet allows; it closes when some
of them are gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from fairway.api.amounts import Quantity
from fairway.api.fleet import Breakers as Limits
from fairway.api.fleet import BreakerStatus

Name = Literal["Preemptions", "Moves", "Deletions", "Price"]
NAMES: tuple[Name, ...] = ("Preemptions", "Moves", "Deletions", "Price")
_MINUTE = 60
_HOUR = 3600
_TOLD_SECONDS = 30.0  # agents report requested nodes within this time
_NANOS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts per minute of the past hour, in billionths so that prices are exact."""

    minutes: tuple[tuple[int, int], ...] = ()  # (minute, nanos), the latest last
    open_since: float | None = None

    def add(self, nanos: int, now: float) -> Counter:
        minute = int(now) // _MINUTE
        kept = dict(self._recent(now))
        kept[minute] = kept.get(minute, 0) + nanos
        return replace(self, minutes=tuple(sorted(kept.items())))

    def past_hour(self, now: float) -> int:
        return sum(nanos for _, nanos in self._recent(now))

    def _recent(self, now: float) -> tuple[tuple[int, int], ...]:
        first = (int(now) - _HOUR) // _MINUTE
        return tuple(minute for minute in self.minutes if minute[0] > first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakers:
    """All breakers of a fleet."""

    preemptions: Counter = Counter()
    moves: Counter = Counter()
    deletions: Counter = Counter()
    price: Counter = Counter()
    standing: int = 0  # hourly cost of all elastic nodes that exist, in nanos
    expected: int = 0  # the same, with nodes requested since
    expected_until: float = 0.0  # by then those nodes have come, are on their way, or failed

    def count(
        self, name: Name, now: float, *, count: int = 1, price: Quantity | None = None
    ) -> Breakers:
        """A copy with more counted; for `Price`, `price` is the hourly price of the new nodes."""
        nanos = price.nanos if price is not None else count * _NANOS
        if name == "Price":
            expected = self.amount(name, now) + nanos
            return replace(self, expected=expected, expected_until=now + _TOLD_SECONDS)
        return self._with(name, self.of(name).add(nanos, now))

    def _with(self, name: Name, counter: Counter) -> Breakers:
        match name:
            case "Preemptions":
                return replace(self, preemptions=counter)
            case "Moves":
                return replace(self, moves=counter)
            case "Deletions":
                return replace(self, deletions=counter)
            case "Price":
                return replace(self, price=counter)

    def of(self, name: Name) -> Counter:
        counter: Counter = getattr(self, _FIELDS[name])
        return counter

    def amount(self, name: Name, now: float) -> int:
        """The amount held against the limit.

        For `Price` it is the hourly cost of all nodes, including requested nodes not reported yet;
        for the others it is the count of the past hour.
        """
        if name == "Price":
            return max(self.standing, self.expected if now < self.expected_until else 0)
        return self.of(name).past_hour(now)

    def allowance(self, name: Name, limits: Limits, now: float) -> int | None:
        """How much more may be done, in whole units; None: no limit."""
        most = _limit(name, limits)
        if most is None:
            return None
        return max(0, most - self.amount(name, now)) // _NANOS

    def is_open(self, name: Name, limits: Limits, now: float) -> bool:
        """Whether nothing more of this kind may be done."""
        most = _limit(name, limits)
        return most is not None and self.amount(name, now) >= most

    def looked_at(self, limits: Limits, now: float) -> Breakers:
        """A copy that records when breakers opened, and clears that for closed ones."""
        breakers = self
        for name in NAMES:
            counter = self.of(name)
            since = (counter.open_since or now) if self.is_open(name, limits, now) else None
            breakers = breakers._with(name, replace(counter, open_since=since))
        return breakers

    def closes_at(self, limits: Limits, now: float) -> float | None:
        """The earliest time at which an open breaker may close."""
        times = [self.expected_until] if self.is_open("Price", limits, now) else []
        times += [
            (self.of(name).minutes[0][0] + 1) * _MINUTE + _HOUR
            for name in NAMES
            if self.is_open(name, limits, now) and self.of(name).minutes
        ]
        return float(min(times)) if times else None

    def status(self, limits: Limits, now: float) -> tuple[BreakerStatus, ...]:
        """The value of `Fleet.status.breakers`: only breakers that have a limit."""
        breaker_status = []
        for name in NAMES:
            if _limit(name, limits) is None:
                continue
            counter = self.of(name)
            since = counter.open_since
            breaker_status.append(
                BreakerStatus(
                    name=name,
                    past_hour=Quantity(self.amount(name, now)),
                    open_since=datetime.fromtimestamp(since, UTC) if since is not None else None,
                )
            )
        return tuple(breaker_status)


_FIELDS: dict[Name, str] = {
    "Preemptions": "preemptions",
    "Moves": "moves",
    "Deletions": "deletions",
    "Price": "price",
}


def _limit(name: Name, limits: Limits) -> int | None:
    if name == "Price":
        return limits.price_per_hour.nanos if limits.price_per_hour is not None else None
    counts = {
        "Preemptions": limits.preemptions_per_hour,
        "Moves": limits.moves_per_hour,
        "Deletions": limits.deletions_per_hour,
    }
    most = counts[name]
    return None if most is None else most * _NANOS


def restore(statuses: tuple[BreakerStatus, ...], now: float) -> Breakers:
    """The breakers of a hub that starts: the past hour counts as if it had just happened."""
    breakers = Breakers()
    for status in statuses:
        counter = Counter(open_since=status.open_since.timestamp() if status.open_since else None)
        if status.name == "Price":
            breakers = breakers.count("Price", now, price=status.past_hour)
        else:
            counter = counter.add(status.past_hour.nanos, now)
        breakers = breakers._with(status.name, counter)
    return breakers
