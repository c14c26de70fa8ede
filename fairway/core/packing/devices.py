"""Devices allocated in fractions: the fraction that a pod takes must be on one device of its node.

A device has `size` units: 1000, unless the report counts in a finer unit. A request of k * size +
rest needs k entirely free devices and one more with room for the rest. The rest is placed by best
fit, so that whole devices stay whole.

Most clusters allocate whole devices only; there the free column is enough. A table of devices is
created when the report has one, or when a fraction of an extended resource is first requested. Then
each 1000 units that are free on a node count as a device, and the remainder as a partly used one.
Two resources of one pod that both have devices are packed independently. Which device a leaving pod
used is unknown: its share returns to the fullest device that can have held it.

A workload may be put on a node before pods that leave are gone. Its devices are overcommitted then:
less than nothing is free on them, so that nobody else gets what those pods leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fairway.core.model import Request
from fairway.core.nodes import Amounts, Packing, Room

DEVICE_UNITS = 1000


@dataclass(slots=True, kw_only=True, eq=False)
class Devices:
    """Free units of the devices of one resource: a row per node, padded with zeros."""

    free: Amounts  # below 0: overcommitted
    size: int
    widths: Amounts  # number of devices of each node

    def copy(self) -> Devices:
        return Devices(free=self.free.copy(), size=self.size, widths=self.widths)


def needs_devices(room: Room, resource: str, amount: int) -> bool:
    """Whether the free column alone is not enough to know how often an amount fits on a node."""
    return (
        resource in room.devices
        or resource in room.cluster.nodes.devices
        or ("/" in resource and amount % DEVICE_UNITS != 0)
    )


def devices_of(room: Room, resource: str) -> Devices:
    """The devices of a resource, created on first use; `take` and `give_back` update them."""
    devices = room.devices.get(resource)
    if devices is None:
        devices = room.devices[resource] = _make(room, resource)
    return devices


def _make(room: Room, resource: str) -> Devices:
    seeds = room.cluster.nodes.devices.get(resource, ())
    count = len(room.cluster.nodes)
    column = room.free.get(resource)
    free = [0] * count if column is None else column.tolist()
    capacity = room.cluster.nodes.capacity.get(resource)
    most = free if capacity is None else capacity.tolist()
    rows = [
        seeds[position]
        if position < len(seeds) and seeds[position]
        else _whole(free[position], most[position])
        for position in range(count)
    ]
    width = max((len(row) for row in rows), default=0) or 1
    table = np.array([[*row, *([0] * (width - len(row)))] for row in rows], dtype=np.int64)
    return Devices(
        free=table.reshape(count, width),
        size=max(DEVICE_UNITS, max((units for row in seeds for units in row), default=0)),
        widths=np.array([len(row) for row in rows], dtype=np.int64),
    )


def _whole(free: int, most: int) -> tuple[int, ...]:
    """Free units as devices, with used devices added up to the capacity of the node."""
    whole, rest = divmod(max(free, 0), DEVICE_UNITS)
    result = [*([DEVICE_UNITS] * whole), *([rest] if rest else [])]
    used = -(-max(most, 0) // DEVICE_UNITS) - len(result)
    result += [0] * used
    if free < 0 and result:
        whole, rest = divmod(-free, DEVICE_UNITS)
        for amount in (*([DEVICE_UNITS] * whole), rest):
            overcommit(result, DEVICE_UNITS, amount)
    return tuple(result)


def pods_on(rows: Amounts, size: int, amount: int) -> Amounts:
    """How many pods of this amount fit on the devices of each row. Exact."""
    whole, rest = divmod(amount, size)
    if whole == 0:
        fractions: Amounts = (np.maximum(rows, 0) // rest).sum(axis=1)
        return fractions
    intact: Amounts = (rows >= size).sum(axis=1)
    if rest == 0:
        return intact // whole
    # p pods leave intact - p * whole devices for rests, each of which holds `per_device` of them.
    per_device = size // rest
    others: Amounts = np.where(rows >= size, 0, np.maximum(rows, 0) // rest).sum(axis=1)
    enough: Amounts = (others + intact * per_device) // (1 + whole * per_device)
    return np.minimum(intact // whole, enough)


def put(row: list[int], size: int, amount: int) -> bool:
    """Takes one pod's amount from the devices of a node; False, taking nothing, if it can't."""
    whole, rest = divmod(amount, size)
    intact = [position for position, free in enumerate(row) if free >= size]
    if len(intact) < whole:
        return False
    chosen = intact[:whole]
    if rest:
        rooms = [
            (free, position)
            for position, free in enumerate(row)
            if free >= rest and position not in chosen
        ]
        if not rooms:
            return False
        row[min(rooms)[1]] -= rest
    for position in chosen:
        row[position] -= size
    return True


def overcommit(row: list[int], size: int, amount: int) -> None:
    """Takes one pod's amount from the fullest devices, which lack it now: others leave them."""
    whole, rest = divmod(amount, size)
    for units in (*([size] * whole), *([rest] if rest else [])):
        left = [(free, position) for position, free in enumerate(row) if free >= 0]
        position = min(left)[1] if left else row.index(max(row))
        row[position] -= units


