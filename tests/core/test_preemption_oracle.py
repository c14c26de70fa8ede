"""Preemption agrees with brute force on small fleets.

The oracle goes through all sets of holders. Quota, shares, rules and packing are written here anew,
from what is stated and with nothing of the code under test: usage is summed from scratch for each
set, shares are fractions, and packing tries every way.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairway.core.model import PodSet, PreemptionRules, Workload
from fairway.core.preemption.find import Victims
from tests.core.preemptions import (
    GPU,
    NOW,
    cluster,
    fleet,
    holds,
    pods,
    queue,
    victims_of,
    wants,
)

RESOURCES = ("cpu", "memory", GPU)
Amounts = Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class World:
    """A small fleet, in whole units."""

    parents: dict[str, str]
    nominal: dict[str, dict[str, int]]
    limits: dict[str, int | None]
    lends: dict[str, int | None]
    weights: dict[str, int]
    rules: dict[str, PreemptionRules]
    minimum: dict[str, tuple[int, int]]
    remembered: dict[str, dict[str, int]]
    nodes: dict[str, list[dict[str, int]]]
    holders: list[Workload]
    comes: Workload
    fair: bool
    tests: tuple[str, ...]
    children: dict[str, list[str]] = field(default_factory=dict)

    def path(self, name: str) -> list[str]:
        found = [name]
        while self.parents[found[-1]]:
            found.append(self.parents[found[-1]])
        return found


# Quota, from the formulas.


class Books:
    """Who uses what, summed from scratch."""

    def __init__(self, world: World, charged: Sequence[tuple[str, Amounts]]) -> None:
        self.world = world
        self.own: dict[str, Counter[str]] = {name: Counter() for name in world.parents}
        for name, amounts in charged:
            self.own[name].update(amounts)

    def subtree(self, name: str, resource: str) -> int:
        world = self.world
        total = world.nominal[name].get(resource, 0)
        for child, parent in world.parents.items():
            if parent == name:
                total += self.subtree(child, resource) - self.kept(child, resource)
        return total

    def kept(self, name: str, resource: str) -> int:
        lends = self.world.lends[name]
        return 0 if lends is None else max(0, self.subtree(name, resource) - lends)

    def usage(self, name: str, resource: str) -> int:
        total = self.own[name][resource]
        for child, parent in self.world.parents.items():
            if parent == name:
                total += max(0, self.usage(child, resource) - self.kept(child, resource))
        return total

    def available(self, name: str, resource: str) -> int:
        usage, subtree = self.usage(name, resource), self.subtree(name, resource)
        parent, limit = self.world.parents[name], self.world.limits[name]
        if not parent:
            return subtree - usage
        kept = self.kept(name, resource)
        above = self.available(parent, resource)
        if limit is not None:
            above = min(above, subtree - kept - max(0, usage - kept) + limit)
        return max(0, kept - usage) + above

    def potential(self, name: str, resource: str) -> int:
        parent, limit = self.world.parents[name], self.world.limits[name]
        subtree = self.subtree(name, resource)
        if not parent:
            return subtree
        found = self.kept(name, resource) + self.potential(parent, resource)
        return found if limit is None else min(found, subtree + limit)

    def fits(self, name: str, amounts: Amounts) -> bool:
        return all(
            amount <= max(0, self.available(name, resource)) for resource, amount in amounts.items()
        )

    def share(self, name: str) -> Fraction:
        parent = self.world.parents[name]
        if not parent:
            return Fraction(0)
        largest = Fraction(0)
        for resource in RESOURCES:
            subtree = self.subtree(name, resource)
            over = max(0, self.usage(name, resource) - subtree)
            over = max(over, self.world.remembered[name].get(resource, 0) - subtree)
            lendable = self.potential(parent, resource)
            if lendable > 0:
                largest = max(largest, Fraction(over, lendable))
        return largest / self.world.weights[name]

    def is_over(self, name: str, resources: Sequence[str]) -> bool:
        return any(
            self.usage(name, resource) > self.subtree(name, resource) for resource in resources
        )

    def is_within(self, name: str, resources: Sequence[str]) -> bool:
        return not self.is_over(name, resources)


# Rules.


def amounts_of(workload: Workload) -> dict[str, int]:
    found: Counter[str] = Counter()
    for pod_set in workload.forms[0].pod_sets:
        for resource, amount in pod_set.shape.requests:
            found[resource] += amount * pod_set.count // 1000
    return dict(found)


def books(world: World, holders: Sequence[Workload], with_comer: bool = False) -> Books:
    charged = [(holder.queue, amounts_of(holder)) for holder in holders]
    if with_comer:
        charged.append((world.comes.queue, amounts_of(world.comes)))
    return Books(world, charged)


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
    contested: Sequence[str],
) -> bool:
    """Whether the last of the victims may go, by the rules of the actor's queue.

    `staying`: all who hold something then, neither the actor nor the victim among them.
    """
    rules = world.rules[actor.queue]
    used = list(amounts_of(victim))
    with_both = Books(world, [(item.queue, amounts_of(item)) for item in (*staying, actor, victim)])
    with_actor = Books(world, [(item.queue, amounts_of(item)) for item in (*staying, actor)])
    without_actor = Books(world, [(item.queue, amounts_of(item)) for item in (*staying, victim)])
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
    found = sides(world, actor.queue, victim.queue)
    if found is None or rules.reclaim == "Never":
        return False
    if rules.reclaim == "LowerPriority" and victim.priority >= actor.priority:
        return False
    ours, theirs = found
    both = [item for item in used if item in contested]
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
    before = books(world, world.holders)
    return any(
        after.usage(actor.queue, name)
        > max(after.subtree(actor.queue, name), before.usage(actor.queue, name))
        for name in amounts_of(actor)
    )


def is_old_enough(world: World, victim: Workload, actor: Workload) -> bool:
    assert victim.held is not None
    since = victim.held.decided_at if victim.held.started_at is None else victim.held.started_at
    return NOW - since >= world.minimum[victim.queue][victim.queue != actor.queue]


def is_legal(
    world: World, chosen: Sequence[Workload], contested: Sequence[str], by_nodes: bool
) -> bool:
    staying = [holder for holder in world.holders if holder not in chosen]
    after = books(world, staying, with_comer=True)
    for item in chosen:
        if not item.preemptible or not is_old_enough(world, item, world.comes):
            return False
        if not may_go(world, world.comes, item, staying, contested):
            return False
        if item.queue == world.comes.queue:
            continue
        # It must not be able to come again and take the place of the one that came.
        wanted = amounts_of(item)
        again = [
            resource
            for resource, amount in wanted.items()
            if by_nodes or amount > max(0, after.available(item.queue, resource))
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
    free = [dict(node) for node in world.nodes[where]]
    for holder in holders:
        assert holder.held is not None
        for placed in holder.held.placed:
            for pod_set in placed.pods if placed.cluster == where else ():
                for position, count in placed.bound[pod_set.name].items():
                    for name, amount in pod_set.shape.requests:
                        free[position][name] -= amount * count // 1000
    return free


# The oracle.


def loss_of(workload: Workload) -> int:
    assert workload.held is not None
    if workload.held.started_at is None or workload.saves_when_asked:
        return 0
    ran = NOW - workload.held.started_at
    lost = ran % workload.checkpoint_seconds if workload.checkpoint_seconds else ran
    used = amounts_of(workload)
    weight = 100 * used.get(GPU, 0) + used.get("cpu", 0)
    return round(lost * 1000) * max(1, weight * 1000)


def oracle(world: World, where: str) -> tuple[object, ...] | None:
    """The harm of the best set; None where there is none."""
    wanted = amounts_of(world.comes)
    now = books(world, world.holders)
    short = [
        name
        for name, amount in wanted.items()
        if amount > max(0, now.available(world.comes.queue, name))
    ]
    pod_sets = world.comes.forms[0].pod_sets
    by_nodes = bool(where) and not packs(free_nodes(world, where, world.holders), pod_sets)
    if not by_nodes and not short:
        return None
    contested = list(wanted) if by_nodes else short
    best: tuple[object, ...] | None = None
    for number in range(1, len(world.holders) + 1):
        for chosen in itertools.combinations(world.holders, number):
            if by_nodes and not all(is_in(item, where) for item in chosen):
                continue
            if not all(set(amounts_of(item)) & set(contested) for item in chosen):
                continue
            if not is_enough(world, where, chosen, by_nodes):
                continue
            fewer = [[other for other in chosen if other is not item] for item in chosen]
            if any(is_enough(world, where, some, by_nodes) for some in fewer):
                continue  # somebody goes only so that another may
            if is_legal(world, chosen, contested, by_nodes):
                harm = harm_of(world, chosen)
                best = harm if best is None else min(best, harm)
    return best


def is_enough(world: World, where: str, chosen: Sequence[Workload], by_nodes: bool) -> bool:
    staying = [holder for holder in world.holders if holder not in chosen]
    if not books(world, staying).fits(world.comes.queue, amounts_of(world.comes)):
        return False
    pod_sets = world.comes.forms[0].pod_sets
    return not by_nodes or packs(free_nodes(world, where, staying), pod_sets)


def is_in(workload: Workload, where: str) -> bool:
    assert workload.held is not None
    return any(item.cluster == where for item in workload.held.placed)


def harm_of(world: World, chosen: Sequence[Workload]) -> tuple[object, ...]:
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
            if (losses := [loss_of(item) for item in chosen if item.priority == priority])
        ],
    )


def comes_back(world: World, staying: Sequence[Workload], victim: Workload) -> bool:
    """Whether a victim's queue owns what it used, and another borrows some of it."""
    if world.rules[victim.queue].reclaim == "Never":
        return False
    used = list(amounts_of(victim))
    charged = [(item.queue, amounts_of(item)) for item in (*staying, world.comes)]
    after = Books(world, charged)
    if not Books(world, [*charged, (victim.queue, amounts_of(victim))]).is_within(
        victim.queue, used
    ):
        return False
    before = books(world, world.holders)
    for other in {item.queue for item in world.holders} - {victim.queue}:
        found = sides(world, victim.queue, other)
        if (
            found is not None
            and before.is_over(other, RESOURCES)
            and all(after.is_over(name, used) for name in found[1])
        ):
            return True
    return False


