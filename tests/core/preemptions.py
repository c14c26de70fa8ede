"""Small fleets for the tests of preemption, in few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

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
from fairway.core.nodes import Cluster, Nodes, label_column
from fairway.core.placement_request import PlacementRequest
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims, find_victims
from fairway.core.snapshot import Facts, Settings, Snapshot

GPU = "nvidia.com/gpu"
FLAVOR = "any"
NOW = 10_000.0
OPEN = PreemptionRules(within_queue="LowerPriority", reclaim="Any")


def queue(
    name: str,
    nominal: int | Mapping[str, int] | Mapping[tuple[str, str], int] = 0,
    *,
    parent: str = "",
    rules: PreemptionRules = OPEN,
    weight: float = 1.0,
    limit: int | None = None,
    lends: int | None = None,
    within: float = 0.0,
    reclaim_after: float = 0.0,
    remembered: Mapping[str, int] | None = None,
) -> Queue:
    """A queue with nominal quota in whole units: of GPUs, of each resource, or of each pair."""
    named = {GPU: nominal} if isinstance(nominal, int) else nominal
    amounts = {(FLAVOR, key) if isinstance(key, str) else key: named[key] for key in named}
    resources, flavors = ({pair[at] for pair in amounts} for at in (1, 0))
    return Queue(
        name=name,
        parent=parent,
        weight_nanos=round(weight * 1_000_000_000),
        groups=(
            ResourceGroup(
                resources=tuple(sorted(resources)), flavors=tuple(sorted(flavors)) or (FLAVOR,)
            ),
        ),
        quotas={
            pair: Quota(
                nominal=amount * 1000,
                borrowing_limit=None if limit is None else limit * 1000,
                lending_limit=None if lends is None else lends * 1000,
            )
            for pair, amount in amounts.items()
        },
        preemption=rules,
        minimum_run_within=within,
        minimum_run_reclaim=reclaim_after,
        remembered={name: amount * 1000 for name, amount in (remembered or {}).items()},
    )


def shape(gpus: int = 0, **others: int) -> Shape:
    amounts = {GPU: gpus, **others}
    return Shape(
        requests=tuple(sorted((name, count * 1000) for name, count in amounts.items() if count))
    )


def pods(count: int, gpus: int = 1, name: str = "main", **others: int) -> PodSet:
    return PodSet(name=name, shape=shape(gpus, **others), count=count, least=count)


def wants(key: str, where: str, *pod_sets: PodSet, priority: int = 0, at: float = 0.0) -> Workload:
    """A workload that waits."""
    return Workload(
        key=key, queue=where, priority=priority, queued_at=at, forms=(Form(pod_sets=pod_sets),)
    )


def holds(
    key: str,
    where: str,
    *pod_sets: PodSet,
    on: Mapping[str, Mapping[int, int]] | None = None,
    cluster: str = "",
    priority: int = 0,
    at: float = 0.0,
    ran: float | None = 100.0,
    flavor: str = FLAVOR,
    preemptible: bool = True,
    checkpoint: float | None = None,
    saves: bool = False,
) -> Workload:
    """A workload that runs; `on` says how many pods of each set are on which node."""
    placed = Placed(
        cluster=cluster,
        pods=tuple(
            PlacedPods(
                name=pod_set.name,
                count=pod_set.count,
                shape=pod_set.shape,
                flavors=tuple((resource, flavor) for resource, _ in pod_set.shape.requests),
            )
            for pod_set in pod_sets
        ),
        bound=on or {},
    )
    held = Held(
        queue=where,
        placed=(placed,),
        decided_at=NOW - (ran or 0.0),
        started_at=None if ran is None else NOW - ran,
    )
    return Workload(
        key=key,
        queue=where,
        priority=priority,
        queued_at=at,
        forms=(Form(pod_sets=pod_sets),),
        held=held,
        preemptible=preemptible,
        checkpoint_seconds=checkpoint,
        saves_when_asked=saves,
    )


def leaves(workload: Workload) -> Workload:
    """The same workload while it is being stopped."""
    assert workload.held is not None
    parts = tuple(replace(part, attempt=1) for part in workload.held.placed)
    return replace(workload, held=None, releasing=parts, is_over=True)


def cluster(
    name: str,
    *nodes: Mapping[str, int],
    racks: Iterable[str] = (),
    flavors: Iterable[str] = (),
) -> Cluster:
    """Nodes with so many whole units of each resource, and the flavor of each if it matters."""
    resources = sorted({resource for node in nodes for resource in node})
    columns = {"rack": list(racks), "flavor": list(flavors)}
    labels = {key: label_column(values) for key, values in columns.items() if values}
    return Cluster(
        name=name,
        nodes=Nodes(
            names=tuple(f"{name}-{position}" for position in range(len(nodes))),
            capacity={
                resource: np.array([node.get(resource, 0) * 1000 for node in nodes], dtype=np.int64)
                for resource in resources
            },
            ready=np.ones(len(nodes), dtype=np.bool_),
            labels=labels,
        ),
        levels=(("rack", "rack"),) if racks else (),
    )


def fleet(
    queues: Iterable[Queue],
    workloads: Iterable[Workload],
    clusters: Iterable[Cluster] = (),
    *,
    fair: bool = True,
    tests: tuple[str, ...] = Settings().preemption_tests,
    half_life: float = 0.0,
    flavors: Iterable[str] = (),
) -> PlanningRound:
    """A round of planning; `flavors` names those that nodes are labelled with."""
    named = {name: Flavor(name=name, node_labels=(("flavor", name),)) for name in flavors}
    return PlanningRound(
        Snapshot(
            Facts(
                now=NOW,
                queues={queue.name: queue for queue in queues},
                flavors=named or {FLAVOR: Flavor(name=FLAVOR)},
                clusters={cluster.name: cluster for cluster in clusters},
                workloads={workload.key: workload for workload in workloads},
                settings=Settings(
                    fair_sharing=fair, preemption_tests=tests, half_life_seconds=half_life
                ),
            )
        )
    )


def victims_of(
    planning: PlanningRound, key: str, where: str = "", flavor: str = ""
) -> Victims | None:
    """Whom a waiting workload would preempt, on a flavor or on the first."""
    workload = planning.snapshot.facts.workloads[key]
    form = workload.forms[0]
    options = planning.assignments(workload, form)
    option = next(each for each in options if not flavor or set(each.names) == {flavor})
    request = PlacementRequest(workload, form, option)
    return find_victims(planning, request, where)


def keys_of(found: Victims | None) -> list[str] | None:
    return None if found is None else sorted(victim.key for victim in found.victims)
