"""Scores, totals and steadiness."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.explanations import ScorePoints
from fairway.core.clusters.ranking import (
    data_seconds,
    free_accelerators,
    is_better,
    rank,
    scored,
)
from fairway.core.measured import MeasuredScore
from fairway.core.model import Score
from fairway.core.nodes import Cluster, Nodes, Room
from tests.core.score_facts import Given

NOW = 1_000.0
GPU = "nvidia.com/gpu"
NODES = Nodes(names=(), capacity={}, ready=np.zeros(0, dtype=np.bool_))
CARBON = Score(name="carbon", is_built_in=False, item="x")


def values(name: str, facts: list[Given], **parts: Any) -> dict[str, int]:
    ranked = rank(facts, (Score(name=name, **parts),), NOW)
    return {ranked_cluster.cluster: ranked_cluster.values[0] for ranked_cluster in ranked}


def test_balance_is_the_references_formula() -> None:
    facts = [
        Given(cluster=name, others=count) for name, count in zip("abc", (1, 2, 3), strict=True)
    ]
    assert values("Balance", facts) == {"a": 32, "b": -32, "c": -100}


def test_balance_without_any_others_is_best_for_all() -> None:
    assert values("Balance", [Given(cluster="a"), Given(cluster="b")]) == {"a": 100, "b": 100}


def test_steady_prefers_where_it_is() -> None:
    ranked = rank(
        [Given(cluster="a"), Given(cluster="b")], (Score(name="Steady"),), NOW, current=("b",)
    )
    assert [(ranked_cluster.cluster, ranked_cluster.total) for ranked_cluster in ranked] == [
        ("b", 100),
        ("a", 0),
    ]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("Allocatable", "allocatable"),
        ("AcceleratorsOnBestNode", "free_on_best_node"),
        ("AcceleratorsInCluster", "free_in_cluster"),
    ],
)
def test_amounts_are_between_the_least_and_the_most_truncated_toward_zero(
    name: str, field: str
) -> None:
    amounts = {"a": 0, "b": 1, "c": 2, "d": 3}
    facts = [Given(value, amounts={field: {GPU: count}}) for value, count in amounts.items()]
    assert values(name, facts) == {"a": -100, "b": -33, "c": 33, "d": 100}
    same = [Given(name, amounts={field: {GPU: 7}}) for name in amounts]
    assert set(values(name, same).values()) == {100}, "all equal is best, not worst"


def test_the_cheapest_is_best_and_a_trifle_more_is_a_trifle_less() -> None:
    facts = [
        Given(cluster=name, price_nanos=price)
        for name, price in {"a": 1000, "b": 1001, "c": 2000, "d": 10**9}.items()
    ]
    assert values("Price", facts) == {"a": 100, "b": 99, "c": 0, "d": -100}
    free = [Given(cluster="a", price_nanos=0), Given(cluster="b", price_nanos=5)]
    assert values("Price", free) == {"a": 100, "b": -100}


def test_nobody_minds_seconds_until_the_data_is_there() -> None:
    facts = [
        Given(cluster=name, data_seconds=seconds)
        for name, seconds in {"a": 0, "b": 1, "c": 60, "d": 36_000}.items()
    ]
    assert values("DataSeconds", facts) == {"a": 100, "b": 96, "c": 0, "d": -100}


MISSING: dict[str, tuple[tuple[int, float | None] | None, dict[str, int], int, bool]] = {
    "a score counts": ((40, None), {}, 40, False),
    "one that is still valid counts": ((40, NOW + 1), {}, 40, False),
    "an expired one is the worst": ((40, NOW), {}, -100, True),
    "a missing one is the worst": (None, {}, -100, True),
    "the worst for a negative weight is the most": (None, {"weight": -2}, 100, True),
    "the policy may state what a missing one is": (None, {"missing": 7}, 7, True),
    "zero may be stated": ((40, NOW - 5), {"missing": 0, "weight": -1}, 0, True),
    "scores are within bounds": ((4000, None), {}, 100, False),
}


@pytest.mark.parametrize("case", MISSING.values(), ids=list(MISSING))
def test_a_missing_score_is_never_silently_the_best(
    case: tuple[tuple[int, float | None] | None, dict[str, int], int, bool],
) -> None:
    given_score, parts, expected, is_missing = case
    score = Score(name="carbon", is_built_in=False, item="x", **parts)
    measured = (
        {} if given_score is None else {("carbon", "x"): MeasuredScore(*given_score, NOW - 9)}
    )
    (best,) = rank([Given(cluster="a", scores=measured)], (score,), NOW)
    points = ScorePoints(
        name="carbon",
        item="x",
        value=expected,
        weight=score.weight,
        is_missing=is_missing,
        age_seconds=9 if measured else None,
    )
    assert scored(best, (score,), measured, NOW).points == (points,)
    assert best.total == expected * score.weight


def test_a_built_in_score_can_be_missing_too() -> None:
    facts = [Given(cluster="a", price_nanos=5), Given(cluster="b")]
    assert values("Price", facts) == {"a": 100, "b": -100}
    assert values("Price", facts, weight=-1) == {"a": 100, "b": 100}


def test_totals_are_weighted_and_ties_go_by_name() -> None:
    facts = [
        Given(cluster="b", others=0, scores={("carbon", "x"): MeasuredScore(10)}),
        Given(cluster="a", others=0, scores={("carbon", "x"): MeasuredScore(10)}),
        Given(cluster="c", others=0, scores={("carbon", "x"): MeasuredScore(50)}),
    ]
    scores = (
        Score(name="Balance", weight=2),
        Score(name="carbon", is_built_in=False, item="x", weight=-3),
        Score(name="Steady", weight=0),
    )
    ranked = rank(facts, scores, NOW)
    assert [(ranked_cluster.cluster, ranked_cluster.total) for ranked_cluster in ranked] == [
        ("a", 170),
        ("b", 170),
        ("c", 50),
    ]
    assert rank(reversed(facts), scores, NOW) == ranked
    assert [item.cluster for item in rank(facts, scores, NOW, unwelcome=("a",))] == ["b", "c", "a"]


def test_ranking_a_cluster_twice_is_a_broken_promise() -> None:
    with pytest.raises(ValueError, match="twice"):
        rank([Given(cluster="a"), Given(cluster="a")], (), NOW)


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 10**18), min_size=1),
    st.integers(-10, 10),
)
def test_amounts_agree_with_the_formula_in_fractions(amounts: dict[str, int], weight: int) -> None:
    facts = [Given(name, amounts={"allocatable": {GPU: count}}) for name, count in amounts.items()]
    ranked = rank(facts, (Score(name="Allocatable", weight=weight),), NOW)
    low, high = min(amounts.values()), max(amounts.values())
    for ranked_cluster in ranked:
        share = (
            Fraction(amounts[ranked_cluster.cluster] - low, high - low)
            if high > low
            else Fraction(1)
        )
        assert ranked_cluster.total == weight * int((share - Fraction(1, 2)) * 200)
    assert [ranked_cluster.total for ranked_cluster in ranked] == sorted(
        (ranked_cluster.total for ranked_cluster in ranked), reverse=True
    )


@pytest.mark.parametrize(
    ("candidate", "current", "margin", "expected"),
    [(120, 100, 20, True), (119, 100, 20, False), (100, 100, 0, False), (101, 100, 0, True)],
)
def test_only_the_margin_moves_what_runs(
    candidate: int, current: int, margin: int, expected: bool
) -> None:
    assert is_better(candidate, current, margin) is expected


def test_facts_can_be_read_off_a_cluster() -> None:
    nodes = Nodes(
        names=("n1", "n2", "n3"),
        capacity={GPU: np.array([4000, 8000, 9000], dtype=np.int64)},
        ready=np.array([True, True, False]),
    )
    one = Cluster(name="a", nodes=nodes, data_seconds={"web": 1.5, "books": 2.25})
    assert free_accelerators(Room(one), GPU) == (8000, 12000)
    assert free_accelerators(Room(one), "cpu") == (0, 0)
    assert data_seconds(one, ("web", "books")) == 4
    assert data_seconds(one, ("web", "films")) is None
    assert data_seconds(one, ()) == 0
