"""Fleets and workloads of any size, from a seed.

The shapes follow public traces of GPU clusters. Nodes: mostly eight GPUs with 96 CPUs, many with
two GPUs, some with none. Jobs: one GPU in five of eight cases, then eight, four and two; gangs of
eight-GPU pods up to sixteen nodes; run times over five decades with a median of minutes. One in
five has several pod sets (a launcher or parameter servers beside its workers). Nothing is read from
outside: the numbers below are all there is.

Nodes are made in columns. About seven tenths of each cluster are in use: part of it by claims that
are in the facts and may be preempted, the rest by pods of others, taken off what the nodes have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairway.core import model, nodes
from fairway.core.model import Form, PodSet, Shape, Workload
from fairway.core.snapshot import Facts
from fairway.view import policies

GPU, CPU, MEMORY = "nvidia.com/gpu", "cpu", "memory"
GIB = 1 << 30
NOW = 1_000_000.0
MODEL_LABEL = "fairway.dev/model"

# model, share of the nodes, GPUs, CPUs, GiB
KINDS = (
    ("h100", 0.12, 8, 128, 768),
    ("a10", 0.45, 8, 96, 384),
    ("t4", 0.28, 2, 104, 512),
    ("plain", 0.15, 0, 64, 256),
)
# GPUs of a pod and how often, of pods that ask for some.
POD_GPUS = ((1, 0.64), (2, 0.06), (4, 0.10), (8, 0.20))
# Pods of a gang, of those with eight GPUs each.
GANG_PODS = ((1, 0.62), (2, 0.18), (4, 0.13), (8, 0.05), (16, 0.02))
CPUS_PER_GPU = (3.152, 4.0, 8.0, 9.81, 11.3, 11.4, 11.908, 12.0)
GIB_PER_GPU = (5.5, 16, 24, 30, 41, 46, 47, 48)
RUN_SECONDS_MEDIAN, RUN_SECONDS_SPREAD = 600.0, 2.3  # of the natural logarithm

CLASSES = ("single", "gang", "large")  # namespaces of those who wait

Random = np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything."""

    clusters: int = 100
    nodes: int = 5_000
    queues: int = 1_000
    waiting: int = 100_000
    held: int = 20_000
    forms: int = 6_000  # distinct, of all waiting
    seed: int = 7


def fleet(size: Size) -> Facts:
    """Clusters, queues, claims and who waits; half of these fit."""
    random = np.random.default_rng(size.seed)
    queues = queue_tree(size)
    leaves = [name for name in queues if name.count("-") == 2]
    clusters, held = _clusters(size, leaves, random)
    forms = [form_of(number, size.nodes, random) for number in range(size.forms)]
    waiting = workloads(size, leaves, forms, random)
    return Facts(
        now=NOW,
        queues=queues,
        flavors={name: _flavor(name) for name, *_ in KINDS},
        clusters=clusters,
        workloads={item.key: item for item in (*held, *waiting)},
        default_policy=policies.DEFAULT,
    )


# Queues.


def queue_tree(size: Size) -> dict[str, model.Queue]:
    """Three levels: ten roots, ten below each, and leaves below those; nominal quota at leaves."""
    roots = max(1, round(size.queues**0.5 / 3.2))
    middles = roots * roots
    leaf_count = max(middles, size.queues - roots - middles)
    found: dict[str, model.Queue] = {}
    for root in range(roots):
        found[f"org{root:02}"] = model.Queue(name=f"org{root:02}", groups=_GROUPS)
    for middle in range(middles):
        parent = f"org{middle % roots:02}"
        name = f"{parent}-dept{middle // roots:02}"
        found[name] = model.Queue(name=name, parent=parent, quotas=_quotas(size, leaf_count, 1))
    parents = [name for name in found if name.count("-") == 1]
    for leaf in range(leaf_count):
        parent = parents[leaf % middles]
        name = f"{parent}-team{leaf // middles:03}"
        found[name] = model.Queue(
            name=name,
            parent=parent,
            weight_nanos=(1 + leaf % 3) * 1_000_000_000,
            quotas=_quotas(size, leaf_count, 4),
            preemption=model.PreemptionRules(within_queue="LowerPriority"),
        )
    return found