def share_of(world: World, victim: Workload) -> Fraction:
    """The share of the victim's side as it stands."""
    found = sides(world, world.comes.queue, victim.queue)
    assert found is not None, "only queues of one tree preempt each other"
    return books(world, world.holders).share(found[1][-1])


# Worlds.


def make(seed: int) -> World:
    chance = random.Random(seed)
    names, parents = tree_of(chance)
    leaves = [name for name in names if name not in parents.values()]
    resources = chance.sample(RESOURCES, chance.choice([1, 1, 2, 3]))
    # Every queue covers the same resources, so that all are limited everywhere.
    nominal = {
        name: {resource: chance.choice([0, 1, 2, 4, 6]) for resource in resources} for name in names
    }
    places = [f"c{number}" for number in range(chance.randint(0, 3))]
    nodes = {
        place: [
            {resource: chance.choice([2, 4, 4, 6]) for resource in resources}
            for _ in range(chance.randint(1, 4))
        ]
        for place in places
    }
    world = World(
        parents=parents,
        nominal=nominal,
        limits={
            name: chance.choice([None, None, None, None, 3]) if parents[name] else None
            for name in names
        },
        lends={
            name: chance.choice([None, None, None, None, 1]) if parents[name] else None
            for name in names
        },
        weights={name: chance.choice([1, 1, 1, 2, 3]) for name in names},
        rules={name: rules_of(chance) for name in names},
        minimum={
            name: (chance.choice([0, 0, 0, 50]), chance.choice([0, 0, 0, 50])) for name in names
        },
        remembered={
            name: {resource: chance.choice([0, 0, 0, 3, 8]) for resource in resources}
            for name in names
        },
        nodes=nodes,
        holders=[],
        comes=wants(
            "new",
            chance.choice(leaves),
            *some_pods(chance, resources),
            priority=chance.randint(1, 4),
            at=float(chance.randint(0, 2)),
        ),
        fair=chance.random() < 0.6,
        tests=chance.choice(
            [
                ("LessThanOrEqualToFinalShare", "LessThanInitialShare"),
                ("LessThanOrEqualToFinalShare",),
                ("LessThanInitialShare",),
            ]
        ),
    )
    for number in range(chance.randint(3, 8)):
        add_holder(world, chance, f"h{number}", leaves, resources)
    return world


