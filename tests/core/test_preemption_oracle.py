"""Preemption agrees with brute force on small fleets.

The holders are of one flavor or of two, and some of them leave already.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairway.core.model import PodSet, PreemptionRules
from fairway.core.preemption.find import Victims
from tests.core.preemption_oracle import RESOURCES, Harm, World, free_nodes, harm_of, least_harm
from tests.core.preemptions import (
    FLAVOR,
    GPU,
    NOW,
    cluster,
    fleet,
    holds,
    leaves,
    pods,
    queue,
    victims_of,
    wants,
)
from tests.properties.checks import IS_LONG


def make(seed: int) -> World:
    chance = random.Random(seed)
    names, parents = tree_of(chance)
    queues = [name for name in names if name not in parents.values()]
    resources = chance.sample(RESOURCES, chance.choice([1, 1, 2, 3]))
    flavors = chance.choice([[FLAVOR], ["old", "new"]])
    # Every queue covers the same resources, so that all are limited everywhere.
    nominal = {
        name: {
            (flavor, resource): chance.choice([0, 1, 2, 4, 6])
            for flavor in flavors
            for resource in resources
        }
        for name in names
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
        now=NOW,
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
        flavor=chance.choice(flavors),
        flavors={place: [chance.choice(flavors) for _ in nodes[place]] for place in places},
        holders=[],
        comes=wants(
            "new",
            chance.choice(queues),
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
        add_holder(world, chance, f"h{number}", queues, resources)
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
    pod_sets = []
    for name in ("main", "other")[: chance.choice([1, 1, 2])]:
        used = chance.sample(resources, chance.randint(1, len(resources)))
        amounts = {item: chance.choice([1, 1, 2, 2, 3]) for item in used}
        gpus = amounts.pop(GPU, 0)
        pod_set = pods(chance.randint(1, 2), gpus, name, **amounts)
        pod_sets.append(replace(pod_set, group="together"))  # brute force knows one flavor for all
    return pod_sets


def add_holder(
    world: World,
    chance: random.Random,
    key: str,
    queues: Sequence[str],
    resources: Sequence[str],
) -> None:
    """A holder that had room when it came; quota may have been taken away since."""
    pod_sets = some_pods(chance, resources)
    place = chance.choice(list(world.nodes)) if world.nodes else ""
    flavor = chance.choice(sorted({pair[0] for pair in world.nominal["root"]}))
    bound: dict[str, dict[int, int]] = {}
    if place:
        free = free_nodes(world, place, [*world.holders, *world.leaving])
        for pod_set in pod_sets:
            request = {name: amount // 1000 for name, amount in pod_set.shape.requests}
            for _ in range(pod_set.count):
                fits = [
                    position
                    for position, node in enumerate(free)
                    if world.flavors[place][position] == flavor
                    and all(node.get(name, 0) >= amount for name, amount in request.items())
                ]
                if not fits:
                    return
                position = chance.choice(fits)
                for name, amount in request.items():
                    free[position][name] -= amount
                counts = bound.setdefault(pod_set.name, {})
                counts[position] = counts.get(position, 0) + 1
    holder = holds(
        key,
        chance.choice(queues),
        *pod_sets,
        on=bound,
        cluster=place,
        flavor=flavor,
        priority=chance.randint(0, 3),
        at=float(chance.randint(0, 3)),
        ran=chance.choice([None, 10.0, 40.0, 60.0, 100.0, 250.0]),
        preemptible=chance.random() < 0.95,
        checkpoint=chance.choice([None, None, 60.0]),
        saves=chance.random() < 0.1,
    )
    if chance.random() < 0.12:
        world.leaving.append(leaves(holder))
    else:
        world.holders.append(holder)


def answer(world: World, where: str) -> Victims | None:
    planning = fleet(
        [
            queue(
                name,
                world.nominal[name],
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
        [*world.holders, *world.leaving, world.comes],
        [cluster(name, *nodes, flavors=world.flavors[name]) for name, nodes in world.nodes.items()],
        fair=world.fair,
        tests=world.tests,
        half_life=3600.0,
        flavors=sorted({pair[0] for pair in world.nominal["root"]}),
    )
    return victims_of(planning, "new", where, world.flavor)


def compare(seed: int) -> list[Victims | None]:
    world = make(seed)
    answers = []
    for where in world.nodes or [""]:
        actual = answer(world, where)
        harm = None if actual is None else stated(world, actual)
        assert harm == least_harm(world, where), (seed, where)
        answers.append(actual)
    return answers


def stated(world: World, victims: Victims) -> Harm:
    keys = {victim.key for victim in victims.victims}
    return harm_of(world, [holder for holder in world.holders if holder.key in keys])


@settings(max_examples=4_000 if IS_LONG else 400, deadline=None)
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
    with_leaving = on_two_flavors = 0
    for seed in range(400):
        world = make(seed)
        for where in world.nodes or [""]:
            actual = answer(world, where)
            if actual is None:
                continue
            numbers[len(actual.victims)] += 1
            codes.update({victim.code.value for victim in actual.victims})
            with_leaving += bool(world.leaving and actual.victims)
            on_two_flavors += bool(world.flavor != FLAVOR and actual.victims)
    assert min(codes[name] for name in (
        "PreemptedWithinQueue",
        "PreemptedToReclaim",
        "PreemptedForFairShare",
        "PreemptedWhileBorrowing",
    )) >= 5  # fmt: skip
    assert sum(count for number, count in numbers.items() if number >= 2) >= 20
    assert numbers[0] >= 5, "what leaves is enough"
    assert with_leaving >= 20
    assert on_two_flavors >= 20
