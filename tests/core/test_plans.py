"""Tables of small fleets: a rule as a sentence, and the whole plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairway.api.reasons import Code
from fairway.core.cycle import plan
from fairway.core.modes.policy_clusters import PolicyChoice, choose_clusters
from fairway.core.snapshot import Snapshot
from fairway.view.objects import Objects
from tests.builders import (
    H100,
    NOW,
    Plain,
    cluster,
    flavor,
    fleet,
    plan_of,
    policy,
    pool,
    queue,
    told,
    workload,
)

EAST, WEST = cluster("east", 8), cluster("west", 8)
A100 = flavor("a100")
NEAR_FEW = policy("few", groups=[
    {"name": "near", "selector": {"names": ["east"]}, "replicasMax": 2},
    {"name": "far", "selector": {"names": ["west"]}},
])  # fmt: skip
COPIES = policy("copies", division={"type": "Duplicated"})
HOME_FIRST = policy("home", ["east"], ["west"])
ACROSS = policy("across", ["east"], ["west"], gangSplit="AcrossGroups")

CREDITS = queue("q", resourceGroups=[{"resources": ["credits"], "flavors": [
    {"name": "h100", "quotas": [{"resource": "credits", "nominal": 8}]}]}])  # fmt: skip


def two_sets(**more: Any) -> list[Plain]:
    return [
        {"name": name, "count": count, "requests": {"nvidia.com/gpu": 1}, **more}
        for name, count in (("leader", 2), ("worker", 4))
    ]


QUOTA = {
    "a resource counts as another one in quota": (
        [fleet(resources=[{"resource": "nvidia.com/gpu", "countsAs": {"credits": "2"}}]),
         CREDITS, EAST, workload("a", "q", count=4, waited=90), workload("b", "q")],
        ["a starts in east:4@h100", "b waits: QuotaExceeded, NoVictims"],
    ),
    "what runs counts by the same rule": (
        [fleet(resources=[{"resource": "nvidia.com/gpu", "countsAs": {"credits": "2"}}]),
         CREDITS, EAST, workload("a", "q", count=3, running="east"),
         workload("b", "q", count=1, waited=90), workload("c", "q")],
        ["b starts in east:1@h100", "c waits: QuotaExceeded, NoVictims"],
    ),
    "a resource that counts as another one may count itself, too": (
        [fleet(resources=[{"resource": "cpu", "countsAs": {"nvidia.com/gpu": "1"}, "keep": True}]),
         queue("q", 4), EAST, workload("a", "q", count=2, waited=90), workload("b", "q")],
        ["a starts in east:2@h100", "b waits: QuotaExceeded, NoVictims"],
    ),
    "a resource that counts as nothing needs no quota, and room all the same": (
        [fleet(resources=[{"resource": "nvidia.com/gpu"}]), queue("q", 1), EAST,
         workload("a", "q", count=8, waited=90), workload("b", "q")],
        ["a starts in east:8@-", "b waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "an ignored resource needs no quota, and room all the same": (
        [fleet(ignoredResourcePrefixes=["nvidia.com/"]), queue("q", 1), EAST,
         workload("a", "q", count=8, waited=90), workload("b", "q")],
        ["a starts in east:8@-", "b waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "quota alone decides where there is no cluster": (
        [queue("q", 4), workload("a", "q", count=3), workload("b", "q", count=2)],
        ["a starts in nowhere:3@h100", "b waits: QuotaExceeded"],
    ),
    "a queue borrows what its sibling does not use": (
        [queue("root"), queue("a", 2, parent="root"), queue("b", 6, parent="root"),
         cluster("east", 8), workload("big", "a", count=8)],
        ["big starts in east:8@h100"],
    ),
    "a borrowing limit holds": (
        [queue("root"), queue("a", 2, parent="root", borrowingLimit=2),
         queue("b", 6, parent="root"), EAST, workload("big", "a", count=5)],
        ["big waits: QuotaTooSmall, NoVictims"],
    ),
    "a lending limit keeps some at home": (
        [queue("root"), queue("a", 2, parent="root"),
         queue("b", 6, parent="root", lendingLimit=3), EAST, workload("big", "a", count=6)],
        ["big waits: QuotaTooSmall, NoVictims"],
    ),
    "a resource that no group names is not limited, if the queue says so": (
        [queue("q"), EAST, workload("a", "q", count=8)],
        ["a starts in east:8@-"],
    ),
    "the number of pods counts where a group names it": (
        [queue("q", resourceGroups=[{"resources": ["nvidia.com/gpu", "pods"], "flavors": [
            {"name": "h100", "quotas": [{"resource": "nvidia.com/gpu", "nominal": 8},
                                        {"resource": "pods", "nominal": 3}]}]}]), EAST,
         workload("a", "q", count=2, waited=99), workload("b", "q", count=1, waited=90),
         workload("c", "q", count=1, waited=80), workload("d", "q", count=4)],
        ["a starts in east:2@h100", "b starts in east:1@h100", "c waits: QuotaExceeded, NoVictims",
         "d waits: QuotaTooSmall, NoVictims"],
    ),
    "or a queue above it says so": (
        [queue("root"), queue("q", 8, parent="root", uncovered=None), EAST, workload("a", "q")],
        ["a starts in east:1@h100"],
    ),
    "otherwise it is not available": (
        [queue("q", 8, uncovered=None), EAST, workload("a", "q")],
        ["a waits: NotCovered, NoVictims"],
    ),
    "a resource that only a queue above names comes from there": (
        [queue("root", uncovered=None, resourceGroups=[{"resources": ["cpu"], "flavors": [
            {"name": "h100", "quotas": [{"resource": "cpu", "nominal": 3}]}]}]),
         queue("q", 8, parent="root", uncovered=None), EAST,
         workload("a", "q", count=2, waited=90), workload("b", "q", count=2)],
        ["a starts in east:2@h100", "b waits: QuotaExceeded, NoVictims"],
    ),
    "a queue may refuse what the queue above it does not limit": (
        [queue("root"), queue("q", 8, parent="root", uncovered="Unavailable"), EAST,
         workload("a", "q")],
        ["a waits: NotCovered, NoVictims"],
    ),
    "a queue that an earlier version stored limits nothing that no group names": (
        [{**queue("q", 8, uncovered=None), "status": {"observedGeneration": 3}}, EAST,
         workload("a", "q")],
        ["a starts in east:1@h100"],
    ),
    "pod sets that no flavor has room for together use different ones": (
        [A100, queue("q", quotas={"h100": 4, "a100": 4}), workload("a", "q", pod_sets=two_sets())],
        ["a starts in nowhere:2@h100+4@a100"],
    ),
    "many equal pod sets as well": (
        [A100, queue("q", quotas={"h100": 1, "a100": 6}),
         workload("a", "q", pod_sets=[{"name": f"p{number}", "requests": {"nvidia.com/gpu": 1}}
                                      for number in range(7)])],
        ["a starts in nowhere:1@h100+1@a100+1@a100+1@a100+1@a100+1@a100+1@a100"],
    ),
    "one flavor for all pod sets comes first": (
        [A100, queue("q", quotas={"h100": 4, "a100": 6}), workload("a", "q", pod_sets=two_sets())],
        ["a starts in nowhere:2@a100+4@a100"],
    ),
    "pod sets of one group wait for one flavor": (
        [A100, queue("q", quotas={"h100": 4, "a100": 4}),
         workload("a", "q", pod_sets=two_sets(group="ring"))],
        ["a waits: QuotaTooSmall"],
    ),
    "as many workloads may hold a claim as the queue says": (
        [queue("q", 8, claimedWorkloadsMax=1), EAST, workload("a", "q"), workload("b", "q")],
        ["a starts in east:1@h100", "b waits: ClaimsExceeded"],
    ),
    "what cannot be preempted does not borrow": (
        [queue("root"), queue("a", 2, parent="root"), queue("b", 6, parent="root"), EAST,
         workload("rock", "a", count=4, preemptible=False)],
        ["rock waits: QuotaTooSmall, NoVictims"],
    ),
    "it waits for quota of its own queue": (
        [queue("root"), queue("a", 4, parent="root"), queue("b", 6, parent="root"), EAST,
         workload("x", "a", count=2, running="east", priority=9),
         workload("rock", "a", count=4, preemptible=False)],
        ["rock waits: QuotaExceeded, NoVictims"],
    ),
}  # fmt: skip

_FAST = flavor("fast", nodeLabels={"net": "fast"})
_IN_DOUBT = (
    "warning: west: 1 node has both flavors fast and h100 of one resource group, "
    "and is used for neither"
)
_DOUBTFUL = [
    _FAST, queue("q", quotas={"h100": 8, "fast": 8}),
    cluster("east", 4), cluster("west", 8, extra={"net": "fast"}),
]  # fmt: skip

OVERLAPS = {
    "a node that has two flavors of one resource group is used for neither": (
        [*_DOUBTFUL, workload("a", "q", count=4), workload("b", "q", count=4)],
        ["a starts in east:4@h100", "b waits: DoesNotFit, NoVictims, NoPool, FlavorsOverlap",
         _IN_DOUBT],
    ),
    "who could not use those nodes anyway is not bothered with them": (
        [*_DOUBTFUL, policy("near", ["east"]), workload("a", "q", count=8, policy="near")],
        ["a waits: NotSelected, DoesNotFit, NoVictims, NoPool",
         _IN_DOUBT],
    ),
    "in two resource groups both flavors are fine": (
        [_FAST, queue("q", resourceGroups=[
            {"resources": [resource], "flavors": [
                {"name": name, "quotas": [{"resource": resource, "nominal": 8}]}]}
            for resource, name in (("nvidia.com/gpu", "h100"), ("cpu", "fast"))]),
         cluster("west", 8, extra={"net": "fast"}), workload("a", "q", count=8)],
        ["a starts in west:8@fast,h100"],
    ),
    "new nodes that would have two flavors of one group are not asked for": (
        [_FAST, queue("q", quotas={"h100": 8, "fast": 8}), cluster("east", pools=[
            {**pool("p", 8, stock=9), "labels": {"accelerator": "h100", "net": "fast"}}]),
         workload("a", "q", count=8)],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
}  # fmt: skip

ORDER = {
    "a small job with the queue's limit runs ahead of a reservation that it does not delay": (
        [queue("q", 16, defaults={"runSecondsLimit": 600}), EAST,
         workload("runs", "q", count=6, running="east", since=60, runSeconds={"limit": 3660}),
         workload("large", "q", count=8, waited=900), workload("small", "q", count=2, waited=60)],
        ["small starts in east:2@h100", "large waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "without any limit it might delay it, and waits": (
        [queue("q", 16), EAST,
         workload("runs", "q", count=6, running="east", since=60, runSeconds={"limit": 3660}),
         workload("large", "q", count=8, waited=900), workload("small", "q", count=2, waited=60)],
        ["large waits: DoesNotFit, NoVictims, NoPool", "small waits: Reserved, NoVictims, NoPool"],
    ),
    "the latest have no place in a full queue, whatever their priority": (
        [queue("q", 8, waitingWorkloadsMax=1), EAST, workload("a", "q", waited=90),
         workload("b", "q", priority=9, waited=30)],
        ["a starts in east:1@h100", "b waits: QueueFull"],
    ),
    "a queue limits all queues below it": (
        [queue("all", 8, waitingWorkloadsMax=1), queue("q", 8, parent="all"),
         queue("r", 8, parent="all"), EAST,
         workload("a", "q", waited=90), workload("b", "r", waited=60)],
        ["a starts in east:1@h100", "b waits: QueueFull"],
    ),
    "a user has no place beside others of one's own": (
        [queue("q", 8, userLimits=[{"name": "each", "waitingWorkloads": 1}]), EAST,
         workload("a", "q", waited=90), workload("b", "q", waited=60)],
        ["a starts in east:1@h100", "b waits: QueueFull"],
    ),
    "the more urgent goes first, then the older": (
        [queue("q", 2), EAST, workload("young", "q", waited=10), workload("old", "q", waited=90),
         workload("urgent", "q", priority=5, waited=1)],
        ["urgent starts in east:1@h100", "old starts in east:1@h100",
         "young waits: QuotaExceeded, NoVictims"],
    ),
    "a queue that is more important goes first": (
        [queue("root", 1), queue("a", parent="root"), queue("b", parent="root", priority=1),
         EAST, workload("x", "a", priority=9), workload("y", "b")],
        ["y starts in east:1@h100", "x waits: QuotaExceeded, NoVictims"],
    ),
    "a small one passes a large one in a best-effort queue": (
        [queue("q", 16), EAST, workload("large", "q", count=9, waited=90),
         workload("small", "q", count=8, waited=10)],
        ["small starts in east:8@h100", "large waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a strict queue waits for its head": (
        [queue("q", 16, strategy="Strict"), EAST, workload("large", "q", count=9, waited=90),
         workload("small", "q", count=8, waited=10)],
        ["large waits: DoesNotFit, NoVictims, NoPool", "small waits: BehindHead"],
    ),
    "a held queue and a held workload start nothing": (
        [queue("q", 8), queue("h", 8, hold="Hold"), EAST, workload("a", "h"),
         workload("b", "q", hold="Hold")],
        ["a waits: QueueHeld", "b waits: Held"],
    ),
    "a paused fleet starts nothing": (
        [fleet(paused=True), queue("q", 8), EAST, workload("a", "q")],
        [],
    ),
}  # fmt: skip

WHERE = {
    "what is left beside claimed pods that fit on no node is not free": (
        [queue("q", 16), cluster("east", 2, 2, 4),
         workload("gang", "q", count=2, gpus=4, running="east"), workload("small", "q", count=4)],
        ["small waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "an earlier group is filled before a later one": (
        [queue("q", 16), cluster("east", 4), cluster("west", 8), HOME_FIRST,
         workload("a", "q", count=4, policy="home"), workload("b", "q", count=4, policy="home")],
        ["a starts in east:4@h100", "b starts in west:4@h100"],
    ),
    "a queue's fence is stronger than a policy": (
        [queue("q", 16, clusters={"names": ["west"]}), EAST, WEST,
         policy("east-only", ["east"]), workload("a", "q", policy="east-only")],
        ["a waits: Fenced, NotSelected, NoCluster"],
    ),
    "a taint keeps away who does not tolerate it": (
        [queue("q", 8), cluster("east", 8, taints=[{"key": "old", "effect": "NoSchedule"}]),
         policy("brave", ["east"], tolerations=[{"key": "old", "operator": "Exists"}]),
         workload("a", "q"), workload("b", "q", policy="brave")],
        ["b starts in east:1@h100", "a waits: Tainted, NoCluster"],
    ),
    "an expression over labels and claims selects clusters": (
        [queue("q", 8), cluster("east", 8, claims={"level": "high"}), cluster("west", 8),
         policy("safe", selector={"expressions": ["cluster.claims['level'] == 'high'"]}),
         workload("a", "q", policy="safe")],
        ["a starts in east:1@h100"],
    ),
    "a cluster that does not serve the kind is left out": (
        [queue("q", 8),
         {**EAST, "spec": {**EAST["spec"], "simulated": {
             **EAST["spec"]["simulated"], "kinds": ["batch/v1/Job"]}}},
         workload("a", "q", template={"manifests": [
             {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "r"}}]})],
        ["a waits: KindNotServed, NoCluster"],
    ),
    "all pods of a set are in one rack where that is required": (
        [queue("q", 16), cluster("east", 2, 2, 4, 4, racks=2),
         workload("a", "q", count=6, topology={"required": "rack"})],
        ["a starts in east:6@h100"],
    ),
    "no rack is large enough": (
        [queue("q", 16), cluster("east", 2, 2, 4, 4, racks=2),
         workload("a", "q", count=9, topology={"required": "rack"})],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "whole nodes stay whole": (
        [queue("q", 16), cluster("east", 8, 8), workload("x", "q", count=4, running="east"),
         workload("a", "q", count=4), workload("b", "q", count=1, gpus=8)],
        ["a starts in east:4@h100", "b starts in east:1@h100"],
    ),
}  # fmt: skip

MODES = {
    "a gang is all or nothing": (
        [queue("q", 16), cluster("east", 4), cluster("west", 4), workload("a", "q", count=6)],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a gang that may shrink takes as many as there are": (
        [queue("q", 16), cluster("east", 6), workload("a", "q", count=8, leastCount=4)],
        ["a starts in east:6@h100"],
    ),
    "a gang that may shrink goes where most of it fits, whatever ranks first": (
        [queue("q", 16), cluster("east", 4), cluster("west", 6), cluster("zone", 6),
         workload("a", "q", count=8, leastCount=2)],
        ["a starts in west:6@h100"],
    ),
    "a gang that may shrink takes a later flavor that has more": (
        [A100, queue("q", quotas={"h100": 8, "a100": 8}), cluster("east", 3),
         cluster("west", 5, model="a100"), workload("a", "q", count=8, leastCount=2)],
        ["a starts in west:5@a100"],
    ),
    "a gang that may shrink takes what quota allows": (
        [queue("q", 5), EAST, workload("a", "q", count=8, leastCount=4)],
        ["a starts in east:5@h100"],
    ),
    "and so it does where quota alone decides": (
        [queue("q", 5), workload("a", "q", count=8, leastCount=4)],
        ["a starts in nowhere:5@h100"],
    ),
    "a gang made of members may split": (
        [queue("q", 16), cluster("east", 4), cluster("west", 4),
         workload("a", "q", count=6, memberSize=2, gang={"clustersMax": 2})],
        ["a starts in east:4@h100 + west:2@h100"],
    ),
    "a gang may leave out a cluster that holds too little of it": (
        [queue("q", 16), cluster("east", 2), cluster("north", 4), cluster("west", 4),
         workload("a", "q", count=8, memberSize=2, gang={"clustersMax": 2})],
        ["a starts in north:4@h100 + west:4@h100"],
    ),
    "what stays whole finds its place before what may be split": (
        [queue("q", 16), cluster("east", 4), cluster("west", 3),
         workload("a", "q", gang={"clustersMax": 2}, pod_sets=[
             {"name": "m", "count": 3, "memberSize": 1, "requests": {"nvidia.com/gpu": 1}},
             {"name": "w", "count": 4, "requests": {"nvidia.com/gpu": 1}}])],
        ["a starts in east:4@h100 + west:3@h100"],
    ),
    "it stays within a group of its policy": (
        [queue("q", 16), cluster("east", 4), cluster("west", 4), HOME_FIRST,
         workload("a", "q", count=6, memberSize=2, policy="home", gang={"clustersMax": 2})],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "unless the policy lets it split across groups: then earlier groups are filled first": (
        [queue("q", 16), cluster("east", 4), cluster("west", 4), ACROSS,
         workload("a", "q", count=6, memberSize=2, policy="across", gang={"clustersMax": 2})],
        ["a starts in east:4@h100 + west:2@h100"],
    ),
    "a group that can hold all of it comes before a split across groups": (
        [queue("q", 16), cluster("east", 4), cluster("west", 8), ACROSS,
         workload("a", "q", count=6, memberSize=2, policy="across", gang={"clustersMax": 2})],
        ["a starts in west:6@h100"],
    ),
    "and so does a group in which victims make room for it": (
        [queue("q", 16, preemption={"withinQueue": "LowerPriority"}), cluster("east", 8),
         cluster("west", 4), ACROSS, workload("low", "q", count=4, running="east"),
         workload("a", "q", count=6, memberSize=2, policy="across", priority=1,
                  gang={"clustersMax": 2})],
        ["low yields to a", "a starts in east:6@h100 after low"],
    ),
    "a split across groups uses no more clusters than the gang allows": (
        [queue("q", 16), cluster("east", 2), cluster("north", 2), cluster("west", 4),
         policy("across", ["east", "north"], ["west"], gangSplit="AcrossGroups"),
         workload("a", "q", count=8, memberSize=2, policy="across", gang={"clustersMax": 2})],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a gang that must stay together is not split across groups": (
        [queue("q", 16), cluster("east", 4), cluster("west", 4), ACROSS,
         workload("a", "q", count=6, policy="across")],
        ["a waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a group whose idle room the ladder leaves out takes no part": (
        [queue("q", 16), cluster("east", 4), cluster("west", 4),
         policy("across", ["east"], ["west"], gangSplit="AcrossGroups",
                ladder=[{"group": "g0", "rung": "Idle"}, {"group": "g1", "rung": "Provision"}]),
         workload("a", "q", count=6, memberSize=2, policy="across", gang={"clustersMax": 2})],
        ["a waits: DoesNotFit, NoPool"],
    ),
    "an elastic gang is split across groups before it shrinks": (
        [queue("q", 16), cluster("east", 4), cluster("west", 4), ACROSS,
         workload("a", "q", count=6, leastCount=2, memberSize=2, policy="across",
                  gang={"clustersMax": 2})],
        ["a starts in east:4@h100 + west:2@h100"],
    ),
    "quota holds for all parts together": (
        [queue("q", 5), cluster("east", 4), cluster("west", 4), ACROSS,
         workload("a", "q", count=6, memberSize=2, policy="across", gang={"clustersMax": 2})],
        ["a waits: QuotaTooSmall, NoVictims"],
    ),
    "an alternative is taken when its time has come": (
        [A100, queue("q", quotas={"h100": 8, "a100": 16}), cluster("east", 8, model="a100"),
         workload("a", "q", count=4, flavors=["h100"], waited=601, alternatives=[
             {"name": "slow", "afterSeconds": 600, "flavors": ["a100"],
              "podSets": [{"name": "worker", "count": 8}]}])],
        ["a starts as slow in east:8@a100"],
    ),
    "an alternative waits for its time": (
        [A100, queue("q", quotas={"h100": 8, "a100": 16}), cluster("east", 8, model="a100"),
         workload("a", "q", count=4, flavors=["h100"], waited=599, alternatives=[
             {"name": "slow", "afterSeconds": 600, "flavors": ["a100"]}])],
        ["a waits: DoesNotFit, NoVictims, NoPool, HoldingOut"],
    ),
    "a service is placed as far as it fits": (
        [queue("q", 16), cluster("east", 2), cluster("west", 3), HOME_FIRST,
         workload("s", "q", mode="Divided", replicas=7, policy="home")],
        ["s starts in east:2@h100 + west:3@h100",
         "s waits: DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "the limit of a cluster is named where it keeps replicas back": (
        [queue("q", 16), EAST, WEST,
         policy("most", division={"type": "DynamicWeight", "perClusterMax": 2}),
         workload("s", "q", mode="Divided", replicas=5, policy="most")],
        ["s starts in east:2@h100 + west:2@h100", "s waits: ReplicasLimited, PartlyPlaced"],
    ),
    "the limit of a group is named beside a group that is full": (
        [queue("q", 16), EAST, cluster("west", 1), NEAR_FEW,
         workload("s", "q", mode="Divided", replicas=5, policy="few")],
        ["s starts in east:2@h100 + west:1@h100",
         "s waits: ReplicasLimited, DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "a service that shrinks leaves the last group first": (
        [queue("q", 16), EAST, WEST, HOME_FIRST,
         {**workload("s", "q", mode="Divided", replicas=5, policy="home"), "status": {
             "phase": "Running", "claim": {
                 "attempt": 1, "term": 1, "decidedAt": "2026-11-15T06:00:00Z", "queue": "q",
                 "placements": [
                     {"cluster": name, "group": group, "replicas": count, "podSets": [
                         {"name": "worker", "count": count,
                          "requests": {"cpu": "1", "nvidia.com/gpu": 1},
                          "flavors": {"nvidia.com/gpu": "h100"}}]}
                     for name, group, count in (("east", "g0", 4), ("west", "g1", 3))]}}}],
        ["s starts in east:4@h100 + west:1@h100"],
    ),
    "a copy goes to every cluster, as far as it fits": (
        [queue("q", 16), cluster("east", 2), cluster("west", 4), COPIES,
         workload("s", "q", mode="Divided", replicas=3, policy="copies")],
        ["s starts in east:2@h100 + west:3@h100",
         "s waits: DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "a copy that is not whole gets the rest when there is room": (
        [queue("q", 16), EAST, COPIES,
         workload("s", "q", mode="Divided", replicas=3, policy="copies", running="east", holds=2)],
        ["s starts in east:3@h100"],
    ),
    "a cluster that has room later gets its copy later": (
        [queue("q", 16), EAST, WEST, COPIES,
         workload("s", "q", mode="Divided", replicas=3, policy="copies", running="east")],
        ["s starts in east:3@h100 + west:3@h100"],
    ),
    "copies that are whole are left alone": (
        [queue("q", 16), EAST, COPIES,
         workload("s", "q", mode="Divided", replicas=3, policy="copies", running="east")],
        [],
    ),
    "copies shrink in every cluster": (
        [queue("q", 16), EAST, COPIES,
         workload("s", "q", mode="Divided", replicas=2, policy="copies", running="east", holds=3)],
        ["s starts in east:2@h100"],
    ),
    "every replica has its pods in one rack, whichever it is": (
        [queue("q", 16), cluster("east", 2, 2, 4, racks=2),
         workload("s", "q", mode="Divided", replicas=2, count=4, topology={"required": "rack"})],
        ["s starts in east:8@h100"],
    ),
    "every task has its pods in one rack, whichever it is": (
        [queue("q", 16), cluster("east", 2, 1, 3, racks=2),
         workload("t", "q", mode="Independent", tasks={"count": 3}, count=3,
                  topology={"required": "rack"})],
        ["t starts in east:6@h100", "t waits: DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "a sweep fills what is there, up to its cap": (
        [queue("q", 16), cluster("east", 3), cluster("west", 8), HOME_FIRST,
         workload("t", "q", mode="Independent", policy="home",
                  tasks={"count": 20, "concurrency": 6})],
        ["t starts in east:3@h100 + west:3@h100"],
    ),
}  # fmt: skip

RUNGS = {
    "the lower priority of the same queue yields": (
        [queue("q", 8, preemption={"withinQueue": "LowerPriority"}), EAST,
         workload("low", "q", count=8, running="east"), workload("high", "q", priority=1, count=8)],
        ["low yields to high", "high starts in east:8@h100 after low"],
    ),
    "equals do not yield to each other": (
        [queue("q", 8, preemption={"withinQueue": "LowerPriority"}), EAST,
         workload("one", "q", count=8, running="east"), workload("two", "q", count=8)],
        ["two waits: QuotaExceeded, NoVictims"],
    ),
    "who has not run for the least time is safe": (
        [queue("q", 8, preemption={"withinQueue": "LowerPriority"},
               minimumRun={"withinQueueSeconds": 600}), EAST,
         workload("low", "q", count=8, running="east", since=300),
         workload("high", "q", priority=1, count=8)],
        ["high waits: QuotaExceeded, NoVictims"],
    ),
    "as few yield as will do, in one cluster": (
        [queue("root"), queue("a", 16, parent="root", preemption={"reclaim": "Any"}),
         queue("b", 0, parent="root"), EAST, WEST,
         workload("x", "b", count=4, running="east"), workload("y", "b", count=4, running="east"),
         workload("z", "b", count=8, running="west"), workload("mine", "a", count=4)],
        ["x yields to mine", "mine starts in east:4@h100 after x"],
    ),
    "a sweep takes from those who must yield, range by range": (
        [queue("root"), queue("a", 8, parent="root", preemption={"reclaim": "Any"}),
         queue("b", 0, parent="root"), EAST,
         workload("x", "b", count=3, running="east"), workload("y", "b", count=5, running="east"),
         workload("t", "a", mode="Independent", tasks={"count": 2, "rangeSize": 2})],
        ["x yields to t", "t starts in east:2@h100 after x"],
    ),
    "a sweep takes what is idle before anybody yields to it": (
        [queue("root"), queue("a", 8, parent="root", preemption={"reclaim": "Any"}),
         queue("b", 0, parent="root"), EAST,
         workload("x", "b", count=3, running="east"), workload("y", "b", count=3, running="east"),
         workload("t", "a", mode="Independent", tasks={"count": 5})],
        ["x yields to t", "t starts in east:5@h100 after x"],
    ),
    "a sweep that made others yield does not borrow beside it": (
        [queue("root", 8), queue("a", 2, parent="root", preemption={"reclaim": "Any"}),
         queue("b", 0, parent="root"), cluster("west", 2, pools=[pool("p", 2, stock=9)]),
         workload("y", "b", count=2, running="west"),
         workload("t", "a", mode="Independent", tasks={"count": 6})],
        ["y yields to t", "t starts in west:2@h100 after y",
         "t waits: DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "a sweep asks for new nodes, as many as its tasks need": (
        [queue("q", 64), cluster("east", 2, pools=[pool("p", 2, stock=9)]),
         workload("t", "q", mode="Independent", tasks={"count": 7})],
        ["t gets 3 of east/p", "t starts in east:7@h100"],
    ),
    "new nodes hold whole ranges of a sweep": (
        [queue("q", 64), cluster("east", 3, pools=[pool("p", 4, stock=1)]),
         workload("t", "q", mode="Independent", tasks={"count": 12, "rangeSize": 3})],
        ["t gets 1 of east/p", "t starts in east:6@h100",
         "t waits: DoesNotFit, NoVictims, PartlyPlaced"],
    ),
    "victims make no more room in a group than its most": (
        [queue("root"), queue("a", 8, parent="root", preemption={"reclaim": "Any"}),
         queue("b", 0, parent="root"), EAST, WEST, NEAR_FEW,
         workload("x", "b", count=8, running="east"),
         workload("s", "a", mode="Divided", replicas=4, policy="few")],
        ["x yields to s", "s starts in east:2@h100 + west:2@h100 after x"],
    ),
    "who gets more in a plan is no victim of it": (
        [queue("root"), queue("a", 8, parent="root", preemption={"reclaim": "Any"}),
         queue("b", 0, parent="root", priority=1), EAST, workload("mine", "a", count=8),
         workload("s", "b", mode="Divided", replicas=3, running="east", holds=2)],
        ["s starts in east:3@h100", "mine waits: QuotaExceeded, NoVictims"],
    ),
    "new nodes come from the cheapest pool that has enough": (
        [queue("q", 64), cluster("east", pools=[
            pool("dear", 8, stock=9, pricePerHour="9"), pool("cheap", 8, stock=1, pricePerHour="5"),
            pool("fair", 8, stock=9, pricePerHour="7")]), workload("a", "q", count=16)],
        ["a gets 2 of east/fair", "a starts in east:16@h100"],
    ),
    "nothing is in stock": (
        [queue("q", 64), cluster("east", pools=[pool("p", 8, stock=0)]),
         workload("a", "q", count=8)],
        ["a waits: DoesNotFit, NoVictims, OutOfStock"],
    ),
    "nothing is requested before the source of the stock has answered": (
        [queue("q", 64), cluster("east", pools=[pool("p", 8, stock=9)],
                                 inventory={"http": {"url": "http://stock.example"}}),
         workload("a", "q", count=8)],
        ["a waits: DoesNotFit, NoVictims, StockUnknown"],
    ),
    "a service bursts into new nodes": (
        [queue("q", 64), cluster("east", 2, pools=[pool("p", 2, stock=2)]),
         workload("s", "q", mode="Divided", replicas=5)],
        ["s gets 2 of east/p", "s starts in east:5@h100"],
    ),
}  # fmt: skip


HOMECOMING = {
    "replicas come home when there has been room for long enough": (
        [queue("q", 16), EAST, WEST,
         policy("home", ["east"], ["west"], returnHome={
             "enabled": True, "afterSeconds": 600, "replicasPerMinute": 2, "surge": 2}),
         workload("s", "q", mode="Divided", replicas=4, running="west", since=700, policy="home")],
        ["s moves 2 from west to east"],
    ),
    "without quota for both places one stops before it starts": (
        [queue("q", 4), EAST, WEST,
         policy("home", ["east"], ["west"], returnHome={
             "enabled": True, "afterSeconds": 600, "replicasPerMinute": 2, "surge": 2}),
         workload("s", "q", mode="Divided", replicas=4, running="west", since=700, policy="home")],
        ["s stops 1 in west, then moves to east"],
    ),
    "without any surge as well": (
        [queue("q", 16), EAST, WEST,
         policy("home", ["east"], ["west"], returnHome={
             "enabled": True, "afterSeconds": 600, "replicasPerMinute": 2, "surge": 0}),
         workload("s", "q", mode="Divided", replicas=4, running="west", since=700, policy="home")],
        ["s stops 1 in west, then moves to east"],
    ),
    "not before": (
        [queue("q", 16), EAST, WEST,
         policy("home", ["east"], ["west"], returnHome={
             "enabled": True, "afterSeconds": 600, "replicasPerMinute": 2, "surge": 2}),
         workload("s", "q", mode="Divided", replicas=4, running="west", since=500, policy="home")],
        [],
    ),
}  # fmt: skip

PRICES = {
    "new nodes are cheaper than what the victim would lose": (
        [flavor("h100", prices={"nvidia.com/gpu": "4"}),
         queue("q", 64, preemption={"withinQueue": "LowerPriority"}),
         cluster("east", 8, pools=[pool("p", 8, stock=1, pricePerHour="10")]),
         policy("thrifty", weighPrice=True),
         workload("low", "q", count=8, running="east", since=36000),
         workload("high", "q", priority=1, count=8, policy="thrifty")],
        ["high gets 1 of east/p", "high starts in east:8@h100"],
    ),
    "a fresh victim is cheaper than new nodes": (
        [flavor("h100", prices={"nvidia.com/gpu": "4"}),
         queue("q", 64, preemption={"withinQueue": "LowerPriority"}),
         cluster("east", 8, pools=[pool("p", 8, stock=1, pricePerHour="100")]),
         policy("thrifty", weighPrice=True),
         workload("low", "q", count=8, running="east", since=60),
         workload("high", "q", priority=1, count=8, policy="thrifty")],
        ["low yields to high", "high starts in east:8@h100 after low"],
    ),
}  # fmt: skip


# Every rule of the ladder in every mode.
SERVICE, SWEEP = {"mode": "Divided", "replicas": 4}, {"mode": "Independent", "tasks": {"count": 4}}
_SAVING = [
    A100, queue("root"),
    queue("q", quotas={"h100": 2, "a100": 4}, parent="root",
          fungibility={"whenCanBorrow": "TryNextFlavor"}),
    queue("other", 8, parent="root"), EAST, cluster("west", 8, model="a100"),
]  # fmt: skip
_TWO_FORMS = {
    "flavors": ["h100"], "waited": 601,
    "alternatives": [{"name": "slow", "afterSeconds": 600, "flavors": ["a100"]}],
}  # fmt: skip
_ON_A100 = [A100, queue("q", quotas={"h100": 8, "a100": 16}), cluster("east", 8, model="a100")]
_FULL = [
    flavor("h100", prices={"nvidia.com/gpu": "4"}),
    queue("q", 64, preemption={"withinQueue": "LowerPriority"}),
    cluster("east", 8, pools=[pool("p", 8, stock=1, pricePerHour="10")]),
    policy("thrifty", weighPrice=True),
    workload("low", "q", count=8, running="east", since=36000),
]  # fmt: skip

LADDER = {
    "a gang takes the next flavor before it borrows": (
        [*_SAVING, workload("w", "q", count=4)],
        ["w starts in west:4@a100"],
    ),
    "a service takes what is its queue's own of each flavor before it borrows": (
        [*_SAVING, workload("w", "q", **SERVICE)],
        ["w starts in east:2@h100 + west:2@a100"],
    ),
    "and borrows what is left then": (
        [*_SAVING, workload("w", "q", mode="Divided", replicas=8)],
        ["w starts in east:4@h100 + west:4@a100"],
    ),
    "a sweep takes what is its queue's own of each flavor before it borrows": (
        [*_SAVING, workload("w", "q", **SWEEP)],
        ["w starts in east:2@h100 + west:2@a100"],
    ),
    "a service that fits in no other form takes the alternative": (
        [*_ON_A100, workload("w", "q", **SERVICE, **_TWO_FORMS)],
        ["w starts as slow in east:4@a100"],
    ),
    "a sweep that fits in no other form takes the alternative": (
        [*_ON_A100, workload("w", "q", **SWEEP, **_TWO_FORMS)],
        ["w starts as slow in east:4@a100"],
    ),
    "a service that has replicas keeps its form": (
        [*_ON_A100, cluster("west", 2), workload("w", "q", **SERVICE, **_TWO_FORMS)],
        ["w starts in west:2@h100", "w waits: DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "a service waits for the time of its alternative": (
        [*_ON_A100, workload("w", "q", **SERVICE, **{**_TWO_FORMS, "waited": 599})],
        ["w waits: DoesNotFit, NoVictims, NoPool, HoldingOut, PartlyPlaced"],
    ),
    "a service buys nodes where they are cheaper than what a victim would lose": (
        [*_FULL, workload("w", "q", priority=1, policy="thrifty", **SERVICE)],
        ["w gets 1 of east/p", "w starts in east:4@h100"],
    ),
    "a sweep buys nodes where they are cheaper than what a victim would lose": (
        [*_FULL, workload("w", "q", priority=1, policy="thrifty", **SWEEP)],
        ["w gets 1 of east/p", "w starts in east:4@h100"],
    ),
    "no workload is preempted for a further copy while another is incomplete": (
        [queue("q", 16, preemption={"withinQueue": "LowerPriority"}), cluster("east", 2),
         cluster("west", 4), COPIES, workload("low", "q", count=4, running="west"),
         workload("w", "q", mode="Divided", replicas=3, priority=1, policy="copies",
                  running="east", holds=2)],
        ["w waits: DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "a service for which no cluster may be used says so": (
        [queue("q", 8), EAST, policy("none", ["nowhere"]),
         workload("w", "q", policy="none", **SERVICE)],
        ["w waits: NotSelected, NoCluster, PartlyPlaced"],
    ),
}  # fmt: skip


# Workloads that are not looked at, whatever is free.
_LEAVES = workload("a", "q", running="east")
_LEAVES["status"] = {
    "phase": "Stopping", "releasing": _LEAVES["status"]["claim"]["placements"],
}  # fmt: skip
_REFUSED = workload("a", "q")
_REFUSED["status"] = {
    "history": [{"attempt": 1, "clusters": ["east"], "reason": "TemplateRefused", "message": "no"}],
    "requeue": {"avoid": ["east"]},
}
_NO_QUOTA = {**_REFUSED, "status": {**_REFUSED["status"], "history": [
    {"attempt": 1, "clusters": ["east"], "reason": "QuotaRefused", "message": "exceeded quota"},
]}}  # fmt: skip
_REFUSED_A_MOMENT_AGO = {**_REFUSED, "status": {
    **_REFUSED["status"], "requeue": {"avoid": ["east"], "notBefore": "2100-01-01T00:00:00Z"},
}}  # fmt: skip
STANDING = {
    "a template that the only cluster refused": (
        [queue("q", 8), EAST, _REFUSED],
        ["a waits: TemplateRefused, NoCluster"],
    ),
    "a template whose objects a quota of the only cluster refused": (
        [queue("q", 8), EAST, _NO_QUOTA],
        ["a waits: TemplateRefused, NoCluster"],
    ),
    "a template that is tried again later": (
        [queue("q", 8), EAST, WEST, _REFUSED_A_MOMENT_AGO],
        ["a waits: TemplateRefused"],
    ),
    "a template that one cluster refused goes to the other": (
        [queue("q", 8), EAST, WEST, _REFUSED],
        ["a starts in west:1@h100"],
    ),
    "a queue that does not exist": (
        [EAST, workload("a", "gone")],
        ["a waits: NoQueue"],
    ),
    "queues in a circle": (
        [queue("q", parent="r"), queue("r", parent="q"), EAST, workload("a", "q")],
        ["a waits: QueueBroken"],
    ),
    "an attempt that is not gone yet": (
        [queue("q", 8), EAST, _LEAVES],
        ["a waits: StillEnding"],
    ),
    "a user with as many claims as one may have": (
        [queue("q", 8, userLimits=[{"name": "each", "claimedWorkloads": 1}]), EAST,
         workload("a", "q", running="east"), workload("b", "q")],
        ["b waits: UserLimitExceeded"],
    ),
    "flavors that its queue does not have": (
        [queue("q", 8), EAST, workload("a", "q", flavors=["a100"])],
        ["a waits: NoFlavor"],
    ),
}  # fmt: skip


def _rows(*tables: dict) -> list:
    return [
        pytest.param(objects, want, id=sentence)
        for table in tables
        for sentence, (objects, want) in table.items()
    ]


ROWS = _rows(QUOTA, OVERLAPS, ORDER, WHERE, MODES, RUNGS, HOMECOMING, PRICES, LADDER, STANDING)


@pytest.mark.parametrize(("objects", "want"), ROWS)
def test_the_plan_is(objects: list[dict], want: list[str]) -> None:
    assert told(plan_of(*objects)) == want


@pytest.mark.parametrize(("objects", "want"), ROWS)
def test_the_order_of_the_input_does_not_matter(objects: list[dict], want: list[str]) -> None:
    assert plan_of(*objects).render() == plan_of(*reversed(objects)).render()


def test_weights_divide_what_nobody_owns() -> None:
    runs = [
        workload(f"{team}-{number}", team, count=2, waited=60 - number)
        for team in ("heavy", "light")
        for number in range(4)
    ]
    made = plan_of(
        queue("root", 12),
        queue("heavy", parent="root", weight=2),
        queue("light", parent="root", weight=1),
        cluster("east", 8, 8),
        *runs,
    )
    started = [step.workload.split("/")[1].split("-")[0] for step in made.steps]
    assert (started.count("heavy"), started.count("light")) == (4, 2)


def test_a_policy_chooses_clusters_without_a_workload() -> None:
    (choice,) = choices_of(
        cluster("east", 8, labels={"topology.kubernetes.io/region": "e"}),
        cluster("west", 8, labels={"topology.kubernetes.io/region": "w"}),
        cluster("west-2", 8, labels={"topology.kubernetes.io/region": "w"}),
        policy("two", numberOfClusters=2, spread=[{"by": "Region", "least": 2}]),
    )
    assert choice.policy == "fairway-system/two"
    assert [chosen.cluster for chosen in choice.choice.chosen] == ["east", "west"]


def test_a_policy_without_a_number_chooses_all_that_match() -> None:
    (choice,) = choices_of(cluster("east", 8), cluster("west", 8), policy("all"))
    assert [chosen.cluster for chosen in choice.choice.chosen] == ["east", "west"]


def test_policies_choose_what_others_have_not_chosen() -> None:
    clusters = [cluster(name, 8) for name in ("east", "north", "west")]
    choices = choices_of(*clusters, *(policy(name, numberOfClusters=1) for name in ("a", "b", "c")))
    assert [choice.choice.chosen[0].cluster for choice in choices] == ["east", "north", "west"]


def test_a_move_says_that_there_is_room_at_home_again() -> None:
    objects, _ = HOMECOMING["replicas come home when there has been room for long enough"]
    (move,) = plan_of(*objects).steps
    assert [reason.code for reason in move.reasons] == [Code.RETURNS_HOME]


def test_pods_that_run_without_a_claim_are_adopted_first() -> None:
    objects = Objects.of([H100, queue("q", 8), EAST, workload("a", "q")])
    facts = objects.facts(NOW)
    lost = replace(facts.workloads["team/a"], runs_in="east")
    made, _ = plan(Snapshot(replace(facts, workloads={"team/a": lost})))
    assert told(made) == ["a waits: RunsAlready"]


def test_a_queue_says_how_long_its_workloads_run_that_do_not() -> None:
    made = plan_of(
        queue("all", 16, defaults={"runSecondsEstimate": 3600}),
        queue("q", 16, parent="all"),
        EAST,
        workload("runs", "q", count=6, running="east", since=600),
        workload("large", "q", count=8, waited=900),
    )
    (reservation,) = made.reservations
    assert reservation.starts_at == NOW + 3000


def choices_of(*objects: dict) -> list[PolicyChoice]:
    return list(choose_clusters(Snapshot(Objects.of([H100, *objects]).facts(NOW))))
