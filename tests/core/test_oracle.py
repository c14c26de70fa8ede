"""A plan starts a gang that waits alone exactly where brute force says that it can start.

Fleets of three clusters, four nodes each, three resources, two pod sets, two groups of flavors.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np

from fairway.core.checks.invariants import broken
from fairway.core.cycle import plan
from fairway.core.model import (
    Flavor,
    Form,
    PodSet,
    Queue,
    Quota,
    ResourceGroup,
    Shape,
    Topology,
    Workload,
)
from fairway.core.nodes import Cluster, Nodes, label_column
from fairway.core.snapshot import Facts, Snapshot
from fairway.core.steps import Admit
from tests.core.oracle import Case, Machine, Pods, can_start

GROUPS = ((("cpu", "memory"), ("amd", "arm")), (("nvidia.com/gpu",), ("a100", "h100")))
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
CLUSTERS, NODES, CASES = 3, 4, 600


def case_of(seed: int) -> Case:
    dice = Random(seed)
    most = dice.choice([2, 3, 3, 4])
    pods = tuple(
        Pods(
            needs=tuple((name, 1000 * dice.randint(1, 3)) for name in RESOURCES),
            count=dice.randint(1, most),
            in_one_rack=dice.random() < 0.3,
        )
        for _ in range(2)
    )
    quota = tuple(
        ((flavor, resource), 1000 * dice.randint(4, 16))
        for resources, flavors in GROUPS
        for flavor in flavors
        for resource in resources
    )
    return Case(
        pods=pods,
        groups=GROUPS,
        quota=quota,
        clusters=tuple(tuple(_machine(dice) for _ in range(NODES)) for _ in range(CLUSTERS)),
    )


def _machine(dice: Random) -> Machine:
    return Machine(
        rack=dice.choice(["r1", "r2"]),
        kinds=frozenset((dice.choice(["amd", "amd", "arm"]), dice.choice(["a100", "h100"]))),
        has=tuple((name, 1000 * dice.randint(1, 6)) for name in RESOURCES),
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
            shape=Shape(requests=one.needs),
            count=one.count,
            least=one.count,
            topology=Topology(required="rack" if one.in_one_rack else ""),
        )
        for number, one in enumerate(case.pods)
    )
    queue = Queue(
        name="q",
        groups=tuple(ResourceGroup(resources=one, flavors=two) for one, two in case.groups),
        quotas={pair: Quota(nominal=amount) for pair, amount in case.quota},
    )
    return Facts(
        now=0.0,
        queues={"q": queue},
        flavors=flavors,
        clusters={f"c{at}": _cluster(f"c{at}", one) for at, one in enumerate(case.clusters)},
        workloads={"w": Workload(key="w", queue="q", forms=(Form(pod_sets=pod_sets),))},
    )


def _cluster(name: str, machines: tuple[Machine, ...]) -> Cluster:
    def kind(group: int, machine: Machine) -> str:
        return next(one for one in GROUPS[group][1] if one in machine.kinds)

    return Cluster(
        name=name,
        levels=(("rack", "rack"),),
        nodes=Nodes(
            names=tuple(f"n{at}" for at in range(len(machines))),
            capacity={
                resource: np.array([dict(one.has)[resource] for one in machines], dtype=np.int64)
                for resource in RESOURCES
            },
            ready=np.ones(len(machines), dtype=np.bool_),
            labels={
                "rack": label_column([one.rack for one in machines]),
                "kind-0": label_column([kind(0, one) for one in machines]),
                "kind-1": label_column([kind(1, one) for one in machines]),
            },
        ),
    )


def test_a_gang_that_waits_alone_starts_exactly_where_brute_force_finds_a_place() -> None:
    tally: Counter[bool] = Counter()
    for seed in range(CASES):
        case = case_of(seed)
        facts = facts_of(case)
        found, _ = plan(Snapshot(facts))
        expected = can_start(case)
        started = [step for step in found.steps if isinstance(step, Admit)]
        assert bool(started) == expected, f"case {seed}: brute force says {expected}"
        assert broken(facts, found) == [], f"case {seed}"
        tally[expected] += 1
    assert min(tally.values()) >= CASES // 5, f"too few of one kind: {tally}"
