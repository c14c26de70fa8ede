"""Nodes, and the cluster's own small scheduler.

Free amounts are columns, so that a scan of thousands of nodes takes microseconds. Which nodes a pod
may use by labels and taints is computed once for all pods with the same constraints. Of the nodes
with room, the fullest is taken, so that empty nodes stay empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fairway.agent.drivers.interface import NodeSeen
from fairway.api.amounts import NANO, Amounts, is_accelerator
from fairway.api.meta import JsonObject, NodeRequirement, NodeTerm, Taint, Toleration
from fairway.kinds import pods as pod_specs
from fairway.kinds.device_claims import with_devices
from fairway.kinds.plain import text, texts

HOST_NAME = pod_specs.HOST_NAME_LABEL
_MASKS_MAX = 512
# Columns are 64-bit integers: bytes for memory and storage, thousandths for everything else.
_BYTES = ("memory", "ephemeral-storage", "storage")
_MILLI = NANO // 1000
_PODS = "pods"
_ANY_PODS = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Which nodes a pod may use; equal for all pods of one shape."""

    node_selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[NodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    node_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a pod requests, and which nodes it may use."""

    amounts: Amounts
    units: tuple[tuple[str, int], ...]
    wish: Wish


@dataclass(slots=True, kw_only=True)
class Node:
    """A node, and how many pods are on it."""

    name: str
    allocatable: Amounts
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    is_ready: bool = True
    pool: str = ""  # the elastic pool it came from
    unit: int = 0  # nodes of a pool with the same number come and go together
    pods: int = 0
    row: int = field(default=-1, repr=False)


def need_of(spec: JsonObject, devices: Mapping[str, int]) -> Need:
    """What a pod's spec requests, with its devices by class; each pod takes one of the `pods`."""
    requests = with_devices(pod_specs.pod_requests(spec), devices)
    amounts = Amounts.of({**requests, _PODS: 1})
    return Need(
        amounts=amounts,
        units=tuple(
            (resource, -(-nanos // _unit(resource)))
            for resource, nanos in amounts.items()
            if nanos > 0
        ),
        wish=Wish(
            node_selector=tuple(sorted(texts(spec, "nodeSelector").items())),
            terms=pod_specs.node_terms(spec),
            tolerations=pod_specs.tolerations(spec),
            node_name=text(spec, "nodeName"),
        ),
    )


def is_alike(node: Node, other: Node) -> bool:
    return (node.allocatable, node.labels, node.taints) == (
        other.allocatable,
        other.labels,
        other.taints,
    )


def node_seen(node: Node) -> NodeSeen:
    return NodeSeen(
        name=node.name,
        allocatable=node.allocatable,
        labels=node.labels,
        taints=node.taints,
        is_ready=node.is_ready,
    )


class Nodes:
    """All nodes of a cluster, sorted by name."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self.by_name: dict[str, Node] = {}
        self._rows: list[Node] = []
        self._free: dict[str, npt.NDArray[np.int64]] = {}
        self._ready: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._masks: dict[Wish, npt.NDArray[np.bool_]] = {}
        self.change(add=nodes)

    def change(self, *, add: Iterable[Node] = (), remove: Iterable[str] = ()) -> None:
        """Adds and removes nodes; removed nodes must be empty."""
        used = {
            (resource, node.name): _units(node, resource) - int(column[node.row])
            for resource, column in self._free.items()
            for node in self._rows
        }
        for name in remove:
            del self.by_name[name]
        self.by_name.update({node.name: node for node in add})
        self._rows = [self.by_name[name] for name in sorted(self.by_name)]
        for row, node in enumerate(self._rows):
            node.row = row
        resources = sorted({resource for row in self._rows for resource in row.allocatable})
        self._free = {
            resource: np.array(
                [_units(row, resource) - used.get((resource, row.name), 0) for row in self._rows],
                dtype=np.int64,
            )
            for resource in resources
        }
        self._ready = np.array([row.is_ready for row in self._rows], dtype=np.bool_)
        self._masks.clear()

    def __iter__(self) -> Iterator[Node]:
        return iter(self._rows)

    def place(self, need: Need, *, prefer: str = "") -> Node | None:
        """Places a pod on a node; None if no node has room."""
        fitting = self._mask(need.wish) & self._ready
        tightest: npt.NDArray[np.int64] | None = None
        for resource, units in need.units:
            column = self._free.get(resource)
            if column is None:
                if resource == _PODS:
                    continue  # no node says how many pods it takes
                return None
            fitting &= column >= units
            if tightest is None or is_accelerator(resource):
                tightest = column
        preferred = self.by_name.get(prefer)
        if preferred is not None and fitting[preferred.row]:
            return self._take(preferred, need)
        rows = np.flatnonzero(fitting)
        if not len(rows):
            return None
        row = rows[0] if tightest is None else rows[int(np.argmin(tightest[rows]))]
        return self._take(self._rows[int(row)], need)

    def release(self, node: Node, need: Need) -> None:
        """Frees what a pod took."""
        node.pods -= 1
        self._add(node, need, 1)

    def set_ready(self, node: Node, is_ready: bool) -> None:
        node.is_ready = is_ready
        self._ready[node.row] = is_ready

    def _take(self, node: Node, need: Need) -> Node:
        node.pods += 1
        self._add(node, need, -1)
        return node

    def _add(self, node: Node, need: Need, sign: int) -> None:
        for resource, units in need.units:
            column = self._free.get(resource)
            if column is not None:
                column[node.row] += sign * units

    def _mask(self, wish: Wish) -> npt.NDArray[np.bool_]:
        mask = self._masks.get(wish)
        if mask is None:
            mask = np.array([_suits(row, wish) for row in self._rows], dtype=np.bool_)
            if len(self._masks) >= _MASKS_MAX:
                self._masks.clear()
            self._masks[wish] = mask
        return mask


def _unit(resource: str) -> int:
    return NANO if resource in _BYTES or resource.startswith("hugepages-") else _MILLI


def _units(node: Node, resource: str) -> int:
    """What a node has; a node without a number of pods takes any number."""
    if resource == _PODS and resource not in node.allocatable:
        return _ANY_PODS
    return node.allocatable[resource] // _unit(resource)


def _suits(node: Node, wish: Wish) -> bool:
    if wish.node_name and wish.node_name != node.name:
        return False
    if any(node.labels.get(key) != value for key, value in wish.node_selector):
        return False
    if wish.terms and not any(
        all(_holds(test, node.labels) for test in term.match_expressions) for term in wish.terms
    ):
        return False
    return all(
        taint.effect == "PreferNoSchedule"
        or any(_tolerates(toleration, taint) for toleration in wish.tolerations)
        for taint in node.taints
    )


def _holds(test: NodeRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(test.key)
    match test.operator:
        case "In":
            return value in test.values
        case "NotIn":
            return value not in test.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(test, value)


def _compares(test: NodeRequirement, value: str | None) -> bool:
    try:
        result, bound = int(value or ""), int(test.values[0])
    except (ValueError, IndexError):
        return False
    return result > bound if test.operator == "Gt" else result < bound


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value
