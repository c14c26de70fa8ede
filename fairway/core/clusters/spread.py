"""Spread rules: over how many domains something is spread, and how evenly.

The same rules answer two questions: which clusters to choose (one seat each) and how many replicas
each cluster gets. Both take two steps. `pick` selects the options that may be used and those that
must be, so that `least` and `most` hold. `fill` assigns seats one at a time, the most wanted option
first, and never a single seat that would break `skew`.

`least` and `most` count domains over all groups. `skew` compares the domains of one group, full and
empty: groups are filled in order, so an empty later group says nothing about evenness. Where `most`
excludes domains, only those that may be used are compared. A preferred rule is dropped when it
cannot hold, the least important (last) one first.

`pick` takes the best set of options (`domain_sets`). `fewest` solves a simpler problem: the fewest
options with room for everything.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

from fairway.core.clusters.domain_sets import Bounds, Option, best_set
from fairway.core.model import Spread
from fairway.core.nodes import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """Options that may be used, and those among them that must get seats first."""

    allowed: tuple[Option, ...]  # in the order given
    cover: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """Rules for which there are not enough domains."""

    rules: tuple[Spread, ...]


def pick(
    options: Sequence[Option],
    rules: Sequence[Spread],
    wanted: int,
    *,
    active: Sequence[int],
    opening: int = 1,
    asked: int = 0,
) -> Picked | Unmet:
    """Which options may be used so that `least` and `most` of the active rules can hold.

    `least` holds for all seats that are asked for, also if only some of them are wanted now.

    Options with seats are always allowed. Of the others, a set with room for as much of `wanted` as
    possible is taken; among such sets, the one with the first options in the order given.
    """
    used = [option for option in options if option.seats]
    unused = [option for option in options if not option.seats and option.room >= max(opening, 1)]
    total = max(asked, wanted + sum(option.seats for option in options))
    bounds: list[Bounds] = []
    for position in active:
        rule = rules[position]
        open_now = {option.domains[position] for option in used}
        # Any placement uses one domain; `least` matters only from two on.
        least = min(rule.least, total // max(opening, 1))
        least = least if least > 1 else 0
        most = len(options) if rule.most is None else max(rule.most, len(open_now))
        bounds.append(Bounds(position, open_now, least, most))
    if wanted <= 0 or all(bound.is_idle(options) for bound in bounds):
        return Picked(allowed=tuple(options), cover=())
    unmet = tuple(rules[bound.position] for bound in bounds if bound.is_hopeless(unused))
    if unmet:
        return Unmet(rules=unmet)
    room = sum(option.room for option in used)
    matches = best_set(options, unused, bounds, wanted, room, opening)
    if matches is None:
        return Unmet(rules=tuple(rules[bound.position] for bound in bounds))
    allowed, cover = matches
    names = {option.name for option in (*used, *allowed)}
    # A full domain still counts for evenness, unless `most` excludes domains anyway.
    if all(rules[bound.position].most is None for bound in bounds):
        names.update(option.name for option in options if not option.room)
    return Picked(
        allowed=tuple(option for option in options if option.name in names), cover=tuple(cover)
    )


def fewest(options: Sequence[Option], wanted: int) -> list[Option]:
    """The fewest options with room for what is wanted, those in use first.

    Among equally few, the first in the order given: an option is taken if the largest of the others
    can still cover the rest.
    """
    chosen: list[Option] = []
    for part in (
        [option for option in options if option.seats],
        [option for option in options if not option.seats],
    ):
        left = wanted - sum(option.room for option in chosen)
        if left <= 0:
            break
        chosen += _shortest(part, left)
    return chosen


def _shortest(options: Sequence[Option], wanted: int) -> list[Option]:
    rooms = sorted((option.room for option in options), reverse=True)
    count, total = 0, 0
    while count < len(rooms) and total < wanted:
        total += rooms[count]
        count += 1
    if total < wanted:
        return list(options)
    chosen: list[Option] = []
    for option in options:
        if len(chosen) == count:
            break
        rooms.remove(option.room)
        if option.room + sum(rooms[: count - len(chosen) - 1]) >= wanted:
            chosen.append(option)
            wanted -= option.room
    return chosen


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
    unmet: tuple[Spread, ...] = ()  # required rules that cannot hold; then nothing is chosen


def domain(cluster: Cluster, rule: Spread) -> str | None:
    """The domain of a cluster; None where the cluster lacks the label."""
    if rule.by == "Cluster":
        return cluster.name
    return cluster.labels.get(rule.label if rule.by == "Label" else LABELS[rule.by]) or None


def domains(cluster: Cluster, rules: Sequence[Spread]) -> tuple[str, ...]:
    """The domain of a cluster for each rule; clusters without the label share an unnamed domain."""
    return tuple(domain(cluster, rule) or "" for rule in rules)


def relaxations(rules: Sequence[Spread]) -> Iterator[tuple[int, ...]]:
    """The sets of rules to try: all, then without the last preferred one, and so on."""
    active = tuple(range(len(rules)))
    yield active
    for position in reversed(active):
        if rules[position].is_preferred:
            active = tuple(number for number in active if number != position)
            yield active


def select(options: Sequence[Option], rules: Sequence[Spread], count: int) -> Selection:
    """Selects up to `count` options, the first ones given where the rules leave a choice."""
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
        """Whether `step` more seats keep the skew; `pick` has ensured `most`."""
        for position, rule in self._rules:
            # An option that opens with several seats may lead until others have opened too.
            if rule.skew is not None and step == 1:
                lead = self._lead(position, option, step)
                if lead > rule.skew:
                    return False
        return True

    def _lead(self, position: int, option: Option, step: int) -> int:
        """How many seats its domain would be ahead of the smallest other one of the group."""
        seats = self._in_group[position, option.group]
        name = option.domains[position]
        after = seats[name] + step
        return after - min((seat for key, seat in seats.items() if key != name), default=after)

    def is_even(self, option: Option) -> bool:
        """Whether its domains are within the skew now."""
        return all(
            self._lead(position, option, 0) <= rule.skew
            for position, rule in self._rules
            if rule.skew is not None
        )

    def may_take(self, option: Option) -> bool:
        """Whether one seat fewer keeps `least` and `skew`."""
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
    """Assigns up to `wanted` seats within the rules, one at a time to the option next in turn.

    An option without seats opens with `opening` seats at once; where that is more than one, the
    caller checks the skew again. Returns the seats that were added.
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

    covering = list(picked.cover)
    while covering:
        refused = [option for option in covering if not give(option)]
        if len(refused) == len(covering):
            break
        covering = refused  # what would have been uneven may be even after others
    # Sorting is stable and the options come in a total order, so ties are deterministic.
    waiting = sorted(
        (
            (turn(option, tally.seats[option.name]), option)
            for option in picked.allowed
            if option.room
        ),
        key=itemgetter(0),
    )
    while left > 0:
        position = next((at for at, (_, option) in enumerate(waiting) if give(option)), None)
        if position is None:
            break
        option = waiting.pop(position)[1]
        if added[option.name] < option.room:
            insort(waiting, (turn(option, tally.seats[option.name]), option), key=itemgetter(0))
    return added
