"""How many new nodes of an elastic pool make a workload fit.

New nodes take the positions after the existing ones: position `len(cluster.nodes) + i` is the i-th
new node. They have the labels of the pool. For a topology level that these labels do not name, the
nodes of a unit of several nodes form one domain of their own (a TPU slice comes whole), named
"pool+number"; nodes of a unit of one node are outside every domain of that level. At the level of
the host name each node is its own domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairway.core.model import PODS, Pool
from fairway.core.nodes import (
    UNLIMITED,
    Amounts,
    Cluster,
    LabelColumn,
    Mask,
    Nodes,
    Room,
    label_column,
)
from fairway.core.packing.devices import Devices
from fairway.core.packing.pack import Packed, Shortage, Want, pack

HOST_NAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """A packing on existing and new nodes, and how many new nodes it needs."""

    packed: Packed
    new_nodes: int


def pack_with_new_nodes(
    room: Room,
    wants: Sequence[Want],
    pool: Pool,
    *,
    left: int,
    takes: Sequence[bool],
    domain: str = "",
) -> Grown | Shortage:
    """The packing that needs the fewest new nodes, in whole units of the pool.

    `left` is how many more nodes the pool can provide. `takes` says for each want whether a new
    node is eligible for it (`eligibility.pool_takes`).
    """
    most = left - left % pool.unit
    if not any(want.topology.slice_level for want in wants):
        # One node per pod is always enough, unless slices need nodes that stay empty.
        pods = sum(want.count for want, ok in zip(wants, takes, strict=True) if ok)
        units = -(-pods // pool.unit)
        most = min(most, units * pool.unit)
    grown = grown_room(room, pool, most)

    def attempt(nodes: int) -> Packed | Shortage:
        some = [
            replace(want, mask=_mask(room, want, nodes if ok else 0, most))
            for want, ok in zip(wants, takes, strict=True)
        ]
        return pack(grown, some, domain)

    best = attempt(most)
    if isinstance(best, Shortage):
        return best
    low, high = 0, most // pool.unit
    while low < high:
        middle = (low + high) // 2
        packed = attempt(middle * pool.unit)
        if isinstance(packed, Packed):
            best, high = packed, middle
        else:
            low = middle + 1
    return Grown(packed=best, new_nodes=high * pool.unit)


def _mask(room: Room, want: Want, nodes: int, most: int) -> Mask:
    mask = room.cluster.nodes.ready if want.mask is None else want.mask
    result: Mask = np.concatenate((mask, np.arange(most) < nodes))
    return result


def grown_room(room: Room, pool: Pool, count: int) -> Room:
    """The room with `count` more nodes of a pool. Only topology labels are kept."""
    cluster = room.cluster
    amounts = {PODS: UNLIMITED, **dict(pool.shape)}
    resources = sorted({*room.free, *amounts})
    names = tuple(f"{pool.name}+{number}" for number in range(count))
    capacity = {
        resource: _longer(cluster.nodes.capacity.get(resource), cluster, amounts, resource, count)
        for resource in resources
    }
    labels = {
        label: _labels(cluster.nodes, label, _domains(pool, label, names))
        for _, label in cluster.levels
    }
    nodes = Nodes(
        names=(*cluster.nodes.names, *names),
        capacity=capacity,
        ready=np.concatenate((cluster.nodes.ready, np.ones(count, dtype=np.bool_))),
        labels=labels,
        devices=cluster.nodes.devices,
    )
    grown = Room(
        Cluster(
            name=cluster.name, nodes=nodes, levels=cluster.levels, allowances=cluster.allowances
        )
    )
    grown.spent = room.spent
    for resource in resources:
        grown.free[resource] = _longer(room.free.get(resource), cluster, amounts, resource, count)
    for resource, devices in room.devices.items():
        grown.devices[resource] = _more_devices(devices, amounts.get(resource, 0), count)
    return grown


def grown_cluster(cluster: Cluster, pool: Pool, count: int) -> Cluster:
    """The cluster once `count` more nodes of a pool are there, with all their labels and taints."""
    nodes = cluster.nodes
    amounts = {PODS: UNLIMITED, **dict(pool.shape)}
    names = tuple(f"{pool.name}+{number}" for number in range(count))
    labels = {
        label: _labels(nodes, label, [value] * count)
        for label, value in {**dict.fromkeys(nodes.labels), **dict(pool.labels)}.items()
    }
    for _, label in cluster.levels:
        labels[label] = _labels(nodes, label, _domains(pool, label, names))
    taint_set = nodes.taint_set
    if taint_set is None:
        taint_set = np.full(len(nodes), -1, dtype=np.int32)
    new_taints = np.full(count, len(nodes.taint_sets), dtype=np.int32)
    grown = Nodes(
        names=(*nodes.names, *names),
        capacity={
            resource: _longer(nodes.capacity.get(resource), cluster, amounts, resource, count)
            for resource in sorted({*nodes.capacity, *amounts})
        },
        ready=np.concatenate((nodes.ready, np.ones(count, dtype=np.bool_))),
        labels=labels,
        taint_sets=(*nodes.taint_sets, pool.taints),
        taint_set=np.concatenate((taint_set, new_taints)),
        devices=nodes.devices,
        whole={
            resource: _longer(column, cluster, amounts, resource, count)
            for resource, column in nodes.whole.items()
        },
    )
    return replace(cluster, nodes=grown)


def _longer(
    column: Amounts | None, cluster: Cluster, amounts: dict[str, int], resource: str, count: int
) -> Amounts:
    if column is None:
        column = np.zeros(len(cluster.nodes), dtype=np.int64)
    new: Amounts = np.full(count, amounts.get(resource, 0), dtype=np.int64)
    return np.concatenate((column, new))


def _domains(pool: Pool, label: str, names: Sequence[str]) -> list[str | None]:
    """The domain of each new node at the level of a label; None: outside every domain."""
    given = dict(pool.labels).get(label)
    if label == HOST_NAME:
        return list(names)
    if given is None and pool.unit > 1:
        return [f"{pool.name}+{number // pool.unit}" for number in range(len(names))]
    return [given] * len(names)


def _labels(nodes: Nodes, label: str, new: Sequence[str | None]) -> LabelColumn:
    """A label of the existing nodes, followed by its values on new nodes."""
    column = nodes.labels.get(label)
    added = label_column(new)
    if column is None:
        column = LabelColumn(codes=np.full(len(nodes), -1, dtype=np.int32), values=())
    known = {value: code for code, value in enumerate(column.values)}
    # The extra last entry maps code -1 (no label) to itself.
    recoded = [*(known.setdefault(value, len(known)) for value in added.values), -1]
    codes = np.array(recoded, dtype=np.int32)[added.codes]
    return LabelColumn(codes=np.concatenate((column.codes, codes)), values=tuple(known))


def _more_devices(devices: Devices, amount: int, count: int) -> Devices:
    """The devices of the existing nodes, followed by those of new nodes, all unused."""
    number = -(-amount // devices.size)
    width = max(devices.free.shape[1], number)
    free = np.zeros((len(devices.free) + count, width), dtype=np.int64)
    free[: len(devices.free), : devices.free.shape[1]] = devices.free
    for device in range(number):
        free[len(devices.free) :, device] = min(devices.size, amount - device * devices.size)
    return Devices(
        free=free,
        size=devices.size,
        widths=np.concatenate((devices.widths, np.full(count, number, dtype=np.int64))),
    )
