"""Exact search for a packing of several pod sets in small cases.

Small means at most `NODES` candidate nodes, and at most `PODS` pods or `CLASSES` classes of equal
nodes. Every way to place all sets but the last is tried, up to `WAYS` of them; ways that differ
only by equal nodes are tried once. The last set is placed exactly each time. Fractions of devices
are placed by best fit here too. Preferred topology is ignored, except for the last set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fairway.core.model import Topology
from fairway.core.nodes import Amounts
from fairway.core.packing.devices import devices_of, needs_devices
from fairway.core.packing.space import Space
from fairway.core.packing.topology import (
    Level,
    Spot,
    Want,
    level_index,
    levels_of,
    place_one,
    spot_of,
)

NODES = 64
PODS = 12
CLASSES = 8
WAYS = 400

Spots = dict[str, Spot]
_Node = tuple[int, int, object]  # position, pods it holds, class


def search(space: Space, wants: Sequence[Want]) -> Spots | None:
    """A packing of all sets; None if the case is not small or no packing is found."""
    reach: set[int] = set()
    for want in wants:
        positions = space.candidates(want.shape.needs, want.mask)
        if len(positions) > NODES:
            return None
        reach.update(positions.tolist())
    nodes = sorted(reach)
    if len(nodes) > NODES:
        return None
    if sum(want.count for want in wants) > PODS:
        classes = _classes(space, wants, nodes)
        if len(set(classes.values())) > CLASSES:
            return None
    return _Search().run(space, wants)


class _Search:
    """One search, which counts the ways tried."""

    def __init__(self) -> None:
        self._left = WAYS

    def run(self, space: Space, wants: Sequence[Want]) -> Spots | None:
        want = wants[0]
        if len(wants) == 1:
            spot = place_one(space, want)
            return None if isinstance(spot, int) else {want.name: spot}
        for other in _ways(space, wants):
            if self._left <= 0:
                return None
            self._left -= 1
            trial = space.copy()
            trial.take(want.shape.needs, other.counts)
            rest = self.run(trial, wants[1:])
            if rest is not None:
                return {want.name: other, **rest}
        return None


def _ways(space: Space, wants: Sequence[Want]) -> Iterator[Spot]:
    """All ways to place the first set."""
    want = wants[0]
    request = want.shape.needs
    positions = space.candidates(request, want.mask)
    pods = space.pods_at(request, positions)
    classes = _classes(space, wants, positions.tolist())
    levels = levels_of(space.room)
    required = level_index(space.room, want.topology.required)
    sliced = level_index(space.room, want.topology.slice_level)
    if _asks_for_unknown(want.topology, required, sliced):
        return
    named = max((number for number in (required, sliced) if number is not None), default=None)
    for inside in _domains(levels, required, positions):
        nodes: list[_Node] = [
            (int(positions[at]), int(pods[at]), classes[int(positions[at])]) for at in inside
        ]
        for counts in _spread(nodes, want.count, {}):
            if sliced is None or _is_sliced(
                levels[sliced], want.topology.slice_size, nodes, counts
            ):
                yield spot_of(None if named is None else levels[named], counts)


def _asks_for_unknown(topology: Topology, required: int | None, sliced: int | None) -> bool:
    return bool(
        (topology.required and required is None) or (topology.slice_level and sliced is None)
    )


def _domains(
    levels: Sequence[Level], required: int | None, positions: Amounts
) -> Iterator[list[int]]:
    """Groups of candidates, one of which must hold everything; each as indices of candidates."""
    if required is None:
        yield list(range(len(positions)))
        return
    codes = levels[required].codes.take(positions)
    for code in np.unique(codes[codes >= 0]).tolist():
        yield (codes == code).nonzero()[0].tolist()


def _is_sliced(level: Level, size: int, nodes: Sequence[_Node], counts: Mapping[int, int]) -> bool:
    """Whether the pods make whole slices, each in one domain with room for it."""
    held: dict[int, int] = {}
    mine: dict[int, int] = {}
    for position, pods, _ in nodes:
        code = int(level.codes[position])
        held[code] = held.get(code, 0) + pods
        mine[code] = mine.get(code, 0) + counts.get(position, 0)
    if mine.get(-1):
        return False
    slices = {code: -(-count // size) for code, count in mine.items()}
    return sum(slices.values()) == -(-sum(mine.values()) // size) and all(
        count <= held[code] // size for code, count in slices.items()
    )


def _spread(
    nodes: Sequence[_Node], count: int, last: Mapping[object, int]
) -> Iterator[dict[int, int]]:
    """Ways to put `count` pods on nodes; among equal nodes, an earlier one gets no fewer."""
    if count == 0:
        yield {}
        return
    if sum(held for _, held, _ in nodes) < count:
        return
    position, held, kind = nodes[0]
    for mine in range(min(held, count, last.get(kind, count)), -1, -1):
        for rest in _spread(nodes[1:], count - mine, {**last, kind: mine}):
            yield {position: mine, **rest} if mine else rest


def _classes(space: Space, wants: Sequence[Want], nodes: Sequence[int]) -> dict[int, object]:
    """The class of each node for these sets: free amounts, eligibility, domains and devices."""
    requests = sorted({request for want in wants for request in want.shape.needs})
    columns = [space.columns[name] for name, _ in requests if name in space.columns]
    tables = [
        space.devices.get(name) or devices_of(space.room, name)
        for name, amount in requests
        if needs_devices(space.room, name, amount)
    ]
    levels = levels_of(space.room)
    masks = [want.mask for want in wants if want.mask is not None]
    return {
        node: (
            tuple(int(column[node]) for column in columns),
            tuple(bool(mask[node]) for mask in masks),
            tuple(int(level.codes[node]) for level in levels),
            tuple(tuple(table.free[node].tolist()) for table in tables),
        )
        for node in nodes
    }
