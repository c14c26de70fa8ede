"""What clusters have left at most, side by side, so that full ones are passed over at once.

For the nodes that pods of a shape may use on some flavors: the total and the largest free amount of
each resource, one entry a cluster. Of accelerators, which decide most, it is counted how many pods
each node has enough for, since a few free on every node are no whole node. These are upper bounds.
What a plan takes only lowers the truth, so a bound stays right until something is given back; it is
made exact again when a packing fails although it promised room. A cluster that the bounds refuse
has no room for certain.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairway.core.model import Flavor, Form, PodSet, Shape
from fairway.core.nodes import Amounts, Mask, Room
from fairway.core.packing.devices import DEVICE_UNITS
from fairway.core.packing.space import UNLIMITED
from fairway.core.quota.flavors import Assignment

if TYPE_CHECKING:
    from fairway.core.snapshot import Snapshot

_TABLES_MOST = 4096  # beyond this all are forgotten, and made again when asked for
_WHOLES_MOST = 64 * DEVICE_UNITS  # that a pod usually asks for: so many bounds may be kept


class Limit(NamedTuple):
    """One resource that a pod set asks for, next to the bounds of all clusters."""

    amount: int
    total: Amounts
    largest: Amounts


class Chance:
    """Where a form may fit, by the bounds of each pod set alone; a column a cluster.

    It holds the bounds as they were when it was asked for, which are never written to again.
    """

    __slots__ = ("_limits", "_pod_sets", "fits")

    def __init__(self, fits: Mask, form: Form, limits: list[list[Limit]]) -> None:
        self.fits = fits
        self._pod_sets = form.pod_sets
        self._limits = limits

    def missing(self, places: Amounts | None = None) -> Amounts:
        """Pods that lack room: a row a pod set, a column a cluster; of all, or of some places."""
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
        """For each cluster, the pod set that lacks most, and how many pods."""
        missing, names = self.missing(), [pod_set.name for pod_set in self._pod_sets]
        best = [(count, names[0]) for count in missing[0].tolist()]
        for name, row in zip(names[1:], missing[1:].tolist(), strict=True):
            best = [max(value, (count, name)) for value, count in zip(best, row, strict=True)]
        return best


class Stock:
    """The bounds of all clusters. A memo: everything in it can be worked out again."""

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
        """A plan begins: each bound is made exact when first asked for, as if it were new.

        So the answers hang on this plan alone, not on those before it.
        """
        self._plans += 1

    def renew(self, cluster: str) -> None:
        """A cluster has other nodes now."""
        at = self.position[cluster]
        for table in self._tables.values():
            masks = table.masks.copy()
            masks[at] = self._mask(self._rooms[at], table)
            table.put_masks(masks)

    def places(self, names: tuple[str, ...]) -> Amounts:
        """Where these clusters are among all."""
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
        """Which clusters have nodes large enough, were they empty; in the others no pod fits."""
        fits: Mask = np.ones(len(self._rooms), dtype=np.bool_)
        for pod_set in form.pod_sets:
            table = self._table(assignment, pod_set)
            for resource, amount in pod_set.shape.requests if pod_set.count > 0 else ():
                fits &= table.ceiling(resource) >= amount
        return fits

    def look_again(self, cluster: str, assignment: Assignment, form: Form) -> None:
        """A packing failed where the bounds promised room: makes them exact there."""
        self._renewals += 1
        for pod_set in form.pod_sets:
            self._table(assignment, pod_set).renew(self.position[cluster], pod_set)

    def mask(self, cluster: str, assignment: Assignment, pod_set: PodSet) -> Mask:
        """The nodes of a cluster on which pods of a set may be."""
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
    """The very same question: the rungs of a ladder ask it one after the other."""
    return pair[0] is other[0] and pair[1] is other[1] and pair[2:] == other[2:]


class _Bound:
    """One resource over all clusters, and what it was worked out from."""

    __slots__ = ("freed", "is_shared", "largest", "resource", "seen", "total", "unit", "versions")

    def __init__(self, count: int, resource: str, unit: int) -> None:
        self.resource = resource
        self.unit = unit  # of what is free on a node only so many wholes count
        self.total: Amounts = np.zeros(count, dtype=np.int64)
        self.largest: Amounts = np.zeros(count, dtype=np.int64)
        self.is_shared = False  # a chance holds the arrays: copied before they are written to
        self.versions = [-1] * count
        self.freed = [-1] * count
        # Which plan asked, and how often the ledger had given something back by then.
        self.seen = (-1, -1)


class _Table:
    """Clusters with the nodes of each that count."""

    __slots__ = ("_bounds", "_ceilings", "_positions", "_rooms", "kinds", "masks", "shape")

    def __init__(self, rooms: list[Room], shape: Shape, kinds: list[Flavor]) -> None:
        self._rooms = rooms
        self.shape = shape  # one of those that may use the same nodes
        self.kinds = kinds
        self.masks: list[Mask] = []
        self._positions: list[Amounts] = []
        self._ceilings: dict[str, Amounts] = {}
        self._bounds: dict[tuple[str, int], _Bound] = {}

    def put_masks(self, masks: list[Mask]) -> None:
        """Says which nodes of each cluster count."""
        self.masks = masks
        self._positions = [mask.nonzero()[0] for mask in masks]
        self._ceilings.clear()

    def limits(self, pod_set: PodSet, freed: tuple[int, int]) -> list[Limit]:
        """What a pod set asks for, and what there is of it."""
        limit = []
        for resource, amount in pod_set.shape.requests:
            bound = self._bound(resource, amount)
            if bound.seen != freed:
                self._refresh(bound, freed)
            bound.is_shared = True
            limit.append(Limit(amount // bound.unit, bound.total, bound.largest))
        return limit

    def renew(self, at: int, pod_set: PodSet) -> None:
        for resource, amount in pod_set.shape.requests:
            bound = self._bound(resource, amount)
            if bound.versions[at] != self._rooms[at].version:
                self._measure(bound, at)

    def _bound(self, resource: str, amount: int) -> _Bound:
        """Of an accelerator in wholes of what a pod takes, where that is a usual number of them."""
        is_usual = "/" in resource and amount % DEVICE_UNITS == 0 and amount <= _WHOLES_MOST
        unit = amount if is_usual else 1
        bound = self._bounds.get((resource, unit))
        if bound is None:
            bound = self._bounds[resource, unit] = _Bound(len(self._rooms), resource, unit)
        return bound

    def ceiling(self, resource: str) -> Amounts:
        """What the largest node of each cluster has for our pods in all."""
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
