"""Nodes as columns, in the order in which reports are compared (see `api.report_changes`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from fairway.agent.drivers.interface import NodeSeen
from fairway.api.amounts import Quantity, family_of
from fairway.api.report import AmountColumn, DeviceColumn, LabelColumn, NodeColumns, TaintSet

_HOST_NAME = "kubernetes.io/hostname"
_LABELS_MOST = 128


def columns_of(nodes: Sequence[NodeSeen]) -> NodeColumns:
    """The nodes of a chunk, which come in order of name."""
    sets = sorted({one.taints for one in nodes}, key=repr)
    position = {one: at for at, one in enumerate(sets)}
    has_taints = any(sets)
    return NodeColumns(
        names=tuple(one.name for one in nodes),
        unready=tuple(at for at, one in enumerate(nodes) if not one.is_ready),
        labels=_labels(nodes),
        taint_sets=tuple(TaintSet(taints=one) for one in sets) if has_taints else (),
        taint_set=tuple(position[one.taints] for one in nodes) if has_taints else (),
        amounts=_amounts(nodes),
        devices=_devices(nodes),
    )


def _labels(nodes: Sequence[NodeSeen]) -> tuple[LabelColumn, ...]:
    """A column for each label, but for the host name where it is the node's name, as it should be.

    Labels past the limit are those that come last by name.
    """
    keys = sorted({key for one in nodes for key in one.labels})
    columns = []
    for key in keys:
        values = tuple(one.labels.get(key, "") for one in nodes)
        is_name = key == _HOST_NAME and values == tuple(one.name for one in nodes)
        if not is_name and any(values):
            columns.append(LabelColumn(key=key, values=values))
    return tuple(columns[:_LABELS_MOST])


def _amounts(nodes: Sequence[NodeSeen]) -> tuple[AmountColumn, ...]:
    columns = []
    for resource in sorted({name for one in nodes for name in (*one.allocatable, *one.others)}):
        has = [one.allocatable.get(resource, 0) for one in nodes]
        used = [one.others.get(resource, 0) for one in nodes]
        if not any(has) and not any(used):
            continue
        unit = gcd(*has, *used)
        columns.append(
            AmountColumn(
                resource=resource,
                unit=Quantity(unit, family_of(resource)),
                allocatable=tuple(one // unit for one in has),
                others=tuple(one // unit for one in used) if any(used) else (),
            )
        )
    return tuple(columns)


def _devices(nodes: Sequence[NodeSeen]) -> tuple[DeviceColumn, ...]:
    columns = []
    for resource in sorted({name for one in nodes for name in one.devices}):
        free = [one.devices.get(resource, ()) for one in nodes]
        unit = gcd(*(amount for one in free for amount in one)) or 1
        columns.append(
            DeviceColumn(
                resource=resource,
                unit=Quantity(unit, family_of(resource)),
                free=tuple(tuple(amount // unit for amount in one) for one in free),
            )
        )
    return tuple(columns)