_GROUPS = (
    model.ResourceGroup(resources=(CPU, MEMORY, GPU), flavors=tuple(name for name, *_ in KINDS)),
)


def _quotas(size: Size, leaves: int, factor: int) -> dict[model.FlavorResource, model.Quota]:
    """A part of what the fleet has; all queues together may claim several times as much."""
    found = {}
    for name, share, gpus, cpus, gib in KINDS:
        count = max(1, round(size.clusters * size.nodes * share * factor / leaves))
        found[name, CPU] = model.Quota(nominal=count * cpus * 1000)
        found[name, MEMORY] = model.Quota(nominal=count * gib * GIB)
        found[name, GPU] = model.Quota(nominal=count * gpus * 1000)
    return found


def _flavor(name: str) -> model.Flavor:
    return model.Flavor(name=name, node_labels=((MODEL_LABEL, name),))


# Clusters.


def _clusters(
    size: Size, leaves: Sequence[str], random: Random
) -> tuple[dict[str, nodes.Cluster], list[Workload]]:
    names = tuple(f"node-{number:05}" for number in range(size.nodes))
    held_each = size.held // size.clusters
    clusters: dict[str, nodes.Cluster] = {}
    held: list[Workload] = []
    for number in range(size.clusters):
        name = f"cluster-{number:04}"
        columns = _columns(size.nodes, random)
        made = _held(name, number * held_each, held_each, columns, leaves, random)
        held.extend(made)
        clusters[name] = nodes.Cluster(
            name=name,
            labels={"region": f"region-{number % 7}"},
            nodes=nodes.Nodes(
                names=names,
                capacity=columns.usable,
                ready=np.ones(size.nodes, dtype=np.bool_),
                labels={
                    MODEL_LABEL: nodes.LabelColumn(
                        codes=columns.kinds, values=tuple(kind for kind, *_ in KINDS)
                    )
                },
            ),
        )
    return clusters, held


@dataclass(slots=True)
class _Columns:
    kinds: Any
    usable: dict[str, Any]  # what our pods may use
    ours: dict[str, Any]  # of it, what claims may have


def _columns(count: int, random: Random) -> _Columns:
    """Nodes of mixed kinds of which about 70 % are in use, a third of that by claims of ours."""
    kinds = random.choice(len(KINDS), size=count, p=[share for _, share, *_ in KINDS])
    gpus, cpus, gib = (np.array([kind[at] for kind in KINDS])[kinds] for at in (2, 3, 4))
    # One node in eight is empty, some are full, and most are somewhere between.
    used = np.where(random.random(count) < 0.125, 0.0, random.beta(3.2, 0.8, count))
    used_gpus = np.minimum(gpus, np.ceil(gpus * used)).astype(np.int64)
    spill = random.uniform(0.85, 1.1, count)
    used_cpus = np.minimum(cpus * 1000, cpus * used * spill * 1000).astype(np.int64) // 500 * 500
    used_gib = np.minimum(gib, gib * used * spill).astype(np.int64)
    totals = {GPU: gpus * 1000, CPU: cpus * 1000, MEMORY: gib * GIB}
    taken = {GPU: used_gpus * 1000, CPU: used_cpus, MEMORY: used_gib * GIB}
    # What is free stays free; of what is taken, whole GPUs with their part may be ours.
    part = np.where(random.random(count) < 0.35, 1.0, 0.0)
    ours = {name: (taken[name] * part).astype(np.int64) for name in taken}
    usable = {name: (totals[name] - taken[name] + ours[name]).astype(np.int64) for name in taken}
    return _Columns(kinds=kinds.astype(np.int32), usable=usable, ours=ours)


