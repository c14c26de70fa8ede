"""Which of the feasible clusters is best: weighted scores in whole numbers.

Each score is in -100..100 and is multiplied by its weight, -10..10; a negative weight prefers low
values. Some scores compare the feasible clusters with each other, so scores are comparable only
within one ranking:

    Steady        100 where the workload is already, else 0
    Balance       2 * trunc(100 * (1/2 - others / most others)): 100 for a cluster without workloads
    Allocatable   trunc(200 * ((x - min) / (max - min) - 1/2)); all equal: 100
    Accelerators  the same, of what is free on the best node or in the cluster
    Price         floor(200 * least / x) - 100: 0 at twice the least; small differences stay small
    DataSeconds   the same with a minute added to both: a few seconds do not matter

A score of a scorer is what the facts of the cluster say. A value that is unknown or expired gets
the policy's default, else the worst for the sign of the weight. It is never silently the best.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from operator import mul
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fairway.api.explanations import ScoredCluster, ScorePoints
from fairway.core.measured import MeasuredScore, MeasuredScores
from fairway.core.model import Score
from fairway.core.nodes import Cluster, Mask, Room

_BEST, _WORST = 100, -100
_DATA_GRACE_SECONDS = 60


class ScoreFacts(Protocol):
    """The inputs of scores, for one cluster; each is computed when a score asks for it."""

    @property
    def cluster(self) -> str: ...

    @property
    def others(self) -> int:
        """Workloads in the cluster."""

    @property
    def price_nanos(self) -> int | None:
        """The price of the workload per hour."""

    @property
    def data_seconds(self) -> int | None:
        """Until the workload's data is there."""

    @property
    def scores(self) -> MeasuredScores: ...

    # Of the nodes of a flavor; of all nodes if it is empty.
    def allocatable(self, resource: str, flavor: str) -> int | None: ...
    def free_on_best_node(self, resource: str, flavor: str) -> int | None: ...
    def free_in_cluster(self, resource: str, flavor: str) -> int | None: ...


class Ranked(NamedTuple):
    """A cluster with its total. A tuple, since many are made for each decision."""

    cluster: str
    total: int
    values: tuple[int, ...] = ()  # of each score that has a weight, in the policy's order
    missing: tuple[int, ...] = ()  # which of these values are defaults


_NOWHERE: frozenset[str] = frozenset()


def rank(
    facts: Iterable[ScoreFacts],
    scores: Sequence[Score],
    now: float,
    *,
    current: Container[str] = _NOWHERE,
    unwelcome: Container[str] = _NOWHERE,
) -> list[Ranked]:
    """The clusters, best first: by total, then by name.

    `current` are the clusters where the workload is already. The `unwelcome` ones, with a
    PreferNoSchedule taint, come after all others.
    """
    rows = list(facts)
    if len({row.cluster for row in rows}) != len(rows):
        raise ValueError("a cluster is ranked twice")
    counted = [score for score in scores if score.weight]
    columns: list[Sequence[int | None]] = []
    missing: dict[int, tuple[int, ...]] = {}
    for position, score in enumerate(counted):
        column = _values(rows, score, now, current)
        if None in column:
            for index, value in enumerate(column):
                if value is None:
                    missing[index] = (*missing.get(index, ()), position)
            default = _default(score)
            column = [default if value is None else value for value in column]
        columns.append(column)
    weights = [score.weight for score in counted]
    table = zip(*columns, strict=True) if columns else iter([()] * len(rows))
    ranked = [
        Ranked(row.cluster, sum(map(mul, values, weights)), values, missing.get(index, ()))
        for index, (row, values) in enumerate(zip(rows, table, strict=True))
    ]
    ranked.sort(
        key=lambda ranked_cluster: (
            ranked_cluster.cluster in unwelcome,
            -ranked_cluster.total,
            ranked_cluster.cluster,
        )
    )
    return ranked


_PLAIN = frozenset({"Steady", "Balance"})


def is_plain(scores: Sequence[Score]) -> bool:
    """Whether scores depend only on where workloads are: the default, and the fast path."""
    return all(score.is_built_in and score.name in _PLAIN for score in scores if score.weight)


def scored(
    ranked: Ranked, scores: Sequence[Score], measured: MeasuredScores, now: float
) -> ScoredCluster:
    """A cluster with the scores that make up its total, for display and reports."""
    counted = (score for score in scores if score.weight)
    points = tuple(
        ScorePoints(
            name=score.name,
            item=score.item,
            value=value,
            weight=score.weight,
            is_missing=position in ranked.missing,
            age_seconds=_age(known, now),
            measured=known.measured if known else "",
            samples=known.samples if known else 0,
        )
        for position, (score, value) in enumerate(zip(counted, ranked.values, strict=True))
        for known in (_known(score, measured),)
    )
    return ScoredCluster(cluster=ranked.cluster, total=ranked.total, points=points)


