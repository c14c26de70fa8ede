"""Every pod takes one of the pods that its node can run, whatever else it requests."""

from __future__ import annotations

import pytest

from fairway.api.reasons import Code
from fairway.core.cycle import plan
from fairway.core.explain.shortfalls import with_shortfalls
from fairway.core.snapshot import Snapshot
from fairway.view.objects import Objects
from tests.builders import H100, NOW, Plain, cluster, plan_of, pool, queue, told, workload

Q = queue("q", 64)
PREEMPTS = queue("q", 64, preemption={"withinQueue": "LowerPriority"})
NO_REQUESTS = [{"name": "idle", "count": 5, "requests": {}}]

FLEETS = {
    "a node takes as many pods as it can run, though more would fit": (
        [Q, cluster("east", 16, pods=8), workload("a", "q", count=8)],
        ["a starts in east:8@h100"],
    ),
    "and no pod more": (
        [Q, cluster("east", 16, pods=8), workload("a", "q", count=9)],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "what runs there has its pods already": (
        [Q, cluster("east", 16, pods=8), workload("a", "q", count=8, running="east"),
         workload("b", "q")],
        ["b waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "the next node takes the rest": (
        [Q, cluster("east", 16, 16, pods=8), workload("a", "q", count=7, running="east"),
         workload("b", "q", count=9)],
        ["b starts in east:9@h100"],
    ),
    "pod sets of one workload share the pods of a node": (
        [Q, cluster("east", 16, pods=4), workload("a", "q", pod_sets=[
            {"name": "leader", "count": 1, "requests": {"cpu": 1}},
            {"name": "worker", "count": 4, "requests": {"nvidia.com/gpu": 1}}])],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a pod without requests takes one too": (
        [Q, cluster("east", 16, 16, pods=4), workload("a", "q", pod_sets=NO_REQUESTS, waited=90),
         workload("b", "q", count=4)],
        ["a starts in east:5@-", "b waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a service is placed as far as there are pods": (
        [Q, cluster("east", 16, pods=3), workload("s", "q", mode="Divided", replicas=5)],
        ["s starts in east:3@h100", "s waits: DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "a sweep fills what pods there are": (
        [Q, cluster("east", 16, pods=3),
         workload("t", "q", mode="Independent", tasks={"count": 5})],
        ["t starts in east:3@h100", "t waits: DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "victims free their pods": (
        [PREEMPTS, cluster("east", 16, pods=4), workload("low", "q", count=4, running="east"),
         workload("high", "q", count=4, priority=1)],
        ["low yields to high", "high starts in east:4@h100 after low"],
    ),
    "new nodes have their number of pods": (
        [Q, cluster("east", 1, pools=[pool("p", 16, stock=9, pods=2)]),
         workload("a", "q", count=5)],
        ["a gets 2 of east/p", "a starts in east:5@h100"],
    ),
    "nodes that do not say how many pods they take, take any number": (
        [Q, cluster("east", 16, pods=None, pools=[pool("p", 16, stock=1, pods=None)]),
         workload("a", "q", count=20)],
        ["a gets 1 of east/p", "a starts in east:20@h100"],
    ),
    "also beside nodes that do": (
        [Q, cluster("east", 4, pods=2, pools=[pool("p", 16, stock=1, pods=None)]),
         workload("a", "q", count=18)],
        ["a gets 1 of east/p", "a starts in east:18@h100"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "expected"), FLEETS.values(), ids=FLEETS.keys())
def test_pods_of_nodes(objects: list[Plain], expected: list[str]) -> None:
    assert told(plan_of(*objects)) == expected


def test_the_reason_says_how_many_pods_are_missing() -> None:
    objects = [H100, Q, cluster("east", 16, pods=8), workload("a", "q", count=9)]
    facts = Objects.of(objects).facts(NOW)
    made, _ = plan(Snapshot(facts))
    (waiting,) = with_shortfalls(facts, made).waiting
    short = next(item.short for item in waiting.reasons if item.code is Code.DOES_NOT_FIT)
    assert short == (("pods", 10**9),)