def tree_of(chance: random.Random) -> tuple[list[str], dict[str, str]]:
    if chance.random() < 0.5:
        leaves = ["a", "b", "c"][: chance.randint(1, 3)]
        return ["root", *leaves], {"root": "", **dict.fromkeys(leaves, "root")}
    parents = {"root": "", "left": "root", "right": "root", "a": "left", "b": "right"}
    for extra in ("c", "d")[: chance.randint(0, 2)]:
        parents[extra] = chance.choice(["left", "right", "root"])
    return list(parents), parents


def rules_of(chance: random.Random) -> PreemptionRules:
    return PreemptionRules(
        within_queue=chance.choice(
            ["Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority"]
        ),
        reclaim=chance.choice(["Never", "LowerPriority", "LowerPriority", "Any", "Any"]),
        while_borrowing=chance.choice(["Never", "LowerPriority", "LowerPriority"]),
        while_borrowing_priority_max=chance.choice([None, None, 1]),
        protect_within_nominal=chance.random() < 0.1,
    )


def some_pods(chance: random.Random, resources: Sequence[str]) -> list[PodSet]:
    found = []
    for name in ("main", "other")[: chance.choice([1, 1, 2])]:
        used = chance.sample(resources, chance.randint(1, len(resources)))
        amounts = {item: chance.choice([1, 1, 2, 2, 3]) for item in used}
        gpus = amounts.pop(GPU, 0)
        found.append(pods(chance.randint(1, 2), gpus, name, **amounts))
    return found


