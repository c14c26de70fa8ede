"""What is accepted at once is what a walk would leave as it is, without a fault."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.schema.acceptance import accepts_of
from fairway.schema.node import parse
from fairway.schema.validation import Findings, shape_of
from fairway.schema.validation import _walk as walk

SCHEMAS: dict[str, dict[str, Any]] = {
    "name": {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^[a-z]+$"},
    "choice": {"type": "string", "enum": ["a", "b"]},
    "moment": {"type": "string", "format": "date-time"},
    "count": {"type": "integer", "format": "int64", "minimum": 0},
    "few": {"type": "integer", "minimum": 1, "maximum": 3, "exclusiveMaximum": True},
    "flag": {"type": "boolean"},
    "share": {"type": "number"},
    "port": {"x-kubernetes-int-or-string": True},
    "anything": {"x-kubernetes-preserve-unknown-fields": True},
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2}},
    "maybe": {"type": "string", "nullable": True},
    "words": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "parts": {
        "type": "array",
        "maxItems": 2,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 1}},
        },
    },
}
OBJECT = {"type": "object", "properties": SCHEMAS}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 4),
    st.sampled_from([1 << 63, -(1 << 63), 1.0, 1.5]),
    st.sampled_from(["", "a", "b", "abc", "abcd", "A", "a\n", "2026-01-01T00:00:00Z", "today"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["name", "size", "a", *SCHEMAS]), inner, max_size=4),
    ),
    max_leaves=8,
)
objects = st.fixed_dictionaries({}, optional=dict.fromkeys(SCHEMAS, values))


@given(value=objects)
def test_what_is_accepted_is_left_as_it_is_by_a_walk(value: dict[str, Any]) -> None:
    node = parse(OBJECT)
    if accepts_of(node)(value):
        walked, findings = deepcopy(value), Findings()
        walk(walked, shape_of(node), "", findings)
        assert (findings.faults, findings.unknown) == ([], [])
        assert repr(walked) == repr(value)


@pytest.mark.parametrize(
    ("schema", "value", "is_accepted"),
    [
        pytest.param("name", "abc", True, id="a text within its limits"),
        pytest.param("name", "abcd", False, id="not a text that is too long"),
        pytest.param("name", "a\n", False, id="not a text with a line end that nobody sees"),
        pytest.param("moment", "2026-01-01T00:00:00Z", True, id="a moment"),
        pytest.param("count", True, False, id="not true for a number"),
        pytest.param("count", 1 << 63, False, id="not a number of more than 64 bits"),
        pytest.param("few", 3, False, id="not a number at a limit that is left out"),
        pytest.param("labels", {"x": "ab"}, True, id="a map of any keys"),
        pytest.param("open", {"x": {"y": None}}, True, id="a map of anything"),
        pytest.param("words", ["a", "a"], False, id="not a set with the same twice"),
        pytest.param("parts", [{"name": "a", "size": 2}], True, id="items that lack nothing"),
        pytest.param("parts", [{"name": "a"}], False, id="not an item that lacks its default"),
        pytest.param("parts", [{"size": 1}], False, id="not an item that lacks what it must have"),
        pytest.param(
            "parts",
            [{"name": "a", "size": 1}, {"name": "a", "size": 2}],
            False,
            id="not items that share a key",
        ),
        pytest.param(
            "parts", [{"name": "a", "size": 1, "old": 1}], False, id="not an unknown field"
        ),
    ],
)
def test_what_is_accepted(schema: str, value: Any, is_accepted: bool) -> None:
    assert accepts_of(parse(SCHEMAS[schema]))(value) is is_accepted