def put_back(row: list[int], size: int, amount: int) -> None:
    """Returns one pod's amount to devices that can have held it."""
    whole, rest = divmod(amount, size)
    for _ in range(whole):
        fullest = row.index(min(row))
        row[fullest] = min(size, row[fullest] + size)
    if rest:
        rooms = [(free, position) for position, free in enumerate(row) if free + rest <= size]
        row[min(rooms)[1] if rooms else row.index(min(row))] += rest


def take(room: Room, packing: Packing, requests: Mapping[str, Request]) -> Callable[[], None]:
    """Puts pods on nodes, devices included; returns an exact undo."""
    return _move(room, packing, requests, -1)


def give_back(room: Room, packing: Packing, requests: Mapping[str, Request]) -> Callable[[], None]:
    """Takes pods off nodes, devices included; returns an exact undo."""
    return _move(room, packing, requests, 1)


def _move(
    room: Room, packing: Packing, requests: Mapping[str, Request], sign: int
) -> Callable[[], None]:
    changes: list[tuple[str, Mapping[int, int], int]] = []
    rows: list[tuple[Devices, int, Amounts]] = []
    whole: set[str] = set()
    for name in sorted(packing):
        counts = packing[name]
        for resource, amount in requests[name]:
            # The table is made before the column changes, since it may be made from the column.
            has_devices = needs_devices(room, resource, amount)
            devices = devices_of(room, resource) if has_devices else None
            if devices is None:
                whole.add(resource)
            room.change(resource, counts, sign * amount)
            changes.append((resource, counts, sign * amount))
            for position, count in counts.items() if devices is not None else ():
                assert devices is not None
                rows.append((devices, position, devices.free[position].copy()))
                move_pods(devices, position, amount, sign * count)
    return lambda: _undo(room, changes, rows, whole)


def move_pods(devices: Devices, position: int, amount: int, count: int) -> None:
    """Releases `count` pods on one node; a negative count takes."""
    row = devices.free[position, : int(devices.widths[position])].tolist()
    if not row:
        return
    for _ in range(abs(count)):
        if count < 0:
            if not put(row, devices.size, amount):
                overcommit(row, devices.size, amount)
        else:
            put_back(row, devices.size, amount)
    devices.free[position, : len(row)] = row


def _undo(
    room: Room,
    changes: list[tuple[str, Mapping[int, int], int]],
    rows: list[tuple[Devices, int, Amounts]],
    whole: set[str],
) -> None:
    for resource, counts, amount in reversed(changes):
        room.change(resource, counts, -amount)
    for devices, position, row in reversed(rows):
        devices.free[position] = row
    for resource in whole:
        # There was no table before; one created since is derived from what is undone here.
        room.devices.pop(resource, None)