def add_holder(
    world: World,
    chance: random.Random,
    key: str,
    leaves: Sequence[str],
    resources: Sequence[str],
) -> None:
    """A holder that had room when it came; quota may have been taken away since."""
    pod_sets = some_pods(chance, resources)
    place = chance.choice(list(world.nodes)) if world.nodes else ""
    bound: dict[str, dict[int, int]] = {}
    if place:
        free = free_nodes(world, place, world.holders)
        for pod_set in pod_sets:
            request = {name: amount // 1000 for name, amount in pod_set.shape.requests}
            for _ in range(pod_set.count):
                fits = [
                    position
                    for position, node in enumerate(free)
                    if all(node.get(name, 0) >= amount for name, amount in request.items())
                ]
                if not fits:
                    return
                position = chance.choice(fits)
                for name, amount in request.items():
                    free[position][name] -= amount
                counts = bound.setdefault(pod_set.name, {})
                counts[position] = counts.get(position, 0) + 1
    world.holders.append(
        holds(
            key,
            chance.choice(leaves),
            *pod_sets,
            on=bound,
            cluster=place,
            priority=chance.randint(0, 3),
            at=float(chance.randint(0, 3)),
            ran=chance.choice([None, 10.0, 40.0, 60.0, 100.0, 250.0]),
            preemptible=chance.random() < 0.95,
            checkpoint=chance.choice([None, None, 60.0]),
            saves=chance.random() < 0.1,
        )
    )


def whole(world: World, name: str) -> dict[str, int]:
    return world.nominal[name]


def answer(world: World, where: str) -> Victims | None:
    planning = fleet(
        [
            queue(
                name,
                whole(world, name),
                parent=parent,
                rules=world.rules[name],
                weight=world.weights[name],
                limit=world.limits[name],
                lends=world.lends[name],
                within=world.minimum[name][0],
                reclaim_after=world.minimum[name][1],
                remembered=world.remembered[name],
            )
            for name, parent in world.parents.items()
        ],
        [*world.holders, world.comes],
        [cluster(name, *nodes) for name, nodes in world.nodes.items()],
        fair=world.fair,
        tests=world.tests,
        half_life=3600.0,
    )
    return victims_of(planning, "new", where)


def compare(seed: int) -> list[Victims | None]:
    world = make(seed)
    found = []
    for where in world.nodes or [""]:
        actual = answer(world, where)
        expected = oracle(world, where)
        assert (None if actual is None else stated(world, actual)) == expected, (seed, where)
        found.append(actual)
    return found


def stated(world: World, victims: Victims) -> tuple[object, ...]:
    keys = {victim.key for victim in victims.victims}
    return harm_of(world, [holder for holder in world.holders if holder.key in keys])


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**40))
def test_the_victims_are_those_of_brute_force(seed: int) -> None:
    for actual in compare(seed):
        if actual is None:
            event("nobody")
        else:
            event(f"{len(actual.victims)} victims")
            for victim in actual.victims:
                event(victim.code.value)
            event("by nodes" if actual.cluster else "by quota alone")


@pytest.mark.parametrize("seed", range(60))
def test_fixed_small_fleets_agree(seed: int) -> None:
    compare(seed)


def test_the_small_fleets_have_something_to_tell() -> None:
    """The comparison is worth something only where there are victims, by each of the rules."""
    codes: Counter[str] = Counter()
    numbers: Counter[int] = Counter()
    for seed in range(400):
        world = make(seed)
        for where in world.nodes or [""]:
            found = answer(world, where)
            numbers[0 if found is None else len(found.victims)] += 1
            codes.update({victim.code.value for victim in found.victims} if found else ())
    print(dict(numbers), dict(codes))
    assert min(codes[name] for name in (
        "PreemptedWithinQueue",
        "PreemptedToReclaim",
        "PreemptedForFairShare",
        "PreemptedWhileBorrowing",
    )) >= 5  # fmt: skip
    assert sum(count for number, count in numbers.items() if number >= 2) >= 20