def _held(
    cluster: str, first: int, count: int, columns: _Columns, leaves: Sequence[str], random: Random
) -> list[Workload]:
    """Claims that fill the nodes set aside for them: one pod a node, up to four nodes each."""
    whole = (columns.ours[CPU] > 0).nonzero()[0]
    by_kind = [whole[columns.kinds[whole] == kind] for kind in range(len(KINDS))]
    sizes = random.choice((1, 1, 1, 2, 4), size=count).tolist()
    drawn = random.integers(0, len(leaves), size=count).tolist()
    started = (NOW - random.uniform(600, 40_000, size=count)).round().tolist()
    priorities = random.choice((0, 50, 100), size=count).tolist()
    found: list[Workload] = []
    used = [0] * len(KINDS)
    weights = [len(some) for some in by_kind]
    for number, pods in enumerate(sizes):
        kind = max(range(len(KINDS)), key=lambda index: (weights[index] - used[index], -index))
        positions = by_kind[kind][used[kind] : used[kind] + pods].tolist()
        used[kind] += pods
        if len(positions) < pods:
            break
        # All pods of a set are equal: the least of the nodes that they are on.
        request = tuple(
            (name, int(columns.ours[name][positions].min()))
            for name in (CPU, MEMORY, GPU)
            if int(columns.ours[name][positions].min()) > 0
        )
        found.append(
            _claim(
                f"held/{first + number:06}",
                leaves[drawn[number]],
                (cluster, KINDS[kind][0], positions, request),
                (started[number], priorities[number]),
            )
        )
    _release_rest(columns, found)
    return found


def _release_rest(columns: _Columns, held: Sequence[Workload]) -> None:
    """What no claim came to hold is used by others: taken off what our pods may use."""
    left = {name: column.copy() for name, column in columns.ours.items()}
    for item in held:
        assert item.held is not None
        placed = item.held.placed[0]
        positions = list(placed.bound["main"])
        for resource, amount in placed.pods[0].shape.requests:
            left[resource][positions] -= amount
    for name, column in left.items():
        columns.usable[name] -= column


def _claim(
    key: str,
    queue: str,
    place: tuple[str, str, list[int], model.Request],
    when: tuple[float, int],
) -> Workload:
    cluster, flavor, positions, request = place
    shape = Shape(requests=request)
    count = len(positions)
    pods = model.PlacedPods(
        name="main",
        count=count,
        shape=shape,
        flavors=tuple((resource, flavor) for resource, _ in request),
    )
    placed = model.Placed(
        cluster=cluster, pods=(pods,), bound={"main": dict.fromkeys(positions, 1)}
    )
    return Workload(
        key=key,
        queue=queue,
        priority=when[1],
        queued_at=when[0] - 60,
        forms=(Form(pod_sets=(PodSet(name="main", shape=shape, count=count, least=count),)),),
        held=model.Held(
            attempt=1, queue=queue, placed=(placed,), decided_at=when[0] - 30, started_at=when[0]
        ),
    )


# Who waits.


def workloads(
    size: Size, leaves: Sequence[str], forms: Sequence[Form], random: Random
) -> list[Workload]:
    """A team comes again and again with the same few forms, some far more often than others."""
    per_leaf = [
        random.integers(0, len(forms), size=max(4, round(8 * len(forms) / 6000))).tolist()
        for _ in leaves
    ]
    queue_of = random.integers(0, len(leaves), size=size.waiting).tolist()
    rank = np.minimum(random.geometric(0.3, size=size.waiting), 8).tolist()
    ages = random.uniform(0, 86_400, size=size.waiting).round(1).tolist()
    priorities = random.choice((0, 0, 0, 50, 100), size=len(forms)).tolist()
    seconds = run_seconds(size.waiting, random)
    found = []
    for number in range(size.waiting):
        choice = per_leaf[queue_of[number]]
        form = choice[(rank[number] - 1) % len(choice)]
        found.append(
            Workload(
                key=f"{CLASSES[class_of(form)]}/{number:07}",
                queue=leaves[queue_of[number]],
                priority=priorities[form],
                queued_at=NOW - ages[number],
                forms=(forms[form],),
                run_seconds=seconds[number],
            )
        )
    return found


