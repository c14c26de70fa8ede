"""The nodes of a cluster, in columns, and the room that is free on them.

`Nodes` is immutable: names, labels, taints and the capacity for Fairway's pods. `Room` is what is
free of it at one moment of a plan. A Room shares its columns with `Nodes` and copies a column
before the first write to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairway.api.meta import Taint
from fairway.api.names import POOL_LABEL
from fairway.core.allowances import AllowanceKey, Allowances
from fairway.core.model import PODS, PODS_ALONE, Flavor, Pool

Amounts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32]

if TYPE_CHECKING:
    from fairway.core.packing.devices import Devices
    from fairway.core.packing.topology import Level

# What is free where nothing limits it: more pods than any pod set has, and small enough that sums
# over all nodes stay exact.
UNLIMITED = 1 << 40

# Packing: pod set -> {position of node: pods}.
Packing = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelColumn:
    """One label over all nodes: values by code; code -1 where a node lacks the label."""

    codes: Codes
    values: tuple[str, ...]

    def where(self, value: str) -> Mask:
        """Which nodes have this value."""
        try:
            code = self.values.index(value)
        except ValueError:
            return np.zeros(len(self.codes), dtype=np.bool_)
        mask: Mask = self.codes == code
        return mask

    def value(self, position: int) -> str | None:
        code = int(self.codes[position])
        return None if code < 0 else self.values[code]


def label_column(values: Sequence[str | None]) -> LabelColumn:
    """A column from one value per node; None or an empty string: the node lacks the label."""
    known: dict[str, int] = {}
    codes = [known.setdefault(name, len(known)) if name else -1 for name in values]
    return LabelColumn(codes=np.array(codes, dtype=np.int32), values=tuple(known))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nodes:
    """The nodes of one cluster. All columns have one entry per node."""

    names: tuple[str, ...]
    capacity: Mapping[str, Amounts]  # for Fairway's pods: other pods are subtracted
    # A column of pods is always there: nodes that do not say how many they take, take any number.
    ready: Mask  # takes new pods
    labels: Mapping[str, LabelColumn] = field(default_factory=dict)
    taint_sets: tuple[tuple[Taint, ...], ...] = ()
    taint_set: Codes | None = None  # position in taint_sets; None: no node has taints
    devices: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    # resources allocated in fractions: free units of each device of each node
    whole: Mapping[str, Amounts] = field(default_factory=dict)
    # allocatable amounts of resources that other pods use: what is there once they have ended

    def __post_init__(self) -> None:
        if PODS not in self.capacity:
            pods = np.full(len(self.names), UNLIMITED, dtype=np.int64)
            object.__setattr__(self, "capacity", {**self.capacity, PODS: pods})

    def __len__(self) -> int:
        return len(self.names)

    def has_labels(self, wanted: Sequence[tuple[str, str]]) -> Mask:
        """Which nodes have all these labels."""
        mask = np.ones(len(self.names), dtype=np.bool_)
        for key, value in wanted:
            column = self.labels.get(key)
            if column is None:
                return np.zeros(len(self.names), dtype=np.bool_)
            mask &= column.where(value)
        return mask

    @property
    def bought(self) -> Mask | None:
        """Which nodes are of elastic pools; None: no node is."""
        column = self.labels.get(POOL_LABEL)
        if column is None or not (column.codes >= 0).any():
            return None
        mask: Mask = column.codes >= 0
        return mask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cluster:
    """A cluster as the core sees it: resources by the fleet's names."""

    name: str
    nodes: Nodes
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    is_open: bool = True  # accepted, managed, ready and not held: may get new pods
    closed_because: str = ""  # why it is closed, for display
    is_member: bool = True  # accepted, managed, and not being deleted; it may be closed for now
    answers: bool = True  # its agent reports: it will be known when stopped pods are gone
    has_reported: bool = True  # its nodes are known; False: its first report is awaited
    kinds: frozenset[str] | None = None  # group/version/Kind it serves; None: all
    runs_pods_alone: bool = True  # whether it runs pod sets without a template
    levels: tuple[tuple[str, str], ...] = ()  # (topology level, node label), outermost first
    pools: tuple[Pool, ...] = ()
    price_factor_nanos: int = 1_000_000_000
    data_seconds: Mapping[str, float] = field(default_factory=dict)  # until the data is here
    allowances: Allowances = field(default_factory=dict)  # what namespaces have left there

    def serves(self, kind: str) -> bool:
        """Whether a kind can run in this cluster."""
        if kind == PODS_ALONE:
            return self.runs_pods_alone
        return self.kinds is None or kind in self.kinds

    def flavor_nodes(self, flavor: Flavor) -> Mask:
        """Which nodes belong to a flavor."""
        if any(self.labels.get(key) != value for key, value in flavor.cluster_labels):
            return np.zeros(len(self.nodes), dtype=np.bool_)
        return self.nodes.has_labels(flavor.node_labels)


