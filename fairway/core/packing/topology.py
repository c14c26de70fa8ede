"""Topology domains: which pods must, or preferably should, run close together.

A cluster names its levels, outermost first, each with the node label that gives the domain of a
node. Domains nest: racks of the same name in two blocks are two domains, named "block/rack" where
the value alone is ambiguous. A node without the label of a level is outside all its domains.

- required: one domain of that level holds all pods of the set.
- preferred: one domain of that level if possible, else of the next outer level; else as few
  outermost domains as possible; else any nodes.
- slices: pods in groups of `slice_size`, each group within one domain of `slice_level`; a smaller
  last group needs room for a whole one.

Among domains that hold all pods, the one with the least room is chosen, then the first by name. On
the way down to nodes, the pods are put into as few domains of each level as possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairway.core.allowances import ADMITTED, Admission
from fairway.core.model import Shape, Topology
from fairway.core.nodes import Amounts, Cluster, Codes, Mask, Room
from fairway.core.packing.space import Space

Chooser = Callable[[Amounts, int], "dict[int, int] | None"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """One level: the domain of each node (-1: outside), names in order, enclosing domains."""

    name: str
    codes: Codes
    names: tuple[str, ...]
    parents: Codes  # the enclosing domain of each domain; -1: none

    def domain(self, position: int) -> str | None:
        code = int(self.codes[position])
        return None if code < 0 else self.names[code]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where the pods of one set go, and the domains that were chosen for them."""

    counts: dict[int, int]  # position of node -> pods
    level: str = ""
    domains: tuple[tuple[str, int], ...] = ()


def spot_of(level: Level | None, counts: dict[int, int]) -> Spot:
    """A spot with the pods per domain of a level; nodes outside all domains are left out."""
    if level is None:
        return Spot(counts=counts)
    by_domain: dict[int, int] = {}
    for position, pods in counts.items():
        code = int(level.codes[position])
        by_domain[code] = by_domain.get(code, 0) + pods
    domains = tuple((level.names[code], by_domain[code]) for code in sorted(by_domain) if code >= 0)
    return Spot(counts=counts, level=level.name, domains=domains)


def levels_of(room: Room) -> tuple[Level, ...]:
    """The levels of a room's cluster, outermost first; computed on first use."""
    if room.levels is None:
        room.levels = _levels(room.cluster)
    return room.levels


def level_index(room: Room, name: str) -> int | None:
    """The index of the level with this name, else of the level with this node label."""
    for index, level in enumerate(levels_of(room)):
        if level.name == name:
            return index
    for index, (_, label) in enumerate(room.cluster.levels):
        if label == name:
            return index
    return None


