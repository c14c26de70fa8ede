"""Webster's method: seats in proportion to weights, in exact whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.core.modes.apportionment import unseat, webster


def naive_webster(
    seats: int, weights: Mapping[str, int], caps: Mapping[str, int], start: Mapping[str, int]
) -> dict[str, int]:
    given_out = dict.fromkeys(weights, 0)
    for _ in range(seats):
        open_ones = [name for name in weights if weights[name] and given_out[name] < caps[name]]
        if not open_ones:
            break

        def key(name: str) -> tuple[Fraction, int, str]:
            held = start.get(name, 0) + given_out[name]
            return (-Fraction(weights[name], 2 * held + 1), held, name)

        given_out[min(open_ones, key=key)] += 1
    return given_out


WEIGHTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 40), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("seats", "weights", "expected"),
    [
        (12, {"b": 8, "c": 10}, {"b": 5, "c": 7}),
        (1, {"b": 5, "a": 5}, {"a": 1, "b": 0}),
        (3, {"b": 5, "a": 5}, {"a": 2, "b": 1}),
        (2, {"a": 3, "b": 1}, {"a": 1, "b": 1}),
        (5, {"a": 0, "b": 0}, {"a": 0, "b": 0}),
        (0, {"a": 3}, {"a": 0}),
    ],
    ids=[
        "eight to ten share twelve as five and seven",
        "equals go by name",
        "equals go by name again",
        "of equal quotients the one with fewer seats is first",
        "without a weight there is nothing",
        "no seats",
    ],
)
def test_seats_go_by_websters_method(
    seats: int, weights: dict[str, int], expected: dict[str, int]
) -> None:
    assert webster(seats, weights) == expected


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 200), WEIGHTS, st.data())
def test_webster_agrees_with_one_seat_at_a_time_in_fractions(
    seats: int, weights: dict[str, int], data: st.DataObject
) -> None:
    caps = {name: data.draw(st.integers(0, 60)) for name in weights}
    start = {name: data.draw(st.integers(0, 9)) for name in weights}
    assert webster(seats, weights, caps=caps, start=start) == naive_webster(
        seats, weights, caps, start
    )
    endless = dict.fromkeys(weights, seats)
    assert webster(seats, weights) == naive_webster(seats, weights, endless, {})


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 100), WEIGHTS)
def test_one_seat_more_costs_nobody_one(seats: int, weights: dict[str, int]) -> None:
    fewer, more = webster(seats, weights), webster(seats + 1, weights)
    assert all(fewer[name] <= more[name] for name in weights)
    assert unseat(1, weights, more) == fewer or not any(weights.values())


@settings(max_examples=200, deadline=None)
@given(WEIGHTS, st.data())
def test_nobody_gets_more_than_its_weight_while_the_weights_suffice(
    weights: dict[str, int], data: st.DataObject
) -> None:
    seats = data.draw(st.integers(0, sum(weights.values())))
    found = webster(seats, weights)
    assert sum(found.values()) == seats
    assert all(found[name] <= weights[name] for name in weights)
    backward = dict(reversed(weights.items()))
    assert webster(seats, backward) == found
