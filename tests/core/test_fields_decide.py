"""Fields of specs that no other table sets: another value, another plan.

Each case is a fleet without the value, and the plans that two values of one field give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairway.view.objects import Objects
from tests.builders import NOW, Plain, cluster, fleet, plan_of, policy, queue, told, workload

Made = Callable[[Any], list[Plain]]
EAST, WEST = cluster("east", 8), cluster("west", 4)
HELD = workload("x", "b", count=8, running="east", priority=3)


def after_a_minimum_run(seconds: int) -> list[Plain]:
    return [
        queue("root"),
        queue("q", 8, parent="root", preemption={"reclaim": "Any"}),
        queue("b", 0, parent="root", minimumRun={"reclaimSeconds": seconds}),
        EAST,
        HELD,
        workload("n", "q", count=8),
    ]


def while_borrowing(most: int) -> list[Plain]:
    borrowing = {"policy": "LowerPriority", "priorityMax": most}
    rules = {"reclaim": "LowerPriority", "whileBorrowing": borrowing}
    return [
        fleet(fairShare={"enabled": False}),
        queue("root", 8),
        queue("q", 0, parent="root", preemption=rules),
        queue("b", 0, parent="root"),
        EAST,
        HELD,
        workload("n", "q", count=8, priority=9),
    ]


def with_at_least(replicas: int) -> list[Plain]:
    division = {"type": "DynamicWeight", "perClusterMin": replicas}
    service = workload("n", "q", mode="Divided", replicas=6, policy="p")
    return [queue("q", 16), EAST, WEST, policy("p", division=division), service]


def with_policies_in(namespace: str) -> list[Plain]:
    two = [cluster("east", 8), cluster("west", 8), policy("p", ["west"])]
    return [fleet(systemNamespace=namespace), queue("q", 16), *two, workload("n", "q", policy="p")]


def with_accelerators_of(flavor: str) -> list[Plain]:
    scores = [{"builtIn": "AcceleratorsInCluster", "flavor": flavor}]
    roomy = [cluster("east", 2), cluster("west", 4)]
    ranks = policy("p", scoreMode="Exact", scores=scores)
    return [queue("q", 16), *roomy, ranks, workload("n", "q", policy="p")]


CASES: dict[str, tuple[Made, dict[Any, list[str]]]] = {
    "a queue's minimumRun.reclaimSeconds": (
        after_a_minimum_run,
        {
            0: ["x yields to n", "n starts in east:8@h100 after x"],
            36_000: ["n waits: QuotaExceeded, NoVictims"],
        },
    ),
    "a queue's preemption.whileBorrowing.priorityMax": (
        while_borrowing,
        {
            2: ["n waits: QuotaExceeded, NoVictims"],
            3: ["x yields to n", "n starts in east:8@h100 after x"],
        },
    ),
    "a policy's division.perClusterMin": (
        with_at_least,
        {1: ["n starts in east:4@h100 + west:2@h100"], 5: ["n starts in east:6@h100"]},
    ),
    "a score's flavor": (
        with_accelerators_of,
        {
            "": ["n starts in west:1@h100"],
            "h100": ["n starts in west:1@h100"],
            "a10": ["n starts in east:1@h100"],
        },
    ),
    "the fleet's systemNamespace": (
        with_policies_in,
        {
            "fairway-system": ["n starts in west:1@h100"],
            "elsewhere": ["n starts in east:1@h100"],
        },
    ),
}


@pytest.mark.parametrize(("made", "plans"), CASES.values(), ids=CASES)
def test_another_value_is_another_plan(made: Made, plans: dict[Any, list[str]]) -> None:
    assert {value: told(plan_of(*made(value))) for value in plans} == plans


@pytest.mark.parametrize(("seconds", "holders"), [(0, ["team/n"]), (600, [])])
def test_the_fleet_says_how_long_a_gang_waits_before_room_is_kept_for_it(
    seconds: int, holders: list[str]
) -> None:
    made = plan_of(
        fleet(reservations={"afterSeconds": seconds}),
        queue("q", 64),
        EAST,
        workload("x", "q", count=8, running="east"),
        workload("n", "q", count=8, waited=300),
    )
    assert [each.workload for each in made.reservations] == holders


def test_the_fleet_says_for_how_many_gangs_room_is_kept() -> None:
    facts = Objects.of([fleet(reservations={"perFlavor": 2})]).facts(NOW)
    assert facts.settings.reservations_per_flavor == 2  # `test_reservations` has what it does
