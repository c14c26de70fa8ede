"""Replicas of a Divided workload over clusters.

Division is stable by default: replicas that run stay where they are. On scale-out only the
difference is placed; on scale-in clusters that can no longer be used shrink first, then the last
group: its replicas on bought nodes, then the others, each in proportion. Given weights and rules of
spread hold on scale-in too; bought nodes are freed first where these leave a choice. A fresh
division ignores current placements. Groups are filled in order with as many replicas as fit; the
rest waits.

Within a group StaticWeight divides by the given weights and DynamicWeight by the room of each
cluster. Aggregated divides by room as well, but over the fewest clusters that have enough room
together, those in use first. Remainders follow Webster's method; ties go by name. Room is always an
upper bound, for given weights too: a full cluster drops out and the others share. Rules of spread
say which clusters may be used and how even the counts must be; see `clusters/spread`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fairway.core.clusters.domain_sets import Option
from fairway.core.clusters.spread import (
    Picked,
    Tally,
    Unmet,
    fewest,
    fill,
    pick,
    relaxations,
    select,
)
from fairway.core.model import Division, Policy, Spread
from fairway.core.modes.apportionment import Turn, unseat, webster
from fairway.core.modes.copies import carriers

# The group of clusters that can no longer be used: after all others. No group has such a name.
_UNUSABLE = "!"


@dataclass(frozen=True, slots=True, kw_only=True)
class DivisionTarget:
    """A cluster that may get replicas."""

    cluster: str
    group: str = ""
    available: int = 0  # replicas that fit in addition to those assigned
    assigned: int = 0
    bought: int = 0  # of those assigned: on nodes of elastic pools, or waiting for such nodes
    is_usable: bool = True  # False: it has replicas, and would get none today
    weight: int = 1  # given, for StaticWeight; 0: gets nothing
    score: int = 0
    speed_nanos: int = 1_000_000_000  # speed of a replica there; weights are multiplied by it
    domains: tuple[str, ...] = ()  # one for each rule of spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The number of replicas for each cluster; by name, without zeros."""

    counts: Mapping[str, int]
    waiting: int = 0
    unmet: tuple[Spread, ...] = ()  # rules of spread that kept replicas from being added


def static_weights(division: Division, clusters: Iterable[str]) -> dict[str, int]:
    """Given weights of a group: for each cluster the largest of the rules that select it.

    If no rule selects any cluster of the group, all weights are equal.
    """
    weights = dict.fromkeys(sorted(clusters), 0)
    is_any_chosen = False
    for chosen, weight in division.weights:
        for name in weights:
            if chosen is None or name in chosen:
                is_any_chosen = True
                weights[name] = max(weights[name], weight)
    return weights if is_any_chosen else dict.fromkeys(weights, 1)


def divide(
    replicas: int,
    places: Sequence[DivisionTarget],
    policy: Policy,
    *,
    is_fresh: bool = False,
    asked: int = 0,
) -> Shares:
    """Divides replicas over clusters by the policy's groups, division and rules of spread.

    `asked` is how many there are to be in the end, if only some are divided now.
    """
    board = DivisionTally(places, policy, asked)
    if policy.division.type == "Duplicated":
        return board.duplicate(replicas)
    if not is_fresh:
        board.keep(replicas)
    unmet = board.settle(replicas)
    return Shares(counts=board.result(), waiting=replicas - board.total(), unmet=unmet)