class Room:
    """What is free on the nodes of a cluster, at one moment of a plan."""

    __slots__ = (
        "_own",
        "_used",
        "bounds",
        "cluster",
        "devices",
        "free",
        "freed",
        "levels",
        "spent",
        "version",
    )

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.free: dict[str, Amounts] = dict(cluster.nodes.capacity)
        # Free units of each device, of resources allocated in fractions. `packing.devices` creates
        # and updates these together with the columns.
        self.devices: dict[str, Devices] = {}
        # Caches of `packing.space` and `packing.topology`: bounds of a column, topology levels.
        self.bounds: dict[str, Bounds] = {}
        self.levels: tuple[Level, ...] | None = None
        # What claims take of the cluster's allowances; the ledger keeps it, whatever the nodes are.
        self.spent: dict[AllowanceKey, int] = {}
        self._own: set[str] = set()  # columns that are our own copies
        self._used: set[str] = set()  # device tables that outlast a plan
        self.version = 0  # increases whenever something is taken or released
        self.freed = 0  # increases whenever something is released

    def change(self, resource: str, counts: Mapping[int, int], amount: int) -> None:
        """Adds `amount` times the count of each node to its free amount; negative takes."""
        column = self.free.get(resource)
        if resource not in self._own:
            length = len(self.cluster.nodes)
            column = np.zeros(length, dtype=np.int64) if column is None else column.copy()
            self.free[resource] = column
            self._own.add(resource)
        assert column is not None, "it is our own"
        known = self.bounds.get(resource)
        for position, count in counts.items():
            before = int(column[position])
            after = column[position] = before + amount * count
            if known is not None:
                known.change(before, after)
        self.version += 1
        if amount > 0:
            self.freed += 1

    def empty(self) -> None:
        """Resets the room to its initial state, without pods."""
        self.free = dict(self.cluster.nodes.capacity)
        self.devices.clear()
        self.bounds.clear()
        self._own.clear()
        self.renew()

    def become(self, cluster: Cluster) -> None:
        """Replaces the cluster; the room is empty afterwards."""
        self.cluster = cluster
        self.levels = None
        self.empty()

    def renew(self) -> None:
        """Invalidates what was derived from the room, and keeps its present device tables."""
        self._used = set(self.devices)
        self.version += 1
        self.freed += 1

    def forget_devices(self) -> None:
        """Drops device tables that only queries created, so that no plan depends on them."""
        if len(self.devices) > len(self._used):
            self.devices = {
                name: device for name, device in self.devices.items() if name in self._used
            }


class Bounds:
    """The total and the largest free amount of a resource, updated with each change.

    An overcommitted node counts as 0, so that it does not hide what is free on others.
    """

    __slots__ = ("_largest", "total")

    def __init__(self, column: Amounts | None) -> None:
        self.total = 0 if column is None else int(np.maximum(column, 0).sum())
        self._largest: int | None = None

    def change(self, before: int, after: int) -> None:
        """Takes in a change of the free amount on one node."""
        self.total += (after if after > 0 else 0) - (before if before > 0 else 0)
        largest = self._largest
        if largest is not None:
            if after >= largest:
                self._largest = after
            elif before == largest:
                self._largest = None  # another node may have as much

    def largest(self, column: Amounts | None) -> int:
        """The largest free amount; computed again only after it was taken from."""
        number = self._largest
        if number is None:
            most = 0 if column is None or not len(column) else int(column.max())
            number = self._largest = most if most > 0 else 0
        return number
