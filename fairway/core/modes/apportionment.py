"""Seats in proportion to weights: Webster's method (Sainte-Laguë), in exact whole numbers.

Seats go one at a time to the highest weight / (2 * seats + 1); ties go to the one with fewer seats,
then to the first by name. So more seats in total never cost a name one of its seats (the method is
house-monotone). While the weights add up to the seats or more, no name gets more than its weight.
Taking seats away in reverse order goes back through the same states.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any


class Turn:
    """A claim of one name to the next seat; the smallest turn is first."""

    __slots__ = ("name", "seats", "weight")

    def __init__(self, weight: int, seats: int, name: str) -> None:
        self.weight = weight
        self.seats = seats
        self.name = name

    def __lt__(self, other: Any, /) -> bool:
        mine = self.weight * (2 * other.seats + 1)
        others = other.weight * (2 * self.seats + 1)
        if mine != others:
            return bool(mine > others)
        return bool((self.seats, self.name) < (other.seats, other.name))


class _LastTurn(Turn):
    """The reverse order: the name that got the last seat is first."""

    __slots__ = ()

    def __lt__(self, other: Any, /) -> bool:
        return Turn.__lt__(other, self)


def webster(
    seats: int,
    weights: Mapping[str, int],
    *,
    caps: Mapping[str, int] | None = None,
    start: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """How many of `seats` each name gets, at most its cap; a name without weight gets none.

    `start` says how many each has already. Seats that exceed all caps are not given out.
    """
    begin = start or {}
    given = dict.fromkeys(sorted(weights), 0)
    open_ones = [name for name in given if weights[name] > 0 and _left(name, given, caps) != 0]
    left = seats
    while left > 0 and open_ones:
        step = _leap(left, open_ones, weights, {n: begin.get(n, 0) + given[n] for n in open_ones})
        if caps is not None:
            step = {name: min(more, caps[name] - given[name]) for name, more in step.items()}
        total = sum(step.values())
        if not 0 < total <= left:
            break
        for name, more in step.items():
            given[name] += more
        left -= total
        open_ones = [name for name in open_ones if _left(name, given, caps) != 0]
    turns = [Turn(weights[name], begin.get(name, 0) + given[name], name) for name in open_ones]
    heapq.heapify(turns)
    while left > 0 and turns:
        turn = turns[0]
        given[turn.name] += 1
        left -= 1
        if _left(turn.name, given, caps) == 0:
            heapq.heappop(turns)
        else:
            heapq.heapreplace(turns, Turn(turn.weight, turn.seats + 1, turn.name))
    return given


def _left(name: str, given: Mapping[str, int], caps: Mapping[str, int] | None) -> int | None:
    return None if caps is None else max(caps[name] - given[name], 0)


def _leap(
    left: int, names: list[str], weights: Mapping[str, int], held: Mapping[str, int]
) -> dict[str, int]:
    """Seats that are certain, given at once: a lower bound on the final seats, less those held.

    With W the sum of n weights and T the final number of seats, each name ends with at least
    floor(w * (2T - n) / 2W + 1/2): rounding adds at most n/2 in all, so these sum to at most T.
    """
    total = left + sum(held.values())
    weight = sum(weights[name] for name in names)
    scale = max(2 * total - len(names), 0)
    return {
        name: max((weights[name] * scale + weight) // (2 * weight) - held[name], 0)
        for name in names
    }


def unseat(count: int, weights: Mapping[str, int], seats: Mapping[str, int]) -> dict[str, int]:
    """The seats that are left when `count` are taken away, the last given first."""
    kept = dict(sorted(seats.items()))
    turns = [_LastTurn(weights[name], held - 1, name) for name, held in kept.items() if held > 0]
    heapq.heapify(turns)
    for _ in range(min(count, sum(kept.values()))):
        turn = turns[0]
        kept[turn.name] -= 1
        if kept[turn.name] == 0:
            heapq.heappop(turns)
        else:
            heapq.heapreplace(turns, _LastTurn(turn.weight, turn.seats - 1, turn.name))
    return kept
