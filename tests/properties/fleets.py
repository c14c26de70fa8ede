"""Small whole fleets, generated: queues, flavors, clusters, policies, workloads that run and wait.

Everything is small, so that things meet: few nodes, amounts that fill them, few priorities. What
runs already was put on nodes here, one pod after the other where there is room, by the rules as
stated and none of the code under test, save that the tree says whether quota allows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from fairway.api.meta import NodeRequirement, NodeTerm, Rung, Taint, Toleration
from fairway.core.model import (
    Division,
    Flavor,
    Form,
    Group,
    Held,
    Placed,
    PlacedPods,
    PodSet,
    Policy,
    Pool,
    PreemptionRules,
    Queue,
    Quota,
    ResourceGroup,
    Score,
    Shape,
    Spread,
    Topology,
    UserLimit,
    Workload,
)
from fairway.core.nodes import Cluster, Nodes, label_column
from fairway.core.quota import Tree
from fairway.core.snapshot import Facts, Settings

CPU, GPU = "cpu", "nvidia.com/gpu"
RESOURCES = (CPU, GPU)
NOW = 10_000.0
KIND, BLOCK, RACK = "example/kind", "example/block", "example/rack"
SPOT = Taint(key="spot", value="yes", effect="NoSchedule")
BEARS_SPOT = Toleration(key="spot", operator="Exists")
LEVELS = (("block", BLOCK), ("rack", RACK))
RUNGS: tuple[Rung, ...] = ("Idle", "Preempt", "Provision")
NODE = {CPU: 8000, GPU: 4000}


def chance(draw: st.DrawFn, tenths: int) -> bool:
    """True in about so many of ten cases; simpler cases have False."""
    return draw(st.integers(0, 9)) >= 10 - tenths


@st.composite
def flavors(draw: st.DrawFn) -> dict[str, Flavor]:
    found = {}
    for number in range(draw(st.sampled_from([1, 2, 2, 3]))):
        name = f"f{number}"
        spot = number == 2
        found[name] = Flavor(
            name=name,
            node_labels=((KIND, name),),
            node_taints=(SPOT,) if spot else (),
            tolerations=(BEARS_SPOT,) if spot and draw(st.booleans()) else (),
            prices={GPU: 10**9 * (number + 1)},
        )
    return found


@st.composite
def clusters(draw: st.DrawFn, kinds: list[str]) -> dict[str, Cluster]:
    found = {}
    for number in range(draw(st.sampled_from([1, 1, 2, 2, 3, 4]))):
        name = f"c{number}"
        nodes = draw(nodes_of(kinds))
        found[name] = Cluster(
            name=name,
            nodes=nodes,
            labels={"region": draw(st.sampled_from(["east", "west"]))},
            taints=(SPOT,) if chance(draw, 1) else (),
            is_open=not chance(draw, 1),
            levels=LEVELS,
            pools=draw(pools(kinds)),
        )
    return found


@st.composite
def nodes_of(draw: st.DrawFn, kinds: list[str]) -> Nodes:
    number = draw(st.integers(1, 6))
    own = [draw(st.sampled_from(kinds)) for _ in range(number)]
    gpus = [4000 if one != "f1" else draw(st.sampled_from([0, 2000, 4000])) for one in own]
    return Nodes(
        names=tuple(f"n{position}" for position in range(number)),
        capacity={
            CPU: np.full(number, NODE[CPU], dtype=np.int64),
            GPU: np.array(gpus, dtype=np.int64),
        },
        ready=np.array([not chance(draw, 1) for _ in range(number)], dtype=np.bool_),
        labels={
            KIND: label_column(list(own)),
            BLOCK: label_column([draw(st.sampled_from(["b1", "b2"])) for _ in range(number)]),
            RACK: label_column([draw(st.sampled_from(["r1", "r2"])) for _ in range(number)]),
        },
        taint_sets=((), (SPOT,)),
        taint_set=np.array([int(one == "f2") for one in own], dtype=np.int32),
    )


@st.composite
def pools(draw: st.DrawFn, kinds: list[str]) -> tuple[Pool, ...]:
    if not chance(draw, 4):
        return ()
    kind = draw(st.sampled_from(kinds))
    return (
        Pool(
            name="pool",
            shape=((CPU, 8000), (GPU, 4000)),
            labels=((KIND, kind),),
            taints=(SPOT,) if kind == "f2" else (),
            left=draw(st.integers(0, 4)),
            unit=draw(st.sampled_from([1, 1, 2])),
            price_nanos=draw(st.sampled_from([None, 10**9])),
        ),
    )


@st.composite
def policies(draw: st.DrawFn, names: list[str]) -> dict[str, Policy]:
    found = {}
    some = st.frozensets(st.sampled_from(names), min_size=1)
    for key in ("", "p1", "p2"):
        groups: tuple[Group, ...] = ()
        ladder: tuple[tuple[str, Rung], ...] = ()
        if chance(draw, 4):
            most = draw(st.sampled_from([None, None, 2]))
            groups = (
                Group(name="near", clusters=draw(some), replicas_max=most),
                Group(name="far"),
            )
            if chance(draw, 5):
                steps = [(one.name, rung) for one in groups for rung in RUNGS]
                ladder = tuple(draw(st.lists(st.sampled_from(steps), min_size=1, unique=True)))
        found[key] = Policy(
            key=key,
            clusters=draw(some) if chance(draw, 1) else None,
            groups=groups,
            ladder=ladder,
            tolerations=(BEARS_SPOT,) if draw(st.booleans()) else (),
            spread=draw(spreads()),
            division=draw(divisions(names)),
            scores=(Score(name="Steady"), Score(name="AcceleratorsInCluster", resource=GPU)),
        )
    return found


@st.composite
def spreads(draw: st.DrawFn) -> tuple[Spread, ...]:
    if not chance(draw, 3):
        return ()
    rule = Spread(
        by=draw(st.sampled_from(["Cluster", "Label"])),
        label="region",
        least=draw(st.integers(1, 2)),
        most=draw(st.sampled_from([None, 2])),
        skew=draw(st.sampled_from([None, 1])),
        is_preferred=draw(st.booleans()),
    )
    return (rule if rule.by == "Label" else replace(rule, label=""),)


@st.composite
def divisions(draw: st.DrawFn, names: list[str]) -> Division:
    kind = draw(st.sampled_from(["Aggregated", "DynamicWeight", "StaticWeight", "Duplicated"]))
    weights = ((frozenset(names[:1]), 3), (None, 1)) if kind == "StaticWeight" else ()
    return Division(type=kind, weights=weights, cluster_max=draw(st.sampled_from([None, None, 3])))


# Queues.


@st.composite
def queues(draw: st.DrawFn, kinds: list[str], clusters: list[str]) -> dict[str, Queue]:
    depth = draw(st.sampled_from([1, 2, 2, 3, 3]))
    names: list[tuple[str, str]] = []
    if depth == 1:
        names = [("a", ""), ("b", "")]
    elif depth == 2:
        names = [("root", ""), ("a", "root"), ("b", "root")]
    else:
        names = [("root", ""), ("left", "root"), ("right", "root"), ("a", "left"), ("b", "right")]
    if draw(st.booleans()):
        names.append(("c", names[-1][1]))
    inner = {parent for _, parent in names}
    group = ResourceGroup(resources=RESOURCES, flavors=tuple(draw(st.permutations(kinds))))
    found = {}
    for name, parent in names:
        leaf = name not in inner
        found[name] = Queue(
            name=name,
            parent=parent,
            groups=(group,) if not parent or draw(st.booleans()) else (),
            quotas={
                (kind, resource): draw(quotas(resource, 4 if leaf else 2))
                for kind in kinds
                for resource in RESOURCES
            },
            weight_nanos=draw(st.sampled_from([10**9, 10**9, 2 * 10**9])),
            priority=draw(st.sampled_from([0, 0, 0, 1])),
            is_strict=chance(draw, 2),
            preemption=draw(rules()),
            minimum_run_reclaim=draw(st.sampled_from([0.0, 0.0, 500.0])),
            is_held=chance(draw, 1) and leaf and name == "c",
            fence=draw(st.frozensets(st.sampled_from(clusters))) if chance(draw, 1) else None,
            claimed_max=draw(st.sampled_from([None, None, None, 1, 2])),
            user_limits=draw(user_limits()),
            remembered={GPU: draw(st.sampled_from([0, 0, 4000, 16000]))},
        )
    return found


@st.composite
def quotas(draw: st.DrawFn, resource: str, most: int) -> Quota:
    unit = 1000 if resource == GPU else 4000
    return Quota(
        nominal=unit * draw(st.integers(0, most)),
        borrowing_limit=draw(st.sampled_from([None, None, None, 0, 2 * unit])),
        lending_limit=draw(st.sampled_from([None, None, None, 0, unit])),
    )


@st.composite
def rules(draw: st.DrawFn) -> PreemptionRules:
    return PreemptionRules(
        within_queue=draw(
            st.sampled_from(
                ["LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority", "Never"]
            )
        ),
        reclaim=draw(st.sampled_from(["Any", "Any", "LowerPriority", "Never"])),
        while_borrowing=draw(st.sampled_from(["Never", "LowerPriority"])),
        protect_within_nominal=chance(draw, 2),
    )


@st.composite
def user_limits(draw: st.DrawFn) -> tuple[UserLimit, ...]:
    if not chance(draw, 2):
        return ()
    return (
        UserLimit(
            users=draw(st.sampled_from([(), ("ann",)])),
            claimed_max=draw(st.sampled_from([None, 1, 2])),
            amounts=draw(st.sampled_from([(), ((GPU, 4000),), ((CPU, 12000),)])),
        ),
    )


# Workloads.


@st.composite
def shapes(draw: st.DrawFn, kinds: list[str]) -> Shape:
    requests = [(CPU, draw(st.sampled_from([1000, 2000, 4000])))]
    gpus = draw(st.sampled_from([0, 1000, 1000, 2000, 4000]))
    if gpus:
        requests.append((GPU, gpus))
    affinity: tuple[NodeTerm, ...] = ()
    if chance(draw, 1):
        kind = draw(st.sampled_from(kinds))
        affinity = (
            NodeTerm(match_expressions=(NodeRequirement(key=KIND, operator="In", values=(kind,)),)),
        )
    return Shape(
        requests=tuple(requests),
        node_affinity=affinity,
        tolerations=(BEARS_SPOT,) if draw(st.booleans()) else (),
    )


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    if not chance(draw, 3):
        return Topology()
    level = draw(st.sampled_from(["block", "rack"]))
    kind = draw(st.sampled_from(["required", "preferred", "slices"]))
    if kind == "slices":
        return Topology(slice_level=level, slice_size=draw(st.sampled_from([1, 2])))
    return Topology(required=level) if kind == "required" else Topology(preferred=level)


@st.composite
def forms(draw: st.DrawFn, kinds: list[str], *, most_sets: int, elastic: bool) -> Form:
    pod_sets = []
    for number in range(draw(st.integers(1, most_sets))):
        count = draw(st.integers(1, 4 if most_sets == 1 or number == 0 else 2))
        pod_sets.append(
            PodSet(
                name=f"s{number}",
                shape=draw(shapes(kinds)),
                count=count,
                least=draw(st.integers(1, count)) if elastic and chance(draw, 3) else count,
                topology=draw(topologies()),
            )
        )
    return Form(pod_sets=tuple(pod_sets))


@st.composite
def workloads(draw: st.DrawFn, key: str, leaves: list[str], kinds: list[str]) -> Workload:
    mode = draw(st.sampled_from(["Gang", "Gang", "Gang", "Divided", "Independent"]))
    gang = mode == "Gang"
    first = draw(forms(kinds, most_sets=3 if gang else 2, elastic=gang))
    alternatives: tuple[Form, ...] = ()
    if gang and chance(draw, 2):
        other = draw(forms(kinds, most_sets=1, elastic=False))
        after = draw(st.sampled_from([0, 100, 20_000]))
        alternatives = (replace(other, name="other", after_seconds=after, flavors=(kinds[-1],)),)
    return Workload(
        key=key,
        queue=draw(st.sampled_from(leaves)),
        priority=draw(st.sampled_from([0, 0, 1, 2])),
        queued_at=NOW - draw(st.integers(0, 5)) * 100,
        mode=mode,
        forms=(first, *alternatives),
        policy=draw(st.sampled_from(["", "p1", "p2"])),
        domain=draw(st.sampled_from(["block", "rack"])) if gang and chance(draw, 1) else "",
        replicas=draw(st.integers(1, 4)) if mode == "Divided" else 1,
        tasks=draw(st.integers(1, 6)) if mode == "Independent" else 0,
        task_range=draw(st.sampled_from([1, 2])),
        concurrency=draw(st.sampled_from([0, 0, 3])),
        user=draw(st.sampled_from(["ann", "bob"])),
        preemptible=not chance(draw, 1),
        is_held=chance(draw, 1) and draw(st.booleans()),
        not_before=NOW + 50 if chance(draw, 1) and draw(st.booleans()) else 0.0,
        avoids=("c0",) if chance(draw, 1) else (),
        checkpoint_seconds=draw(st.sampled_from([None, 100.0])),
    )


@st.composite
def fleets(draw: st.DrawFn, *, most: int = 8) -> Facts:
    """A whole fleet; some of its workloads run already."""
    kind_of = draw(flavors())
    kinds = sorted(kind_of)
    places = draw(clusters(kinds))
    tree = draw(queues(kinds, sorted(places)))
    inner = {one.parent for one in tree.values()}
    leaves = sorted(name for name in tree if name not in inner)
    everyone = [
        draw(workloads(f"w/{number}", leaves, kinds))
        for number in range(draw(st.integers(1, most)))
    ]
    site = Site(Facts(now=NOW, queues=tree, flavors=kind_of, clusters=places))
    running = draw(st.integers(0, len(everyone)))
    for position in range(running):
        bound = draw(st.booleans())
        lower = replace(everyone[position], priority=min(1, everyone[position].priority))
        everyone[position] = site.start(lower, is_bound=bound, at=NOW - 1000 + position)
    return Facts(
        now=NOW,
        queues=tree,
        flavors=kind_of,
        clusters=places,
        policies=draw(policies(sorted(places))),
        workloads={one.key: one for one in everyone},
        settings=Settings(
            fair_sharing=draw(st.booleans()),
            half_life_seconds=draw(st.sampled_from([0.0, 3600.0])),
            reserves=False,
        ),
    )


# What runs already.


@dataclass(slots=True)
class Site:
    """Puts pods on nodes, one after the other."""

    facts: Facts

    def __post_init__(self) -> None:
        self.tree = Tree.of(self.facts.queues.values())
        self.free = {
            name: [
                {resource: int(column[node]) for resource, column in one.nodes.capacity.items()}
                for node in range(len(one.nodes))
            ]
            for name, one in self.facts.clusters.items()
        }

    free: dict[str, list[dict[str, int]]] = None  # type: ignore[assignment]
    tree: Tree = None  # type: ignore[assignment]

    def start(self, workload: Workload, *, is_bound: bool, at: float) -> Workload:
        """The workload with a claim, on the first flavor and cluster that take it; else as it was.

        Services and sweeps start with one replica or task.
        """
        form = workload.forms[0]
        if any(one.topology != Topology() for one in form.pod_sets) or workload.domain:
            return workload
        for cluster in sorted(self.facts.clusters):
            for flavor in self.facts.flavors.values():
                placed = self._place(cluster, flavor, form)
                usage = {} if placed is None else _usage(placed)
                if placed is None or not self.tree.fits(workload.queue, usage):
                    continue
                self.tree.charge(workload.queue, usage)
                self._take(placed)
                held = Held(
                    attempt=1,
                    queue=workload.queue,
                    placed=(_as_mode(placed if is_bound else replace(placed, bound={}), workload),),
                    decided_at=at,
                    started_at=at,
                )
                return replace(workload, held=held)
        return workload

    def _place(self, cluster: str, flavor: Flavor, form: Form) -> Placed | None:
        nodes = self.facts.clusters[cluster].nodes
        free = [dict(one) for one in self.free[cluster]]
        bound: dict[str, dict[int, int]] = {}
        for one in form.pod_sets:
            counts = bound.setdefault(one.name, {})
            for _ in range(one.count):
                for node in range(len(nodes)):
                    is_tainted = nodes.labels[KIND].value(node) == "f2"
                    bears = one.shape.tolerations or flavor.tolerations
                    if (
                        nodes.ready[node]
                        and nodes.labels[KIND].value(node) == flavor.name
                        and (bears or not is_tainted)
                        and not one.shape.node_affinity
                        and all(free[node][name] >= some for name, some in one.shape.requests)
                    ):
                        for name, some in one.shape.requests:
                            free[node][name] -= some
                        counts[node] = counts.get(node, 0) + 1
                        break
                else:
                    return None
        pods = tuple(
            PlacedPods(
                name=one.name,
                count=one.count,
                shape=one.shape,
                flavors=tuple((name, flavor.name) for name, _ in one.shape.requests),
            )
            for one in form.pod_sets
        )
        return Placed(cluster=cluster, pods=pods, bound=bound)

    def _take(self, placed: Placed) -> None:
        for pods in placed.pods:
            for node, count in placed.bound[pods.name].items():
                for name, some in pods.shape.requests:
                    self.free[placed.cluster][node][name] -= some * count


def _usage(placed: Placed) -> dict[tuple[str, str], int]:
    total: dict[tuple[str, str], int] = {}
    for pods in placed.pods:
        for pair, amount in pods.usage().items():
            total[pair] = total.get(pair, 0) + amount
    return total


def _as_mode(placed: Placed, workload: Workload) -> Placed:
    if workload.mode == "Divided":
        return replace(placed, replicas=1)
    if workload.mode == "Independent":
        return replace(placed, tasks=str(workload.first_task))
    return placed
