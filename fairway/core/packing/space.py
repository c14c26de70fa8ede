"""A scratch room for trying one packing, and the best fit of one pod set in it.

A `Space` shares the columns of a Room until it first takes something. It finds where pods of a
shape fit (`candidates`, `pods_at`) and chooses nodes for them (`choose`). The choice avoids
fragmentation: nodes in use come before idle ones, then the tightest fit in the pod's leading
resource, then less free, then the earlier position. Positions are in order of node names (the view
sorts them), so ties are broken by name.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairway.api.amounts import is_accelerator
from fairway.core.model import PODS, Request
from fairway.core.nodes import UNLIMITED, Amounts, Bounds, Mask, Room
from fairway.core.packing.devices import Devices, devices_of, move_pods, needs_devices, pods_on

_KEY_BITS = 30
_FEW = 16  # up to this many single writes cost less than one array write


def bounds(room: Room, resource: str) -> tuple[int, int]:
    """The total and the largest free amount of a resource, over all nodes of a cluster."""
    column = room.free.get(resource)
    known = room.bounds.get(resource)
    if known is None:
        known = room.bounds[resource] = Bounds(column)
    return known.total, known.largest(column)


def total_free(room: Room, resource: str) -> int:
    """The total free amount only, which costs less."""
    known = room.bounds.get(resource)
    if known is None:
        known = room.bounds[resource] = Bounds(room.free.get(resource))
    return known.total


def leading_resource(room: Room, request: Request) -> tuple[str, int]:
    """The request that decides how tightly a pod fits.

    An accelerator, else the largest share of what is free; pods only where nothing else is needed.
    The name is empty without any request.
    """
    best = ("", 0)
    best_key = (False, -1.0)
    for resource, amount in request:
        share = -0.5 if resource == PODS else amount / (total_free(room, resource) or 1)
        key = (is_accelerator(resource), share)
        if key > best_key:
            best, best_key = (resource, amount), key
    return best


class Space:
    """What is free while a packing is tried."""

    __slots__ = ("_own", "_own_devices", "_untold", "columns", "devices", "room")

    def __init__(self, room: Room) -> None:
        self.room = room
        self.columns: dict[str, Amounts] = dict(room.free)
        self.devices: dict[str, Devices] = {}
        self._own: set[str] = set()  # resources whose columns are our copies
        self._own_devices: set[str] = set()  # resources whose devices are our copies
        # Whole devices that were taken before a table of them was needed.
        self._untold: dict[str, list[tuple[int, Mapping[int, int]]]] = {}

    def copy(self) -> Space:
        """A copy of this space; this one must take nothing while the copy is in use."""
        other = Space(self.room)
        other.columns = dict(self.columns)
        other.devices = dict(self.devices)
        other._untold = {resource: list(taken) for resource, taken in self._untold.items()}
        return other

    def fill(self, request: Request, mask: Mask | None, count: int) -> dict[int, int] | None:
        """Nodes in use that one pod each fills in its leading resource; None if there are too few.

        Where this returns nodes, `choose` would return the same (except for its rounding of
        amounts beyond 2**30): no node can be filled more tightly. It examines far fewer nodes.
        """
        leads, amount = leading_resource(self.room, request)
        column = self.columns.get(leads)
        capacity = self.room.cluster.nodes.capacity.get(leads)
        if column is None or capacity is None:
            return None
        result = (column == amount) & (self.room.cluster.nodes.ready if mask is None else mask)
        positions: Amounts = result.nonzero()[0]
        if len(positions) < count:
            return None
        positions = positions[capacity.take(positions) != amount]
        for resource, needed in request:
            other = self.columns.get(resource)
            if len(positions) < count or other is None:
                return None
            if resource != leads:
                positions = positions[other.take(positions) >= needed]
            if needs_devices(self.room, resource, needed):
                devices = self._devices(resource)
                held = pods_on(devices.free[positions], devices.size, needed)
                positions = positions[held > 0]
        if len(positions) < count:
            return None
        return dict.fromkeys(positions[:count].tolist(), 1)

    def candidates(self, request: Request, mask: Mask | None) -> Amounts:
        """Positions of the nodes that hold at least one pod."""
        result: Mask = self.room.cluster.nodes.ready if mask is None else mask
        for resource, amount in request:
            column = self.columns.get(resource)
            if column is None:
                return np.zeros(0, dtype=np.int64)
            result = result & (column >= amount)
        positions: Amounts = result.nonzero()[0]
        for resource, amount in request:
            if needs_devices(self.room, resource, amount):
                devices = self._devices(resource)
                held = pods_on(devices.free[positions], devices.size, amount)
                positions = positions[held > 0]
        return positions

    def pods_at(self, request: Request, positions: Amounts) -> Amounts:
        """How many pods each of these nodes holds."""
        if not len(positions):
            return np.zeros(0, dtype=np.int64)
        pods: Amounts | None = None
        for resource, amount in request:
            held: Amounts
            if needs_devices(self.room, resource, amount):
                devices = self._devices(resource)
                held = pods_on(devices.free[positions], devices.size, amount)
            else:
                held = self.columns[resource].take(positions) // amount
            pods = held if pods is None else np.minimum(pods, held)
        return np.full(len(positions), UNLIMITED, dtype=np.int64) if pods is None else pods

    def take(self, request: Request, counts: Mapping[int, int]) -> None:
        """Takes what pods on these nodes need."""
        if not counts:
            return
        for resource, amount in request:
            has_devices = needs_devices(self.room, resource, amount)
            if resource not in self._own:
                self._own.add(resource)
                self.columns[resource] = self.columns[resource].copy()
            column = self.columns[resource]
            if len(counts) > _FEW:
                column[np.fromiter(counts, np.int64)] -= amount * np.fromiter(
                    counts.values(), np.int64
                )
            else:
                for position, count in counts.items():
                    column[position] -= amount * count
            if not has_devices:
                if "/" in resource:
                    self._untold.setdefault(resource, []).append((amount, counts))
                continue
            if resource not in self._own_devices:
                self._own_devices.add(resource)
                self.devices[resource] = self._devices(resource).copy()
            for position, count in counts.items():
                move_pods(self.devices[resource], position, amount, -count)

    def _devices(self, resource: str) -> Devices:
        """The devices of a resource; subtracts what was taken before the table was needed."""
        own = self.devices.get(resource)
        untold = self._untold.pop(resource, None)
        if untold is None:
            return devices_of(self.room, resource) if own is None else own
        devices = (devices_of(self.room, resource) if own is None else own).copy()
        for amount, counts in untold:
            for position, count in counts.items():
                move_pods(devices, position, amount, -count)
        self._own_devices.add(resource)
        self.devices[resource] = devices
        return devices

    def choose(self, request: Request, positions: Amounts, count: int) -> dict[int, int] | None:
        """Nodes for `count` pods out of these candidates; None if they do not hold that many."""
        # Each candidate holds at least one pod; their room is summed only where that is too few.
        if len(positions) < count and int(self.pods_at(request, positions).sum()) < count:
            return None
        resource, amount = leading_resource(self.room, request)
        if not resource:
            return {int(positions[0]): count}
        free = self.columns[resource].take(positions)
        capacity = self.room.cluster.nodes.capacity.get(resource, self.columns[resource])
        whole = free == capacity.take(positions)
        shift = max(0, bounds(self.room, resource)[1].bit_length() - _KEY_BITS)
        left = free - np.minimum(free // amount, count) * amount if count > 1 else free
        key = (whole.astype(np.int64) << 61) + ((left >> shift) << _KEY_BITS) + (free >> shift)
        order = _smallest(key, min(count, len(positions)))
        pods = self.pods_at(request, positions.take(order)).tolist()
        chosen: dict[int, int] = {}
        for at, held in enumerate(pods):
            if held >= count:
                last = (
                    at if at == 0 else _tightest(pods, (key.take(order) >> 61).tolist(), at, count)
                )
                chosen[int(positions[order[last]])] = count
                break
            chosen[int(positions[order[at]])] = held
            count -= held
        return chosen


def _tightest(pods: list[int], is_whole: list[int], start: int, count: int) -> int:
    """The node for the last pods: the tightest fit among nodes not yet taken."""
    enough = (at for at in range(start, len(pods)) if pods[at] >= count)
    return min(enough, key=lambda at: (is_whole[at], pods[at], at))


def _smallest(key: Amounts, count: int) -> Amounts:
    """The positions of the `count` smallest keys, in order; ties by position."""
    if count >= len(key):
        return np.argsort(key, kind="stable")
    limit = np.partition(key, count - 1)[count - 1]
    below = (key < limit).nonzero()[0]
    order: Amounts = below.take(np.argsort(key.take(below), kind="stable"))
    tied: Amounts = (key == limit).nonzero()[0][: count - len(below)]
    return np.concatenate((order, tied))
