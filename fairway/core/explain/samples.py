"""Samples of the fleet for its history: queues and places at one moment, in few numbers.

For charts; decisions do not use it. Amounts are plain numbers (GPUs, CPUs, bytes). Of a queue that
has accelerators only these are kept, else all its resources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairway.api.amounts import is_accelerator
from fairway.core.costs.accounts import ClusterFlavor
from fairway.core.explain.queue_status import Holding, QueueState, standings
from fairway.core.model import Flavor, Pool
from fairway.core.nodes import Amounts, Cluster
from fairway.core.snapshot import Snapshot

_CPU = "cpu"
_NANO = 1_000_000_000
_MILLI = 1_000  # accelerators are counted in thousandths


class HoldingGauge(NamedTuple):
    """One resource of one flavor in a queue and all queues below it."""

    flavor: str
    resource: str
    nominal: float
    used: float
    borrowed: float
    lent: float


class QueueGauge(NamedTuple):
    """One queue, with all queues below it. A tuple, since every sample has many."""

    parent: str
    waiting: int
    running: int
    share: int | None  # weighted dominant share in thousandths; None: infinite
    used: float  # accelerators of all flavors; without accelerators, CPUs or another resource
    fair: float  # its fair share of all that is in use
    holdings: tuple[HoldingGauge, ...]


class PlaceGauge(NamedTuple):
    """Accelerators of one flavor in one cluster, on nodes that are ready."""

    whole: float  # total that our pods may use
    used: float  # not free
    starting: float  # claimed by workloads that do not run yet
    free: float
    elastic: float  # on nodes that elastic pools could still provide


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """The fleet at one moment."""

    queues: Mapping[str, QueueGauge]
    places: Mapping[ClusterFlavor, PlaceGauge]


def gauges(snapshot: Snapshot) -> Gauges:
    return Gauges(queues=_queues(standings(snapshot)), places=_places(snapshot))


# Queues.


def _queues(queues: Sequence[QueueState]) -> dict[str, QueueGauge]:
    kept = {queue.queue: _keep(queue.holdings) for queue in queues}
    counted = {queue: _count(value) for queue, value in kept.items()}
    fair = _fair(queues, counted)
    return {
        queue.queue: QueueGauge(
            parent=queue.parent,
            waiting=queue.waiting,
            running=queue.running,
            share=queue.share,
            used=sum(each.used for each in counted[queue.queue]),
            fair=fair[queue.queue],
            holdings=kept[queue.queue],
        )
        for queue in queues
    }


def _keep(holdings: Sequence[Holding]) -> tuple[HoldingGauge, ...]:
    accelerators = [holding for holding in holdings if is_accelerator(holding.resource)]
    return tuple(
        HoldingGauge(
            accelerator.flavor,
            accelerator.resource,
            accelerator.nominal / _NANO,
            accelerator.used / _NANO,
            accelerator.borrowed / _NANO,
            accelerator.lent / _NANO,
        )
        for accelerator in accelerators or holdings
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What one of several siblings owns of a resource, and how much it wants in total."""

    weight: float
    nominal: float
    wanted: float


def fair_shares(wishes: Sequence[Wish], pot: float) -> list[float]:
    """The weighted max-min fair shares of a pot.

    Each first gets the smaller of what it owns and what it wants. The rest is divided by weight
    among those that want more, and none gets more than it wants.
    """
    result = [min(wish.nominal, wish.wanted) for wish in wishes]
    # How much more each wants; those that are satisfied first come first.
    wanted = [
        (wish.wanted - result[at], at)
        for at, wish in enumerate(wishes)
        if wish.weight > 0 and wish.wanted > result[at]
    ]
    wanted.sort(key=lambda each: (each[0] / wishes[each[1]].weight, each[1]))
    left = max(0.0, pot - sum(result))
    weights = sum(wishes[at].weight for _, at in wanted)
    for most, at in wanted:
        part = min(most, left * wishes[at].weight / weights)
        result[at] += part
        left -= part
        weights -= wishes[at].weight
    return result


def fair_of(queues: Sequence[QueueState]) -> dict[str, float]:
    """The fair share of each queue in all that is in use; see `QueueGauge`."""
    return _fair(queues, {queue.queue: _count(_keep(queue.holdings)) for queue in queues})


def _count(kept: tuple[HoldingGauge, ...]) -> tuple[HoldingGauge, ...]:
    """The holdings that can be summed: accelerators, or else one resource."""
    if not kept or is_accelerator(kept[0].resource):
        return kept
    resources = [holding.resource for holding in kept]
    chosen = _CPU if _CPU in resources else resources[0]
    return tuple(holding for holding in kept if holding.resource == chosen)


def _fair(
    queues: Sequence[QueueState], counted: Mapping[str, tuple[HoldingGauge, ...]]
) -> dict[str, float]:
    siblings: dict[str, list[QueueState]] = {}
    for queue in queues:
        siblings.setdefault(queue.parent, []).append(queue)
    # Roots share with no other queue: what they use is their fair share.
    roots = siblings.pop("", [])
    fair = {root.queue: sum(each.used for each in counted[root.queue]) for root in roots}
    for parent, group in siblings.items():
        fair.update(_divide(group, counted, counted.get(parent, ())))
    return fair


