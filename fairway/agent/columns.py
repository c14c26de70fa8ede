"""Nodes as columns, in the order in which reports are compared (see `api.report_changes`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from fairway.agent.drivers.interface import NodeSeen
from fairway.api.amounts import NANO, Quantity, family_of
from fairway.api.report import AmountColumn, DeviceColumn, LabelColumn, NodeColumns, TaintSet

_HOST_NAME = "kubernetes.io/hostname"
_LABELS_MOST = 128
_PODS = "pods"
_ANY_PODS = (1 << 31) * NANO  # of a node that does not say how many pods it takes


def columns_of(nodes: Sequence[NodeSeen]) -> NodeColumns:
    """The nodes of a chunk as columns; nodes must be sorted by name."""
    sets = sorted({node.taints for node in nodes}, key=repr)
    position = {set_: at for at, set_ in enumerate(sets)}
    has_taints = any(sets)
    return NodeColumns(
        names=tuple(node.name for node in nodes),
        unready=tuple(at for at, node in enumerate(nodes) if not node.is_ready),
        labels=_labels(nodes),
        taint_sets=tuple(TaintSet(taints=set_) for set_ in sets) if has_taints else (),
        taint_set=tuple(position[node.taints] for node in nodes) if has_taints else (),
        amounts=_amounts(nodes),
        devices=_devices(nodes),
    )


def _labels(nodes: Sequence[NodeSeen]) -> tuple[LabelColumn, ...]:
    """A column for each label, except a host name that equals the node name, as it should.

    Beyond the limit, labels that sort last by name are dropped.
    """
    keys = sorted({key for node in nodes for key in node.labels})
    columns = []
    for key in keys:
        values = tuple(node.labels.get(key, "") for node in nodes)
        is_name = key == _HOST_NAME and values == tuple(node.name for node in nodes)
        if not is_name and any(values):
            columns.append(LabelColumn(key=key, values=values))
    return tuple(columns[:_LABELS_MOST])


def _amounts(nodes: Sequence[NodeSeen]) -> tuple[AmountColumn, ...]:
    columns = []
    for resource in sorted({name for node in nodes for name in (*node.allocatable, *node.others)}):
        has = [
            _ANY_PODS
            if resource == _PODS and resource not in node.allocatable
            else node.allocatable.get(resource, 0)
            for node in nodes
        ]
        used = [node.others.get(resource, 0) for node in nodes]
        if not any(has) and not any(used):
            continue
        unit = gcd(*has, *used)
        columns.append(
            AmountColumn(
                resource=resource,
                unit=Quantity(unit, family_of(resource)),
                allocatable=tuple(number // unit for number in has),
                others=tuple(number // unit for number in used) if any(used) else (),
            )
        )
    return tuple(columns)


def _devices(nodes: Sequence[NodeSeen]) -> tuple[DeviceColumn, ...]:
    columns = []
    for resource in sorted({name for node in nodes for name in node.devices}):
        free = [node.devices.get(resource, ()) for node in nodes]
        unit = gcd(*(amount for pair in free for amount in pair)) or 1
        columns.append(
            DeviceColumn(
                resource=resource,
                unit=Quantity(unit, family_of(resource)),
                free=tuple(tuple(amount // unit for amount in pair) for pair in free),
            )
        )
    return tuple(columns)
