"""Replicas that come back to an earlier group."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.core.model import Division, Group, Policy, ReturnHome
from fairway.core.modes.division import DivisionTarget, divide
from fairway.core.modes.way_home import Move, Pace, return_home
from tests.core.divisions import HOME_AND_CLOUD, after, cases, policy, two_groups

HOME = ReturnHome(enabled=True, after_seconds=600, per_minute=3, surge=2)
LONG_AGO = {"home": 0.0}


def pace(**parts: Any) -> Pace:
    return Pace(**{"room_since": LONG_AGO, "quota_left": 9, **parts})


def home_moves(count: int, starts_first: bool = True) -> tuple[Move, ...]:
    return (Move(source="c", target="h", count=count, starts_first=starts_first),)


RETURNS: dict[str, tuple[ReturnHome, Pace, list[DivisionTarget], tuple[Move, ...]]] = {
    "as many at once as the surge": (HOME, pace(), two_groups(5, 0, 1, 4), home_moves(2)),
    "not when it is off": (ReturnHome(), pace(), two_groups(5, 0, 1, 4), ()),
    "not before the room has lasted": (
        HOME,
        pace(room_since={"home": 401.0}),
        two_groups(5, 0, 1, 4),
        (),
    ),
    "from when it has lasted": (
        HOME,
        pace(room_since={"home": 400.0}),
        two_groups(5, 0, 1, 4),
        home_moves(2),
    ),
    "not without room": (HOME, pace(room_since={}), two_groups(5, 0, 1, 4), ()),
    "no more than there is room": (HOME, pace(), two_groups(1, 0, 1, 4), home_moves(1)),
    "no more than are away": (HOME, pace(), two_groups(9, 0, 1, 1), home_moves(1)),
    "none when none is away": (HOME, pace(), two_groups(9, 9, 5, 0), ()),
    "no more in a minute than the rate": (
        HOME,
        pace(moved_in_last_minute=2),
        two_groups(5, 0, 1, 4),
        home_moves(1),
    ),
    "the rate is used up": (HOME, pace(moved_in_last_minute=3), two_groups(5, 0, 1, 4), ()),
    "what is on its way counts as surge": (
        HOME,
        pace(moving=1),
        two_groups(5, 0, 1, 4),
        home_moves(1),
    ),
    "the surge is used up": (HOME, pace(moving=2), two_groups(5, 0, 1, 4), ()),
    "no more than quota admits": (HOME, pace(quota_left=1), two_groups(5, 0, 1, 4), home_moves(1)),
    "without quota for both they stop first, one by one": (
        HOME,
        pace(quota_left=0),
        two_groups(5, 0, 1, 4),
        home_moves(1, starts_first=False),
    ),
    "without surge they stop first, one by one": (
        ReturnHome(enabled=True, surge=0, per_minute=2),
        pace(),
        two_groups(5, 0, 1, 4),
        home_moves(1, starts_first=False),
    ),
    "replicas without a place come first": (HOME, pace(waiting=1), two_groups(5, 0, 1, 4), ()),
}


@pytest.mark.parametrize("case", RETURNS.values(), ids=list(RETURNS))
def test_replicas_come_home(
    case: tuple[ReturnHome, Pace, list[DivisionTarget], tuple[Move, ...]],
) -> None:
    rule, state, places, expected = case
    rules = policy("DynamicWeight", groups=HOME_AND_CLOUD, return_home=rule)
    assert return_home(places, rules, state, now=1_000.0) == expected


def test_the_last_group_comes_home_first_and_to_several_clusters() -> None:
    groups = (Group(name="home", replicas_max=3), Group(name="near"), Group(name="far"))
    places = [
        DivisionTarget(cluster="h1", group="home", available=9),
        DivisionTarget(cluster="h2", group="home", available=9),
        DivisionTarget(cluster="n", group="near", assigned=2),
        DivisionTarget(cluster="f", group="far", assigned=2),
    ]
    rule = ReturnHome(enabled=True, per_minute=9, surge=9)
    rules = policy("DynamicWeight", groups=groups, return_home=rule)
    assert return_home(places, rules, pace(), now=1_000.0) == (
        Move(source="f", target="h1", count=2, starts_first=True),
        Move(source="n", target="h2", count=1, starts_first=True),
    )


def test_home_must_be_able_to_hold_the_least_count_in_the_end() -> None:
    rules = policy("DynamicWeight", groups=HOME_AND_CLOUD, return_home=HOME, cluster_min=3)
    assert return_home(two_groups(2, 0, 0, 4), rules, pace(), now=1_000.0) == ()
    assert return_home(two_groups(3, 0, 0, 4), rules, pace(), now=1_000.0) == home_moves(2)


@settings(max_examples=150, deadline=None)
@given(cases(), st.integers(1, 4), st.integers(0, 3))
def test_coming_home_ends_and_is_left_alone_by_division(
    case: tuple[int, list[DivisionTarget], Policy], rate: int, surge: int
) -> None:
    _, places, rules = case
    rules = replace(
        rules,
        groups=(Group(name="x"), Group(name="y")),
        spread=(),
        division=Division(type=rules.division.type),
        return_home=ReturnHome(enabled=True, per_minute=rate, surge=surge),
    )
    places = [replace(place, group=place.group or "x") for place in places]
    total = sum(place.assigned for place in places)
    away = sum(place.assigned for place in places if place.group == "y")
    steps = 0
    while True:
        state = Pace(room_since={"x": 0.0}, quota_left=9)
        moves = return_home(places, rules, state, now=1_000.0)
        if not moves:
            break
        assert sum(move.count for move in moves) <= min(rate, surge or 1)
        counts = Counter({place.cluster: place.assigned for place in places})
        for move in moves:
            counts[move.source] -= move.count
            counts[move.target] += move.count
        places = after(places, counts)
        assert all(place.available >= 0 and place.assigned >= 0 for place in places)
        found = divide(total, places, rules)
        assert found.counts == {name: count for name, count in sorted(counts.items()) if count}
        steps += 1
    assert steps <= away
    still_away = any(place.assigned for place in places if place.group == "y")
    is_static = rules.division.type == "StaticWeight"
    room = any(
        place.available and (place.weight or not is_static)
        for place in places
        if place.group == "x"
    )
    assert not (still_away and room)
