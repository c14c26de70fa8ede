"""Tables of small fleets: services whose policy changed, or that are divided anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fairway.api.reasons import Code
from fairway.core.checks.invariants import broken
from fairway.core.cycle import plan
from fairway.core.snapshot import Snapshot
from fairway.core.transitions import after
from fairway.view.objects import Objects
from tests.builders import H100, NOW, cluster, fleet, plan_of, policy, pool, queue, told, workload

EAST, WEST, NORTH = cluster("east", 8), cluster("west", 8), cluster("north", 8)
ONLY_WEST = policy("p", ["west"])
BOTH = policy("p", ["east", "west"])
CLOSED = cluster("east", 8, hold="Hold")


def service(replicas: int, running: str | dict[str, int], **spec: Any) -> dict[str, Any]:
    spec = {"policy": "p", **spec}
    return workload("s", "q", mode="Divided", replicas=replicas, running=running, **spec)


def at_most(count: int, **spec: Any) -> dict[str, Any]:
    return policy("p", division={"type": "DynamicWeight", "perClusterMax": count}, **spec)


DUPLICATED = policy("p", ["east", "west"], division={"type": "Duplicated"})

LESS = {
    "a held service gives up replicas": (
        [queue("q", 16), EAST, service(2, {"east": 4}, hold="Hold")],
        ["s starts in east:2@h100"],
    ),
    "and gets no more": (
        [queue("q", 16), EAST, service(4, {"east": 2}, hold="Hold")],
        ["s waits: Held"],
    ),
    "a service in a held queue gives up replicas": (
        [queue("q", 16, hold="Hold"), EAST, service(2, {"east": 4})],
        ["s starts in east:2@h100"],
    ),
    "so does a service that its queue no longer accepts": (
        [queue("q", 16, submitters={"namespaces": ["other"]}), EAST, service(2, {"east": 4})],
        ["s starts in east:2@h100"],
    ),
    "copies are counted in each cluster": (
        [queue("q", 16), EAST, WEST, DUPLICATED,
         service(2, {"east": 2, "west": 2}, hold="Hold")],
        ["s waits: Held"],
    ),
    "and each copy gives up its own": (
        [queue("q", 16), EAST, WEST, DUPLICATED,
         service(2, {"east": 4, "west": 2}, hold="Hold")],
        ["s starts in east:2@h100 + west:2@h100"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), LESS.values(), ids=list(LESS))
def test_replicas_are_given_up_whatever_holds_a_service(
    objects: list[dict[str, Any]], want: list[str]
) -> None:
    assert told(plan_of(*objects)) == want
    facts = Objects.of([H100, *objects]).facts(NOW)
    assert broken(facts, plan(Snapshot(facts))[0]) == []


CHANGED = {
    "replicas leave a cluster that the policy no longer allows": (
        [queue("q", 16), EAST, WEST, ONLY_WEST, service(4, {"east": 3, "west": 1})],
        ["s leaves 3 in east, is in west:4@h100"],
    ),
    "they leave a cluster in no group": (
        [queue("q", 16), EAST, WEST, policy("p", selector={"names": ["west"]}), service(2, "east")],
        ["s leaves 2 in east, is in west:2@h100"],
    ),
    "they leave a cluster that the queue no longer allows": (
        [queue("q", 16, clusters={"names": ["west"]}), EAST, WEST, service(2, "east", policy="")],
        ["s leaves 2 in east, is in west:2@h100"],
    ),
    "a cluster that scores better moves nothing that runs, whatever the margin": (
        [queue("q", 16), EAST, WEST,
         policy("p", ["east", "west"], moveMargin=0, numberOfClusters=1, scoreMode="Exact",
                scores=[{"builtIn": "Balance", "weight": 10}]),
         service(4, "east")],
        [],
    ),
    "they stay where the policy says so": (
        [queue("q", 16), EAST, WEST, policy("p", ["west"], whenNoLongerAllowed="Stay"),
         service(2, "east")],
        [],
    ),
    "where they stay, more come to allowed clusters only": (
        [queue("q", 16), EAST, WEST, policy("p", ["west"], whenNoLongerAllowed="Stay"),
         service(3, {"east": 2})],
        ["s starts in east:2@h100 + west:1@h100"],
    ),
    "they stay if no cluster is allowed at all": (
        [queue("q", 16), EAST, WEST, policy("p", ["south"]), service(2, "east")],
        [],
    ),
    "a cluster that is only closed or tainted is not left": (
        [queue("q", 16), CLOSED, WEST, BOTH, service(2, "east")],
        [],
    ),
    "what finds no room waits, and keeps running within the budget": (
        [queue("q", 16), EAST, cluster("west", 1), ONLY_WEST, service(3, "east")],
        ["s leaves 3 in east, is in west:1@h100",
         "s waits: NotSelected, DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "without quota for both they start when others have stopped": (
        [queue("q", 2), EAST, WEST, ONLY_WEST, service(2, "east")],
        ["s leaves 2 in east, is in ",
         "s waits: NotSelected, QuotaExceeded, NoVictims, NoPool, PartlyPlaced"],
    ),
    "new places may be provisioned": (
        [queue("q", 16), EAST, cluster("west", 1, pools=[pool("p", 8, stock=1)]), ONLY_WEST,
         workload("x", "q", running="west"), service(2, "east")],
        ["s gets 1 of west/p", "s leaves 2 in east, is in west:2@h100"],
    ),
    "a gang stays until it ends": (
        [queue("q", 16), EAST, WEST, ONLY_WEST,
         workload("g", "q", count=2, running="east", policy="p")],
        [],
    ),
    "copies leave clusters that are no longer allowed": (
        [queue("q", 16), EAST, WEST, policy("p", ["west"], division={"type": "Duplicated"}),
         service(2, {"east": 2, "west": 2})],
        ["s leaves 2 in east, is in west:2@h100"],
    ),
    "scale-in takes from clusters that can no longer be used first": (
        [queue("q", 16), CLOSED, WEST, NORTH, policy("p", ["east", "west", "north"]),
         service(4, {"east": 2, "north": 2, "west": 2})],
        ["s starts in north:2@h100 + west:2@h100"],
    ),
    "scale-in takes from clusters that are no longer allowed, before the others leave": (
        [queue("q", 16), EAST, WEST, ONLY_WEST, service(3, {"east": 2, "west": 2})],
        ["s starts in east:1@h100 + west:2@h100"],
    ),
    "a lowered limit of a cluster is worked off": (
        [queue("q", 16), EAST, WEST, at_most(2), service(4, {"east": 4})],
        ["s leaves 2 in east, is in east:2@h100 + west:2@h100"],
    ),
    "a lowered limit of a group is worked off": (
        [queue("q", 16), EAST, WEST, policy("p", groups=[
            {"name": "a", "selector": {"names": ["east"]}, "replicasMax": 1},
            {"name": "b", "selector": {"names": ["west"]}}]), service(4, {"east": 3, "west": 1})],
        ["s leaves 2 in east, is in east:1@h100 + west:3@h100"],
    ),
    "a lowered limit never places more than asked": (
        [queue("q", 16), EAST, WEST, at_most(2, whenNoLongerAllowed="Stay"),
         service(5, {"east": 4})],
        ["s starts in east:4@h100 + west:1@h100"],
    ),
    "scale-in stops no more than asked, whatever the limit": (
        [queue("q", 16), EAST, WEST, at_most(1), service(5, {"east": 6})],
        ["s starts in east:5@h100"],
    ),
    "an open breaker of moves keeps all where they are": (
        [{**fleet(breakers={"movesPerHour": 1}), "status": {"breakers": [
            {"name": "Moves", "pastHour": "1", "openSince": "2026-11-15T07:59:00Z"}]}},
         queue("q", 16), EAST, WEST, ONLY_WEST, service(2, "east")],
        [],
    ),
}  # fmt: skip


AT = "2026-11-15T07:59:00Z"  # a minute ago
EVENLY = policy("p", division={"type": "StaticWeight"})


def after_victim(made: dict[str, Any]) -> dict[str, Any]:
    """A service whose claim waited for a victim."""
    victim = {"type": "Preemption", "workload": {"namespace": "team", "name": "gone"}, "attempt": 1}
    made["status"]["claim"]["waitsFor"] = [victim]
    return made


def rebalanced(request: dict[str, Any]) -> dict[str, Any]:
    """A service whose request was fulfilled."""
    return {**request, "status": {**request["status"], "rebalancedAt": AT}}


REBALANCED = {
    "without a request replicas stay where they are": (
        [queue("q", 16), EAST, WEST, EVENLY, service(4, "east")],
        [],
    ),
    "on request they are divided afresh": (
        [queue("q", 16), EAST, WEST, EVENLY, service(4, "east", rebalanceAt=AT)],
        ["s moves 2 from east to west"],
    ),
    "a policy may request it for all its services": (
        [queue("q", 16), EAST, WEST, policy("p", division={"type": "StaticWeight"}, rebalanceAt=AT),
         service(4, "east")],
        ["s moves 2 from east to west"],
    ),
    "also those of a service that once had victims": (
        [queue("q", 16), EAST, WEST, EVENLY, after_victim(service(4, "east", rebalanceAt=AT))],
        ["s moves 2 from east to west"],
    ),
    "once": (
        [queue("q", 16), EAST, WEST, EVENLY, rebalanced(service(4, "east", rebalanceAt=AT))],
        [],
    ),
    "not before its time": (
        [queue("q", 16), EAST, WEST, EVENLY,
         service(4, "east", rebalanceAt="2026-11-15T08:01:00Z")],
        [],
    ),
    "a request for what is divided well is fulfilled without a move": (
        [queue("q", 16), EAST, WEST, EVENLY,
         service(4, {"east": 2, "west": 2}, rebalanceAt=AT)],
        ["s is rebalanced in east:2@h100 + west:2@h100"],
    ),
    "without quota for both one stops first": (
        [queue("q", 4), EAST, WEST, EVENLY, service(4, "east", rebalanceAt=AT)],
        ["s stops 1 in east, then moves to west"],
    ),
    "with quota for some, these move first": (
        [queue("q", 5), EAST, WEST, EVENLY, service(4, "east", rebalanceAt=AT)],
        ["s moves 1 from east to west"],
    ),
    "without quota and without a budget nothing moves, and the request is over": (
        [queue("q", 4), EAST, WEST, EVENLY,
         service(4, "east", rebalanceAt=AT, disruption={"maxUnavailable": 0})],
        ["s is rebalanced in east:4@h100"],
    ),
    "groups are filled in order": (
        [queue("q", 16), cluster("east", 1), WEST, policy("p", ["east"], ["west"]),
         service(3, "west", rebalanceAt=AT)],
        ["s moves 1 from west to east"],
    ),
    "few clusters are used where replicas are kept together": (
        [queue("q", 16), EAST, WEST, NORTH, policy("p"),
         service(6, {"east": 2, "north": 2, "west": 2}, rebalanceAt=AT)],
        ["s moves 2 from north to east", "s moves 2 from west to east"],
    ),
    "missing replicas come first": (
        [queue("q", 16), EAST, WEST, EVENLY, service(4, {"east": 2}, rebalanceAt=AT)],
        ["s starts in east:2@h100 + west:2@h100"],
    ),
}  # fmt: skip


def spread(*rules: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return policy("p", spread=list(rules), **spec)


def fresh(replicas: int, **spec: Any) -> dict[str, Any]:
    spec = {"policy": "p", **spec}
    return workload("s", "q", mode="Divided", replicas=replicas, **spec)


BOUGHT = {"fairway.dev/pool": "spot"}  # the label of nodes that were bought
CLOUD = cluster("cloud", 8, extra=BOUGHT)


def divided(type_: str, *groups: Sequence[str], **spec: Any) -> dict[str, Any]:
    return policy("p", *(groups or [["cloud", "east", "west"]]), division={"type": type_}, **spec)


SCALED_IN = {
    "replicas on bought nodes go first": (
        [queue("q", 16), EAST, CLOUD, divided("DynamicWeight"),
         service(4, {"cloud": 3, "east": 3})],
        ["s starts in cloud:1@h100 + east:3@h100"],
    ),
    "also where replicas are kept together": (
        [queue("q", 16), EAST, CLOUD, divided("Aggregated"), service(4, {"cloud": 5, "east": 3})],
        ["s starts in cloud:1@h100 + east:3@h100"],
    ),
    "then those on owned nodes, in proportion": (
        [queue("q", 16), EAST, WEST, CLOUD, divided("DynamicWeight"),
         service(3, {"cloud": 2, "east": 4, "west": 2})],
        ["s starts in east:2@h100 + west:1@h100"],
    ),
    "bought nodes of several clusters are freed in proportion": (
        [queue("q", 16), EAST, cluster("west", 8, extra=BOUGHT), CLOUD, divided("DynamicWeight"),
         service(5, {"cloud": 4, "east": 2, "west": 2})],
        ["s starts in cloud:2@h100 + east:2@h100 + west:1@h100"],
    ),
    "what waits for nodes that are being bought counts as bought": (
        [queue("q", 16), EAST, cluster("west", 2, pools=[pool("n", 8, stock=1)]),
         divided("DynamicWeight"), service(5, {"east": 3, "west": 4})],
        ["s starts in east:3@h100 + west:2@h100"],
    ),
    "in a cluster with both, only what is on bought nodes counts": (
        [queue("q", 16), EAST, cluster("west", 2, pools=[pool("n", 8, stock=1)]),
         divided("DynamicWeight"), service(3, {"east": 4, "west": 4})],
        ["s starts in east:2@h100 + west:1@h100"],
    ),
    "a cluster with a pool that bought nothing is as good as any": (
        [queue("q", 16), EAST, cluster("west", 8, pools=[pool("n", 8, stock=1)]),
         divided("DynamicWeight"), service(4, {"east": 3, "west": 3})],
        ["s starts in east:2@h100 + west:2@h100"],
    ),
    "a later group goes before bought nodes of an earlier one": (
        [queue("q", 16), EAST, CLOUD, divided("DynamicWeight", ["cloud"], ["east"]),
         service(4, {"cloud": 3, "east": 3})],
        ["s starts in cloud:3@h100 + east:1@h100"],
    ),
    "given weights hold": (
        [queue("q", 16), EAST, CLOUD, divided("StaticWeight"), service(4, {"cloud": 3, "east": 3})],
        ["s starts in cloud:2@h100 + east:2@h100"],
    ),
    "rules of spread hold, and within them bought nodes go first": (
        [queue("q", 16), EAST, CLOUD,
         divided("DynamicWeight", spread=[{"by": "Cluster", "skew": 1}]),
         service(3, {"cloud": 3, "east": 2})],
        ["s starts in cloud:1@h100 + east:2@h100"],
    ),
    "the fewest domains stay in use": (
        [queue("q", 16), EAST, CLOUD,
         divided("DynamicWeight", spread=[{"by": "Cluster", "least": 2}]),
         service(3, {"cloud": 3, "east": 3})],
        ["s starts in cloud:1@h100 + east:2@h100"],
    ),
    "a replica of several pods is bought if one of them is": (
        [queue("q", 64), cluster("east", 8), cluster("west", 5, pools=[pool("n", 8, stock=1)]),
         divided("DynamicWeight"), service(4, {"east": 2, "west": 3}, count=2)],
        ["s starts in east:4@h100 + west:4@h100"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), SCALED_IN.values(), ids=list(SCALED_IN))
def test_scale_in_frees_bought_nodes_before_owned_ones(
    objects: list[dict[str, Any]], want: list[str]
) -> None:
    assert told(plan_of(*objects)) == want


RECLAIM = {"preemption": {"reclaim": "Any"}}
# Queue q owns everything, and another queue has borrowed what `full` says.
TREE = [queue("root"), queue("q", 64, parent="root", **RECLAIM), queue("b", 0, parent="root")]
TWO = {"by": "Cluster", "least": 2}
EVEN = {"by": "Cluster", "skew": 1}


def full(where: str, *names: str) -> list[dict[str, Any]]:
    """Workloads of one GPU each that fill a cluster and may be reclaimed from."""
    return [workload(name, "b", running=where) for name in names]


SOUTH = cluster("south", 8)


def copied(*groups: tuple[Sequence[str], int | None], **spec: Any) -> dict[str, Any]:
    """Copies in groups of clusters, of which so many carry one."""
    listed = [
        {"name": f"g{at}", "selector": {"names": list(names)}}
        | ({"copies": many} if many is not None else {})
        for at, (names, many) in enumerate(groups)
    ]
    return policy("p", groups=listed, division={"type": "Duplicated"}, **spec)


AVOIDS_EAST = {"requeue": {"avoid": ["east"], "avoidUntil": "2026-11-15T08:05:00Z"}}
PAIRS = copied((["east", "north"], 1), (["south", "west"], 1))


def after_east_failed(made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "status": {**made["status"], **AVOIDS_EAST}}


FAILED_OVER = {
    "one cluster of each group carries a copy": (
        [queue("q", 64), EAST, NORTH, SOUTH, WEST, PAIRS, fresh(2)],
        ["s starts in east:2@h100 + south:2@h100"],
    ),
    "without a number all clusters of a group do": (
        [queue("q", 64), EAST, NORTH, SOUTH, WEST,
         copied((["east", "north"], 1), (["south", "west"], None)), fresh(2)],
        ["s starts in east:2@h100 + south:2@h100 + west:2@h100"],
    ),
    "two of three": (
        [queue("q", 64), EAST, NORTH, WEST, copied((["east", "north", "west"], 2)), fresh(2)],
        ["s starts in east:2@h100 + north:2@h100"],
    ),
    "the cluster with the most room carries it": (
        [queue("q", 64), cluster("east", 1), NORTH, copied((["east", "north"], 1)), fresh(2)],
        ["s starts in north:2@h100"],
    ),
    "what carries copies stays": (
        [queue("q", 64), EAST, NORTH, SOUTH, WEST, PAIRS, service(2, {"north": 2, "west": 2})],
        [],
    ),
    "another of its group takes over from a cluster that failed": (
        [queue("q", 64), EAST, NORTH, SOUTH, WEST, PAIRS,
         after_east_failed(service(2, {"south": 2}))],
        ["s starts in north:2@h100 + south:2@h100"],
    ),
    "no cluster of another group does": (
        [queue("q", 64), EAST, cluster("north", 8, hold="Hold"), SOUTH, WEST, PAIRS,
         after_east_failed(service(2, {"south": 2}))],
        ["s waits: Avoided, Closed, PartlyPlaced"],
    ),
    "victims make room for a copy that a group lacks": (
        [*TREE, EAST, cluster("north", 1), SOUTH, WEST, PAIRS, *full("north", "n1"),
         after_east_failed(service(1, {"south": 1}))],
        ["n1 yields to s", "s starts in north:1@h100 + south:1@h100 after n1"],
    ),
    "new nodes do": (
        [queue("q", 64), EAST, cluster("north", 1, pools=[pool("n", 8, stock=1)]), SOUTH, WEST,
         PAIRS, workload("x", "q", running="north"), after_east_failed(service(2, {"south": 2}))],
        ["s gets 1 of north/n", "s starts in north:2@h100 + south:2@h100"],
    ),
    "nobody yields to a further copy of a group without a number": (
        [*TREE, EAST, cluster("north", 1), copied((["east", "north"], None)), *full("north", "n1"),
         service(1, {"east": 1})],
        [],
    ),
    "a closed cluster that has its copy still carries it": (
        [queue("q", 64), CLOSED, NORTH, SOUTH, WEST, PAIRS, service(2, {"east": 2, "south": 2})],
        [],
    ),
    "a lowered number is worked off": (
        [queue("q", 64), EAST, NORTH, WEST, copied((["east", "north", "west"], 1)),
         service(2, {"east": 2, "north": 2})],
        ["s leaves 2 in north, is in east:2@h100"],
    ),
    "a cluster that cannot be used leaves first": (
        [queue("q", 64), CLOSED, NORTH, WEST, copied((["east", "north", "west"], 1)),
         service(2, {"east": 2, "north": 2})],
        ["s leaves 2 in east, is in north:2@h100"],
    ),
    "a raised number opens further clusters": (
        [queue("q", 64), EAST, NORTH, WEST, copied((["east", "north", "west"], 2)),
         service(2, {"north": 2})],
        ["s starts in east:2@h100 + north:2@h100"],
    ),
    "more copies than a group has clusters are not waited for": (
        [queue("q", 64), EAST, NORTH, copied((["east", "north"], 5)),
         service(2, {"east": 2, "north": 2})],
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), FAILED_OVER.values(), ids=list(FAILED_OVER))
def test_a_group_carries_as_many_copies_as_it_says(
    objects: list[dict[str, Any]], want: list[str]
) -> None:
    assert told(plan_of(*objects)) == want


JOB = {"manifests": [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "s"}}]}
EVERYWHERE = policy("p", division={"type": "Duplicated"})


def copies(
    *clusters: str, over: Sequence[str] = (), missing: int = 0, **spec: Any
) -> dict[str, Any]:
    """A Job with a copy in each of these clusters; in others, one has succeeded or is missing."""
    running = dict.fromkeys(clusters, 1)
    made = workload("s", "q", mode="Divided", replicas=1, policy="p", template=JOB,
                    running=running, **spec)  # fmt: skip
    status = made.get("status", {"phase": "Waiting"})
    if clusters:
        status = {**status, "claim": {**status["claim"], "missingCopies": missing}}
    return {**made, "status": {**status, "succeededClusters": list(over)}}


EACH = {
    "each cluster gets a copy": (
        [queue("q", 64), EAST, WEST, EVERYWHERE, copies()],
        ["s starts in east:1@h100 + west:1@h100"],
    ),
    "a cluster that is full is waited for": (
        [queue("q", 64), EAST, cluster("west", 1), EVERYWHERE,
         workload("x", "q", running="west"), copies()],
        ["s starts in east:1@h100", "s waits: DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "so is one that is held": (
        [queue("q", 64), CLOSED, WEST, EVERYWHERE, copies()],
        ["s starts in west:1@h100", "s waits: Closed, PartlyPlaced"],
    ),
    "a claim that does not say so is corrected": (
        [queue("q", 64), CLOSED, WEST, EVERYWHERE, copies("west")],
        ["s starts in west:1@h100", "s waits: Closed, PartlyPlaced"],
    ),
    "one that does is not": (
        [queue("q", 64), CLOSED, WEST, EVERYWHERE, copies("west", missing=1)],
        ["s waits: Closed, PartlyPlaced"],
    ),
    "a cluster that is only observed is not waited for": (
        [queue("q", 64), cluster("east", 8, mode="Observe"), WEST, EVERYWHERE, copies("west")],
        [],
    ),
    "nor one with a taint that is not tolerated": (
        [queue("q", 64), cluster("east", 8, taints=[{"key": "x", "effect": "NoSchedule"}]), WEST,
         EVERYWHERE, copies("west")],
        [],
    ),
    "a copy that failed by fault of its cluster is waited for": (
        [queue("q", 64), EAST, WEST, EVERYWHERE,
         after_east_failed(copies("west", missing=1))],
        ["s waits: Avoided, PartlyPlaced"],
    ),
    "another of its group takes over, if it is one of a group": (
        [queue("q", 64), EAST, NORTH, SOUTH, WEST, PAIRS,
         after_east_failed(copies("south", missing=1))],
        ["s starts in north:1@h100 + south:1@h100"],
    ),
    "where a copy has succeeded there is no other": (
        [queue("q", 64), EAST, WEST, EVERYWHERE, copies(over=["east"])],
        ["s starts in west:1@h100"],
    ),
    "nor in its group": (
        [queue("q", 64), EAST, NORTH, SOUTH, WEST, PAIRS, copies(over=["north"])],
        ["s starts in south:1@h100"],
    ),
    "nor beyond the most of a spread": (
        [queue("q", 64), EAST, NORTH, WEST, policy("p", division={"type": "Duplicated"},
         spread=[{"by": "Cluster", "most": 2}]), copies(over=["west"])],
        ["s starts in east:1@h100"],
    ),
    "a spread waits for as many as it may have": (
        [queue("q", 64), CLOSED, WEST, policy("p", division={"type": "Duplicated"},
         spread=[{"by": "Cluster", "most": 2}]), copies("west", missing=1)],
        ["s waits: Closed, PartlyPlaced"],
    ),
    "and for no more": (
        [queue("q", 64), CLOSED, NORTH, WEST, policy("p", division={"type": "Duplicated"},
         spread=[{"by": "Cluster", "most": 2}]), copies("north", "west")],
        [],
    ),
    "one that waits for nothing any more is over": (
        [queue("q", 64), EAST, EVERYWHERE, copies(over=["east", "west"])],
        ["s starts in "],
    ),
    "one that waits for a closed cluster is not": (
        [queue("q", 64), CLOSED, WEST, EVERYWHERE, copies(over=["west"])],
        ["s waits: Closed, NoCluster, PartlyPlaced"],
    ),
    "others yield to a further copy": (
        [*TREE, EAST, cluster("north", 1), EVERYWHERE, *full("north", "n1"),
         copies("east", missing=1)],
        ["n1 yields to s", "s starts in east:1@h100 + north:1@h100 after n1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), EACH.values(), ids=list(EACH))
def test_a_job_has_a_copy_in_each_cluster_that_its_policy_asks_for(
    objects: list[dict[str, Any]], want: list[str]
) -> None:
    assert told(plan_of(*objects)) == want


LEAVES = {"key": "x", "effect": "NoExecute", "timeAdded": "2026-11-15T07:59:30Z"}
FOR_A_TIME = {"key": "x", "operator": "Exists", "tolerationSeconds": 60}

TAINTED = {
    "a cluster that is tolerated for a time only is a last choice": (
        [queue("q", 16), cluster("east", 8, taints=[LEAVES]), cluster("west", 4),
         policy("p", tolerations=[FOR_A_TIME]), workload("s", "q", mode="Divided", replicas=3,
                                                         policy="p")],
        ["s starts in west:3@h100"],
    ),
    "it is used if there is no other": (
        [queue("q", 16), cluster("east", 8, taints=[LEAVES]),
         policy("p", tolerations=[FOR_A_TIME]), workload("g", "q", count=3, policy="p")],
        ["g starts in east:3@h100"],
    ),
    "no longer, once the time is over": (
        [queue("q", 16),
         cluster("east", 8, taints=[{**LEAVES, "timeAdded": "2026-11-15T07:59:00Z"}]),
         policy("p", tolerations=[FOR_A_TIME]), workload("g", "q", count=3, policy="p")],
        ["g waits: Tainted, NoCluster"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), TAINTED.values(), ids=list(TAINTED))
def test_a_taint_counts_from_when_it_was_added(
    objects: list[dict[str, Any]], want: list[str]
) -> None:
    assert told(plan_of(*objects)) == want


NEW = [pool("n", 1, stock=8)]
A100 = {**H100, "metadata": {"name": "a100"}, "spec": {"nodeLabels": {"accelerator": "a100"}}}
BOTH_KINDS = queue("q", quotas={"h100": 16, "a100": 16})

_BORROWERS = [*TREE, cluster("west", 4), *full("west", "w1", "w2", "w3", "w4")]

SPREAD = {
    "as few yield as idle room elsewhere and the rule leave": (
        [*_BORROWERS, EAST, spread(EVEN), fresh(3)],
        ["w1 yields to s", "s starts in east:2@h100 + west:1@h100 after w1"],
    ),
    "and nobody waits for a rule that holds with them": (
        [*_BORROWERS, EAST, spread(EVEN), fresh(4)],
        ["w1 yields to s", "w2 yields to s",
         "s starts in east:2@h100 + west:2@h100 after w1, w2"],
    ),
    "as few nodes are bought": (
        [queue("q", 16), EAST, cluster("west", 1, pools=[pool("n", 1, stock=8)]), spread(EVEN),
         workload("x", "q", running="west"), fresh(4)],
        ["s gets 2 of west/n", "s starts in east:2@h100 + west:2@h100"],
    ),
    "given weights hold over clusters of different flavors": (
        [A100, BOTH_KINDS, EAST, cluster("west", 8, model="a100"), EVENLY, fresh(4)],
        ["s starts in east:2@h100 + west:2@a100"],
    ),
    "a difference of at most one holds over clusters of different flavors": (
        [A100, BOTH_KINDS, EAST, cluster("west", 8, model="a100"), spread(EVEN), fresh(5)],
        ["s starts in east:3@h100 + west:2@a100"],
    ),
    "two clusters at least, of different flavors": (
        [A100, BOTH_KINDS, EAST, cluster("west", 8, model="a100"), spread(TWO), fresh(4)],
        ["s starts in east:3@h100 + west:1@a100"],
    ),
    "two clusters at least, of different groups": (
        [queue("q", 16), EAST, WEST, policy("p", ["east"], ["west"], spread=[TWO]), fresh(4)],
        ["s starts in east:3@h100 + west:1@h100"],
    ),
    "given weights hold for victims": (
        [*TREE, cluster("east", 2), cluster("west", 2), EVENLY,
         *full("east", "e1", "e2"), *full("west", "w1", "w2"), fresh(2)],
        ["e1 yields to s", "w1 yields to s", "s starts in east:1@h100 + west:1@h100 after e1, w1"],
    ),
    "a difference of at most one holds for victims": (
        [*TREE, cluster("east", 3), cluster("west", 1), spread(EVEN),
         *full("east", "e1", "e2", "e3"), *full("west", "w1"), fresh(4)],
        ["e1 yields to s", "w1 yields to s", "e2 yields to s",
         "s starts in east:2@h100 + west:1@h100 after e1, w1, e2",
         "s waits: DoesNotFit, SpreadUnmet, NoVictims, NoPool, PartlyPlaced"],
    ),
    "given weights hold for new nodes": (
        [queue("q", 16), cluster("east", 1, pools=NEW), cluster("west", 1, pools=NEW), EVENLY,
         workload("x", "q", running="east"), workload("y", "q", running="west"), fresh(4)],
        ["s gets 2 of east/n", "s gets 2 of west/n", "s starts in east:2@h100 + west:2@h100"],
    ),
    "a difference of at most one holds for new nodes": (
        [queue("q", 16), cluster("east", 1, pools=NEW),
         cluster("west", 1, pools=[pool("n", 1, stock=1)]), spread(EVEN),
         workload("x", "q", running="east"), workload("y", "q", running="west"), fresh(4)],
        ["s gets 2 of east/n", "s gets 1 of west/n", "s starts in east:2@h100 + west:1@h100",
         "s waits: DoesNotFit, NoVictims, SpreadUnmet, PartlyPlaced"],
    ),
    "two clusters at least: what is idle here, and a victim there": (
        [*TREE, EAST, cluster("west", 1), spread(TWO), *full("west", "w1"), fresh(4)],
        ["w1 yields to s", "s starts in east:3@h100 + west:1@h100 after w1"],
    ),
    "two clusters at least: what is idle here, and a new node there": (
        [queue("q", 16), EAST, cluster("west", 1, pools=NEW), spread(TWO),
         workload("y", "q", running="west"), fresh(4)],
        ["s gets 1 of west/n", "s starts in east:3@h100 + west:1@h100"],
    ),
    "nobody yields to a rule that is only preferred": (
        [*TREE, EAST, cluster("west", 1), spread({**TWO, "whenUnsatisfiable": "Prefer"}),
         *full("west", "w1"), fresh(4)],
        ["s starts in east:4@h100"],
    ),
    "a difference of at most one holds where a cluster turns out to have no victims": (
        [*TREE, cluster("east", 2), cluster("south", 2), cluster("west", 2), spread(EVEN),
         workload("e", "b", count=2, running="east"), workload("w", "b", count=2, running="west"),
         workload("x", "q", count=2, running="south", priority=9), fresh(6)],
        ["e yields to s", "w yields to s", "s starts in east:1@h100 + west:1@h100 after e, w",
         "s waits: DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "a cluster without a weight stays empty, though the others of its group are full": (
        [queue("q", 16), EAST, SOUTH, cluster("west", 1), workload("x", "q", running="west"),
         policy("p", ["south", "west"], ["east"], spread=[TWO], division={"type": "StaticWeight",
                "weights": [{"selector": {"names": ["west"]}, "weight": 3}]}), fresh(2)],
        ["s waits: SpreadUnmet, DoesNotFit, NoVictims, NoPool, PartlyPlaced"],
    ),
    "two clusters at least: those with the largest weights": (
        [queue("q", 16), cluster("east", 2), cluster("south", 8), cluster("west", 8),
         spread(TWO, division={"type": "StaticWeight", "weights": [
             {"selector": {"names": [name]}, "weight": weight}
             for name, weight in (("east", 4), ("south", 1), ("west", 3))]}), fresh(2)],
        ["s starts in east:1@h100 + west:1@h100"],
    ),
    "two clusters at least mean nothing to one replica, which goes by weight": (
        [queue("q", 16), cluster("east", 8), cluster("west", 2),
         spread(TWO, division={"type": "StaticWeight", "weights": [
             {"selector": {"names": [name]}, "weight": weight}
             for name, weight in (("east", 1), ("west", 3))]}), fresh(1)],
        ["s starts in west:1@h100"],
    ),
    "a rule that cannot hold is the reason given, and nothing starts": (
        [queue("q", 16), EAST, policy("p", ["east"], spread=[TWO]), fresh(4)],
        ["s waits: SpreadUnmet, NoVictims, NoPool, PartlyPlaced"],
    ),
    "a rule that holds replicas back is the reason given": (
        [queue("q", 16), EAST, cluster("west", 1), spread(EVEN), fresh(5)],
        ["s starts in east:2@h100 + west:1@h100",
         "s waits: DoesNotFit, SpreadUnmet, NoVictims, NoPool, PartlyPlaced"],
    ),
    "copies in two clusters at least, of different flavors": (
        [A100, BOTH_KINDS, EAST, cluster("west", 8, model="a100"),
         spread(TWO, division={"type": "Duplicated"}), fresh(3)],
        ["s starts in east:3@h100 + west:3@a100"],
    ),
    "copies in two clusters at least: not whole, if quota does not allow more": (
        [queue("q", 4), EAST, WEST, spread(TWO, division={"type": "Duplicated"}), fresh(3)],
        ["s starts in east:3@h100 + west:1@h100",
         "s waits: QuotaExceeded, NoVictims, NoPool, PartlyPlaced"],
    ),
    "copies in two clusters at least: a victim there": (
        [*TREE, EAST, cluster("west", 1), spread(TWO, division={"type": "Duplicated"}),
         *full("west", "w1"), fresh(1)],
        ["w1 yields to s", "s starts in east:1@h100 + west:1@h100 after w1"],
    ),
    "no copy at all where there cannot be two": (
        [queue("q", 16), EAST, spread(TWO, division={"type": "Duplicated"}), fresh(2)],
        ["s waits: SpreadUnmet, NoVictims, NoPool, PartlyPlaced"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), SPREAD.values(), ids=list(SPREAD))
def test_rules_of_division_hold_on_every_rung_and_over_all_clusters(
    objects: list[dict[str, Any]], want: list[str]
) -> None:
    assert told(plan_of(*objects)) == want


@pytest.mark.parametrize(("objects", "want"), REBALANCED.values(), ids=list(REBALANCED))
def test_a_service_is_divided_afresh(objects: list[dict[str, Any]], want: list[str]) -> None:
    assert told(plan_of(*objects)) == want


@pytest.mark.parametrize(("objects", "want"), CHANGED.values(), ids=list(CHANGED))
def test_a_changed_policy_reaches_what_runs(objects: list[dict[str, Any]], want: list[str]) -> None:
    assert told(plan_of(*objects)) == want


TABLES = (CHANGED, REBALANCED, SPREAD, SCALED_IN, FAILED_OVER, EACH)


@pytest.mark.parametrize(
    ("objects", "want"),
    [item for table in TABLES for item in table.values()],
    ids=[name for table in TABLES for name in table],
)
def test_no_rule_is_broken_and_the_next_plan_does_not_go_back(
    objects: list[dict[str, Any]], want: list[str]
) -> None:
    facts = Objects.of([H100, *objects]).facts(NOW)
    made, _ = plan(Snapshot(facts))
    assert broken(facts, made) == []
    for _ in range(4):
        facts = after(facts, made)
        made, _ = plan(Snapshot(facts))
    assert made.steps == (), "it comes to rest"


def test_a_move_says_that_it_was_requested() -> None:
    objects, _ = REBALANCED["on request they are divided afresh"]
    (step,) = plan_of(*objects).steps
    assert [reason.code for reason in step.reasons] == [Code.REBALANCED]
    assert step.render()["rebalanced"] is True


def test_a_service_is_not_moved_before_its_claim_is_stored() -> None:
    objects, _ = REBALANCED["on request they are divided afresh"]
    facts = Objects.of([H100, *objects]).facts(NOW)
    service_ = facts.workloads["team/s"]
    assert service_.held is not None
    held = replace(service_.held, attempt=-1)
    facts = replace(facts, workloads={"team/s": replace(service_, held=held)})
    made, _ = plan(Snapshot(facts))
    assert made.steps == ()
