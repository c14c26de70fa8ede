"""Upper bounds of what is free in each cluster, so that full clusters are skipped at once.

For the nodes that pods of a shape may use on some flavors: the total and the largest free amount of
each resource, one entry per cluster. Accelerators, which decide most, are counted in whole pods per
node, since fragmented GPUs hold no large pod. What a plan takes only lowers the true amount, so a
bound stays valid until something is released. It is made exact again when a packing fails although
the bound promised room. A cluster that the bounds refuse certainly has no room.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairway.core.model import Flavor, Form, PodSet, Shape
from fairway.core.nodes import UNLIMITED, Amounts, Mask, Room
from fairway.core.packing.devices import DEVICE_UNITS
from fairway.core.quota.flavors import Assignment

if TYPE_CHECKING:
    from fairway.core.snapshot import Snapshot

_TABLES_MOST = 4096  # beyond this the cache is cleared
_WHOLES_MOST = 64 * DEVICE_UNITS  # larger requests are not counted in whole pods


class Limit(NamedTuple):
    """One resource that a pod set requests, with the bounds of all clusters."""

    amount: int
    total: Amounts
    largest: Amounts


class Chance:
    """Where a form may fit, by the bounds of each pod set alone; one column per cluster.

    It holds the bounds as they were when it was made; these arrays are never written to again.
    """

    __slots__ = ("_limits", "_pod_sets", "fits")

    def __init__(self, fits: Mask, form: Form, limits: list[list[Limit]]) -> None:
        self.fits = fits
        self._pod_sets = form.pod_sets
        self._limits = limits

    def shortage(self, places: Amounts | None = None) -> Amounts:
        """Pods without room: a row per pod set, a column per cluster; all clusters, or `places`."""
        count = len(self.fits) if places is None else len(places)
        column: Amounts = np.zeros((len(self._pod_sets), count), dtype=np.int64)
        for row, pod_set, limits in zip(column, self._pod_sets, self._limits, strict=True):
            placeable: Amounts = np.full(count, UNLIMITED, dtype=np.int64)
            for amount, totals, most in limits:
                total = totals if places is None else totals.take(places)
                largest = most if places is None else most.take(places)
                placeable = np.minimum(placeable, total // amount)
                placeable[largest < amount] = 0
            np.maximum(pod_set.count - placeable, 0, out=row)
        return column

    def worst(self) -> list[tuple[int, str]]:
        """For each cluster, the pod set with the most pods without room, and their number."""
        missing, names = self.shortage(), [pod_set.name for pod_set in self._pod_sets]
        best = [(count, names[0]) for count in missing[0].tolist()]
        for name, row in zip(names[1:], missing[1:].tolist(), strict=True):
            best = [max(value, (count, name)) for value, count in zip(best, row, strict=True)]
        return best


class Stock:
    """The bounds of all clusters. A cache: everything in it can be computed again."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        rooms = snapshot.ledger.rooms
        self._rooms = [rooms[name] for name in sorted(rooms)]
        self._tables: dict[Hashable, _Table] = {}
        self._places: dict[tuple[str, ...], Amounts] = {}
        self._plans = 0
        self._renewals = 0
        self._last: tuple[_Asked, Chance] | None = None
        self.position = {room.cluster.name: at for at, room in enumerate(self._rooms)}

    def begin(self) -> None:
        """Begins a plan: each bound is made exact on first use, as if it were new.

        So the answers depend on this plan only, not on earlier ones.
        """
        self._plans += 1

    def renew(self, cluster: str) -> None:
        """Updates the masks of a cluster whose nodes have changed."""
        at = self.position[cluster]
        for table in self._tables.values():
            masks = table.masks.copy()
            masks[at] = self._mask(self._rooms[at], table)
            table.put_masks(masks)

    def places(self, names: tuple[str, ...]) -> Amounts:
        """The positions of these clusters among all clusters."""
        known = self._places.get(names)
        if known is None:
            if len(self._places) >= _TABLES_MOST:
                self._places.clear()
            known = np.array([self.position[name] for name in names], dtype=np.int64)
            self._places[names] = known
        return known

    def chance(self, assignment: Assignment, form: Form) -> Chance:
        """Which clusters may have room for a form on some flavors; the others have none."""
        freed = (self._plans, self._snapshot.ledger.freed)
        key = (assignment, form, freed, self._renewals)
        if self._last is not None and _is_same(self._last[0], key):
            return self._last[1]
        fits: Mask | None = None
        limits: list[list[Limit]] = []
        for pod_set in form.pod_sets:
            table, count = self._table(assignment, pod_set), pod_set.count
            limits.append(table.limits(pod_set, freed))
            for amount, total, largest in limits[-1] if count > 0 else ():
                enough: Mask = total >= amount * count
                enough &= largest >= amount
                fits = enough if fits is None else np.logical_and(fits, enough, out=fits)
        if fits is None:
            fits = np.ones(len(self._rooms), dtype=np.bool_)
        self._last = (key, Chance(fits, form, limits))
        return self._last[1]

    def large_enough(self, assignment: Assignment, form: Form) -> Mask:
        """Which clusters have nodes that are large enough if empty; in the others no pod fits."""
        fits: Mask = np.ones(len(self._rooms), dtype=np.bool_)
        for pod_set in form.pod_sets:
            table = self._table(assignment, pod_set)
            for resource, amount in pod_set.shape.needs if pod_set.count > 0 else ():
                fits &= table.ceiling(resource) >= amount
        return fits

    def look_again(self, cluster: str, assignment: Assignment, form: Form) -> None:
        """Makes bounds exact in a cluster where a packing failed although they promised room."""
        self._renewals += 1
        for pod_set in form.pod_sets:
            self._table(assignment, pod_set).renew(self.position[cluster], pod_set)

    def mask(self, cluster: str, assignment: Assignment, pod_set: PodSet) -> Mask:
        """The nodes of a cluster on which pods of a set may run."""
        return self._table(assignment, pod_set).masks[self.position[cluster]]

    def _table(self, assignment: Assignment, pod_set: PodSet) -> _Table:
        shape = pod_set.shape
        flavors = assignment.kinds(pod_set.name)
        key = (flavors, shape.node_selector, shape.node_affinity, shape.tolerations)
        table = self._tables.get(key)
        if table is None:
            if len(self._tables) >= _TABLES_MOST:
                self._tables.clear()
            kinds = [self._snapshot.facts.flavors[name] for name in flavors]
            table = _Table(self._rooms, shape, kinds)
            table.put_masks([self._mask(room, table) for room in self._rooms])
            self._tables[key] = table
        return table

    def _mask(self, room: Room, table: _Table) -> Mask:
        return self._snapshot.eligibility.of(room.cluster, table.shape, table.kinds)