def _known(score: Score, measured: MeasuredScores) -> MeasuredScore | None:
    return None if score.is_built_in else measured.get((score.name, score.item))


def _age(known: MeasuredScore | None, now: float) -> float | None:
    at = None if known is None else known.measured_at
    return None if at is None else max(now - at, 0.0)


def is_better(candidate: int, current: int, margin: int) -> bool:
    """Whether a total is better by the margin, so that a running workload moves for it."""
    return candidate - current >= max(margin, 1)


def data_seconds(cluster: Cluster, data: Iterable[str]) -> int | None:
    """Seconds until all data is in a cluster, copied one after another; None: unknown."""
    total = 0.0
    for name in data:
        seconds = cluster.data_seconds.get(name)
        if seconds is None:
            return None
        total += seconds
    return ceil(total)


def free_accelerators(room: Room, resource: str, counted: Mask | None = None) -> tuple[int, int]:
    """What is free of a resource on the best node that takes pods, and on all such nodes.

    `counted` are the nodes that count; None: all.
    """
    free = room.free.get(resource)
    if free is None:
        return 0, 0
    ready = room.cluster.nodes.ready
    usable = free[ready if counted is None else ready & counted]
    if not usable.size:
        return 0, 0
    return max(int(usable.max()), 0), int(usable.clip(min=0).sum())


def _values(
    rows: Sequence[ScoreFacts], score: Score, now: float, current: Container[str]
) -> Sequence[int | None]:
    """One score of all clusters; None where it is unknown."""
    if not score.is_built_in:
        return [_give(row.scores.get((score.name, score.item)), now) for row in rows]
    if score.name == "Steady":
        return [_BEST if row.cluster in current else 0 for row in rows]
    rule = _RULES[score.name]
    return rule.scale([rule.fact(row, score) for row in rows])


def _default(score: Score) -> int:
    if score.missing is not None:
        return max(_WORST, min(_BEST, score.missing))
    return _WORST if score.weight > 0 else _BEST


def _give(score: MeasuredScore | None, now: float) -> int | None:
    if score is None or (score.valid_until is not None and score.valid_until <= now):
        return None
    return max(_WORST, min(_BEST, score.value))


_Values = list[int | None]


def _balance(others: _Values) -> _Values:
    return list(balance_of(np.array(others, dtype=np.int64)).tolist())


def balance_of(others: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The Balance score of each cluster, from how many workloads each has."""
    most = int(others.max(initial=0))
    if most == 0:
        return np.full(len(others), _BEST, dtype=np.int64)
    above = 50 * most - 100 * others
    # Whole numbers, truncated toward zero.
    column: npt.NDArray[np.int64] = 2 * np.sign(above) * (np.abs(above) // most)
    return column


def _between(values: _Values) -> _Values:
    """Each value scaled linearly from the least (-100) to the largest (100); all equal: 100."""
    known = [value for value in values if value is not None]
    if not known:
        return values
    low, span = min(known), max(known) - min(known)
    if span == 0:
        return [None if value is None else _BEST for value in values]
    return [
        None if value is None else _truncate(200 * (value - low) - 100 * span, span)
        for value in values
    ]


def _near_least(values: _Values, grace: int = 0) -> _Values:
    """100 for the least, 0 for twice as much, toward -100 beyond."""
    least = min((value for value in values if value is not None), default=0) + grace
    return [
        None
        if value is None
        else _BEST
        if value + grace <= least
        else 200 * least // (value + grace) - 100
        for value in values
    ]


def _truncate(numerator: int, denominator: int) -> int:
    """The quotient, truncated toward zero; the denominator is positive."""
    quotient = abs(numerator) // denominator
    return quotient if numerator >= 0 else -quotient


@dataclass(frozen=True, slots=True)
class ScoreRule:
    """A built-in score: what it looks at in each cluster, and how that becomes -100..100."""

    fact: Callable[[ScoreFacts, Score], int | None]
    scale: Callable[[_Values], _Values]


_RULES: Mapping[str, ScoreRule] = {
    "Balance": ScoreRule(lambda facts, _: facts.others, _balance),
    "Allocatable": ScoreRule(
        lambda facts, score: facts.allocatable(score.resource, score.flavor), _between
    ),
    "AcceleratorsOnBestNode": ScoreRule(
        lambda facts, score: facts.free_on_best_node(score.resource, score.flavor), _between
    ),
    "AcceleratorsInCluster": ScoreRule(
        lambda facts, score: facts.free_in_cluster(score.resource, score.flavor), _between
    ),
    "Price": ScoreRule(lambda facts, _: facts.price_nanos, _near_least),
    "DataSeconds": ScoreRule(
        lambda facts, _: facts.data_seconds,
        lambda values: _near_least(values, _DATA_GRACE_SECONDS),
    ),
}
BUILT_IN = frozenset({"Steady", *_RULES})
