"""The cycle: who is looked at, in which order, and who is not looked at again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairway.core.checks.invariants import broken
from fairway.core.cycle import plan
from fairway.core.model import (
    Flavor,
    Form,
    Held,
    Placed,
    PlacedPods,
    PodSet,
    PreemptionRules,
    Queue,
    Quota,
    ResourceGroup,
    Shape,
    Workload,
)
from fairway.core.nodes import Cluster, Nodes
from fairway.core.plan import Admit, Preempt
from fairway.core.snapshot import Facts, Snapshot

CPU = "cpu"
SHAPE = Shape(requests=((CPU, 1000),))


def cluster(name: str, cpus: int) -> Cluster:
    """A cluster of one node."""
    nodes = Nodes(
        names=("n0",),
        capacity={CPU: np.array([cpus * 1000], dtype=np.int64)},
        ready=np.ones(1, dtype=np.bool_),
    )
    return Cluster(name=name, nodes=nodes)


def fleet(*workloads: Workload, clusters: tuple[Cluster, ...]) -> Facts:
    queue = Queue(
        name="q",
        groups=(ResourceGroup(resources=(CPU,), flavors=("any",)),),
        quotas={("any", CPU): Quota(nominal=100_000)},
        preemption=PreemptionRules(within_queue="LowerPriority"),
    )
    return Facts(
        now=100.0,
        queues={"q": queue},
        flavors={"any": Flavor(name="any")},
        clusters={cluster.name: cluster for cluster in clusters},
        workloads={workload.key: workload for workload in workloads},
    )


def gang(key: str, pods: int, *, priority: int = 0, at: float = 0.0) -> Workload:
    pod_set = PodSet(name="main", shape=SHAPE, count=pods, least=pods)
    form = Form(pod_sets=(pod_set,))
    return Workload(key=key, queue="q", priority=priority, queued_at=at, forms=(form,))


def test_the_oldest_of_equal_priority_starts_first() -> None:
    newer, older = gang("a", 1, at=50.0), gang("b", 1, at=10.0)
    found, _ = plan(Snapshot(fleet(newer, older, clusters=(cluster("c", 1),))))
    assert [step.workload for step in found.steps] == ["b"]


def test_the_higher_priority_starts_before_the_older() -> None:
    urgent, older = gang("a", 1, priority=1, at=50.0), gang("b", 1, at=10.0)
    found, _ = plan(Snapshot(fleet(urgent, older, clusters=(cluster("c", 1),))))
    assert [step.workload for step in found.steps] == ["a"]


def test_a_service_that_is_a_victim_does_not_grow_in_the_same_plan() -> None:
    pods = PlacedPods(name="main", count=2, shape=SHAPE, flavors=((CPU, "any"),))
    held = Held(queue="q", placed=(Placed(cluster="c", pods=(pods,), replicas=2),), started_at=0.0)
    service = replace(gang("service", 1), mode="Divided", replicas=3, held=held)
    urgent = gang("urgent", 2, priority=1)
    facts = fleet(service, urgent, clusters=(cluster("c", 2), cluster("d", 1)))
    found, _ = plan(Snapshot(facts))
    assert broken(facts, found) == []
    assert [(type(step), step.workload) for step in found.steps] == [
        (Preempt, "service"),
        (Admit, "urgent"),
    ]