def class_of(number: int) -> int:
    """Of a form: 0 fits and has one pod set, 1 fits and has several, 2 does not fit."""
    return 2 if number % 2 else int(number // 2 % 5 == 0)


def run_seconds(count: int, random: Random) -> list[float]:
    spread = random.lognormal(np.log(RUN_SECONDS_MEDIAN), RUN_SECONDS_SPREAD, size=count)
    found: list[float] = np.clip(spread, 5, 2_000_000).round().tolist()
    return found


def form_of(number: int, nodes_each: int, random: Random) -> Form:
    """One form: every second fits the fleet as it is, every fifth has several pod sets."""
    flavor = ("a10", "t4", "h100", "a10")[number % 4]
    fits, is_several = number % 2 == 0, number // 2 % 5 == 0
    if fits:
        main = _fitting(flavor, number, random)
    else:
        main = _too_large(flavor, number, nodes_each, random)
    pod_sets = [main]
    if is_several:
        small = ((CPU, int(random.integers(2, 17)) * 500), (MEMORY, (2 + number % 30) * GIB))
        launcher = Shape(requests=small)
        pod_sets.insert(0, PodSet(name="launcher", shape=launcher, count=1, least=1))
        if number // 20 % 2:
            server = Shape(requests=((CPU, 4000 + number % 7 * 500), (MEMORY, 16 * GIB)))
            pod_sets.append(PodSet(name="servers", shape=server, count=2, least=2))
    return Form(flavors=(flavor,), pod_sets=tuple(pod_sets))


def _fitting(flavor: str, number: int, random: Random) -> PodSet:
    most = 2 if flavor == "t4" else 8
    gpus = min(most, _drawn(POD_GPUS, random))
    count = _drawn(GANG_PODS, random) if gpus == 8 else 1
    return _pods(flavor, gpus, count, number, random)


def _too_large(flavor: str, number: int, nodes_each: int, random: Random) -> PodSet:
    """Of each ten: three ask for a pod that no node could have, seven for more than is idle.

    Those that nearly fit are the hard ones: one node in eight of each kind is empty.
    """
    most = 2 if flavor == "t4" else 8
    if number % 10 < 3:
        return _pods(flavor, most * 2, 1, number, random)
    kind = next(kind for kind in KINDS if kind[0] == flavor)
    count = max(2, int(nodes_each * kind[1] * random.uniform(0.2, 0.9)))
    return _pods(flavor, most, count, number, random)


def _pods(flavor: str, gpus: int, count: int, number: int, random: Random) -> PodSet:
    # Of no more than a tenth less than its part of a node, so that GPUs decide what fits.
    kind = next(kind for kind in KINDS if kind[0] == flavor)
    cpus = min(float(random.choice(CPUS_PER_GPU)), kind[3] / max(1, kind[2]) * 0.8) * gpus
    gib = min(float(random.choice(GIB_PER_GPU)), kind[4] / max(1, kind[2]) * 0.8) * gpus
    shape = Shape(
        requests=(
            (CPU, round(cpus * 1000) + number % 50),
            (MEMORY, round(gib * GIB) + number % 120 * (1 << 20)),
            (GPU, gpus * 1000),
        )
    )
    return PodSet(name="main", shape=shape, count=count, least=count)


def _drawn(table: Sequence[tuple[int, float]], random: Random) -> int:
    at = random.random()
    for value, share in table:
        at -= share
        if at < 0:
            return value
    return table[0][0]
