"""A validator that has seen other values answers as one that has seen none."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairway.schema.cel.conversion import escape
from fairway.schema.cel.rules import check_rules
from fairway.schema.node import Node, parse

NAMES = (
    "plain", "namespace", "in", "a-b", "a.b", "a/b", "a__b", "__x", "a-b.c/d__e", "self", "size",
    # Names that look like those above once they are escaped.
    "a__dash__b", "__namespace__", "__in__",
)  # fmt: skip
SCALARS: tuple[Any, ...] = (1, True, 1.0, 0, False, 2, "1", "true", "", None)
TIMES = ("2026-01-01T00:00:00Z", "2026-01-01T00:00", "2026-02-30T00:00:00Z")


def one_field(name: str) -> Node:
    """An object with one field, below a root: what is at the root is not remembered."""
    rule = {"rule": f"self.{escape(name)} == 'good'"}
    held = {
        "type": "object",
        "properties": {name: {"type": "string"}},
        "x-kubernetes-validations": [rule],
    }
    return parse({"type": "object", "properties": {"spec": held}})


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_on_an_escaped_field_holds_after_a_good_value(name: str) -> None:
    node = one_field(name)
    answers = [
        bool(check_rules({"spec": {name: value}}, None, node, is_update=False))
        for value in ("good", "bad", "good", "worse")
    ]
    assert answers == [False, True, False, True]


FREE = {"x-kubernetes-preserve-unknown-fields": True}
CASES: dict[str, tuple[dict[str, Any], str, list[Any]]] = {
    "true is not 1": (FREE, "self.x == 1", [{"x": 1}, {"x": True}, {"x": 1.0}, {"x": "1"}]),
    "a list is not the object whose field it looks like": (
        FREE,
        "self.x == 'a'",
        [{"x": "a"}, [["a"]], [{"x": "a"}], {"x": ["a"]}],
    ),
    "a field that is missing is not an empty one": (
        FREE,
        "!has(self.x) || self.x != null",
        [{}, {"x": None}, {"x": []}, {"x": [None]}],
    ),
    "a time that no rule looks at": (
        {
            "type": "object",
            "properties": {
                "x": {"type": "integer"},
                "when": {"type": "string", "format": "date-time"},
            },
        },
        "self.x == 1",
        [{"x": 1}, *({"x": 1, "when": item} for item in TIMES)],
    ),
    "a comment before the arguments": (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        "self.all // every one of them\n(key, self.all // of them\n(other, key == other))",
        [{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 2}],
    ),
    "an unknown field named as an escaped one": (
        {**FREE, "type": "object", "properties": {"a-b": {"type": "integer"}}},
        "!has(self.a__dash__b) || self.a__dash__b == 1",
        [{"a-b": 1}, {"a-b": 1, "a__dash__b": 2}, {"a__dash__b": 2, "a-b": 1}, {"a__dash__b": 2}],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_remembered_of_one_value_is_not_said_of_another(case: str) -> None:
    schema, rule, values = CASES[case]
    schema = {**schema, "x-kubernetes-validations": [{"rule": rule}]}
    root = {"type": "object", "properties": {"spec": schema}}
    warm = parse(root)
    for value in [*values, *values]:
        assert told(value, None, warm) == told(value, None, parse(root)), value


def told(value: Any, old: Any, node: Node) -> list[str]:
    """Every fault of the value, as a person reads them."""
    is_update = old is not None
    old = {"spec": old} if is_update else None
    return [
        repr(check_rule)
        for check_rule in check_rules({"spec": value}, old, node, is_update=is_update)
    ]


# What comes more than once is drawn more often.
LEAVES = ("text", "count", "free", "free", "time")
CONTAINERS = ("object", "object", "object", "map", "list", "keyed", "free")

names = st.sampled_from(NAMES)
scalars = st.sampled_from(SCALARS)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """A schema with rules on it, and on parts of it."""
    match draw(st.sampled_from(CONTAINERS if depth else LEAVES)):
        case "object":
            fields = draw(st.lists(names, min_size=1, max_size=3, unique=True))
            made: dict[str, Any] = {
                "type": "object",
                "properties": {name: draw(schemas(depth - 1)) for name in fields},
            }
            if draw(st.booleans()):
                made["x-kubernetes-preserve-unknown-fields"] = True
            rules = draw(st.lists(rules_on_fields(fields), min_size=1, max_size=3))
        case "map":
            made = {"type": "object", "additionalProperties": draw(schemas(depth - 1))}
            rules = draw(st.lists(rules_on_all("self.all(key, self[key] != {0})"), max_size=1))
        case "list":
            made = {"type": "array", "items": draw(schemas(depth - 1))}
            rules = draw(st.lists(rules_on_all("self.all(one, one != {0})"), max_size=1))
        case "keyed":
            made = {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["plain"],
                "items": {
                    "type": "object",
                    "properties": {"plain": {**FREE}, "a-b": {**FREE}},
                    "x-kubernetes-validations": draw(
                        st.lists(rules_on_fields(["plain", "a-b"]), min_size=1, max_size=2)
                    ),
                },
            }
            rules = []
        case other:
            made = {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "free": dict(FREE),
                "time": {"type": "string", "format": "date-time"},
            }[other]
            rules = draw(st.lists(rules_on_all("self != {0}"), max_size=1))
    return {**made, "x-kubernetes-validations": rules} if rules else made


def literal(value: Any) -> str:
    return json.dumps(value)


@st.composite
def rules_on_fields(draw: st.DrawFn, fields: list[str]) -> dict[str, Any]:
    """A rule on one or two fields of an object: by has, by optionals, or on what it was."""
    first, second = (f"self.{escape(draw(st.sampled_from(fields)))}" for _ in range(2))
    before = first.replace("self.", "oldSelf.", 1)
    value, other = literal(draw(scalars)), literal(draw(scalars))
    optional = first.replace("self.", "self.?", 1)
    form = draw(
        st.sampled_from(
            [
                f"!has({first}) || {first} != {value}",
                f"{first} != {value}",
                f"!(has({first}) && has({second})) || {first} != {second}",
                f"!has({first}) || {first} in [{value}, {other}]",
                f"{optional}.orValue({value}) != {other}",
                f"!has({first}) || type({first}) != type({value})",
                f"!(has({first}) && has({before})) || {first} == {before}",
            ]
        )
    )
    rule = {"rule": form}
    if draw(st.booleans()):
        rule["messageExpression"] = f"'it is ' + string({second})"
    return rule


@st.composite
def rules_on_all(draw: st.DrawFn, form: str) -> dict[str, Any]:
    """A rule on a whole value."""
    rule = {"rule": form.format(literal(draw(scalars)))}
    if draw(st.booleans()):
        rule["messageExpression"] = "'it is ' + string(self)"
    return rule


@st.composite
def values_of(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """A value that may or may not be what the schema asks for, often like one drawn before."""
    if "properties" in schema:
        made = {
            name: draw(values_of(part))
            for name, part in schema["properties"].items()
            if draw(st.integers(0, 4))
        }
        if schema.get("x-kubernetes-preserve-unknown-fields") and draw(st.booleans()):
            made[draw(names)] = draw(scalars)
        return made
    if "additionalProperties" in schema:
        inner = values_of(schema["additionalProperties"])
        return draw(st.dictionaries(names, inner, max_size=2))
    if "items" in schema:
        return draw(st.lists(values_of(schema["items"]), max_size=3))
    if schema.get("format") == "date-time":
        return draw(st.sampled_from(TIMES))
    match schema.get("type"):
        case "string":
            return draw(st.sampled_from(["1", "true", "", "x"]))
        case "integer":
            return draw(st.sampled_from([0, 1, 2]))
        case _:
            return draw(st.one_of(scalars, st.sampled_from([[1], [[1]], {"a": 1}, {"a": True}])))


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[str, Any], list[tuple[Any, Any]]]:
    """A schema, and values with what each of them was before, if anything."""
    schema = draw(schemas())
    value = values_of(schema)
    pairs = st.tuples(value, st.one_of(st.none(), value))
    return schema, draw(st.lists(pairs, min_size=2, max_size=8))


@settings(max_examples=150, deadline=None)
@given(histories())
def test_a_warm_validator_answers_as_a_cold_one(
    history: tuple[dict[str, Any], list[tuple[Any, Any]]],
) -> None:
    schema, pairs = history
    root = {"type": "object", "properties": {"spec": schema}}
    warm = parse(root)
    for value, old in [*pairs, *pairs]:
        before = copy.deepcopy(value)
        answer = told(value, old, warm)
        event("refused" if answer else "accepted")
        assert answer == told(value, old, parse(root))
        assert repr(value) == repr(before)
