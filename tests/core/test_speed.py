"""Replicas counted by the speed of their flavor: fewer are needed where they are faster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.core.checks.invariants import broken
from fairway.core.cycle import plan
from fairway.core.snapshot import Facts, Snapshot
from fairway.core.transitions import after
from fairway.view.objects import Objects
from tests.builders import (
    H100,
    NOW,
    cluster,
    flavor,
    plan_of,
    policy,
    pool,
    queue,
    told,
    workload,
)

FAST, SLOW = flavor("fast", speed="1.5"), flavor("slow", speed="0.4")
QUEUE = queue("q", quotas={"fast": 64, "h100": 64, "slow": 64})
SPEED = {"type": "DynamicWeight", "countBy": "Speed"}
NEAR = policy("p", ["near"], ["far"], division=SPEED)
FAR = cluster("far", 32)


def service(replicas: int, **more: Any) -> dict[str, Any]:
    return workload("s", "q", mode="Divided", replicas=replicas, policy="p", **more)


ROWS = {
    "four of speed 1.5 stand for six": (
        [NEAR, cluster("near", 8, model="fast"), FAR, service(6)],
        ["s starts in near:4@fast"],
    ),
    "a part of a replica is a whole one": (
        [NEAR, cluster("near", 8, model="fast"), FAR, service(7)],
        ["s starts in near:5@fast"],
    ),
    "what fast ones leave is made up by others": (
        [NEAR, cluster("near", 4, model="fast"), FAR, service(10)],
        ["s starts in far:4@h100 + near:4@fast"],
    ),
    "of slow ones more are needed than were asked for": (
        [NEAR, cluster("near", 16, model="slow"), FAR, service(4)],
        ["s starts in near:10@slow"],
    ),
    "who gets less than it asks for waits for the rest": (
        [NEAR, cluster("near", 2, model="fast"), cluster("far", 1), service(6)],
        ["s starts in far:1@h100 + near:2@fast",
         "s waits: DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "nodes are bought for no more than is missing": (
        [NEAR, FAR, service(6),
         cluster("near", 2, model="fast", pools=[pool("p", 2, stock=9, model="fast")])],
        ["s gets 1 of near/p", "s starts in near:4@fast"],
    ),
    "enough is left alone": (
        [NEAR, cluster("near", 8, model="fast"), FAR,
         service(6, running="near", holds=4, on="fast")],
        [],
    ),
    "a replica too many stays while none can be spared": (
        [NEAR, cluster("near", 8, model="fast"), FAR,
         service(5, running="near", holds=4, on="fast")],
        [],
    ),
    "what can be spared goes": (
        [NEAR, cluster("near", 8, model="fast"), FAR,
         service(4, running="near", holds=4, on="fast")],
        ["s starts in near:3@fast"],
    ),
    "every replica counts for one unless it is asked for": (
        [policy("p", ["near"], ["far"]), cluster("near", 8, model="fast"), FAR, service(6)],
        ["s starts in near:6@fast"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), ROWS.values(), ids=list(ROWS))
def test_the_plan_is(objects: list[dict[str, Any]], want: list[str]) -> None:
    assert told(plan_of(FAST, SLOW, QUEUE, *objects)) == want


def _facts(near: int, far: int, replicas: int, speed: int) -> Facts:
    objects = [
        H100,
        flavor("fast", speed=f"{speed}m"),
        queue("q", quotas={"fast": 64, "h100": 64}),
        NEAR,
        cluster("near", near, model="fast"),
        cluster("far", far),
        service(replicas),
    ]
    return Objects.of(objects).facts(NOW)


def _worth(facts: Facts) -> tuple[int, list[int]]:
    """What a service has, in nanos of a replica; and the speeds that it has replicas of."""
    held = facts.workloads["team/s"].held
    speeds = {name: flavor.speed_nanos for name, flavor in facts.flavors.items()}
    found = [
        (item.replicas, speeds[dict(pods.flavors)["nvidia.com/gpu"]])
        for item in (held.placed if held else ())
        for pods in item.pods
    ]
    return sum(count * speed for count, speed in found), [speed for _, speed in found]


@settings(max_examples=120, deadline=None)
@given(
    st.integers(0, 20), st.integers(0, 20), st.integers(0, 24), st.integers(0, 24),
    st.integers(100, 3000),
)  # fmt: skip
def test_never_too_few_where_there_is_room_and_never_one_too_many(
    near: int, far: int, first: int, second: int, speed: int
) -> None:
    facts = _facts(near, far, first, speed)
    for replicas in (first, second):
        key = "team/s"
        changed = {key: _with_replicas(facts.workloads[key], replicas)}
        facts = _with(facts, changed)
        made, _ = plan(Snapshot(facts))
        assert broken(facts, made) == []
        facts = after(facts, made)
        again, _ = plan(Snapshot(facts))
        assert again.steps == (), "dividing again changes nothing"
        worth, speeds = _worth(facts)
        wanted = replicas * 1_000_000_000
        room = near * speed * 1_000_000 + far * 1_000_000_000
        assert worth >= min(wanted, room)
        if worth > wanted:
            assert worth - max(speeds) < wanted


def _with(facts: Facts, workloads: dict[str, Any]) -> Facts:
    return replace(facts, workloads={**facts.workloads, **workloads})


def _with_replicas(one: Any, replicas: int) -> Any:
    return replace(one, replicas=replicas)