def _levels(cluster: Cluster) -> tuple[Level, ...]:
    levels: list[Level] = []
    for name, label in cluster.levels:
        column = cluster.nodes.labels.get(label)
        if column is None or not column.values:
            nowhere = np.full(len(cluster.nodes), -1, dtype=np.int32)
            levels.append(
                Level(name=name, codes=nowhere, names=(), parents=np.zeros(0, dtype=np.int32))
            )
            continue
        order = sorted(range(len(column.values)), key=column.values.__getitem__)
        # One extra entry, so that code -1 (no label) stays -1.
        rank = np.full(len(order) + 1, -1, dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        names = tuple(column.values[number] for number in order)
        levels.append(_nest(name, rank[column.codes], names, levels[-1] if levels else None))
    return tuple(levels)


def _nest(name: str, codes: Codes, names: tuple[str, ...], outer: Level | None) -> Level:
    """A level inside another: a value that occurs in two outer domains is two domains."""
    if outer is None:
        return Level(
            name=name, codes=codes, names=names, parents=np.full(len(names), -1, dtype=np.int32)
        )
    inside = codes >= 0
    own, around = codes[inside], outer.codes[inside]
    parents = np.full(len(names), -1, dtype=np.int32)
    parents[own] = around
    if bool((parents[own] == around).all()):
        return Level(name=name, codes=codes, names=names, parents=parents)
    base = len(outer.names) + 1
    pairs, split = np.unique(own.astype(np.int64) * base + around + 1, return_inverse=True)
    codes = codes.copy()
    codes[inside] = split
    values, arounds = (pairs // base).tolist(), (pairs % base - 1).tolist()
    unique = np.bincount(pairs // base, minlength=len(names)).tolist()
    full = tuple(
        names[value]
        if unique[value] == 1
        else f"{outer.names[around] if around >= 0 else ''}/{names[value]}"
        for value, around in zip(values, arounds, strict=True)
    )
    return Level(name=name, codes=codes, names=full, parents=np.array(arounds, dtype=np.int32))


class Placer:
    """Finds domains for the pods of one set; `pods` says how many each candidate node holds."""

    def __init__(
        self, room: Room, topology: Topology, positions: Amounts, pods: Amounts, choose: Chooser
    ) -> None:
        self._levels = levels_of(room)
        self._topology = topology
        self._positions = positions
        self._pods = pods
        self._choose = choose
        self._slice = level_index(room, topology.slice_level) if topology.slice_level else None
        self._size = topology.slice_size if topology.slice_level else 1
        self._known: dict[int, Amounts] = {}

    def room_in(self, index: int) -> Amounts:
        """What each domain of a level holds: slices down to the slice level, pods below it."""
        known = self._known.get(index)
        if known is None:
            known = self._known[index] = self._count(index)
        return known

    def _count(self, index: int) -> Amounts:
        level = self._levels[index]
        if self._slice is not None and index < self._slice:
            inner = self._levels[index + 1].parents
            return sum_by(inner, self.room_in(index + 1), len(level.names))
        held = sum_by(level.codes.take(self._positions), self._pods, len(level.names))
        return held // self._size if index == self._slice else held

    def most(self, index: int | None) -> int:
        """The most pods in one domain of a level; without a level, in total."""
        if self._topology.slice_level and self._slice is None:
            return 0
        if index is None and self._slice is None:
            return int(self._pods.sum())
        held = self.room_in(self._slice or 0 if index is None else index)
        if not len(held):
            return 0
        most = int(held.sum() if index is None else held.max())
        return most * (self._size if self._in_slices(index) else 1)

    def _in_slices(self, index: int | None) -> bool:
        return self._slice is not None and (index is None or index <= self._slice)

    def _units(self, index: int | None, count: int) -> int:
        return -(-count // self._size) if self._in_slices(index) else count

    def in_one(self, index: int, count: int) -> Spot | None:
        """All pods in one domain of a level; None if no domain holds them."""
        held = self.room_in(index)
        need = self._units(index, count)
        if not len(held) or int(held.max()) < need:
            return None
        return self._down(index, _fewest(held, need), count)

    def prefer(self, index: int | None, count: int) -> Spot | None:
        """All pods in one domain of a level, else of an outer one, else in as few as possible."""
        if index is not None:
            for outwards in range(index, -1, -1):
                spot = self.in_one(outwards, count)
                if spot is not None:
                    return spot
            held = self.room_in(0)
            if int(held.sum()) >= self._units(0, count):
                return self._down(0, _fewest(held, self._units(0, count)), count)
        if self._slice is not None:
            held = self.room_in(self._slice)
            need = self._units(self._slice, count)
            if int(held.sum()) < need:
                return None
            return self._down(self._slice, _fewest(held, need), count)
        counts = self._choose(self._positions, count)
        return None if counts is None else Spot(counts=counts)

    def _down(self, index: int, shares: list[tuple[int, int]], count: int) -> Spot | None:
        """Nodes for the units given to each domain of a level.

        The spot names domains of this level or of the slice level, whichever is further in.
        """
        counts: dict[int, int] = {}
        named = max(index, self._slice or 0)
        for domain, units in shares:
            mine = min(count, units * self._size if self._in_slices(index) else units)
            count -= mine
            result = self._inside(index, domain, mine)
            if result is None:
                return None
            counts.update(result)
        return spot_of(self._levels[named], counts)

    def _inside(self, index: int, domain: int, count: int) -> dict[int, int] | None:
        """Nodes of one domain for `count` pods, in as few domains of each level as possible."""
        if index + 1 < len(self._levels):
            inner = self._levels[index + 1]
            held = np.where(inner.parents == domain, self.room_in(index + 1), 0)
            need = self._units(index + 1, count)
            # Nodes with the outer label but not the inner one are in no inner domain. Where they
            # are needed, nodes are chosen regardless of inner domains.
            if int(held.sum()) >= need:
                counts: dict[int, int] = {}
                for further, units in _fewest(held, need):
                    size = self._size if self._in_slices(index + 1) else 1
                    mine = min(count, units * size)
                    count -= mine
                    result = self._inside(index + 1, further, mine)
                    if result is None:
                        return None
                    counts.update(result)
                return counts
        here = self._levels[index].codes.take(self._positions) == domain
        return self._choose(self._positions[here], count)


def sum_by(codes: Codes, amounts: Amounts, count: int) -> Amounts:
    """Sums of amounts for each of `count` codes; amounts with code -1 are left out."""
    # Shifted by one, so that code -1 has a sum of its own, which is dropped.
    summed = np.bincount(codes + 1, weights=amounts, minlength=count + 1)[1:]
    return summed.astype(np.int64)


def _fewest(held: Amounts, need: int) -> list[tuple[int, int]]:
    """As few domains as possible that together hold `need` units: (domain, units).

    The largest are filled first; the last is the smallest that holds the rest.
    """
    result: list[tuple[int, int]] = []
    left = held.copy()
    while need > 0:
        enough = left >= need
        if enough.any():
            last = int(np.where(enough, left, np.iinfo(np.int64).max).argmin())
            result.append((last, need))
            break
        largest = int(left.argmax())
        result.append((largest, int(left[largest])))
        need -= int(left[largest])
        left[largest] = 0
    return result


def place(
    room: Room,
    topology: Topology,
    positions: Amounts,
    pods: Amounts,
    count: int,
    choose: Chooser,
) -> Spot | int:
    """Where the pods of one set go, or how many could be placed at most."""
    sliced = level_index(room, topology.slice_level) if topology.slice_level else None
    if sliced is not None:
        inside = levels_of(room)[sliced].codes.take(positions) >= 0
        positions, pods = positions[inside], pods[inside]
    placer = Placer(room, topology, positions, pods, choose)
    required = level_index(room, topology.required) if topology.required else None
    if topology.required:
        most = 0 if required is None else placer.most(required)
    else:
        most = placer.most(None)
    if most < count:
        return most
    if required is not None:
        spot = placer.in_one(required, count)
    else:
        preferred = level_index(room, topology.preferred) if topology.preferred else None
        spot = placer.prefer(preferred, count)
    return most if spot is None else spot


NO_TOPOLOGY = Topology()
# More pods than fit anywhere, and than sums of `space.UNLIMITED` reach.
_TOO_MANY = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Want:
    """Pods to be placed: `mask` says which nodes may take them (None: all that are ready)."""

    name: str
    shape: Shape
    count: int
    mask: Mask | None = None
    topology: Topology = NO_TOPOLOGY
    least: int | None = None  # for `pack_most`; None: all of them
    admission: Admission = ADMITTED  # by the rules of the cluster for its namespace


def place_one(space: Space, want: Want) -> Spot | int:
    """Where a set goes, or how many pods of it could be placed at most."""
    request = want.shape.needs
    if want.count <= 0:
        return Spot(counts={})
    is_free = want.topology == NO_TOPOLOGY
    if is_free and (filled := space.fill(request, want.mask, want.count)) is not None:
        return Spot(counts=filled)
    positions = space.candidates(request, want.mask)
    if is_free:
        counts = space.choose(request, positions, want.count)
        if counts is None:
            return int(space.pods_at(request, positions).sum())
        return Spot(counts=counts)
    return place(
        space.room,
        want.topology,
        positions,
        space.pods_at(request, positions),
        want.count,
        lambda some, count: space.choose(request, some, count),
    )


def most_of(space: Space, want: Want) -> int:
    """How many pods of a set could be placed, regardless of its count."""
    request = want.shape.needs
    positions = space.candidates(request, want.mask)
    pods = space.pods_at(request, positions)
    if want.topology == NO_TOPOLOGY:
        return int(pods.sum())
    most = place(space.room, want.topology, positions, pods, _TOO_MANY, lambda _, __: None)
    assert isinstance(most, int), "more pods than fit anywhere were placed"
    return most
