"""Rules of spread: which clusters may be used, and how evenly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairway.core.clusters.domain_sets import Option
from fairway.core.clusters.spread import Picked, Unmet, domain, domains, pick, relaxations, select
from fairway.core.model import Spread
from fairway.core.nodes import Cluster, Nodes

NODES = Nodes(names=(), capacity={}, ready=np.zeros(0, dtype=np.bool_))
LABELS = {
    "topology.kubernetes.io/region": "east",
    "topology.kubernetes.io/zone": "east-1",
    "fairway.dev/provider": "acme",
    "rack": "",
    "site": "harbour",
}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Spread(by="Cluster"), "a"),
        (Spread(by="Region"), "east"),
        (Spread(by="Zone"), "east-1"),
        (Spread(by="Provider"), "acme"),
        (Spread(by="Label", label="site"), "harbour"),
        (Spread(by="Label", label="rack"), None),
        (Spread(by="Label", label="hall"), None),
    ],
)
def test_a_domain_is_the_cluster_or_a_label_of_it(rule: Spread, expected: str | None) -> None:
    cluster = Cluster(name="a", nodes=NODES, labels=LABELS)
    assert domain(cluster, rule) == expected
    assert domains(cluster, (rule, rule)) == (expected or "", expected or "")


def region(**parts: Any) -> Spread:
    return Spread(by="Region", **parts)


def options(text: str, **parts: Any) -> list[Option]:
    """`e1 e2 w1`: options in order of preference; the letter is the region."""
    return [Option(name=name, domains=(name[0],), **parts) for name in text.split()]


SELECTIONS: dict[str, tuple[str, tuple[Spread, ...], int, str]] = {
    "without rules the first are chosen": ("e1 e2 w1", (), 2, "e1 e2"),
    "two regions at least takes the first of another": ("e1 e2 w1", (region(least=2),), 2, "e1 w1"),
    "one region at most leaves the other out": ("e1 w1 e2", (region(most=1),), 2, "e1 e2"),
    "the region with enough clusters is taken, though not first": (
        "e1 w1 w2",
        (region(most=1),),
        2,
        "w1 w2",
    ),
    "a skew of one alternates": ("e1 e2 e3 w1 w2", (region(skew=1),), 4, "e1 e2 w1 w2"),
    "a region that is used up limits the others": (
        "e1 e2 e3 w1",
        (region(skew=1),),
        4,
        "e1 e2 w1",
    ),
    "a preferred skew does not": (
        "e1 e2 e3 w1",
        (region(skew=1, is_preferred=True),),
        4,
        "e1 e2 e3 w1",
    ),
    "a preferred rule decides where it can": (
        "e1 e2 w1",
        (region(least=2, is_preferred=True),),
        2,
        "e1 w1",
    ),
    "and yields where it can't": ("e1 e2", (region(least=2, is_preferred=True),), 2, "e1 e2"),
    "a preferred most yields rather than choose fewer": (
        "e1 w1 e2",
        (region(most=1, is_preferred=True),),
        3,
        "e1 w1 e2",
    ),
    "at least more than are asked for means all apart": (
        "e1 e2 w1 n1",
        (region(least=3),),
        2,
        "e1 w1",
    ),
    "where most leaves regions out, only those in use are compared": (
        "e1 e2 w1 w2 n1",
        (region(most=2, skew=1),),
        4,
        "e1 e2 w1 w2",
    ),
}


@pytest.mark.parametrize("case", SELECTIONS.values(), ids=list(SELECTIONS))
def test_clusters_are_selected_in_order_within_the_rules(
    case: tuple[str, tuple[Spread, ...], int, str],
) -> None:
    text, rules, count, expected = case
    found = select(options(text), rules, count)
    assert (" ".join(found.chosen), found.unmet) == (expected, ())


def test_a_rule_that_must_hold_and_can_not_is_told() -> None:
    rule = region(least=2)
    found = select(options("e1 e2"), (rule,), 2)
    assert (found.chosen, found.unmet) == ((), (rule,))


def test_the_least_important_preference_is_dropped_first() -> None:
    rules = (region(is_preferred=True), region(), region(is_preferred=True))
    assert list(relaxations(rules)) == [(0, 1, 2), (0, 1), (1,)]


def test_two_rules_that_do_not_nest_are_met_together() -> None:
    """After the first, neither the next of another region nor of another provider would do."""
    found = [
        Option(name="a", domains=("east", "p")),
        Option(name="b", domains=("east", "q")),
        Option(name="c", domains=("west", "p")),
        Option(name="d", domains=("west", "q")),
    ]
    rules = (region(least=2, most=2), Spread(by="Provider", least=2, most=2))
    assert select(found, rules, 2).chosen == ("a", "d")


def test_what_has_seats_may_always_be_used_and_counts() -> None:
    found = [
        Option(name="e1", domains=("e",), room=5),
        Option(name="w1", domains=("w",), seats=1, room=0),
    ]
    assert pick(found, (region(most=1),), 3, active=(0,)) == Picked(allowed=(found[1],), cover=())


def test_domains_in_use_may_stay_though_they_are_more_than_the_rule_has_come_to_allow() -> None:
    found = [
        Option(name="e1", domains=("e",), seats=1, room=5),
        Option(name="w1", domains=("w",), seats=1, room=5),
        Option(name="n1", domains=("n",), room=5),
    ]
    assert pick(found, (region(most=1),), 3, active=(0,)) == Picked(
        allowed=tuple(found[:2]), cover=()
    )


def is_legal(
    chosen: Sequence[Option], everything: Sequence[Option], rules: Sequence[Spread]
) -> bool:
    for position, rule in enumerate(rules):
        counts = Counter(option.domains[position] for option in chosen)
        if rule.most is not None and len(counts) > rule.most:
            return False
        if rule.skew is not None:
            seats = [counts[option.domains[position]] for option in everything]
            if max(seats) - min(seats) > rule.skew:
                return False
    return True


def covers(chosen: Sequence[Option], rules: Sequence[Spread], count: int) -> bool:
    return all(
        len({option.domains[position] for option in chosen}) >= min(rule.least, count)
        for position, rule in enumerate(rules)
    )


@st.composite
def single_rules(draw: st.DrawFn) -> Spread:
    least = draw(st.integers(1, 3))
    if draw(st.booleans()):
        return region(least=least, skew=draw(st.none() | st.integers(1, 3)))
    return region(least=least, most=draw(st.integers(least, 4)))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from("ewns"), min_size=1, max_size=8),
    single_rules(),
    st.integers(1, 8),
)
def test_one_rule_is_held_to_with_as_many_as_brute_force_finds(
    regions: list[str], rule: Spread, count: int
) -> None:
    everything = [Option(name=f"{at}", domains=(name,)) for at, name in enumerate(regions)]
    found = select(everything, (rule,), count)
    chosen = [option for option in everything if option.name in found.chosen]
    possible = [
        size
        for size in range(min(count, len(everything)) + 1)
        for combination in combinations(everything, size)
        if size == 0
        or (is_legal(combination, everything, (rule,)) and covers(combination, (rule,), count))
    ]
    event("chosen" if chosen else "none")
    assert len(chosen) == max(possible)
    assert not chosen or (is_legal(chosen, everything, (rule,)) and covers(chosen, (rule,), count))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ewn"), st.sampled_from("pqr")), min_size=1, max_size=7),
    st.tuples(st.integers(1, 3), st.integers(0, 2)),
    st.tuples(st.integers(1, 3), st.integers(0, 2)),
    st.integers(1, 7),
)
def test_two_rules_of_least_and_most_agree_with_brute_force(
    places: list[tuple[str, str]], first: tuple[int, int], second: tuple[int, int], count: int
) -> None:
    rules = (
        region(least=first[0], most=sum(first)),
        Spread(by="Provider", least=second[0], most=sum(second)),
    )
    everything = [Option(name=f"{at}", domains=place) for at, place in enumerate(places)]
    found = select(everything, rules, count)
    chosen = [option for option in everything if option.name in found.chosen]
    possible = [
        size
        for size in range(min(count, len(everything)) + 1)
        for combination in combinations(everything, size)
        if size == 0
        or (is_legal(combination, everything, rules) and covers(combination, rules, count))
    ]
    assert len(chosen) == max(possible)
    assert bool(found.unmet) == (max(possible) == 0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=11, max_size=60),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(4, 30),
)
def test_many_options_are_picked_greedily_within_the_rule(
    regions: list[str], least: int, more: int, count: int
) -> None:
    rule = region(least=least, most=least + more)
    everything = [Option(name=f"{at:02}", domains=(name,)) for at, name in enumerate(regions)]
    found = select(everything, (rule,), count)
    chosen = [option for option in everything if option.name in found.chosen]
    sizes = sorted(Counter(regions).values(), reverse=True)
    if len(sizes) < least:
        assert found.unmet == (rule,)
        return
    assert is_legal(chosen, everything, (rule,))
    assert covers(chosen, (rule,), count)
    # The largest regions hold most; not all have to be among the first of the order.
    assert len(chosen) == min(count, sum(sizes[: least + more]))


def test_hundreds_of_clusters_do_not_explode() -> None:
    everything = [
        Option(name=f"{at:03}", domains=(f"r{at % 40}", f"z{at % 90}")) for at in range(400)
    ]
    rules = (region(least=20, most=30), Spread(by="Zone", least=30, most=60))
    found = pick(everything, rules, 100, active=(0, 1))
    assert not isinstance(found, Unmet)
    assert len({option.domains[0] for option in found.allowed}) <= 30
    assert len({option.domains[1] for option in found.cover}) >= 30