_Asked = tuple[Assignment, Form, tuple[int, int], int]


def _is_same(pair: _Asked, other: _Asked) -> bool:
    """Whether two queries are the same: consecutive rungs of a ladder repeat a query."""
    return pair[0] is other[0] and pair[1] is other[1] and pair[2:] == other[2:]


class _Bound:
    """The bounds of one resource over all clusters, and the state they were computed from."""

    __slots__ = ("freed", "is_shared", "largest", "resource", "seen", "total", "unit", "versions")

    def __init__(self, count: int, resource: str, unit: int) -> None:
        self.resource = resource
        self.unit = unit  # what is free on a node is counted in multiples of this
        self.total: Amounts = np.zeros(count, dtype=np.int64)
        self.largest: Amounts = np.zeros(count, dtype=np.int64)
        self.is_shared = False  # a Chance holds the arrays: copied before a write
        self.versions = [-1] * count
        self.freed = [-1] * count
        # The plan and the ledger's `freed` at the last refresh.
        self.seen = (-1, -1)


class _Table:
    """The eligible nodes of each cluster, and the bounds over them."""

    __slots__ = ("_bounds", "_ceilings", "_positions", "_rooms", "kinds", "masks", "shape")

    def __init__(self, rooms: list[Room], shape: Shape, kinds: list[Flavor]) -> None:
        self._rooms = rooms
        self.shape = shape  # one of the shapes that may use these nodes
        self.kinds = kinds
        self.masks: list[Mask] = []
        self._positions: list[Amounts] = []
        self._ceilings: dict[str, Amounts] = {}
        self._bounds: dict[tuple[str, int], _Bound] = {}

    def put_masks(self, masks: list[Mask]) -> None:
        """Sets the eligible nodes of each cluster."""
        self.masks = masks
        self._positions = [mask.nonzero()[0] for mask in masks]
        self._ceilings.clear()

    def limits(self, pod_set: PodSet, freed: tuple[int, int]) -> list[Limit]:
        """The requests of a pod set, each with its bounds."""
        limit = []
        for resource, amount in pod_set.shape.needs:
            bound = self._bound(resource, amount)
            if bound.seen != freed:
                self._refresh(bound, freed)
            bound.is_shared = True
            limit.append(Limit(amount // bound.unit, bound.total, bound.largest))
        return limit

    def renew(self, at: int, pod_set: PodSet) -> None:
        for resource, amount in pod_set.shape.needs:
            bound = self._bound(resource, amount)
            if bound.versions[at] != self._rooms[at].version:
                self._measure(bound, at)

    def _bound(self, resource: str, amount: int) -> _Bound:
        """The bound for a request; usual requests of whole devices are counted in whole pods."""
        is_usual = "/" in resource and amount % DEVICE_UNITS == 0 and amount <= _WHOLES_MOST
        unit = amount if is_usual else 1
        bound = self._bounds.get((resource, unit))
        if bound is None:
            bound = self._bounds[resource, unit] = _Bound(len(self._rooms), resource, unit)
        return bound

    def ceiling(self, resource: str) -> Amounts:
        """The capacity of the largest eligible node of each cluster."""
        known = self._ceilings.get(resource)
        if known is None:
            known = np.zeros(len(self._rooms), dtype=np.int64)
            for at, (room, mask) in enumerate(zip(self._rooms, self.masks, strict=True)):
                column = room.cluster.nodes.capacity.get(resource)
                if column is not None:
                    known[at] = column[mask].max(initial=0)
            self._ceilings[resource] = known
        return known

    def _refresh(self, bound: _Bound, freed: tuple[int, int]) -> None:
        is_first = bound.seen[0] != freed[0]
        bound.seen = freed
        for at, room in enumerate(self._rooms):
            if bound.freed[at] != room.freed or (is_first and bound.versions[at] != room.version):
                self._measure(bound, at)

    def _measure(self, bound: _Bound, at: int) -> None:
        if bound.is_shared:
            bound.total, bound.largest = bound.total.copy(), bound.largest.copy()
            bound.is_shared = False
        room = self._rooms[at]
        column = room.free.get(bound.resource)
        bound.versions[at], bound.freed[at] = room.version, room.freed
        positions = self._positions[at]
        if column is None or not len(positions):
            bound.total[at] = bound.largest[at] = 0
            return
        usable = column.take(positions)
        np.maximum(usable, 0, out=usable)
        if bound.unit > 1:
            usable //= bound.unit
        bound.total[at], bound.largest[at] = np.add.reduce(usable), np.maximum.reduce(usable)
