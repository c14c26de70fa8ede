"""Replicas over clusters: shares, steadiness, groups and spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairway.core.model import Division, Group, Policy, Spread
from fairway.core.modes.division import DivisionTarget, Shares, divide, static_weights
from tests.core.divisions import HOME_AND_CLOUD, TYPES, Type, after, cases, policy, two_groups


def with_room(**available: int) -> list[DivisionTarget]:
    return [DivisionTarget(cluster=name, available=room) for name, room in available.items()]


# Division, by the reference's fixtures and by our own.

FRESH: dict[str, tuple[int, list[DivisionTarget], Policy, dict[str, int], int]] = {
    "aggregated over 6, 8, 10: five and seven on the two roomiest, by weight and not by filling": (
        12,
        with_room(a=6, b=8, c=10),
        policy("Aggregated"),
        {"b": 5, "c": 7},
        0,
    ),
    "aggregated in one cluster where one suffices": (
        10,
        with_room(a=6, b=8, c=10),
        policy("Aggregated"),
        {"c": 10},
        0,
    ),
    "of equally few clusters the better scored are taken": (
        5,
        [
            DivisionTarget(cluster="a", available=50),
            DivisionTarget(cluster="b", available=6, score=10),
            DivisionTarget(cluster="c", available=4, score=99),
        ],
        policy("Aggregated"),
        {"b": 5},
        0,
    ),
    "dynamic by what fits: 6, 8, 10 share twelve as 3, 4, 5": (
        12,
        with_room(a=6, b=8, c=10),
        policy("DynamicWeight"),
        {"a": 3, "b": 4, "c": 5},
        0,
    ),
    "dynamic with less room than wanted takes it all, and the rest waits": (
        12,
        with_room(a=2, b=3, c=0),
        policy("DynamicWeight"),
        {"a": 2, "b": 3},
        7,
    ),
    "a place twice as fast gets twice as many": (
        6,
        [
            DivisionTarget(cluster="a", available=10),
            DivisionTarget(cluster="b", available=10, speed_nanos=2_000_000_000),
        ],
        policy("DynamicWeight"),
        {"a": 2, "b": 4},
        0,
    ),
    "but never more than fit": (
        6,
        [
            DivisionTarget(cluster="a", available=4),
            DivisionTarget(cluster="b", available=4, speed_nanos=9_000_000_000),
        ],
        policy("DynamicWeight"),
        {"a": 2, "b": 4},
        0,
    ),
    "static by weights": (
        9,
        [
            DivisionTarget(cluster="a", available=99, weight=1),
            DivisionTarget(cluster="b", available=99, weight=2),
            DivisionTarget(cluster="c", available=99, weight=0),
        ],
        policy("StaticWeight"),
        {"a": 3, "b": 6},
        0,
    ),
    # The reference ignores room for given weights; we never place what does not fit.
    "static: who is full drops out and the others share": (
        9,
        [
            DivisionTarget(cluster="a", available=99, weight=1),
            DivisionTarget(cluster="b", available=4, weight=2),
        ],
        policy("StaticWeight"),
        {"a": 5, "b": 4},
        0,
    ),
    # The reference breaks ties by a hash of the template's UID; ours always go by name.
    "equal weights: the odd one goes to the first by name": (
        3,
        with_room(b=9, a=9),
        policy("StaticWeight"),
        {"a": 2, "b": 1},
        0,
    ),
    "duplicated: all in each": (
        3,
        with_room(a=9, b=3),
        policy("Duplicated"),
        {"a": 3, "b": 3},
        0,
    ),
    "duplicated, as many as fit": (
        3,
        with_room(a=9, b=2, c=0),
        policy("Duplicated"),
        {"a": 3, "b": 2},
        1,
    ),
    "duplicated in at most two clusters": (
        3,
        [DivisionTarget(cluster=name, available=9, domains=(name,)) for name in "abc"],
        policy("Duplicated", spread=(Spread(by="Cluster", most=2),)),
        {"a": 3, "b": 3},
        0,
    ),
    "no more in a cluster than its most": (
        9,
        with_room(a=9, b=9),
        policy("Aggregated", cluster_max=4),
        {"a": 4, "b": 4},
        1,
    ),
    "no fewer in a cluster than its least": (
        10,
        with_room(a=90, b=8),
        policy("DynamicWeight", cluster_min=3),
        {"a": 10},
        0,
    ),
    "the least is raised to where that places more": (
        4,
        [
            DivisionTarget(cluster="a", available=3, weight=10),
            DivisionTarget(cluster="b", available=3, weight=1),
        ],
        policy("StaticWeight", cluster_min=2),
        {"a": 2, "b": 2},
        0,
    ),
    "fewer than the least go nowhere": (
        2,
        with_room(a=9, b=9),
        policy("DynamicWeight", cluster_min=3),
        {},
        2,
    ),
    "nothing to place": (0, with_room(a=9), policy("DynamicWeight"), {}, 0),
    "nowhere to place": (3, [], policy("DynamicWeight"), {}, 3),
}
FRESH |= {
    "groups are filled in order": (
        7,
        two_groups(5, 9),
        policy("DynamicWeight", groups=HOME_AND_CLOUD),
        {"c": 2, "h": 5},
        0,
    ),
    "what fits in no group waits": (
        17,
        two_groups(5, 9),
        policy("Aggregated", groups=HOME_AND_CLOUD),
        {"c": 9, "h": 5},
        3,
    ),
    "a group has no more than its most": (
        7,
        two_groups(5, 9),
        policy("StaticWeight", groups=(Group(name="home", replicas_max=3), Group(name="cloud"))),
        {"c": 4, "h": 3},
        0,
    ),
}


@pytest.mark.parametrize("case", FRESH.values(), ids=list(FRESH))
def test_a_fresh_division(
    case: tuple[int, list[DivisionTarget], Policy, dict[str, int], int],
) -> None:
    replicas, places, rules, expected, waiting = case
    for order in (places, places[::-1]):
        found = divide(replicas, order, rules, is_fresh=True)
        assert found == Shares(counts=expected, waiting=waiting)


def held(**parts: tuple[int, int]) -> list[DivisionTarget]:
    return [
        DivisionTarget(cluster=name, assigned=has, available=room)
        for name, (has, room) in parts.items()
    ]


STEADY: dict[str, tuple[int, list[DivisionTarget], Policy, dict[str, int]]] = {
    "nothing changed": (6, held(a=(1, 50), b=(5, 0)), policy("DynamicWeight"), {"a": 1, "b": 5}),
    "only the difference is placed, by what fits now": (
        12,
        held(a=(6, 0), b=(0, 2), c=(0, 4)),
        policy("DynamicWeight"),
        {"a": 6, "b": 2, "c": 4},
    ),
    "what a cluster has already does not count against it": (
        10,
        held(a=(6, 4), b=(0, 4)),
        policy("DynamicWeight"),
        {"a": 8, "b": 2},
    ),
    "aggregated grows in the clusters in use first": (
        8,
        held(a=(3, 5), b=(0, 90)),
        policy("Aggregated"),
        {"a": 8},
    ),
    "aggregated takes another when they are full": (
        10,
        held(a=(3, 5), b=(0, 90), c=(0, 9)),
        policy("Aggregated"),
        # Seven more over room for 5 and 90.
        {"a": 3, "b": 7},
    ),
    "fewer are taken in proportion to what each has": (
        6,
        held(a=(4, 0), b=(8, 0)),
        policy("DynamicWeight"),
        {"a": 2, "b": 4},
    ),
    "aggregated shrinks into the fewest": (
        8,
        held(a=(4, 0), b=(8, 0), c=(2, 0)),
        policy("Aggregated"),
        {"b": 8},
    ),
    "static shrinks toward the weights": (
        4,
        [
            DivisionTarget(cluster="a", assigned=4, weight=1),
            DivisionTarget(cluster="b", assigned=2, weight=1),
        ],
        policy("StaticWeight"),
        {"a": 2, "b": 2},
    ),
    "static grows toward the weights": (
        8,
        held(a=(4, 9), b=(2, 9)),
        policy("StaticWeight"),
        {"a": 4, "b": 4},
    ),
    "the last group gives first": (
        6,
        two_groups(0, 0, 5, 4),
        policy("DynamicWeight", groups=HOME_AND_CLOUD),
        {"c": 1, "h": 5},
    ),
    "then the one before": (
        3,
        two_groups(0, 0, 5, 4),
        policy("DynamicWeight", groups=HOME_AND_CLOUD),
        {"h": 3},
    ),
    "room in the first group moves nothing that runs": (
        9,
        two_groups(50, 0, 5, 4),
        policy("DynamicWeight", groups=HOME_AND_CLOUD),
        {"c": 4, "h": 5},
    ),
    "a limit that was lowered takes what is above it": (
        9,
        held(a=(7, 0), b=(2, 9)),
        policy("DynamicWeight", cluster_max=5),
        {"a": 5, "b": 4},
    ),
    "who would fall below the least leaves whole": (
        7,
        held(a=(3, 0), b=(6, 9)),
        policy("DynamicWeight", cluster_min=3),
        {"b": 7},
    ),
    "all leave": (0, held(a=(3, 0), b=(6, 9)), policy("Aggregated"), {}),
}


@pytest.mark.parametrize("case", STEADY.values(), ids=list(STEADY))
def test_a_steady_division(case: tuple[int, list[DivisionTarget], Policy, dict[str, int]]) -> None:
    replicas, places, rules, expected = case
    for order in (places, places[::-1]):
        assert divide(replicas, order, rules).counts == expected


def test_a_fresh_division_ignores_what_there_was() -> None:
    places = held(a=(6, 0), b=(0, 6))
    assert divide(6, places, policy("DynamicWeight"), is_fresh=True).counts == {"a": 3, "b": 3}


def test_static_weights_are_the_largest_that_match_and_equal_where_none_does() -> None:
    rules = Division(weights=((frozenset({"a"}), 2), (frozenset({"a", "b"}), 5)))
    assert static_weights(rules, ("c", "b", "a")) == {"a": 5, "b": 5, "c": 0}
    assert static_weights(rules, ("c", "d")) == {"c": 1, "d": 1}
    assert static_weights(Division(weights=((None, 3),)), ("c",)) == {"c": 3}


# Spread.


def regions(**rooms: int) -> list[DivisionTarget]:
    """Clusters `e1=4`: the letter is the region."""
    return [
        DivisionTarget(cluster=name, available=room, domains=(name[0],))
        for name, room in rooms.items()
    ]


SPREAD: dict[str, tuple[int, list[DivisionTarget], Policy, dict[str, int], int]] = {
    "a skew of one keeps regions even": (
        6,
        regions(e1=90, w1=3),
        policy("DynamicWeight", spread=(Spread(by="Region", skew=1),)),
        {"e1": 3, "w1": 3},
        0,
    ),
    "what would be uneven waits": (
        9,
        regions(e1=90, w1=3),
        policy("DynamicWeight", spread=(Spread(by="Region", skew=1),)),
        {"e1": 4, "w1": 3},
        2,
    ),
    "a full region counts as empty": (
        5,
        regions(e1=90, w1=0),
        policy("DynamicWeight", spread=(Spread(by="Region", skew=2),)),
        {"e1": 2},
        3,
    ),
    "a preferred skew is even as far as it can be": (
        9,
        regions(e1=90, w1=3),
        policy("DynamicWeight", spread=(Spread(by="Region", skew=1, is_preferred=True),)),
        {"e1": 6, "w1": 3},
        0,
    ),
    "two regions at least, though one would hold all": (
        5,
        regions(e1=90, w1=3),
        policy("Aggregated", spread=(Spread(by="Region", least=2),)),
        {"e1": 4, "w1": 1},
        0,
    ),
    "one region at most: the one that holds all": (
        5,
        regions(e1=4, w1=3, w2=3),
        policy("DynamicWeight", spread=(Spread(by="Region", most=1),)),
        {"w1": 3, "w2": 2},
        0,
    ),
    "the least count and a skew that allows it": (
        6,
        regions(e1=9, w1=9),
        policy("DynamicWeight", cluster_min=3, spread=(Spread(by="Region", skew=1),)),
        {"e1": 3, "w1": 3},
        0,
    ),
    "the least count and a skew that does not": (
        5,
        regions(e1=9, w1=9),
        policy("DynamicWeight", cluster_min=3, spread=(Spread(by="Region", skew=1),)),
        {},
        5,
    ),
}


@pytest.mark.parametrize("case", SPREAD.values(), ids=list(SPREAD))
def test_a_division_keeps_rules_of_spread(
    case: tuple[int, list[DivisionTarget], Policy, dict[str, int], int],
) -> None:
    replicas, places, rules, expected, waiting = case
    for order in (places, places[::-1]):
        found = divide(replicas, order, rules)
        assert (found.counts, found.waiting) == (expected, waiting)


def test_too_few_regions_place_nothing_and_are_told() -> None:
    rule = Spread(by="Region", least=2)
    found = divide(5, regions(e1=9, w1=0), policy("DynamicWeight", spread=(rule,)))
    assert found == Shares(counts={}, waiting=5, unmet=(rule,))


def test_fewer_replicas_stay_even() -> None:
    places = [replace(region, assigned=3) for region in regions(e1=0, w1=0, w2=0)]
    rules = policy("DynamicWeight", spread=(Spread(by="Region", skew=3, least=2),))
    counts = divide(5, places, rules).counts
    assert sum(counts.values()) == 5
    assert abs(counts["e1"] - counts.get("w1", 0) - counts.get("w2", 0)) <= 3
    assert divide(2, places, rules).counts == {"e1": 1, "w1": 1}


def test_the_last_replica_of_a_region_stays_while_two_regions_are_asked_for() -> None:
    east, west = regions(e1=0, w1=0)
    places = [replace(east, assigned=1), replace(west, assigned=9)]
    rules = policy("DynamicWeight", spread=(Spread(by="Region", least=2),))
    assert divide(4, places, policy("DynamicWeight")).counts == {"w1": 4}
    assert divide(4, places, rules).counts == {"e1": 1, "w1": 3}


def test_what_opens_with_several_and_is_taken_back_leaves_its_part_to_others_at_once() -> None:
    b = DivisionTarget(cluster="b", available=5, domains=("e",))
    c = DivisionTarget(cluster="c", available=6, assigned=1, score=1, domains=("e",))
    d = DivisionTarget(cluster="d", available=1, assigned=3, domains=("w",))
    rules = policy("DynamicWeight", cluster_min=3, spread=(Spread(by="Region", skew=1),))
    found = divide(24, [b, c, d], rules)
    # Three more in b would leave the west, which is full, behind by more than one.
    assert found.counts == {"c": 5, "d": 4}
    assert divide(24, after([b, c, d], found.counts), rules) == found


# Properties.


@settings(max_examples=500, deadline=None)
@given(cases(), st.booleans())
def test_limits_hold_and_order_of_input_is_irrelevant(
    case: tuple[int, list[DivisionTarget], Policy], is_fresh: bool
) -> None:
    replicas, places, rules = case
    found = divide(replicas, places, rules, is_fresh=is_fresh)
    event("waits" if found.waiting else "placed")
    assert sum(found.counts.values()) + found.waiting == replicas
    assert found.waiting >= 0
    of_name = {place.cluster: place for place in places}
    for name, count in found.counts.items():
        assert 0 < count <= of_name[name].available + of_name[name].assigned
        assert rules.division.cluster_max is None or count <= rules.division.cluster_max
        if is_fresh:
            assert count >= rules.division.cluster_min
    for group in rules.groups:
        total = sum(
            found.counts.get(place.cluster, 0) for place in places if place.group == group.name
        )
        assert group.replicas_max is None or total <= group.replicas_max
    assert divide(replicas, places[::-1], rules, is_fresh=is_fresh) == found


@settings(max_examples=500, deadline=None)
@given(cases())
def test_dividing_again_changes_nothing(
    case: tuple[int, list[DivisionTarget], Policy],
) -> None:
    replicas, places, rules = case
    first = divide(replicas, places, rules)
    again = divide(replicas, after(places, first.counts), rules)
    assert again.counts == first.counts


@settings(max_examples=200, deadline=None)
@given(cases())
def test_a_change_only_adds_or_only_takes(case: tuple[int, list[DivisionTarget], Policy]) -> None:
    replicas, places, rules = case
    plain = Policy(
        groups=(Group(name="x"), Group(name="y")), division=Division(type=rules.division.type)
    )
    places = [replace(place, group=place.group or "x") for place in places]
    assigned = {place.cluster: place.assigned for place in places}
    counts = divide(replicas, places, plain).counts
    if replicas >= sum(assigned.values()):
        assert all(counts.get(name, 0) >= count for name, count in assigned.items())
    else:
        assert all(counts.get(name, 0) <= count for name, count in assigned.items())
        assert sum(counts.values()) == replicas


@settings(max_examples=200, deadline=None)
@given(cases(), st.integers(0, 10))
def test_scale_in_then_out_returns_to_the_same(
    case: tuple[int, list[DivisionTarget], Policy], fewer: int
) -> None:
    """By given weights always; by room where nothing else became free in between."""
    replicas, places, rules = case
    kind = rules.division.type
    if kind == "StaticWeight":
        places = [replace(place, assigned=0) for place in places]
    plain = Policy(groups=(Group(name="x"), Group(name="y")), division=Division(type=kind))
    places = [replace(place, group=place.group or "x") for place in places]
    full = divide(replicas, places, plain).counts
    if kind != "StaticWeight":
        places = [replace(item, available=0) for item in after(places, full)]
    total = sum(full.values())
    few = divide(max(total - fewer, 0), after(places, full), plain).counts
    again = divide(total, after(places, few), plain).counts
    assert again == full


@settings(max_examples=300, deadline=None)
@given(cases())
def test_a_fresh_division_keeps_every_rule_that_must_hold(
    case: tuple[int, list[DivisionTarget], Policy],
) -> None:
    replicas, places, rules = case
    counts = divide(replicas, places, rules, is_fresh=True).counts
    names = [group.name for group in rules.groups] or [""]
    for rule in rules.spread:
        if rule.is_preferred or not counts:
            continue
        used = {place.domains[0] for place in places if place.cluster in counts}
        event(f"least {rule.least}, most {rule.most}, skew {rule.skew}")
        assert len(used) >= min(rule.least, replicas // max(rules.division.cluster_min, 1))
        assert rule.most is None or len(used) <= rule.most
        for group in names:
            seats = Counter({place.domains[0]: 0 for place in places if place.group == group})
            for place in places:
                if place.group == group:
                    seats[place.domains[0]] += counts.get(place.cluster, 0)
            if rule.skew is not None and seats:
                assert max(seats.values()) - min(seats.values()) <= rule.skew


def legal_vectors(
    replicas: int, places: Sequence[DivisionTarget], rules: Policy
) -> list[tuple[int, ...]]:
    """All counts that keep the limits of one group and one rule, by looking at all."""
    least = rules.division.cluster_min
    found = []
    for vector in product(*(range(place.available + 1) for place in places)):
        if sum(vector) > replicas or any(0 < count < least for count in vector):
            continue
        counts: Counter[str] = Counter({place.domains[0]: 0 for place in places})
        for value, count in zip(places, vector, strict=True):
            counts[value.domains[0]] += count
        used = sum(count > 0 for count in counts.values())
        if sum(vector) and any(
            used < min(rule.least, replicas)
            or (rule.most is not None and used > rule.most)
            or (rule.skew is not None and max(counts.values()) - min(counts.values()) > rule.skew)
            for rule in rules.spread
        ):
            continue
        found.append(vector)
    return found


@settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 14),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from("ewn")), min_size=1, max_size=5),
    st.sampled_from(TYPES),
    st.sampled_from(
        [
            ((), 0),
            ((), 2),
            ((), 3),
            ((Spread(by="Region", skew=1),), 0),
            ((Spread(by="Region", skew=2, least=2),), 0),
            ((Spread(by="Region", most=1),), 0),
            ((Spread(by="Region", least=2, most=2),), 0),
            ((Spread(by="Region", least=3),), 0),
        ]
    ),
)
def test_as_many_are_placed_as_brute_force_finds(
    replicas: int,
    rooms: list[tuple[int, str]],
    kind: Type,
    limits: tuple[tuple[Spread, ...], int],
) -> None:
    places = [
        DivisionTarget(cluster=f"{at}", available=room, domains=(name,))
        for at, (room, name) in enumerate(rooms)
    ]
    rules = policy(kind, spread=limits[0], cluster_min=limits[1])
    found = divide(replicas, places, rules).counts
    vector = tuple(found.get(place.cluster, 0) for place in places)
    legal = legal_vectors(replicas, places, rules)
    assert vector in legal
    assert sum(vector) == max(map(sum, legal))
    if kind == "Aggregated" and not any(limits) and sum(vector) == replicas:
        fewest = min(sum(count > 0 for count in item) for item in legal if sum(item) == replicas)
        assert len(found) == fewest