def _divide(
    group: Sequence[QueueState],
    kept: Mapping[str, tuple[HoldingGauge, ...]],
    above: Sequence[HoldingGauge],
) -> dict[str, float]:
    """Weighted max-min fair shares of siblings, computed per flavor and summed."""
    pairs = [(holding.flavor, holding.resource) for holding in above]
    by_pair: dict[tuple[str, str], list[tuple[QueueState, HoldingGauge]]] = {}
    for queue in group:
        # A queue that holds nothing and has waiting workloads wants some of every flavor.
        of_others = (HoldingGauge(*pair, 0.0, 0.0, 0.0, 0.0) for pair in pairs)
        wanted = kept[queue.queue] or (tuple(of_others) if queue.waiting else ())
        for holding in wanted:
            by_pair.setdefault((holding.flavor, holding.resource), []).append((queue, holding))
    fair = {queue.queue: 0.0 for queue in group}
    used = {queue.queue: sum(each.used for each in kept[queue.queue]) for queue in group}
    for held in by_pair.values():
        wishes = [
            Wish(
                weight=queue.weight_nanos / _NANO,
                nominal=holding.nominal,
                wanted=holding.used + queue.asks.of(holding.flavor),
            )
            for queue, holding in held
        ]
        # Divide what is in use, not quota: quota may exceed what exists.
        pot = sum(holding.used for _, holding in held)
        for (queue, _), amount in zip(held, fair_shares(wishes, pot), strict=True):
            fair[queue.queue] += amount
    # A workload that takes any flavor is counted under each, but wants its amount only once.
    return {
        queue.queue: min(fair[queue.queue], used[queue.queue] + queue.asks.total) for queue in group
    }


# Places.


def _places(snapshot: Snapshot) -> dict[ClusterFlavor, PlaceGauge]:
    starting = _starting(snapshot)
    flavors = [snapshot.facts.flavors[name] for name in sorted(snapshot.facts.flavors)]
    place_gauge: dict[ClusterFlavor, PlaceGauge] = {}
    for name, cluster in snapshot.facts.clusters.items():
        elastic = _elastic(cluster, flavors)
        room = snapshot.ledger.rooms[name].free
        counted = [other for other in cluster.nodes.capacity if is_accelerator(other)]
        here = _by_flavor(cluster, flavors, counted, room)
        for flavor in sorted({*here, *elastic}):
            whole, free = here.get(flavor, (0.0, 0.0))
            place = (name, flavor)
            place_gauge[place] = PlaceGauge(
                whole, whole - free, starting.get(place, 0.0), free, elastic.get(flavor, 0.0)
            )
    return place_gauge


def _by_flavor(
    cluster: Cluster,
    flavors: Sequence[Flavor],
    counted: Sequence[str],
    room: Mapping[str, Amounts],
) -> dict[str, tuple[float, float]]:
    """Total and free accelerators by flavor; a node counts for its first flavor."""
    if not counted:
        return {}
    total = np.sum([cluster.nodes.capacity[name] for name in counted], axis=0)
    free = np.sum([room[name] for name in counted], axis=0)
    left = cluster.nodes.ready.copy()
    result: dict[str, tuple[float, float]] = {}
    for flavor in (*flavors, None):
        mine = left & cluster.flavor_nodes(flavor) if flavor is not None else left
        whole = int(total[mine].sum())
        if whole:
            name = flavor.name if flavor is not None else ""
            result[name] = (whole / _MILLI, max(0, int(free[mine].sum())) / _MILLI)
        left = left & ~mine
    return result


def _starting(snapshot: Snapshot) -> dict[ClusterFlavor, float]:
    """What is claimed by workloads that do not run yet."""
    result: dict[ClusterFlavor, float] = {}
    for keys in snapshot.holding.values():
        for key in keys:
            held = snapshot.facts.workloads[key].held
            if held is None or held.started_at is not None:
                continue
            for placed in held.placed:
                for pods in placed.pods:
                    for (flavor, resource), amount in pods.usage().items():
                        if is_accelerator(resource):
                            place = (placed.cluster, flavor)
                            result[place] = result.get(place, 0.0) + amount / _MILLI
    return result


def _elastic(cluster: Cluster, flavors: Sequence[Flavor]) -> dict[str, float]:
    result: dict[str, float] = {}
    for pool in cluster.pools:
        each = sum(amount for resource, amount in pool.shape if is_accelerator(resource)) / _MILLI
        if each and pool.left > 0:
            name = next((flavor.name for flavor in flavors if _is_of(cluster, pool, flavor)), "")
            result[name] = result.get(name, 0.0) + each * pool.left
    return result


def _is_of(cluster: Cluster, pool: Pool, flavor: Flavor) -> bool:
    """Whether nodes of a pool would be of a flavor."""
    labels = dict(pool.labels)
    return all(labels.get(key) == value for key, value in flavor.node_labels) and all(
        cluster.labels.get(key) == value for key, value in flavor.cluster_labels
    )