class DivisionTally:
    """The counts while a division is computed."""

    def __init__(self, places: Sequence[DivisionTarget], policy: Policy, asked: int = 0) -> None:
        self.asked = asked
        order = {group.name: index for index, group in enumerate(policy.groups)}
        self.policy = policy
        self.rules = policy.spread
        self.places = sorted(
            (place if place.is_usable else replace(place, group=_UNUSABLE) for place in places),
            key=lambda place: (
                not place.is_usable,
                order.get(place.group, len(order)),
                -place.score,
                -place.weight if policy.division.type == "StaticWeight" else 0,
                -(place.available + place.assigned),
                place.cluster,
            ),
        )
        self.groups = list(dict.fromkeys(place.group for place in self.places))
        self.most_of_group = {group.name: group.replicas_max for group in policy.groups}
        self.counts = dict.fromkeys((place.cluster for place in self.places), 0)

    def total(self) -> int:
        return sum(self.counts.values())

    def result(self) -> dict[str, int]:
        return {name: count for name, count in sorted(self.counts.items()) if count}

    def members(self, group: str) -> list[DivisionTarget]:
        return [place for place in self.places if place.group == group]

    def room(self, place: DivisionTarget) -> int:
        """How many replicas a cluster could get in addition to its count."""
        room = place.available + place.assigned - self.counts[place.cluster]
        most = self.policy.division.cluster_max
        if most is not None:
            room = min(room, most - self.counts[place.cluster])
        return max(room, 0)

    def group_room(self, group: str) -> int | None:
        most = self.most_of_group.get(group)
        if most is None:
            return None
        return max(most - sum(self.counts[member.cluster] for member in self.members(group)), 0)

    # Scale-in.

    def keep(self, replicas: int) -> None:
        """Starts from the assigned replicas, less what limits or the new total do not allow."""
        cluster_most = self.policy.division.cluster_max
        for place in self.places:
            self.counts[place.cluster] = (
                place.assigned if cluster_most is None else min(place.assigned, cluster_most)
            )
        for group in self.groups:
            most = self.most_of_group.get(group)
            if most is not None:
                self.shrink(group, most)
        for group in reversed(self.groups):
            excess = self.total() - replicas
            held = sum(self.counts[member.cluster] for member in self.members(group))
            if excess > 0:
                self.shrink(group, max(held - excess, 0))

    def shrink(self, group: str, target: int, *, least: int | None = None) -> None:
        """Shrinks a group to `target`; a cluster that would fall below `least` is emptied."""
        least = self.policy.division.cluster_min if least is None else least
        places = {
            member.cluster: member for member in self.members(group) if self.counts[member.cluster]
        }
        before = {name: self.counts[name] for name in places}
        while True:
            if sum(before.values()) <= target:
                after = before
            elif self.rules:
                after = self._shrink_evenly(before, target, places)
            else:
                after = self._shrink_freely(before, target, places)
            short = [name for name, count in after.items() if 0 < count < min(least, before[name])]
            if not short:
                break
            # Among clusters with the fewest, the last by name, which was the last to get one.
            last = min(after[name] for name in short)
            del before[max(name for name in short if after[name] == last)]
        for name in places:
            self.counts[name] = after.get(name, 0)

    def _shrink_freely(
        self, before: Mapping[str, int], target: int, places: Mapping[str, DivisionTarget]
    ) -> dict[str, int]:
        if self.policy.division.type == "StaticWeight":
            weights = {name: places[name].weight * places[name].speed_nanos for name in before}
            return unseat(sum(before.values()) - target, weights, before)
        bought = {name: min(places[name].bought, count) for name, count in before.items()}
        owned = {name: count - bought[name] for name, count in before.items()}
        kept = self._kept_of(owned, target, places)
        more = self._kept_of(bought, target - sum(kept.values()), places)
        return {name: kept.get(name, 0) + more.get(name, 0) for name in before}

    def _kept_of(
        self, held: Mapping[str, int], target: int, places: Mapping[str, DivisionTarget]
    ) -> dict[str, int]:
        """What is kept of replicas, in proportion, or of Aggregated ones in the fewest clusters."""
        if sum(held.values()) <= target:
            return dict(held)
        weights = {name: count for name, count in held.items() if count}
        if self.policy.division.type == "Aggregated":
            options = [Option(name=name, room=held[name]) for name in places if held.get(name)]
            options.sort(key=lambda option: (-places[option.name].score, -option.room, option.name))
            weights = {option.name: option.room for option in fewest(options, target)}
        return webster(target, weights, caps=weights)

    def _shrink_evenly(
        self, before: Mapping[str, int], target: int, places: Mapping[str, DivisionTarget]
    ) -> dict[str, int]:
        """One at a time, the last given first; rules of spread hold while they leave a choice."""
        is_static = self.policy.division.type == "StaticWeight"
        options = self.options()
        tally = Tally(options, self.rules, range(len(self.rules)))
        after = dict(before)
        of_name = {option.name: option for option in options}
        for name in places.keys() - before.keys():
            tally.add(of_name[name], -self.counts[name])
        weights = {
            name: places[name].weight * places[name].speed_nanos if is_static else before[name]
            for name in before
        }
        bought = {name: 0 if is_static else places[name].bought for name in before}
        turns = sorted(Turn(weights[name], held - 1, name) for name, held in before.items() if held)
        for _ in range(sum(before.values()) - target):
            allowed = [turn for turn in reversed(turns) if tally.may_take(of_name[turn.name])]
            last = next((turn for turn in allowed if bought[turn.name] > 0), None)
            last = last or next(iter(allowed), turns[-1])
            turns.remove(last)
            bought[last.name] -= 1
            after[last.name] -= 1
            tally.add(of_name[last.name], -1)
            if after[last.name]:
                insort(turns, Turn(last.weight, last.seats - 1, last.name))
        return after

    # Scale-out.

    def options(self, only: str | None = None) -> list[Option]:
        """The clusters as options of spread; with `only`, other groups have no room."""
        is_static = self.policy.division.type == "StaticWeight"
        result = []
        limits = {group: self.group_room(group) for group in self.groups}
        for place in self.places:
            may_grow = (only is None or place.group == only) and (place.weight > 0 or not is_static)
            room = self.room(place) if may_grow else 0
            limit = limits[place.group]
            result.append(
                Option(
                    name=place.cluster,
                    domains=place.domains,
                    group=place.group,
                    seats=self.counts[place.cluster],
                    room=room if limit is None else min(room, limit),
                )
            )
        return result

    def settle(self, replicas: int) -> tuple[Spread, ...]:
        """Grows until nothing more is added, so that dividing again would change nothing.

        One pass is enough, unless a cluster starts with several replicas at once and these are
        taken back to keep the counts even: other clusters got fewer because of them.
        """
        unmet = self.grow(replicas - self.total())
        is_final = not (self.rules and self.policy.division.cluster_min > 1)
        before = -1
        while not is_final and before < self.total() < replicas:
            before = self.total()
            self.grow(replicas - before)
        return unmet

    def grow(
        self, wanted: int, *, only: str | None = None, least: int | None = None
    ) -> tuple[Spread, ...]:
        """Adds up to `wanted` replicas, group by group; returns the rules that prevented it."""
        least = self.policy.division.cluster_min if least is None else least
        opening = max(least, 1)
        begin = dict(self.counts)
        grower = _Grower(self, begin, opening)
        unmet: tuple[Spread, ...] = ()
        for active in relaxations(self.rules):
            left = wanted - (self.total() - sum(begin.values()))
            if left <= 0:
                break
            picked = pick(
                self.options(only),
                self.rules,
                left,
                active=active,
                opening=opening,
                asked=self.asked,
            )
            if isinstance(picked, Unmet):
                unmet = picked.rules
                continue
            before = dict(self.counts)
            grower.fill(picked, left, active)
            # Limits of groups, which `pick` does not know, may have left too few domains.
            total = max(self.asked, wanted + sum(begin.values()))
            unmet = self._too_few(active, total // opening)
            if unmet:
                self.counts = before
        return unmet

    def _too_few(self, active: Sequence[int], possible: int) -> tuple[Spread, ...]:
        """Active rules that require more domains than are used."""
        used = [place for place in self.places if self.counts[place.cluster]]
        return tuple(
            self.rules[position]
            for position in active
            if len({target.domains[position] for target in used})
            < min(self.rules[position].least, possible)
            and self.rules[position].least > 1
        )

    # Copies.

    def duplicate(self, replicas: int) -> Shares:
        """All replicas in each cluster that groups and spread allow, as far as they fit."""
        least = max(self.policy.division.cluster_min, 1)
        roomy = [place for place in self.places if self.room(place) >= least]
        options = [
            Option(name=place.cluster, domains=place.domains)
            for place in carriers(roomy, self.policy)
        ]
        # A rule that asks for more domains than there are clusters with room is not met.
        count = max((len(options), *(rule.least for rule in self.rules))) if replicas > 0 else 0
        selection = select(options, self.rules, count)
        if selection.unmet:
            kept = {place.cluster: place.assigned for place in self.places if place.assigned}
            return Shares(counts=dict(sorted(kept.items())), unmet=selection.unmet)
        for group in self.groups:
            self._copy(group, replicas, selection.chosen)
        wanted = replicas * len(selection.chosen)
        return Shares(counts=self.result(), waiting=wanted - self.total())

    def _copy(self, group: str, replicas: int, chosen: Collection[str]) -> None:
        """Completes the copies of a group, evenly, within the limit of the group."""
        places = [member for member in self.members(group) if member.cluster in chosen]
        for place in places:
            self.counts[place.cluster] = min(place.assigned, replicas, self.room(place))
        most = self.most_of_group.get(group)
        if most is not None:
            self.shrink(group, most, least=0)
        held = {place.cluster: self.counts[place.cluster] for place in places}
        lacks = {
            place.cluster: min(replicas - held[place.cluster], self.room(place)) for place in places
        }
        total = sum(lacks.values())
        if most is not None:
            total = min(total, max(0, most - sum(held.values())))
        even = dict.fromkeys(lacks, 1)
        for name, more in webster(total, even, caps=lacks, start=held).items():
            self.counts[name] += more


class _Grower:
    """Gives out replicas among the picked clusters, by the type of the division."""

    def __init__(self, board: DivisionTally, begin: Mapping[str, int], opening: int) -> None:
        self.board = board
        self.opening = opening
        self.is_static = board.policy.division.type == "StaticWeight"
        # With given weights, current replicas count; by room, only those added now do.
        self.base = dict.fromkeys(begin, 0) if self.is_static else begin
        self.weights = {
            place.cluster: place.speed_nanos
            * (place.weight if self.is_static else board.room(place))
            for place in board.places
        }

    def fill(self, picked: Picked, wanted: int, active: Sequence[int]) -> None:
        before = dict(self.board.counts)
        wanted -= self._cover(picked, wanted, active)
        for group in self.board.groups:
            limit = self.board.group_room(group)
            target = wanted if limit is None else min(wanted, limit)
            if target <= 0:
                continue
            members = [self._now(option) for option in picked.allowed if option.group == group]
            members = [member for member in members if member.room > 0]
            if self.board.policy.division.type == "Aggregated":
                few = tuple(fewest(members, target))
                got = self._add(Picked(allowed=few, cover=()), picked, target, active)
                wanted, target = wanted - got, target - got
                members = [self._now(member) for member in members]
            rest = tuple(member for member in members if member.room > 0)
            wanted -= self._add(Picked(allowed=rest, cover=()), picked, target, active)
        if self.opening > 1 and active:
            self._level(picked, before, active)

    def _cover(self, picked: Picked, wanted: int, active: Sequence[int]) -> int:
        """Opens the clusters that must be used; one that is uneven now may be even after others."""
        added, waiting = 0, list(picked.cover)
        while waiting:
            refused = []
            for option in waiting:
                limit = self.board.group_room(option.group)
                target = wanted - added if limit is None else min(wanted - added, limit)
                part = Picked(allowed=(), cover=(option,))
                more = self._add(part, picked, target, active)
                added += more
                if not more:
                    refused.append(option)
            if len(refused) == len(waiting):
                break
            waiting = refused
        return added

    def _level(self, picked: Picked, before: Mapping[str, int], active: Sequence[int]) -> None:
        """Empties clusters that started with several replicas and left the counts uneven."""
        board = self.board
        for option in reversed(picked.allowed):
            tally = Tally([self._now(other) for other in picked.allowed], board.rules, active)
            if all(tally.is_even(other) for other in picked.allowed):
                break
            if not before[option.name]:
                board.counts[option.name] = 0

    def _now(self, option: Option) -> Option:
        """The option with its current seats, and with less room by what was added."""
        more = self.board.counts[option.name] - option.seats
        if not more:
            return option
        return replace(option, seats=option.seats + more, room=option.room - more)

    def _add(self, part: Picked, whole: Picked, wanted: int, active: Sequence[int]) -> int:
        if wanted <= 0 or not (part.allowed or part.cover):
            return 0
        board = self.board
        if active or part.cover:
            tally = Tally([self._now(option) for option in whole.allowed], board.rules, active)
            added = fill(part, tally, wanted, turn=self._turn, opening=self.opening)
        else:
            added = self._share(part.allowed, wanted)
        for name, more in added.items():
            board.counts[name] += more
        return sum(added.values())

    def _turn(self, option: Option, seats: int) -> Turn:
        # A cluster that starts with several at once has the turn of the middle one of them.
        held = seats - self.base[option.name] if seats else (self.opening - 1) // 2
        return Turn(self.weights[option.name], held, option.name)

    def _share(self, options: Sequence[Option], wanted: int) -> dict[str, int]:
        """Webster's shares; a new cluster gets at least the opening, or nothing."""
        caps = {option.name: option.room for option in options}
        added = self._webster(wanted, caps, {})
        new = {option.name for option in options if not option.seats}
        if all(name not in new or not 0 < more < self.opening for name, more in added.items()):
            return added
        part = Picked(allowed=tuple(options), cover=())
        tally = Tally(options, (), ())
        added = fill(part, tally, wanted, turn=self._turn, opening=self.opening)
        # More may fit in the clusters with the most room, which may not be first by weight.
        roomy = [option for option in options if option.name in new and option.room >= self.opening]
        roomy = sorted(roomy, key=lambda option: (-option.room, option.name))[
            : wanted // self.opening
        ]
        held = sum(caps[option.name] for option in options if option.name not in new)
        best = min(wanted, held + sum(option.room for option in roomy))
        if sum(added.values()) >= best:
            return added
        while roomy and held + sum(option.room for option in roomy[:-1]) >= best:
            roomy.pop()
        floors = {option.name: self.opening for option in roomy}
        caps = {name: cap for name, cap in caps.items() if name not in new or name in floors}
        return self._webster(wanted, caps, floors)

    def _webster(
        self, wanted: int, caps: Mapping[str, int], floors: Mapping[str, int]
    ) -> dict[str, int]:
        begin = {
            name: self.board.counts[name] - self.base[name] + floors.get(name, 0) for name in caps
        }
        added = webster(
            wanted - sum(floors.values()),
            {name: self.weights[name] for name in caps},
            caps={name: cap - floors.get(name, 0) for name, cap in caps.items()},
            start=begin,
        )
        return {name: more + floors.get(name, 0) for name, more in added.items()}
