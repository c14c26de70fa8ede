"""Which domains to open where they nest: each zone in one region, each cluster in one zone.

Domains that nest form a tree, so the best choice is found exactly, however many clusters there are:
from the finest domains up, for each number of domains that a part of the tree opens at each level,
the most room that these can have together. Domains are compared as wholes: an open domain may use
all that is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

# The most combinations of counts that are kept. Rules that need more are not solved here.
_STATES_MOST = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Domains of one rule that are open already, and how many there must and may be in the end."""

    open_now: frozenset[str]
    least: int
    most: int | None  # None: no limit

    @property
    def needed(self) -> int:
        """New domains that must be opened."""
        return max(0, self.least - len(self.open_now))

    @property
    def counted(self) -> int:
        """New domains that matter: as many as may be opened; without a limit, those needed."""
        return self.needed if self.most is None else max(0, self.most - len(self.open_now))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Something that can be used: its room, and its domain at each level."""

    room: int
    domains: tuple[str, ...]


# New domains at each level -> (room, as far as it is needed; the places, the first as highest bit).
_Best = dict[tuple[int, ...], tuple[int, int]]


def coarse_to_fine(domains: Sequence[tuple[str, ...]]) -> list[int] | None:
    """The levels, the coarsest first; None if their domains do not nest."""
    count = len(domains[0]) if domains else 0
    order = sorted(range(count), key=lambda at: len({path[at] for path in domains}))
    for coarse, fine in pairwise(order):
        if len({path[fine] for path in domains}) < len(
            {(path[coarse], path[fine]) for path in domains}
        ):
            return None
    return order


def choose(
    places: Sequence[Place], levels: Sequence[Level], order: Sequence[int], wanted: int
) -> list[int] | None:
    """The places that may be used, with room for as much of `wanted` as possible.

    None if no choice opens enough domains at each level. Among equals, earlier places come first.
    """
    tree = _Tree(places, levels, order, wanted)
    best = max(tree.of(tuple(range(len(places))), 0).items(), key=tree.rank, default=None)
    if best is None or not tree.is_enough(best[0]):
        return None
    mask = best[1][1]
    return [at for at in range(len(places)) if mask >> (len(places) - 1 - at) & 1]


def is_small(levels: Sequence[Level]) -> bool:
    """Whether few enough combinations of counts have to be kept."""
    states = 1
    for level in levels:
        states *= level.counted + 1
    return states <= _STATES_MOST


class _Tree:
    """The domains of some places as a tree; positions of places stand for a part of it."""

    def __init__(
        self,
        places: Sequence[Place],
        levels: Sequence[Level],
        order: Sequence[int],
        wanted: int,
    ) -> None:
        self._places, self._levels, self._order = places, levels, order
        self._wanted = wanted
        self._zero = (0,) * len(order)

    def rank(self, item: tuple[tuple[int, ...], tuple[int, int]]) -> tuple[bool, int, int]:
        counts, (room, mask) = item
        return (self.is_enough(counts), room, mask)

    def is_enough(self, counts: Sequence[int]) -> bool:
        return all(
            count >= self._levels[level].needed
            for level, count in zip(self._order, counts, strict=True)
        )

    def of(self, positions: tuple[int, ...], depth: int) -> _Best:
        """The best choices within a part of the tree, by the new domains that they open."""
        if depth == len(self._order):
            return self._leaf(positions)
        parts: dict[str, list[int]] = {}
        for at in positions:
            parts.setdefault(self._places[at].domains[self._order[depth]], []).append(at)
        best: _Best = {self._zero: (0, 0)}
        for name, part in parts.items():
            best = self._join(best, self._opened(name, self.of(tuple(part), depth + 1), depth))
        return best

    def _leaf(self, positions: tuple[int, ...]) -> _Best:
        last = len(self._places) - 1
        room = min(self._wanted, sum(self._places[at].room for at in positions))
        return {self._zero: (room, sum(1 << (last - at) for at in positions))}

    def _opened(self, name: str, inside: _Best, depth: int) -> _Best:
        """The choices within a domain, and the choice to leave it closed."""
        level = self._levels[self._order[depth]]
        if name in level.open_now:
            return inside
        result: _Best = {self._zero: (0, 0)}
        if level.most is not None and not level.counted:
            return result
        step = min(1, level.counted)
        for counts, value in inside.items():
            key = (*counts[:depth], step, *counts[depth + 1 :])
            if value[1] and result.get(key, (0, 0)) < value:
                result[key] = value
        return result

    def _join(self, best: _Best, more: _Best) -> _Best:
        result: _Best = {}
        for counts, (room, mask) in best.items():
            for added, (other_room, other_mask) in more.items():
                key = self._sum(counts, added)
                if key is None:
                    continue
                value = (min(self._wanted, room + other_room), mask | other_mask)
                if key not in result or result[key] < value:
                    result[key] = value
        return result

    def _sum(self, counts: tuple[int, ...], added: tuple[int, ...]) -> tuple[int, ...] | None:
        """Counts added up; where nothing limits them, no further than is needed."""
        total = []
        for at, count, more in zip(self._order, counts, added, strict=True):
            level = self._levels[at]
            if count + more > level.counted and level.most is not None:
                return None
            total.append(min(count + more, level.counted))
        return tuple(total)
