"""Whether two JSON values are the same: true is not 1, and 1.0 is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.equality import same
from fairway.api.kindrule import EnvironmentRule, HoldRule, PlayRule, PodSetRule
from fairway.api.meta import Part
from fairway.api.work import Manifest
from fairway.api.workload import Template
from tests.schema.things import alike, json_values, stored_text

pairs = json_values.flatmap(
    lambda item: st.tuples(st.just(item), st.one_of(alike(item), json_values))
)


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        (True, 1, False),
        (0, False, False),
        (True, 1.0, False),
        (1, 1.0, True),
        ("1", 1, False),
        ([True], [1], False),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}, False),
        ({"a": 1, "b": True}, {"b": True, "a": 1}, True),
        ({"a": 1, "b": True}, {"b": 1, "a": 1}, False),
        ((True,), (1,), False),
        (None, False, False),
    ],
)
def test_same(left: Any, right: Any, want: bool) -> None:
    assert same(left, right) is want
    assert same(right, left) is want


@given(pairs)
def test_two_values_are_the_same_if_their_texts_are(pair: tuple[Any, Any]) -> None:
    left, right = pair
    assert same(left, right) is (stored_text(left) == stored_text(right))


@given(json_values)
def test_a_value_is_the_same_in_another_order(value: Any) -> None:
    assert same(value, _turned(value))


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(part) for key, part in reversed(value.items())}
    return [_turned(part) for part in value] if isinstance(value, list) else value


def _parts_of(value: Any) -> list[Part]:
    """One piece of every sort that holds plain JSON."""
    plain = {"spec": {"x": value}}
    return [
        Manifest(object=plain),
        Template(manifests=({}, plain)),
        HoldRule(held=plain, released={}),
        HoldRule(held={}, released=plain),
        EnvironmentRule(name="V", json=plain),
        PlayRule(status=plain),
        PodSetRule(name="main", pod=plain),
    ]


def test_pieces_with_plain_json_tell_true_from_1() -> None:
    """So a work, a workload or a rule of a kind that changed like that is sent and loaded again."""
    for part, other, equal in zip(_parts_of(1), _parts_of(True), _parts_of(1), strict=True):
        assert part != other
        assert not part == other  # noqa: SIM201 - both operators are ours
        assert part == equal
        assert not part != equal  # noqa: SIM202 - both operators are ours
