"""How many pods there could be room for at most, if some holders left their nodes.

A quick bound before any packing: each pod set is counted alone, by whole nodes and without regard
to topology. Nodes that no candidate is on count once and for all; the others are looked at anew for
each set of candidates. For one pod set without topology the bound is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fairway.core.fit import UNLIMITED, Want
from fairway.core.holders import Foot
from fairway.core.nodes import Room


def stands_on_any(wants: Sequence[Want], room: Room, foot: Foot) -> bool:
    """Whether a holder is on a node that some pods could use, with something that they need."""
    for want in wants:
        mask = room.cluster.nodes.ready if want.mask is None else want.mask
        names = [name for name, _ in want.shape.requests]
        for at, amounts in foot.items():
            if mask[at] and any(name in amounts for name in names):
                return True
    return False


class _Pods:
    """One pod set that does not fit as it is."""

    __slots__ = ("amounts", "feet", "free", "missing", "now")

    def __init__(self, room: Room, want: Want, feet: Sequence[Foot]) -> None:
        nodes = room.cluster.nodes
        mask = nodes.ready if want.mask is None else want.mask
        names = [name for name, _ in want.shape.requests]
        self.amounts = [amount for _, amount in want.shape.requests]
        positions = sorted({at for foot in feet for at in foot if mask[at]})
        columns = [room.free.get(name) for name in names]
        self.free: dict[int, list[int]] = {
            at: [0 if column is None else int(column[at]) for column in columns] for at in positions
        }
        self.now = {at: self._pods(free) for at, free in self.free.items()}
        # What each candidate gives back on each of its nodes that suits the pods.
        self.feet: list[dict[int, list[int]]] = [
            {
                at: [amounts.get(name, 0) for name in names]
                for at, amounts in foot.items()
                if at in self.free and any(name in amounts for name in names)
            }
            for foot in feet
        ]
        slots = np.where(mask, UNLIMITED, 0)
        for column, amount in zip(columns, self.amounts, strict=True):
            if column is None:
                slots = np.zeros(len(nodes), dtype=np.int64)
            else:
                slots = np.minimum(slots, np.maximum(column, 0) // amount)
        self.missing = want.count - int(slots.sum())

    def _pods(self, free: Iterable[int]) -> int:
        least = UNLIMITED
        for amount, needed in zip(free, self.amounts, strict=True):
            here = amount // needed if amount > 0 else 0
            least = here if here < least else least
        return least

    def gained(self, chosen: Iterable[int]) -> int:
        """How many more pods there is room for when these candidates are gone."""
        given: dict[int, list[int]] = {}
        for one in chosen:
            for at, amounts in self.feet[one].items():
                before = given.get(at)
                if before is None:
                    given[at] = amounts
                else:
                    given[at] = [old + new for old, new in zip(before, amounts, strict=True)]
        return sum(self.gained_at(at, amounts) for at, amounts in given.items())

    def gained_at(self, at: int, given: Sequence[int]) -> int:
        free = [old + new for old, new in zip(self.free[at], given, strict=True)]
        return self._pods(free) - self.now[at]


class Ground:
    """The nodes of one cluster, as far as candidates are on them."""

    def __init__(self, room: Room, wants: Sequence[Want], feet: Sequence[Foot]) -> None:
        self._pods = [_Pods(room, want, feet) for want in wants if want.count > 0]
        self._short = [one for one in self._pods if one.missing > 0]

    def allows(self, chosen: Sequence[int]) -> bool:
        """Whether there may be room when these candidates are gone; False is certain."""
        return all(one.gained(chosen) >= one.missing for one in self._short)

    def bundles(self, allowed: Sequence[int], losses: Sequence[int]) -> list[tuple[int, ...]]:
        """Candidates that free something together: for each node, the cheapest that free a pod.

        Those that free most for what is lost come first.
        """
        found: dict[tuple[int, ...], float] = {}
        cheapest_first = sorted(allowed, key=lambda one: (losses[one], one))
        for pods in self._pods:
            on: dict[int, list[int]] = {}
            for one in cheapest_first:
                for at in pods.feet[one]:
                    on.setdefault(at, []).append(one)
            for at in sorted(on):
                given = [0] * len(pods.amounts)
                for position, one in enumerate(on[at]):
                    given = [a + b for a, b in zip(given, pods.feet[one][at], strict=True)]
                    if pods.gained_at(at, given) > 0:
                        bundle = tuple(on[at][: position + 1])
                        lost = 1 + sum(losses[other] for other in bundle)
                        worth = pods.gained(bundle) / lost / len(bundle)
                        found[bundle] = max(found.get(bundle, 0.0), worth)
                        break
        return sorted(found, key=lambda bundle: (-found[bundle], bundle))
