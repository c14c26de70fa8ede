"""Clusters chosen by a policy without a workload."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.api.meta import Taint
from fairway.core.clusters.choice import Choice, choose
from fairway.core.measured import MeasuredScore
from fairway.core.model import Group, Policy, Score, Spread
from fairway.core.nodes import Cluster, Nodes
from tests.core.score_facts import Given

NOW = 1_000.0
NODES = Nodes(names=(), capacity={}, ready=np.zeros(0, dtype=np.bool_))
CARBON = Score(name="carbon", is_built_in=False, item="x")
REGION = "topology.kubernetes.io/region"
STEADY = (Score(name="Steady"), CARBON)


def cluster(name: str, **parts: Any) -> Cluster:
    return Cluster(name=name, nodes=NODES, **parts)


def carbon(**by_cluster: int) -> dict[str, Given]:
    return {
        name: Given(cluster=name, scores={("carbon", "x"): MeasuredScore(value)})
        for name, value in by_cluster.items()
    }


def choice(policy: Policy, clusters: dict[str, Cluster], facts: dict[str, Given]) -> Choice:
    """What a policy chooses; nothing is known of clusters that the facts leave out."""
    return choose(policy, clusters, {name: Given(name) for name in clusters} | facts, NOW)


def names(policy: Policy, clusters: dict[str, Cluster], facts: dict[str, Given]) -> list[str]:
    return [item.cluster for item in choice(policy, clusters, facts).chosen]


ABC = {name: cluster(name) for name in "abc"}


def test_the_best_n_are_chosen() -> None:
    policy = Policy(number_of_clusters=2, scores=(CARBON,))
    result = choice(policy, ABC, carbon(a=1, b=30, c=20))
    assert [(item.cluster, item.score) for item in result.chosen] == [("b", 30), ("c", 20)]
    assert result.missing == 0


def test_without_a_number_all_are_chosen_and_with_too_large_a_one_some_are_missing() -> None:
    assert names(Policy(), ABC, {}) == ["a", "b", "c"]
    assert choice(Policy(number_of_clusters=5), ABC, {}).missing == 2


@pytest.mark.parametrize(
    ("better", "expected"),
    [(119, ["a"]), (120, ["b"])],
    ids=["less than the margin changes nothing", "the margin is enough"],
)
def test_a_choice_is_steady_within_the_margin(better: int, expected: list[str]) -> None:
    scores = (Score(name="Steady"), Score(name="carbon", is_built_in=False, item="x", weight=3))
    policy = Policy(number_of_clusters=1, scores=scores, chosen=("a",), move_margin=20)
    # a: 100 for Steady and 0 of carbon; b: three times 40 makes 120, which is better by 20.
    assert names(policy, ABC, carbon(a=0, b=better // 3, c=0)) == expected


def test_earlier_groups_come_first_and_are_named() -> None:
    policy = Policy(
        number_of_clusters=2,
        scores=(CARBON,),
        groups=(Group(name="home", clusters=frozenset({"c"})), Group(name="cloud")),
    )
    result = choice(policy, ABC, carbon(a=1, b=30, c=-50))
    assert [(item.cluster, item.group) for item in result.chosen] == [("c", "home"), ("b", "cloud")]


def test_a_chosen_cluster_outlasts_what_only_keeps_new_pods_away_but_not_what_evicts() -> None:
    away = cluster("a", taints=(Taint(key="x", effect="NoSchedule"),))
    lost = cluster("b", taints=(Taint(key="x", effect="NoExecute"),))
    closed = cluster("c", is_open=False)
    clusters = {item.name: item for item in (away, lost, closed)}
    assert names(Policy(number_of_clusters=3), clusters, {}) == []
    assert names(Policy(number_of_clusters=3, chosen=("a", "b", "c")), clusters, {}) == ["a", "c"]


def test_an_unwelcome_cluster_is_chosen_last() -> None:
    clusters = {**ABC, "a": cluster("a", taints=(Taint(key="x", effect="PreferNoSchedule"),))}
    assert names(Policy(number_of_clusters=3), clusters, {}) == ["b", "c", "a"]


MISCONFIGURED: dict[str, tuple[Policy, str]] = {
    "a number below one": (Policy(number_of_clusters=0, chosen=("b",)), "numberOfClusters"),
    "more domains at least than at most": (
        Policy(
            number_of_clusters=2, spread=(Spread(by="Cluster", least=3, most=2),), chosen=("b",)
        ),
        "spread[0].least",
    ),
    "more domains than clusters": (
        Policy(number_of_clusters=2, spread=(Spread(by="Cluster", least=3),), chosen=("b",)),
        "spread[0].least",
    ),
    "a label without a name": (
        Policy(spread=(Spread(by="Label"),), chosen=("b",)),
        "spread[0].label",
    ),
    "a score that does not exist": (
        Policy(scores=(Score(name="Luck"),), chosen=("b",)),
        "scores[0].builtIn",
    ),
    "a weight out of bounds": (
        Policy(scores=(Score(name="Steady", weight=11),), chosen=("b",)),
        "scores[0].weight",
    ),
}


@pytest.mark.parametrize("case", MISCONFIGURED.values(), ids=list(MISCONFIGURED))
def test_a_policy_that_makes_no_sense_keeps_its_last_good_choice(case: tuple[Policy, str]) -> None:
    policy, fault = case
    result = choice(policy, ABC, {})
    assert [item.cluster for item in result.chosen] == ["b"]
    assert fault in result.faults


def test_rules_that_can_not_hold_keep_the_last_choice_and_are_told() -> None:
    rule = Spread(by="Region", least=2)
    clusters = {name: cluster(name, labels={REGION: "east"}) for name in "abc"}
    policy = Policy(number_of_clusters=2, spread=(rule,), chosen=("b", "gone"))
    result = choice(policy, clusters, {})
    assert [item.cluster for item in result.chosen] == ["b"]
    assert result.unmet == (rule,)


def test_an_edit_whose_rules_can_not_hold_keeps_what_it_would_refuse() -> None:
    rule = Spread(by="Region", least=2)
    clusters = {name: cluster(name, labels={REGION: name}) for name in "abc"}
    policy = Policy(clusters=frozenset({"a"}), spread=(rule,), chosen=("a", "b"))
    result = choice(policy, clusters, {})
    assert [item.cluster for item in result.chosen] == ["a", "b"]
    assert result.unmet == (rule,)


def test_a_rule_that_asks_for_more_domains_than_there_are_is_told() -> None:
    rule = Spread(by="Region", least=3)
    clusters = {name: cluster(name, labels={REGION: name}) for name in "ab"}
    result = choice(Policy(spread=(rule,), chosen=("a", "b")), clusters, {})
    assert [item.cluster for item in result.chosen] == ["a", "b"]
    assert result.unmet == (rule,)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_choosing_again_changes_nothing(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 7))
    clusters = {
        name: cluster(name, labels={REGION: data.draw(st.sampled_from(["e", "w", "n"]))})
        for name in "abcdefg"[:size]
    }
    facts = {name: carbon(**{name: data.draw(st.integers(-100, 100))})[name] for name in clusters}
    rules = data.draw(
        st.sampled_from(
            [(), (Spread(by="Region", skew=1),), (Spread(by="Region", most=2, is_preferred=True),)]
        )
    )
    policy = Policy(
        number_of_clusters=data.draw(st.integers(1, 5)),
        scores=STEADY,
        spread=rules,
        move_margin=data.draw(st.integers(0, 50)),
    )
    first = names(policy, clusters, facts)
    again = Policy(
        number_of_clusters=policy.number_of_clusters,
        scores=STEADY,
        spread=rules,
        move_margin=policy.move_margin,
        chosen=tuple(first),
    )
    assert sorted(names(again, clusters, facts)) == sorted(first)
    assert names(policy, dict(reversed(clusters.items())), facts) == first
