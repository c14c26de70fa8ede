"""What clusters have left at most, side by side, so that full ones are passed over at once.

For the nodes that pods of a shape may use on some flavors: the total and the largest free amount of
each resource, one entry a cluster. These are upper bounds. What a plan takes only lowers the truth,
so a bound stays right until something is given back; it is made exact again when a packing fails
although it promised room. A cluster that the bounds refuse has no room for certain.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairway.core.fitting.space import UNLIMITED
from fairway.core.model import Flavor, Form, PodSet, Shape
from fairway.core.nodes import Amounts, Mask, Room
from fairway.core.turns.flavors import Assignment

if TYPE_CHECKING:
    from fairway.core.snapshot import Snapshot

_TABLES_MOST = 4096  # beyond this all are forgotten, and made again when asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Where a form may fit, by the bounds of each pod set alone; a column a cluster."""

    fits: Mask
    names: tuple[str, ...]  # of the pod sets
    missing: Amounts  # pods that lack room: a row a pod set, a column a cluster

    def worst(self) -> list[tuple[int, str]]:
        """For each cluster, the pod set that lacks most, and how many pods."""
        best = [(count, self.names[0]) for count in self.missing[0].tolist()]
        for name, row in zip(self.names[1:], self.missing[1:].tolist(), strict=True):
            best = [max(one, (count, name)) for one, count in zip(best, row, strict=True)]
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
            table.masks[at] = self._mask(self._rooms[at], table)

    def places(self, names: tuple[str, ...]) -> Amounts:
        """Where these clusters are among all."""
        found = self._places.get(names)
        if found is None:
            found = np.array([self.position[name] for name in names], dtype=np.int64)
            self._places[names] = found
        return found

    def chance(self, assignment: Assignment, form: Form) -> Chance:
        """Which clusters may have room for a form on some flavors; the others have none."""
        missing: Amounts = np.zeros((len(form.pod_sets), len(self._rooms)), dtype=np.int64)
        for row, one in zip(missing, form.pod_sets, strict=True):
            table = self._table(assignment, one)
            placeable = table.placeable(one, (self._plans, self._snapshot.ledger.freed))
            np.maximum(one.count - placeable, 0, out=row)
        fits: Mask = (missing == 0).all(axis=0)
        return Chance(
            fits=fits,
            names=tuple(one.name for one in form.pod_sets),
            missing=missing,
        )

    def look_again(self, cluster: str, assignment: Assignment, form: Form) -> None:
        """A packing failed where the bounds promised room: makes them exact there."""
        for one in form.pod_sets:
            self._table(assignment, one).renew(self.position[cluster], one)

    def _table(self, assignment: Assignment, pod_set: PodSet) -> _Table:
        shape = pod_set.shape
        flavors = tuple(sorted(set(assignment.flavors[pod_set.name].values())))
        key = (flavors, shape.node_selector, shape.node_affinity, shape.tolerations)
        found = self._tables.get(key)
        if found is None:
            if len(self._tables) >= _TABLES_MOST:
                self._tables.clear()
            kinds = [self._snapshot.facts.flavors[name] for name in flavors]
            found = _Table(self._rooms, shape, kinds)
            found.masks = [self._mask(room, found) for room in self._rooms]
            self._tables[key] = found
        return found

    def _mask(self, room: Room, table: _Table) -> Mask:
        return self._snapshot.eligibility.of(room.cluster, table.shape, table.kinds)


class _Bound:
    """One resource over all clusters, and what it was worked out from."""

    __slots__ = ("freed", "largest", "seen", "total", "versions")

    def __init__(self, count: int) -> None:
        self.total: Amounts = np.zeros(count, dtype=np.int64)
        self.largest: Amounts = np.zeros(count, dtype=np.int64)
        self.versions = [-1] * count
        self.freed = [-1] * count
        # Which plan asked, and how often the ledger had given something back by then.
        self.seen = (-1, -1)


class _Table:
    """Clusters with the nodes of each that count."""

    __slots__ = ("_bounds", "_rooms", "kinds", "masks", "shape")

    def __init__(self, rooms: list[Room], shape: Shape, kinds: list[Flavor]) -> None:
        self._rooms = rooms
        self.shape = shape  # one of those that may use the same nodes
        self.kinds = kinds
        self.masks: list[Mask] = []
        self._bounds: dict[str, _Bound] = {}

    def placeable(self, pod_set: PodSet, freed: tuple[int, int]) -> Amounts:
        """How many pods each cluster has room for at most, up to what is wanted."""
        found: Amounts = np.full(len(self._rooms), UNLIMITED, dtype=np.int64)
        for resource, amount in pod_set.shape.requests:
            bound = self._fresh(resource, freed)
            found = np.minimum(found, bound.total // amount)
            found[bound.largest < amount] = 0
        return found

    def renew(self, at: int, pod_set: PodSet) -> None:
        for resource, _ in pod_set.shape.requests:
            bound = self._bounds[resource]
            if bound.versions[at] != self._rooms[at].version:
                self._measure(bound, resource, at)

    def _fresh(self, resource: str, freed: tuple[int, int]) -> _Bound:
        bound = self._bounds.get(resource)
        if bound is None:
            bound = self._bounds[resource] = _Bound(len(self._rooms))
        if bound.seen != freed:
            is_first = bound.seen[0] != freed[0]
            bound.seen = freed
            for at, room in enumerate(self._rooms):
                if bound.freed[at] != room.freed or (
                    is_first and bound.versions[at] != room.version
                ):
                    self._measure(bound, resource, at)
        return bound

    def _measure(self, bound: _Bound, resource: str, at: int) -> None:
        room = self._rooms[at]
        column = room.free.get(resource)
        bound.versions[at], bound.freed[at] = room.version, room.freed
        usable = None if column is None else column[self.masks[at]]
        if usable is None or not usable.size:
            bound.total[at] = bound.largest[at] = 0
        else:
            bound.total[at] = usable.clip(min=0).sum()
            bound.largest[at] = max(int(usable.max()), 0)
