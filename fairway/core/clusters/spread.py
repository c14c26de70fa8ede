"""Rules of spread: over how many domains something is spread, and how evenly.

The same rules serve two questions: which clusters to choose (each is one seat) and how many
replicas each cluster gets. Both go in two steps: `covering.pick` says which options may be used at
all and which must be, so that `least` and `most` hold; `fill` gives out seats one at a time, the
most wanted first, and never one that would break `skew`.

`least` and `most` count domains over everything. `skew` compares the domains of one group, full and
empty ones alike: groups are filled in order, so an empty later group says nothing about evenness.
Where `most` leaves domains out, only those that may be used are compared. A rule that is only
preferred is dropped when it can't hold, the least important (last) one first.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

from fairway.core.clusters.covering import Option, Picked, Unmet, pick
from fairway.core.model import Spread
from fairway.core.nodes import Cluster

LABELS = {
    "Region": "topology.kubernetes.io/region",
    "Zone": "topology.kubernetes.io/zone",
    "Provider": "fairway.dev/provider",
}


class Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    chosen: tuple[str, ...]  # in the order given
    unmet: tuple[Spread, ...] = ()  # rules that must hold and can't; then nothing is chosen


def domain(cluster: Cluster, rule: Spread) -> str | None:
    """The domain that a cluster is in; None where it lacks the label."""
    if rule.by == "Cluster":
        return cluster.name
    return cluster.labels.get(rule.label if rule.by == "Label" else LABELS[rule.by]) or None


def domains(cluster: Cluster, rules: Sequence[Spread]) -> tuple[str, ...]:
    """Its domain for each rule; those that lack a label share the domain without a name."""
    return tuple(domain(cluster, rule) or "" for rule in rules)


def relaxations(rules: Sequence[Spread]) -> Iterator[tuple[int, ...]]:
    """Which rules to hold to: all, then without the last preferred one, and so on."""
    active = tuple(range(len(rules)))
    yield active
    for position in reversed(active):
        if rules[position].is_preferred:
            active = tuple(one for one in active if one != position)
            yield active


def select(options: Sequence[Option], rules: Sequence[Spread], count: int) -> Selection:
    """Up to so many of the options, the first ones given where rules leave a choice."""
    position = {option.name: index for index, option in enumerate(options)}
    chosen: dict[str, int] = {}
    unmet: tuple[Spread, ...] = ()
    for active in relaxations(rules):
        left = count - len(chosen)
        now = [_with(option, chosen) for option in options]
        picked = pick(now, rules, left, active=active)
        if isinstance(picked, Unmet):
            unmet = picked.rules
            continue
        unmet = ()
        tally = Tally(picked.allowed, rules, active)
        added = fill(picked, tally, left, turn=lambda option, _: position[option.name])
        chosen.update(added)
        if len(chosen) >= count:
            break
    names = tuple(option.name for option in options if option.name in chosen)
    return Selection(chosen=names, unmet=() if names else unmet)


def _with(option: Option, added: Mapping[str, int]) -> Option:
    more = added.get(option.name, 0)
    if not more:
        return option
    return Option(
        name=option.name,
        domains=option.domains,
        group=option.group,
        seats=option.seats + more,
        room=option.room - more,
    )


class Tally:
    """Seats per domain, and whether one more or one fewer keeps the rules."""

    def __init__(
        self, options: Sequence[Option], rules: Sequence[Spread], active: Sequence[int]
    ) -> None:
        self._rules = [(position, rules[position]) for position in active]
        self.seats = {option.name: option.seats for option in options}
        self._used: dict[int, dict[str, int]] = {position: {} for position in active}
        self._in_group: dict[tuple[int, str], dict[str, int]] = {}
        for option in options:
            self._count(option, option.seats)

    def _count(self, option: Option, step: int) -> None:
        for position, _ in self._rules:
            name = option.domains[position]
            in_group = self._in_group.setdefault((position, option.group), {})
            in_group[name] = in_group.get(name, 0) + step
            used = self._used[position]
            used[name] = used.get(name, 0) + step
            if not used[name]:
                del used[name]

    def add(self, option: Option, step: int) -> None:
        self.seats[option.name] += step
        self._count(option, step)

    def may_add(self, option: Option, step: int) -> bool:
        """Whether so many more keep the skew; `most` was seen to by what was picked."""
        for position, rule in self._rules:
            # What opens with several seats at once may lead until others have opened too.
            if rule.skew is not None and step == 1:
                lead = self._lead(position, option, step)
                if lead > rule.skew:
                    return False
        return True

    def _lead(self, position: int, option: Option, step: int) -> int:
        """By how much its domain would be ahead of the last one of the group."""
        seats = self._in_group[position, option.group]
        name = option.domains[position]
        after = seats[name] + step
        return after - min((one for key, one in seats.items() if key != name), default=after)

    def is_even(self, option: Option) -> bool:
        """Whether its domains are within the skew now."""
        return all(
            self._lead(position, option, 0) <= rule.skew
            for position, rule in self._rules
            if rule.skew is not None
        )

    def may_take(self, option: Option) -> bool:
        """Whether one seat fewer keeps what `least` and `skew` ask for."""
        for position, rule in self._rules:
            name = option.domains[position]
            used = self._used[position]
            if used[name] == 1 and len(used) <= rule.least:
                return False
            if rule.skew is not None:
                seats = self._in_group[position, option.group]
                if max(seats.values()) - (seats[name] - 1) > rule.skew:
                    return False
        return True


def fill(
    picked: Picked,
    tally: Tally,
    wanted: int,
    *,
    turn: Callable[[Option, int], Comparable],
    opening: int = 1,
) -> dict[str, int]:
    """Gives out up to `wanted` seats, one at a time to whose turn is first, within the rules.

    An option without seats opens with `opening` of them at once; where that is more than one, the
    caller looks again whether all is even. Returns what was added.
    """
    added: dict[str, int] = {}
    left = wanted

    def give(option: Option) -> bool:
        nonlocal left
        step = 1 if tally.seats[option.name] else opening
        if step > left or step > option.room - added.get(option.name, 0):
            return False
        if not tally.may_add(option, step):
            return False
        tally.add(option, step)
        added[option.name] = added.get(option.name, 0) + step
        left -= step
        return True

    for option in picked.cover:
        give(option)
    # Sorting is stable and the options come in a total order, so equal turns are decided too.
    waiting = sorted(
        ((turn(one, tally.seats[one.name]), one) for one in picked.allowed if one.room),
        key=itemgetter(0),
    )
    while left > 0:
        position = next((at for at, (_, one) in enumerate(waiting) if give(one)), None)
        if position is None:
            break
        option = waiting.pop(position)[1]
        if added[option.name] < option.room:
            insort(waiting, (turn(option, tally.seats[option.name]), option), key=itemgetter(0))
    return added
