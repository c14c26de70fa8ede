"""The key by which sets of victims are compared, and lower bounds of it.

`victim_search` says in which order the parts of the key count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from fairway.core.quota.shares import Share

Guilt = tuple[int, int]  # of a queue, by its share: less is guiltier
# For each priority of a set, the highest first: the priority, the work lost, the number of victims.
Losses = tuple[tuple[int, int, int], ...]

GUILTIEST: Final[Guilt] = (-1, 0)


class Harm(NamedTuple):
    """The key by which sets of victims are compared: less is better."""

    come_back: int = 0  # victims that could reclaim elsewhere at once what they used
    has_own: bool = False  # whether any victim is of the preemptor's own queue
    guilt: Guilt = GUILTIEST  # of the least guilty queue
    losses: Losses = ()


class Rank(NamedTuple):
    """What is known of the harm of one candidate, whatever else is preempted."""

    comes_back: bool
    is_own: bool
    guilt: Guilt
    priority: int
    loss: int
    key: str


def losses_of(victims: Iterable[tuple[int, int]]) -> Losses:
    """What victims lose, each given as its priority and the work that it loses.

    One more victim, a higher priority of one, or more work lost never makes the result less. So a
    set of the least that each victim can be gives a lower bound.
    """
    totals: dict[int, tuple[int, int]] = {}
    for priority, loss in victims:
        lost, number = totals.get(priority, (0, 0))
        totals[priority] = (lost + loss, number + 1)
    return tuple((priority, *totals[priority]) for priority in sorted(totals, reverse=True))


def guilt_of(share: Share | None) -> Guilt:
    """The guilt of a queue by its share; where no share counts, none says more than another."""
    return GUILTIEST if share is None else (int(not share.is_infinite), -share.scaled)


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
    ) -> None:
        self._ranked = ranked
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
            losses=losses_of(
                [
                    (priorities[late], losses[late]),
                    *[(priorities[start], losses[start])] * more,
                    *((r.priority, r.loss) for r in ranks),
                ]
            ),
        )


def _from_the_end(values: Sequence[Any], better: Callable[..., Any]) -> list[Any]:
    """The least, or the most, of all values from each place on."""
    return list(accumulate(reversed(values), better))[::-1]
