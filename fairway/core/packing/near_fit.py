"""What a cluster lacks to hold a pod set: for reasons, computed on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairway.api.amounts import is_accelerator
from fairway.core.model import Flavor, Shape
from fairway.core.nodes import Amounts, Cluster, Room
from fairway.core.packing.devices import devices_of, needs_devices
from fairway.core.packing.eligibility import pool_takes
from fairway.core.packing.space import Space, leading_resource
from fairway.core.packing.topology import Want, level_index, levels_of, most_of, sum_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """What is missing where a pod set comes nearest to fitting."""

    name: str
    placeable: int
    node: str = ""  # where no node holds even one pod: the node that lacks least
    domain: str = ""  # where one domain must hold all pods: the domain that holds most
    short: tuple[tuple[str, int], ...] = ()  # (resource, amount) missing there, by resource


def offers(cluster: Cluster, shape: Shape, flavors: Sequence[Flavor]) -> bool:
    """Whether a cluster has what a pod needs at all, free or not, or could get it from a pool.

    It has nodes of these flavors with the accelerators that the pod requests.
    """
    mask = np.ones(len(cluster.nodes), dtype=np.bool_)
    for flavor in flavors:
        mask &= cluster.flavor_nodes(flavor)
    for resource in (resource for resource, _ in shape.needs if is_accelerator(resource)):
        capacity = cluster.nodes.capacity.get(resource)
        mask &= False if capacity is None else capacity > 0
    return bool(mask.any()) or any(
        pool_takes(cluster, pool, shape, flavors) for pool in cluster.pools
    )


def nearest_miss(room: Room, want: Want) -> Miss | None:
    """What a pod set lacks; None if it fits on its own."""
    space = Space(room)
    placeable = most_of(space, want)
    if placeable >= want.count:
        return None
    request = want.shape.needs
    positions = space.candidates(request, want.mask)
    if not len(positions):
        return _nearest_node(room, want)
    missing = want.count - placeable
    index = level_index(room, want.topology.required)
    resource, amount = leading_resource(room, request)
    short = ((resource, amount * missing),) if resource else ()
    if index is None:
        return Miss(name=want.name, placeable=placeable, short=_scarce(space, want) or short)
    level = levels_of(room)[index]
    held = sum_by(level.codes.take(positions), space.pods_at(request, positions), len(level.names))
    domain = level.names[int(held.argmax())] if len(held) else ""
    return Miss(name=want.name, placeable=placeable, domain=domain, short=short)


def _scarce(space: Space, want: Want) -> tuple[tuple[str, int], ...]:
    """Resources of which too little is free for all pods, each considered alone."""
    result: list[tuple[str, int]] = []
    for resource, amount in want.shape.needs:
        alone = ((resource, amount),)
        pods = int(space.pods_at(alone, space.candidates(alone, want.mask)).sum())
        if pods < want.count:
            result.append((resource, (want.count - pods) * amount))
    return tuple(result)


def _nearest_node(room: Room, want: Want) -> Miss:
    """The node that lacks the smallest fraction of what one pod needs."""
    mask = room.cluster.nodes.ready if want.mask is None else want.mask
    positions: Amounts = mask.nonzero()[0]
    if not len(positions):
        return Miss(name=want.name, placeable=0)
    lacks = {
        resource: np.maximum(amount - _usable(room, resource, amount).take(positions), 0)
        for resource, amount in want.shape.needs
    }
    worst = np.zeros(len(positions))
    for resource, amount in want.shape.needs:
        worst = np.maximum(worst, lacks[resource] / amount)
    best = int(worst.argmin())
    return Miss(
        name=want.name,
        placeable=0,
        node=room.cluster.nodes.names[int(positions[best])],
        short=tuple(
            (resource, int(lack[best])) for resource, lack in lacks.items() if lack[best] > 0
        ),
    )


def _usable(room: Room, resource: str, amount: int) -> Amounts:
    """What one pod can use of a resource on each node; for a fraction, on the best device."""
    column = room.free.get(resource)
    if column is None:
        return np.zeros(len(room.cluster.nodes), dtype=np.int64)
    if not needs_devices(room, resource, amount):
        return column
    devices = devices_of(room, resource)
    best: Amounts = devices.free.max(axis=1)
    if amount >= devices.size:
        best = (devices.free >= devices.size).sum(axis=1) * devices.size
    return np.minimum(column, best)
