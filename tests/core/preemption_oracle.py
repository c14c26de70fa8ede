"""Brute force for preemption: the least harmful set of victims in a small fleet.

It goes through all sets of holders. Quota, shares, rules and packing are written here once more,
from what is stated and with nothing of the code under test: usage is summed from scratch for each
set, shares are fractions, and packing tries every way.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from fairway.core.model import Placed, PodSet, PreemptionRules, Workload
from tests.core.preemptions import FLAVOR, GPU

RESOURCES = ("cpu", "memory", GPU)
Pair = tuple[str, str]  # flavor, resource
Usage = Mapping[Pair, int]
Amounts = Mapping[str, int]
Harm = tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class World:
    """A small fleet, in whole units."""

    now: float
    parents: dict[str, str]
    nominal: dict[str, dict[Pair, int]]
    limits: dict[str, int | None]
    lends: dict[str, int | None]
    weights: dict[str, int]
    rules: dict[str, PreemptionRules]
    minimum: dict[str, tuple[int, int]]
    remembered: dict[str, dict[str, int]]
    nodes: dict[str, list[dict[str, int]]]
    holders: list[Workload]
    comes: Workload
    flavor: str = FLAVOR  # that it takes
    flavors: dict[str, list[str]] = field(default_factory=dict)  # of the nodes of each cluster
    leaving: list[Workload] = field(default_factory=list)  # gone soon, whatever is decided
    fair: bool
    tests: tuple[str, ...]

    def path(self, name: str) -> list[str]:
        names = [name]
        while self.parents[names[-1]]:
            names.append(self.parents[names[-1]])
        return names

    def usage_of(self, workload: Workload) -> dict[Pair, int]:
        """What is charged for a workload: where it is, or where the one that comes would be."""
        total: Counter[Pair] = Counter()
        for part in placed_of(workload):
            for pods in part.pods:
                for (resource, amount), (_, flavor) in zip(
                    pods.shape.requests, pods.flavors, strict=True
                ):
                    total[flavor, resource] += amount * pods.count // 1000
        if workload is self.comes:
            for pod_set in workload.forms[0].pod_sets:
                for resource, amount in pod_set.shape.requests:
                    total[self.flavor, resource] += amount * pod_set.count // 1000
        return dict(total)


def placed_of(workload: Workload) -> tuple[Placed, ...]:
    return (*(workload.held.placed if workload.held else ()), *workload.releasing)


# Quota, from the formulas.


class Books:
    """Who uses what, summed from scratch."""

    def __init__(self, world: World, charged: Sequence[tuple[str, Usage]]) -> None:
        self.world = world
        self.own: dict[str, Counter[Pair]] = {name: Counter() for name in world.parents}
        for name, amounts in charged:
            self.own[name].update(amounts)

    def subtree(self, name: str, pair: Pair) -> int:
        world = self.world
        total = world.nominal[name].get(pair, 0)
        for child, parent in world.parents.items():
            if parent == name:
                total += self.subtree(child, pair) - self.kept(child, pair)
        return total

    def kept(self, name: str, pair: Pair) -> int:
        lends = self.world.lends[name]
        return 0 if lends is None else max(0, self.subtree(name, pair) - lends)

    def usage(self, name: str, pair: Pair) -> int:
        total = self.own[name][pair]
        for child, parent in self.world.parents.items():
            if parent == name:
                total += max(0, self.usage(child, pair) - self.kept(child, pair))
        return total

    def available(self, name: str, pair: Pair) -> int:
        usage, subtree = self.usage(name, pair), self.subtree(name, pair)
        parent, limit = self.world.parents[name], self.world.limits[name]
        if not parent:
            return subtree - usage
        kept = self.kept(name, pair)
        above = self.available(parent, pair)
        if limit is not None:
            above = min(above, subtree - kept - max(0, usage - kept) + limit)
        return max(0, kept - usage) + above

    def potential(self, name: str, pair: Pair) -> int:
        parent, limit = self.world.parents[name], self.world.limits[name]
        subtree = self.subtree(name, pair)
        if not parent:
            return subtree
        most = self.kept(name, pair) + self.potential(parent, pair)
        return most if limit is None else min(most, subtree + limit)

    def fits(self, name: str, usage: Usage) -> bool:
        return all(amount <= max(0, self.available(name, pair)) for pair, amount in usage.items())

    def share(self, name: str) -> Fraction:
        parent = self.world.parents[name]
        if not parent:
            return Fraction(0)
        largest = Fraction(0)
        for resource in RESOURCES:
            pairs = [pair for pair in self.world.nominal[name] if pair[1] == resource]
            subtree = sum(self.subtree(name, pair) for pair in pairs)
            over = sum(max(0, self.usage(name, p) - self.subtree(name, p)) for p in pairs)
            over = max(over, self.world.remembered[name].get(resource, 0) - subtree)
            lendable = sum(self.potential(parent, pair) for pair in pairs)
            if lendable > 0:
                largest = max(largest, Fraction(over, lendable))
        return largest / self.world.weights[name]

    def is_over(self, name: str, pairs: Sequence[Pair]) -> bool:
        return any(self.usage(name, pair) > self.subtree(name, pair) for pair in pairs)

    def is_within(self, name: str, pairs: Sequence[Pair]) -> bool:
        return not self.is_over(name, pairs)


# Rules.


def books(world: World, *workloads: Workload) -> Books:
    return Books(world, [(each.queue, world.usage_of(each)) for each in workloads])


def sides(world: World, one: str, other: str) -> tuple[list[str], list[str]] | None:
    """Both paths up to just below the common ancestor."""
    first, second = world.path(one), world.path(other)
    if first[-1] != second[-1]:
        return None
    ours = [name for name in first if name not in second]
    theirs = [name for name in second if name not in first]
    return (ours, theirs) if ours and theirs else None


def by_priority(rules: PreemptionRules, ours: Workload, theirs: Workload) -> bool:
    most = rules.while_borrowing_priority_max
    return (
        rules.while_borrowing == "LowerPriority"
        and theirs.priority < ours.priority
        and (most is None or theirs.priority <= most)
    )


def passes(world: World, ours: Fraction, before: Fraction, after: Fraction) -> bool:
    return ("LessThanOrEqualToFinalShare" in world.tests and ours <= after) or (
        "LessThanInitialShare" in world.tests and ours < before
    )


def may_go(
    world: World,
    actor: Workload,
    victim: Workload,
    staying: Sequence[Workload],
    contested: Sequence[Pair],
) -> bool:
    """Whether the last of the victims may go, by the rules of the actor's queue.

    `staying`: all who hold something then, neither the actor nor the victim among them.
    """
    rules = world.rules[actor.queue]
    used = list(world.usage_of(victim))
    with_both = books(world, *staying, actor, victim)
    with_actor = books(world, *staying, actor)
    without_actor = books(world, *staying, victim)
    is_protected = world.rules[victim.queue].protect_within_nominal
    if is_protected and without_actor.is_within(victim.queue, used):
        return False
    if actor.queue == victim.queue:
        if rules.within_queue == "LowerPriority":
            return victim.priority < actor.priority
        return rules.within_queue != "Never" and (
            victim.priority < actor.priority
            or (
                victim.priority == actor.priority
                and victim.queued_at > actor.queued_at
                and not borrows_more(world, actor, with_actor)
            )
        )
    both_sides = sides(world, actor.queue, victim.queue)
    if both_sides is None or rules.reclaim == "Never":
        return False
    if rules.reclaim == "LowerPriority" and victim.priority >= actor.priority:
        return False
    ours, theirs = both_sides
    both = [pair for pair in used if pair in contested]
    if not all(with_both.is_over(name, both) for name in theirs):
        return False
    if world.fair:
        return with_actor.is_within(ours[0], contested) or passes(
            world,
            with_actor.share(ours[-1]),
            with_both.share(theirs[-1]),
            with_actor.share(theirs[-1]),
        )
    return any(with_actor.is_within(name, contested) for name in ours) or by_priority(
        rules, actor, victim
    )


def borrows_more(world: World, actor: Workload, after: Books) -> bool:
    before = books(world, *world.holders)
    return any(
        after.usage(actor.queue, pair)
        > max(after.subtree(actor.queue, pair), before.usage(actor.queue, pair))
        for pair in world.usage_of(actor)
    )


def is_old_enough(world: World, victim: Workload, actor: Workload) -> bool:
    assert victim.held is not None
    since = victim.held.decided_at if victim.held.started_at is None else victim.held.started_at
    return world.now - since >= world.minimum[victim.queue][victim.queue != actor.queue]


def is_legal(
    world: World, chosen: Sequence[Workload], contested: Sequence[Pair], by_nodes: bool
) -> bool:
    staying = [holder for holder in world.holders if holder not in chosen]
    after = books(world, *staying, world.comes)
    for item in chosen:
        if not item.preemptible or not is_old_enough(world, item, world.comes):
            return False
        if not may_go(world, world.comes, item, staying, contested):
            return False
        if item.queue == world.comes.queue:
            continue
        # It must not be able to come again and take the place of the one that came.
        again = [
            pair
            for pair, amount in world.usage_of(item).items()
            if by_nodes or amount > max(0, after.available(item.queue, pair))
        ]
        unprotected = replace(world, rules={
            name: replace(rules, protect_within_nominal=False)
            for name, rules in world.rules.items()
        })  # fmt: skip
        if may_go(unprotected, item, world.comes, staying, again):
            return False
    return True


# Packing, every way.


def ways(count: int, places: int) -> Iterator[tuple[int, ...]]:
    if places == 1:
        yield (count,)
        return
    for first in range(count + 1):
        for rest in ways(count - first, places - 1):
            yield (first, *rest)


def packs(free: Sequence[Amounts], pod_sets: Sequence[PodSet]) -> bool:
    if not pod_sets:
        return True
    first, *rest = pod_sets
    request = {name: amount // 1000 for name, amount in first.shape.requests}
    for way in ways(first.count, len(free)):
        left = [
            {name: node.get(name, 0) - request.get(name, 0) * count for name in RESOURCES}
            for node, count in zip(free, way, strict=True)
        ]
        fits = all(
            count == 0 or all(after[name] >= 0 for name in request)
            for after, count in zip(left, way, strict=True)
        )
        if fits and packs(left, rest):
            return True
    return False


def free_nodes(world: World, where: str, holders: Sequence[Workload]) -> list[dict[str, int]]:
    """What is left on the nodes beside some holders."""
    free = [dict(node) for node in world.nodes[where]]
    for holder in holders:
        for placed in placed_of(holder):
            for pod_set in placed.pods if placed.cluster == where else ():
                for position, count in placed.bound[pod_set.name].items():
                    for name, amount in pod_set.shape.requests:
                        free[position][name] -= amount * count // 1000
    return free


def has_room(world: World, where: str, holders: Sequence[Workload]) -> bool:
    """Whether nodes of the flavor hold the one that comes; without clusters quota decides."""
    if not where:
        return True
    flavors = world.flavors.get(where) or [world.flavor] * len(world.nodes[where])
    free = [
        node
        for node, flavor in zip(free_nodes(world, where, holders), flavors, strict=True)
        if flavor == world.flavor
    ]
    return bool(free) and packs(free, world.comes.forms[0].pod_sets)


# The oracle.


def loss_of(world: World, workload: Workload) -> int:
    assert workload.held is not None
    if workload.held.started_at is None or workload.saves_when_asked:
        return 0
    ran = world.now - workload.held.started_at
    lost = ran % workload.checkpoint_seconds if workload.checkpoint_seconds else ran
    weights = {GPU: 100, "cpu": 1}
    usage = world.usage_of(workload)
    weight = sum(amount * weights.get(resource, 0) for (_, resource), amount in usage.items())
    return round(lost * 1000) * max(1, weight * 1000)


def starts(world: World, where: str, holders: Sequence[Workload]) -> bool:
    """Whether the one that comes fits beside some holders."""
    usage = world.usage_of(world.comes)
    return books(world, *holders).fits(world.comes.queue, usage) and has_room(world, where, holders)


def least_harm(world: World, where: str) -> Harm | None:
    """The harm of the best set; None where there is none, or where nobody has to go."""
    chosen = best_victims(world, where)
    return None if chosen is None else harm_of(world, chosen)


def best_victims(world: World, where: str) -> Sequence[Workload] | None:
    """The best set; None where there is none, or where the one that comes starts as things are.

    What is leaving already costs nothing, and is counted on before anybody else has to go.
    """
    rules = world.rules[world.comes.queue]
    if rules.within_queue == "Never" and rules.reclaim == "Never":
        return None
    if starts(world, where, [*world.holders, *world.leaving]):
        return None
    if starts(world, where, world.holders):
        return ()
    now, usage = books(world, *world.holders), world.usage_of(world.comes)
    short = [
        pair
        for pair, amount in usage.items()
        if amount > max(0, now.available(world.comes.queue, pair))
    ]
    by_nodes = not has_room(world, where, world.holders)
    contested = list(usage) if by_nodes else short
    candidates = [
        holder
        for holder in world.holders
        if (not by_nodes or is_in(holder, where))
        and not set(world.usage_of(holder)).isdisjoint(contested)
    ]
    needed: list[set[str]] = []
    best: tuple[Harm, Sequence[Workload]] | None = None
    for number in range(1, len(candidates) + 1):
        for chosen in itertools.combinations(candidates, number):
            keys = {item.key for item in chosen}
            if any(less <= keys for less in needed):
                continue  # somebody goes only so that another may
            staying = [holder for holder in world.holders if holder.key not in keys]
            if not starts(world, where, staying):
                continue
            needed.append(keys)
            if is_legal(world, chosen, contested, by_nodes):
                harm = harm_of(world, chosen)
                best = (harm, chosen) if best is None or harm < best[0] else best
    return best and best[1]


def is_in(workload: Workload, where: str) -> bool:
    return any(item.cluster == where for item in placed_of(workload))


def harm_of(world: World, chosen: Sequence[Workload]) -> Harm:
    """The key of a set, as it is stated."""
    staying = [holder for holder in world.holders if holder not in chosen]
    others = [item for item in chosen if item.queue != world.comes.queue]
    return (
        sum(comes_back(world, staying, item) for item in chosen),
        len(others) < len(chosen),
        -min(share_of(world, item) for item in others)
        if world.fair and others
        else Fraction(-(10**9)),
        [
            (priority, sum(losses), len(losses))
            for priority in sorted({item.priority for item in chosen}, reverse=True)
            if (losses := [loss_of(world, item) for item in chosen if item.priority == priority])
        ],
    )


def comes_back(world: World, staying: Sequence[Workload], victim: Workload) -> bool:
    """Whether a victim's queue owns what it used, and another borrows some of it."""
    if world.rules[victim.queue].reclaim == "Never":
        return False
    used = list(world.usage_of(victim))
    after = books(world, *staying, world.comes)
    if not books(world, *staying, world.comes, victim).is_within(victim.queue, used):
        return False
    before = books(world, *world.holders)
    for other in {item.queue for item in world.holders} - {victim.queue}:
        both_sides = sides(world, victim.queue, other)
        if (
            both_sides is not None
            and before.is_over(other, list(world.nominal[other]))
            and all(after.is_over(name, used) for name in both_sides[1])
        ):
            return True
    return False


def share_of(world: World, victim: Workload) -> Fraction:
    """The share of the victim's side as it stands."""
    both_sides = sides(world, world.comes.queue, victim.queue)
    assert both_sides is not None, "only queues of one tree preempt each other"
    return books(world, *world.holders).share(both_sides[1][-1])
