"""Small whole fleets, generated: queues, flavors, clusters, policies, workloads that run and wait.

Everything is small, so that things meet: few nodes, amounts that fill them, few priorities. What
runs already was put on nodes here, one pod after the other where there is room, by the rules as
stated and none of the code under test, save that the tree says whether quota allows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from hypothesis import note
from hypothesis import strategies as st

from fairway.api.meta import NodeRequirement, NodeTerm, Rung, Taint, Toleration
from fairway.core.model import (
    Division,
    Flavor,
    Form,
    Fungibility,
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
    ReturnHome,
    Score,
    Shape,
    Spread,
    Topology,
    UserLimit,
    Workload,
)
from fairway.core.nodes import Cluster, Nodes, label_column
from fairway.core.quota.tree import Tree
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
FUNGIBILITY = (
    Fungibility(),
    Fungibility(),
    Fungibility(borrows_last=True),
    Fungibility(compares_victims=False),
    Fungibility(borrows_last=True, prefers_preemption=True),
)


def chance(dice: Random, tenths: int) -> bool:
    """True in about so many of ten cases."""
    return dice.randint(0, 9) >= 10 - tenths


def subset(dice: Random, names: list[str]) -> frozenset[str]:
    return frozenset(dice.sample(names, dice.randint(1, len(names))))


def flavors(dice: Random) -> dict[str, Flavor]:
    found = {}
    for number in range(dice.choice([1, 1, 2, 3])):
        name = f"f{number}"
        spot = number == 2
        found[name] = Flavor(
            name=name,
            node_labels=((KIND, name),),
            node_taints=(SPOT,) if spot else (),
            tolerations=(BEARS_SPOT,) if spot and (dice.random() < 0.5) else (),
            prices={GPU: 10**9 * (number + 1)},
        )
    return found


def clusters(dice: Random, kinds: list[str]) -> dict[str, Cluster]:
    found = {}
    for number in range(dice.choice([1, 1, 1, 1, 2, 2, 3, 4])):
        name = f"c{number}"
        nodes = nodes_of(dice, kinds)
        found[name] = Cluster(
            name=name,
            nodes=nodes,
            labels={"region": dice.choice(["east", "west"])},
            taints=(SPOT,) if chance(dice, 1) else (),
            is_open=not chance(dice, 1),
            levels=LEVELS,
            pools=pools(dice, kinds),
        )
    return found


def nodes_of(dice: Random, kinds: list[str]) -> Nodes:
    number = dice.choice([1, 2, 2, 3, 3, 4, 6])
    own = [dice.choice(kinds) for _ in range(number)]
    gpus = [4000 if item != "f1" else dice.choice([0, 2000, 4000]) for item in own]
    return Nodes(
        names=tuple(f"n{position}" for position in range(number)),
        capacity={
            CPU: np.full(number, NODE[CPU], dtype=np.int64),
            GPU: np.array(gpus, dtype=np.int64),
        },
        ready=np.array([not chance(dice, 1) for _ in range(number)], dtype=np.bool_),
        labels={
            KIND: label_column(list(own)),
            BLOCK: label_column([dice.choice(["b1", "b2"]) for _ in range(number)]),
            RACK: label_column([dice.choice(["r1", "r2"]) for _ in range(number)]),
        },
        taint_sets=((), (SPOT,)),
        taint_set=np.array([int(item == "f2") for item in own], dtype=np.int32),
    )


def pools(dice: Random, kinds: list[str]) -> tuple[Pool, ...]:
    if not chance(dice, 4):
        return ()
    kind = dice.choice(kinds)
    return (
        Pool(
            name="pool",
            shape=((CPU, 8000), (GPU, 4000)),
            labels=((KIND, kind),),
            taints=(SPOT,) if kind == "f2" else (),
            left=dice.randint(0, 4),
            unit=dice.choice([1, 1, 2]),
            price_nanos=dice.choice([None, 10**9]),
        ),
    )


def policies(dice: Random, names: list[str]) -> dict[str, Policy]:
    found = {}
    for key in ("", "p1", "p2"):
        groups: tuple[Group, ...] = ()
        ladder: tuple[tuple[str, Rung], ...] = ()
        if chance(dice, 4):
            most = dice.choice([None, None, 2])
            groups = (
                Group(name="near", clusters=subset(dice, names), replicas_max=most),
                Group(name="far"),
            )
            if chance(dice, 5):
                steps = [(group.name, rung) for group in groups for rung in RUNGS]
                ladder = tuple(dice.sample(steps, dice.randint(1, len(steps))))
        found[key] = Policy(
            key=key,
            clusters=subset(dice, names) if chance(dice, 1) else None,
            groups=groups,
            ladder=ladder,
            tolerations=(BEARS_SPOT,) if (dice.random() < 0.5) else (),
            spread=spreads(dice),
            division=divisions(dice, names),
            scores=(Score(name="Steady"), Score(name="AcceleratorsInCluster", resource=GPU)),
        )
    return found


def spreads(dice: Random) -> tuple[Spread, ...]:
    if not chance(dice, 3):
        return ()
    rule = Spread(
        by=dice.choice(["Cluster", "Label"]),
        label="region",
        least=dice.randint(1, 2),
        most=dice.choice([None, 2]),
        skew=dice.choice([None, 1]),
        is_preferred=(dice.random() < 0.5),
    )
    return (rule if rule.by == "Label" else replace(rule, label=""),)


def divisions(dice: Random, names: list[str]) -> Division:
    kind = dice.choice(["Aggregated", "DynamicWeight", "StaticWeight", "Duplicated"])
    weights = ((frozenset(names[:1]), 3), (None, 1)) if kind == "StaticWeight" else ()
    return Division(type=kind, weights=weights, cluster_max=dice.choice([None, None, 3]))


# Queues.


def queues(dice: Random, kinds: list[str], clusters: list[str]) -> dict[str, Queue]:
    depth = dice.choice([1, 2, 2, 3, 3])
    names: list[tuple[str, str]] = []
    if depth == 1:
        names = [("a", ""), ("b", "")]
    elif depth == 2:
        names = [("root", ""), ("a", "root"), ("b", "root")]
    else:
        names = [("root", ""), ("left", "root"), ("right", "root"), ("a", "left"), ("b", "right")]
    if dice.random() < 0.5:
        names.append(("c", names[-1][1]))
    inner = {parent for _, parent in names}
    group = ResourceGroup(resources=RESOURCES, flavors=tuple(dice.sample(kinds, len(kinds))))
    found = {}
    for name, parent in names:
        leaf = name not in inner
        found[name] = Queue(
            name=name,
            parent=parent,
            groups=(group,) if not parent or (dice.random() < 0.5) else (),
            quotas={
                (kind, resource): quotas(dice, resource, 8 if leaf else 3)
                for kind in kinds
                for resource in RESOURCES
            },
            weight_nanos=dice.choice([10**9, 10**9, 2 * 10**9]),
            priority=dice.choice([0, 0, 0, 1]),
            is_strict=chance(dice, 2),
            preemption=rules(dice),
            fungibility=dice.choice(FUNGIBILITY),
            minimum_run_reclaim=dice.choice([0.0, 0.0, 0.0, 500.0]),
            is_held=chance(dice, 1) and leaf and name == "c",
            fence=subset(dice, clusters) if chance(dice, 1) else None,
            claimed_max=dice.choice([None] * 12 + [2, 3]),
            user_limits=user_limits(dice),
            remembered={GPU: dice.choice([0, 0, 4000, 16000])},
        )
    return found


def quotas(dice: Random, resource: str, most: int) -> Quota:
    unit = 1000 if resource == GPU else 4000
    return Quota(
        nominal=unit * dice.randint(0, most),
        borrowing_limit=dice.choice([None, None, None, None, 0, 4 * unit]),
        lending_limit=dice.choice([None, None, None, None, 0, 2 * unit]),
    )


def rules(dice: Random) -> PreemptionRules:
    return PreemptionRules(
        within_queue=dice.choice(
            ["LowerPriority"] * 3 + ["LowerOrNewerEqualPriority"] * 3 + ["Never"]
        ),
        reclaim=dice.choice(["Any", "Any", "Any", "LowerPriority", "Never"]),
        while_borrowing=dice.choice(["Never", "LowerPriority"]),
        protect_within_nominal=chance(dice, 1),
    )


def user_limits(dice: Random) -> tuple[UserLimit, ...]:
    if not chance(dice, 1):
        return ()
    return (
        UserLimit(
            users=dice.choice([(), ("ann",)]),
            claimed_max=dice.choice([None, 1, 2]),
            amounts=dice.choice([(), ((GPU, 4000),), ((CPU, 12000),)]),
        ),
    )


# Workloads.


def shapes(dice: Random, kinds: list[str], *, is_fractional: bool = False) -> Shape:
    requests = [(CPU, dice.choice([1000, 2000, 4000]))]
    gpus = dice.choice([0, 1000, 1000, 2000, 2000, 4000])
    if is_fractional and chance(dice, 5):
        gpus = dice.choice([250, 500, 500, 750, 1500])
    if gpus:
        requests.append((GPU, gpus))
    affinity: tuple[NodeTerm, ...] = ()
    if chance(dice, 1):
        kind = dice.choice(kinds)
        affinity = (
            NodeTerm(match_expressions=(NodeRequirement(key=KIND, operator="In", values=(kind,)),)),
        )
    return Shape(
        requests=tuple(requests),
        node_affinity=affinity,
        tolerations=(BEARS_SPOT,) if (dice.random() < 0.5) else (),
    )


def topologies(dice: Random) -> Topology:
    if not chance(dice, 3):
        return Topology()
    level = dice.choice(["block", "rack"])
    kind = dice.choice(["required", "preferred", "slices"])
    if kind == "slices":
        return Topology(slice_level=level, slice_size=dice.choice([1, 2]))
    return Topology(required=level) if kind == "required" else Topology(preferred=level)


def forms(
    dice: Random, kinds: list[str], *, most_sets: int, elastic: bool, is_fractional: bool = False
) -> Form:
    pod_sets = []
    for number in range(dice.choice(range(1, most_sets + 1)) if chance(dice, 5) else 1):
        count = dice.randint(1, 4 if number == 0 else 2)
        pod_sets.append(
            PodSet(
                name=f"s{number}",
                shape=shapes(dice, kinds, is_fractional=is_fractional),
                count=count,
                least=dice.randint(1, count) if elastic and chance(dice, 3) else count,
                topology=topologies(dice),
            )
        )
    return Form(pod_sets=tuple(pod_sets))


def workloads(
    dice: Random, key: str, leaves: list[str], kinds: list[str], taste: Taste
) -> Workload:
    mode = dice.choice(["Gang", "Gang", "Gang", "Divided", "Independent"])
    gang = mode == "Gang"
    most_sets = 3 if gang else 2
    fractions = taste.is_fractional
    first = forms(dice, kinds, most_sets=most_sets, elastic=gang, is_fractional=fractions)
    splits = gang and taste.splits and chance(dice, 6)
    if splits:
        first = replace(
            first, pod_sets=tuple(in_members(dice, pod_set) for pod_set in first.pod_sets[:1])
        )
    alternatives: tuple[Form, ...] = ()
    if gang and chance(dice, 2):
        other = forms(dice, kinds, most_sets=1, elastic=False)
        after = dice.choice([0, 100, 20_000])
        alternatives = (replace(other, name="other", after_seconds=after, flavors=(kinds[-1],)),)
    return Workload(
        key=key,
        queue=dice.choice(leaves),
        priority=dice.choice([0, 1, 2]),
        queued_at=NOW - dice.randint(0, 5) * 100,
        mode=mode,
        forms=(first, *alternatives),
        policy=dice.choice(["", "p1", "p2"]),
        clusters_max=dice.choice([2, 3]) if splits else 1,
        domain=dice.choice(["block", "rack"]) if gang and not splits and chance(dice, 1) else "",
        limit_seconds=dice.choice([None, 500.0, 2000.0]) if taste.reserves else None,
        replicas=dice.randint(1, 4) if mode == "Divided" else 1,
        tasks=dice.randint(1, 6) if mode == "Independent" else 0,
        task_range=dice.choice([1, 2]),
        concurrency=dice.choice([0, 0, 3]),
        user=dice.choice(["ann", "bob"]),
        preemptible=not chance(dice, 1),
        is_held=chance(dice, 1) and (dice.random() < 0.5),
        not_before=NOW + 50 if chance(dice, 1) and (dice.random() < 0.5) else 0.0,
        avoids=("c0",) if chance(dice, 1) else (),
        checkpoint_seconds=dice.choice([None, 100.0]),
    )


def wide_queue(dice: Random, kinds: list[str]) -> Queue:
    """A queue that stands alone and owns plenty: who waits in it lacks room, not quota."""
    return Queue(
        name="wide",
        groups=(ResourceGroup(resources=RESOURCES, flavors=tuple(dice.sample(kinds, len(kinds)))),),
        quotas={(kind, resource): Quota(nominal=10**9) for kind in kinds for resource in RESOURCES},
    )


def wide(dice: Random, key: str, places: dict[str, Cluster], *, splits: bool) -> Workload:
    """A gang that is large for any one cluster."""
    each = dice.choice([1000, 2000, 4000])
    size = dice.choice([1, 1, 2])
    slots = max(len(place.nodes) for place in places.values()) * NODE[CPU] // each
    count = size * max(2, dice.randint(slots // 2, slots + 2) // size)
    shape = Shape(requests=((CPU, each),), tolerations=(BEARS_SPOT,))
    pods = PodSet(name="s0", shape=shape, count=count, least=count, member_size=size)
    return Workload(
        key=key,
        queue="wide",
        priority=dice.choice([0, 1, 2]),
        queued_at=NOW - dice.randint(0, 5) * 100,
        forms=(Form(pod_sets=(pods,)),),
        clusters_max=dice.choice([2, 3, 4]) if splits else 1,
    )


def in_members(dice: Random, pod_set: PodSet) -> PodSet:
    """A pod set made of members that may go to different clusters."""
    size, members = dice.choice([1, 1, 2]), dice.randint(3, 8)
    count = size * members
    shape = replace(pod_set.shape, node_affinity=(), tolerations=(BEARS_SPOT,))
    return replace(
        pod_set, shape=shape, count=count, least=count, member_size=size, topology=Topology()
    )


def leaving(dice: Random, workload: Workload) -> Workload:
    """Some that run are on their way out: what they had is charged until it is gone."""
    if workload.held is None or workload.mode != "Gang" or not chance(dice, 3):
        return workload
    return replace(workload, held=None, releasing=workload.held.placed, was_preempted=True)


def homeward(dice: Random, names: list[str]) -> Policy:
    """A policy whose services come back to the first group when there is room."""
    return Policy(
        key="home",
        groups=(Group(name="near", clusters=frozenset(names[:1])), Group(name="far")),
        tolerations=(BEARS_SPOT,),
        division=Division(type=dice.choice(["Aggregated", "DynamicWeight"])),
        return_home=ReturnHome(
            enabled=True,
            after_seconds=dice.choice([0.0, 600.0]),
            per_minute=dice.choice([1, 2]),
            surge=dice.choice([0, 1, 2]),
        ),
    )


def filler(dice: Random, key: str, leaves: list[str]) -> Workload:
    """A small gang that runs almost anywhere: many of them leave little room for others."""
    requests = ((CPU, 2000), (GPU, dice.choice([1000, 2000])))
    shape = Shape(requests=requests, tolerations=(BEARS_SPOT,))
    count = dice.randint(1, 2)
    return Workload(
        key=key,
        queue=dice.choice(leaves),
        queued_at=NOW - dice.randint(0, 5) * 100,
        forms=(Form(pod_sets=(PodSet(name="s0", shape=shape, count=count, least=count),)),),
        user=dice.choice(["ann", "bob"]),
    )


def seeds() -> st.SearchStrategy[int]:
    """Numbers of dice, each of which makes a whole fleet: rich from the first case on."""
    return st.integers(0, 2**48)


def noted_fleet(seed: int) -> Facts:
    """A whole fleet; if the case fails, its number is printed: a fleet is too long to print."""
    note(f"fleet({seed})")
    return fleet(seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taste:
    """What a fleet may have in it, beside what all have."""

    is_fractional: bool = False  # pods that take parts of devices
    splits: bool = False  # gangs made of members, in several clusters
    reserves: bool = False  # places kept for gangs that wait
    releases: bool = False  # pods that are on their way out
    returns: bool = False  # services away from home

    @classmethod
    def of(cls, dice: Random) -> Taste:
        return cls(
            is_fractional=chance(dice, 3),
            splits=chance(dice, 5),
            reserves=chance(dice, 5),
            releases=chance(dice, 3),
            returns=chance(dice, 4),
        )


def fleet(seed: int, most: int = 10) -> Facts:
    """A whole fleet; some of its workloads run already."""
    dice = Random(seed)
    taste = Taste.of(dice)
    if seed % 8 in (0, 1, 2, 4):
        taste = replace(taste, splits=True)  # few of those that may split do
    kind_of = flavors(dice)
    kinds = sorted(kind_of)
    places = clusters(dice, kinds)
    tree = queues(dice, kinds, sorted(places))
    inner = {item.parent for item in tree.values()}
    leaves = sorted(name for name in tree if name not in inner)
    everyone = [
        workloads(dice, f"w/{number}", leaves, kinds, taste)
        for number in range(dice.randint(2, most))
    ]
    site = Site(Facts(now=NOW, queues=tree, flavors=kind_of, clusters=places))
    running = dice.randint(0, len(everyone) - 1)
    if chance(dice, 8):
        fillers = [filler(dice, f"w/f{number}", leaves) for number in range(2 * len(places) + 4)]
        everyone = [*fillers, *everyone[running:]]
        running = len(fillers)
    for position in range(running):
        bound = dice.random() < 0.5
        lower = replace(everyone[position], priority=dice.choice([0, 0, 0, 1]))
        everyone[position] = site.start(lower, is_bound=bound, at=NOW - 1000 + position)
    if taste.releases:
        everyone = [leaving(dice, item) for item in everyone]
    if taste.reserves or (taste.splits and len(places) > 1):
        tree["wide"] = wide_queue(dice, kinds)
        everyone.append(wide(dice, "w/wide", places, splits=taste.splits))
    rules = policies(dice, sorted(places))
    if taste.returns and len(places) > 1:
        everyone.append(site.astray(dice, "w/astray", leaves))
        rules["home"] = homeward(dice, sorted(places))
    return Facts(
        now=NOW,
        queues=tree,
        flavors=kind_of,
        clusters=places,
        policies=rules,
        workloads={item.key: item for item in everyone},
        settings=Settings(
            fair_sharing=(dice.random() < 0.5),
            half_life_seconds=dice.choice([0.0, 3600.0]),
            reserves=taste.reserves,
        ),
    )


# What runs already.


class Devices:
    """Devices of each node, in thousandths: whole ones are taken whole, a rest from one of them."""

    def __init__(self, free: Mapping[tuple[str, int], Sequence[int]]) -> None:
        self.free = {place: list(units) for place, units in free.items()}

    def copy(self) -> Devices:
        return Devices(self.free)

    def fits(self, cluster: str, node: int, amount: int) -> bool:
        return self._after(cluster, node, amount) is not None

    def take(self, cluster: str, node: int, amount: int) -> None:
        left = self._after(cluster, node, amount)
        assert left is not None
        self.free[cluster, node] = left

    def _after(self, cluster: str, node: int, amount: int) -> list[int] | None:
        units = sorted(self.free[cluster, node])
        whole, rest = divmod(amount, 1000)
        for _ in range(whole):
            if not units or units[-1] < 1000:
                return None
            units[-1] -= 1000
            units.sort()
        if rest:
            fitting = [at for at, free in enumerate(units) if free >= rest]
            if not fitting:
                return None
            units[fitting[0]] -= rest
        return units


@dataclass(slots=True)
class Site:
    """Puts pods on nodes, one after the other."""

    facts: Facts

    def __post_init__(self) -> None:
        self.tree = Tree.of(self.facts.queues.values())
        self.free = {
            name: [
                {resource: int(column[node]) for resource, column in cluster.nodes.capacity.items()}
                for node in range(len(cluster.nodes))
            ]
            for name, cluster in self.facts.clusters.items()
        }
        self.devices = Devices(
            {
                (name, node): [1000] * (int(cluster.nodes.capacity[GPU][node]) // 1000)
                for name, cluster in self.facts.clusters.items()
                for node in range(len(cluster.nodes))
            }
        )

    devices: Devices = None  # type: ignore[assignment]
    free: dict[str, list[dict[str, int]]] = None  # type: ignore[assignment]
    tree: Tree = None  # type: ignore[assignment]

    def start(self, workload: Workload, *, is_bound: bool, at: float) -> Workload:
        """The workload with a claim, on the first flavor and cluster that take it; else as it was.

        Services and sweeps start with one replica or task.
        """
        form = workload.forms[0]
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

    def astray(self, dice: Random, key: str, leaves: list[str]) -> Workload:
        """A service that runs away from the first cluster, if any other has room for it."""
        shape = Shape(requests=((CPU, 1000),), tolerations=(BEARS_SPOT,))
        service = Workload(
            key=key,
            queue=dice.choice(leaves),
            queued_at=NOW - 1000,
            mode="Divided",
            policy="home",
            forms=(Form(pod_sets=(PodSet(name="s0", shape=shape, count=1, least=1),)),),
            replicas=dice.randint(1, 3),
        )
        whole = replace(
            service.forms[0],
            pod_sets=(replace(service.forms[0].pod_sets[0], count=service.replicas),),
        )
        for cluster in sorted(self.facts.clusters)[1:]:
            for flavor in self.facts.flavors.values():
                placed = self._place(cluster, flavor, whole)
                usage = {} if placed is None else _usage(placed)
                if placed is None or not self.tree.fits(service.queue, usage):
                    continue
                self.tree.charge(service.queue, usage)
                self._take(placed)
                placed = replace(placed, replicas=service.replicas, group="far")
                held = Held(
                    attempt=1,
                    queue=service.queue,
                    placed=(placed,),
                    decided_at=NOW - 900,
                    started_at=NOW - 900,
                )
                return replace(service, held=held)
        return service

    def _place(self, cluster: str, flavor: Flavor, form: Form) -> Placed | None:
        nodes = self.facts.clusters[cluster].nodes
        free = [dict(item) for item in self.free[cluster]]
        devices = self.devices.copy()
        bound: dict[str, dict[int, int]] = {}
        for pod_set in form.pod_sets:
            counts = bound.setdefault(pod_set.name, {})
            for _ in range(pod_set.count):
                for node in range(len(nodes)):
                    is_tainted = nodes.labels[KIND].value(node) == "f2"
                    bears = pod_set.shape.tolerations or flavor.tolerations
                    if (
                        nodes.ready[node]
                        and nodes.labels[KIND].value(node) == flavor.name
                        and (bears or not is_tainted)
                        and not pod_set.shape.node_affinity
                        and all(free[node][name] >= some for name, some in pod_set.shape.requests)
                        and devices.fits(cluster, node, dict(pod_set.shape.requests).get(GPU, 0))
                    ):
                        for name, some in pod_set.shape.requests:
                            free[node][name] -= some
                        devices.take(cluster, node, dict(pod_set.shape.requests).get(GPU, 0))
                        counts[node] = counts.get(node, 0) + 1
                        break
                else:
                    return None
        pods = tuple(
            PlacedPods(
                name=pod_set.name,
                count=pod_set.count,
                shape=pod_set.shape,
                flavors=tuple((name, flavor.name) for name, _ in pod_set.shape.requests),
            )
            for pod_set in form.pod_sets
        )
        return Placed(cluster=cluster, pods=pods, bound=bound)

    def _take(self, placed: Placed) -> None:
        for pods in placed.pods:
            for node, count in placed.bound[pods.name].items():
                for _ in range(count):
                    self.devices.take(placed.cluster, node, dict(pods.shape.requests).get(GPU, 0))
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
