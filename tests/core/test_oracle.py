"""A plan does with whoever waits alone exactly what brute force says: start, preempt, divide.

Fleets of three clusters, four nodes each, three resources, two pod sets, two groups of flavors,
with pods that run already. The same fleets are asked three things: whether a gang can start as
things are; who yields to it where it cannot; how the replicas of a service are divided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from fairway.core.checks.invariants import broken
from fairway.core.cycle import plan
from fairway.core.model import (
    Division,
    Flavor,
    Form,
    Held,
    Placed,
    PlacedPods,
    PodSet,
    Policy,
    PreemptionRules,
    Queue,
    Quota,
    ResourceGroup,
    Shape,
    Topology,
    Workload,
)
from fairway.core.nodes import Cluster, Nodes, label_column
from fairway.core.plan import Admit, Preempt
from fairway.core.snapshot import Facts, Snapshot
from tests.core.oracle import (
    Case,
    Machine,
    Pods,
    Runner,
    allowed,
    can_start,
    copies,
    victims,
    webster,
)

GROUPS = ((("cpu", "memory"), ("amd", "arm")), (("nvidia.com/gpu",), ("a100", "h100")))
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
CLUSTERS, NODES, CASES = 3, 4, 400
NOW = 100_000.0
MANY = 5  # more replicas than are asked for


def case_of(seed: int) -> Case:
    dice = Random(seed)
    most = dice.choice([1, 2, 2, 3])
    pods = tuple(
        Pods(
            needs=tuple((name, 1000 * dice.randint(1, 3)) for name in RESOURCES),
            count=dice.randint(1, most),
            in_one_rack=dice.random() < 0.3,
        )
        for _ in range(2)
    )
    quota = tuple(
        ((flavor, resource), 1000 * dice.randint(6, 20))
        for resources, flavors in GROUPS
        for flavor in flavors
        for resource in resources
    )
    clusters = tuple(tuple(_machine(dice) for _ in range(NODES)) for _ in range(CLUSTERS))
    return Case(
        pods=pods,
        groups=GROUPS,
        quota=quota,
        clusters=clusters,
        runs=tuple(_runners(dice, clusters)),
    )


def _runners(dice: Random, clusters: tuple[tuple[Machine, ...], ...]) -> Iterator[Runner]:
    """Pods that run, each on a node of its kinds that has room for it."""
    free = [[dict(node.has) for node in cluster] for cluster in clusters]
    for number in range(dice.choice([0, 6, 9, 12])):
        at, node = dice.randrange(CLUSTERS), dice.randrange(NODES)
        kinds = clusters[at][node].kinds
        needs = tuple((name, 1000 * dice.randint(1, 3)) for name in RESOURCES)
        if any(free[at][node][name] < amount for name, amount in needs):
            continue
        for name, amount in needs:
            free[at][node][name] -= amount
        yield Runner(
            key=f"r{number}",
            priority=dice.randint(0, 2),
            ran=dice.randint(1, 10_000),
            cluster=at,
            node=node,
            flavors=tuple(next(name for name in names if name in kinds) for _, names in GROUPS),
            needs=needs,
        )


def _machine(dice: Random) -> Machine:
    return Machine(
        rack=dice.choice(["r1", "r2"]),
        kinds=frozenset((dice.choice(["amd", "amd", "arm"]), dice.choice(["a100", "h100"]))),
        has=tuple((name, 1000 * dice.randint(2, 7)) for name in RESOURCES),
    )


def facts_of(case: Case) -> Facts:
    """The case as the core sees it."""
    flavors = {
        name: Flavor(name=name, node_labels=((f"kind-{group}", name),))
        for group, (_, names) in enumerate(case.groups)
        for name in names
    }
    pod_sets = tuple(
        PodSet(
            name=f"s{number}",
            shape=Shape(requests=pod.needs),
            count=pod.count,
            least=pod.count,
            group="together",  # the oracle tries one choice of flavors for both
            topology=Topology(required="rack" if pod.in_one_rack else ""),
        )
        for number, pod in enumerate(case.pods)
    )
    queue = Queue(
        name="q",
        groups=tuple(ResourceGroup(resources=value, flavors=two) for value, two in case.groups),
        quotas={pair: Quota(nominal=amount) for pair, amount in case.quota},
        preemption=PreemptionRules(within_queue="LowerPriority"),
    )
    waits = Workload(key="w", queue="q", priority=5, forms=(Form(pod_sets=pod_sets),))
    return Facts(
        now=NOW,
        queues={"q": queue},
        flavors=flavors,
        clusters={
            f"c{at}": _cluster(f"c{at}", cluster) for at, cluster in enumerate(case.clusters)
        },
        workloads={"w": waits, **{item.key: _running(item) for item in case.runs}},
    )


def _running(one: Runner) -> Workload:
    shape = Shape(requests=one.needs)
    flavor_of = {
        resource: flavor
        for (resources, _), flavor in zip(GROUPS, one.flavors, strict=True)
        for resource in resources
    }
    pods = PlacedPods(name="main", count=1, shape=shape, flavors=tuple(sorted(flavor_of.items())))
    placed = Placed(cluster=f"c{one.cluster}", pods=(pods,), bound={"main": {one.node: 1}})
    since = NOW - one.ran
    return Workload(
        key=one.key,
        queue="q",
        priority=one.priority,
        forms=(Form(pod_sets=(PodSet(name="main", shape=shape, count=1, least=1),)),),
        held=Held(attempt=1, queue="q", placed=(placed,), decided_at=since, started_at=since),
    )


def _cluster(name: str, machines: tuple[Machine, ...]) -> Cluster:
    def kind(group: int, machine: Machine) -> str:
        return next(other for other in GROUPS[group][1] if other in machine.kinds)

    return Cluster(
        name=name,
        levels=(("rack", "rack"),),
        nodes=Nodes(
            names=tuple(f"n{at}" for at in range(len(machines))),
            capacity={
                resource: np.array(
                    [dict(machine.has)[resource] for machine in machines], dtype=np.int64
                )
                for resource in RESOURCES
            },
            ready=np.ones(len(machines), dtype=np.bool_),
            labels={
                "rack": label_column([machine.rack for machine in machines]),
                "kind-0": label_column([kind(0, machine) for machine in machines]),
                "kind-1": label_column([kind(1, machine) for machine in machines]),
            },
        ),
    )


def test_a_gang_that_waits_alone_starts_preempts_or_waits_as_brute_force_says() -> None:
    tally: Counter[str] = Counter()
    for seed in range(CASES):
        case = case_of(seed)
        facts = facts_of(case)
        found, _ = plan(Snapshot(facts))
        assert broken(facts, found) == [], f"case {seed}"
        started = [step for step in found.steps if isinstance(step, Admit)]
        gone = frozenset(step.workload for step in found.steps if isinstance(step, Preempt))
        if can_start(case):
            tally["starts"] += 1
            assert started, f"case {seed}: it can start"
            assert not gone, f"case {seed}: nobody need yield"
            continue
        expected = victims(case)
        tally["waits" if expected is None else "preempts"] += 1
        where = [(int(item.placed[0].cluster[1:]), gone) for item in started]
        assert where == ([] if expected is None else [expected]), f"case {seed}"
    print(f"\n{CASES} fleets: {dict(tally)}")
    assert min(tally[item] for item in ("starts", "preempts", "waits")) >= CASES // 10, f"{tally}"


def test_the_replicas_of_a_service_are_divided_as_brute_force_says() -> None:
    tally: Counter[str] = Counter()
    for seed in range(CASES):
        dice = Random(seed)
        flavors = ("amd", dice.choice(["a100", "h100"]))
        case = _with_small_pods(case_of(seed), dice)
        replicas, kind = dice.randint(1, 4), dice.choice(["DynamicWeight", "StaticWeight"])
        weights = [dice.randint(1, 3) for _ in range(CLUSTERS)]
        found = _divided(case, flavors, replicas, kind, weights)
        rooms = [copies(case, at, flavors, MANY) for at in range(CLUSTERS)]
        seats = allowed(case, flavors, replicas)
        expected = webster(seats, weights if kind == "StaticWeight" else rooms, rooms)
        assert found == expected, f"case {seed}: {kind} {weights} {rooms} {seats}"
        tally["all" if sum(found) == replicas else "some" if any(found) else "none"] += 1
        tally["several clusters"] += sum(1 for item in found if item) > 1
    print(f"\n{CASES} services: {dict(tally)}")
    assert min(tally.values()) >= CASES // 20, f"{tally}"


def _with_small_pods(case: Case, dice: Random) -> Case:
    """The same fleet, with pods of which several copies fit."""
    return replace(
        case,
        pods=tuple(
            Pods(
                needs=tuple((name, 1000 * dice.choice([1, 1, 1, 2])) for name in RESOURCES),
                count=dice.choice([1, 1, 2]),
                in_one_rack=pod.in_one_rack,
            )
            for pod in case.pods
        ),
    )


def _divided(
    case: Case, flavors: tuple[str, ...], replicas: int, kind: Any, weights: list[int]
) -> list[int]:
    """How many replicas the plan puts in each cluster."""
    facts = facts_of(case)
    rules = Policy(
        key="p",
        division=Division(
            type=kind,
            weights=tuple((frozenset({f"c{at}"}), weight) for at, weight in enumerate(weights)),
        ),
        ladder=(("", "Idle"),),
    )
    waits = facts.workloads["w"]
    service = replace(
        waits,
        mode="Divided",
        replicas=replicas,
        policy="p",
        forms=(replace(waits.forms[0], flavors=flavors),),
    )
    facts = replace(facts, policies={"p": rules}, workloads={**facts.workloads, "w": service})
    found, _ = plan(Snapshot(facts))
    assert broken(facts, found) == []
    placed = {
        item.cluster: item.replicas
        for step in found.steps
        if isinstance(step, Admit)
        for item in step.placed
    }
    return [placed.get(f"c{at}", 0) for at in range(CLUSTERS)]
