"""The key by which sets of victims are compared, and lower bounds of it.

`victim_search` says in which order the parts of the key count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from fairway.core.quota.shares import Share

Guilt = tuple[int, int]  # of a queue, by its share: less is guiltier

GUILTIEST: Final[Guilt] = (-1, 0)


class Harm(NamedTuple):
    """The key by which sets of victims are compared: less is better."""

    come_back: int = 0  # victims that could reclaim elsewhere at once what they used
    has_own: bool = False  # whether any victim is of the preemptor's own queue
    guilt: Guilt = GUILTIEST  # of the least guilty queue
    priorities: tuple[int, ...] = ()  # above the lowest in the fleet, the highest first
    loss: int = 0
    number: int = 0


class Rank(NamedTuple):
    """What is known of the harm of one candidate, whatever else is preempted."""

    comes_back: bool
    is_own: bool
    guilt: Guilt
    priority: int
    loss: int
    key: str


def above(lowest: int, priorities: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted((each for each in priorities if each > lowest), reverse=True))


def guilt_of(share: Share) -> Guilt:
    return (int(not share.is_infinite), -share.scaled)


class Bounds:
    """Lower bounds of the harm of sets, from what is known of each candidate.

    Candidates are in order of rank. A set that has all of `kept` and something from `start` on is
    sufficient only if it has so many candidates more, and among them one that is not before the
    first place at which everything from `start` on adds up to what is missing.
    """

    def __init__(
        self,
        ranked: Sequence[Rank],
        gives: Sequence[Sequence[int]],
        missing: Sequence[int],
        lowest: int,
    ) -> None:
        self._ranked = ranked
        self._lowest = lowest
        self._gives = gives
        self._missing = missing
        columns = [[row[place] for row in gives[: len(ranked)]] for place in range(len(missing))]
        self._sums = [[0, *accumulate(column)] for column in columns]
        self._most = [_from_the_end(column, max) for column in columns]
        fields = list(zip(*ranked, strict=True))[:5]
        self._least = [_from_the_end(field, min) for field in fields]

    def of(self, kept: tuple[int, ...], start: int) -> Harm | None:
        """A bound on all such sets; None if none of them is sufficient."""
        more, late = 1, start
        for place, missing in enumerate(self._missing):
            short = missing - sum(self._gives[number][place] for number in kept)
            if short <= 0:
                continue
            sums = self._sums[place]
            if sums[-1] - sums[start] < short:
                return None
            more = max(more, -(-short // self._most[place][start]))
            late = max(late, bisect_left(sums, sums[start] + short) - 1)
        return self._bound(kept, start, late, more - 1)

    def _bound(self, kept: tuple[int, ...], start: int, late: int, more: int) -> Harm:
        """With one candidate from `late` on, and `more` from `start` on."""
        ranks = [self._ranked[number] for number in kept]
        backs, owns, guilts, priorities, losses = self._least
        return Harm(
            come_back=sum(r.comes_back for r in ranks) + backs[late] + more * backs[start],
            has_own=any(r.is_own for r in ranks) or owns[late],
            guilt=max([guilts[late], *(r.guilt for r in ranks)]),
            priorities=above(
                self._lowest,
                [priorities[late], *[priorities[start]] * more, *(r.priority for r in ranks)],
            ),
            loss=sum(r.loss for r in ranks) + losses[late] + more * losses[start],
            number=len(kept) + 1 + more,
        )


def _from_the_end(values: Sequence[Any], better: Callable[..., Any]) -> list[Any]:
    """The least, or the most, of all values from each place on."""
    return list(accumulate(reversed(values), better))[::-1]
