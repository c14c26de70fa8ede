"""Rules on values: what is refused, and in which words.

The tables named GOLDEN were compared with kube-apiserver 1.36.4, word by word.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairway.schema.cel.rules import check_rules
from fairway.schema.node import Node, parse

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["a"],
    "x-kubernetes-validations": [
        {"rule": "self.a < 100", "message": "a too big"},
        {"rule": "!has(self.b) || self.b != 'dup'", "reason": "FieldValueDuplicate"},
        {
            "rule": "!has(self.b) || self.b != 'req'",
            "reason": "FieldValueRequired",
            "message": "needs",
        },
        {
            "rule": "!has(self.b) || self.b != 'forb'",
            "reason": "FieldValueForbidden",
            "fieldPath": ".b",
        },
        {"rule": "self.a != 7", "messageExpression": "'seven: ' + (self.a == 7 ? 'yes' : 'no')"},
        {"rule": "self.a != 8", "messageExpression": "self.m['zz']", "message": "fall"},
        {"rule": "self.a != 9 || self.m['zz'] == 'b'"},
        {"rule": "self.a != 10 || 1 / (self.a - 10) == 0"},
        {"rule": "self.a != 11 || self.ios > 5"},
        {"rule": "self.a != 12 || self.l[5] == 5"},
        {"rule": "self.a != 15 || int(self.b) == 1"},
        {"rule": "oldSelf.a <= self.a", "message": "a may not shrink"},
        {
            "rule": "!oldSelf.hasValue() || oldSelf.value().a != 50",
            "optionalOldSelf": True,
            "message": "fifty is final",
        },
        {
            "rule": "oldSelf.hasValue() || self.a != 51",
            "optionalOldSelf": True,
            "message": "not 51 at creation",
        },
    ],
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "string", "x-kubernetes-validations": [{"rule": "self.size() < 10"}]},
        "ios": {"x-kubernetes-int-or-string": True},
        "when": {"type": "string", "format": "date-time"},
        "m": {
            "type": "object",
            "additionalProperties": {
                "type": "string",
                "x-kubernetes-validations": [
                    {"rule": "self != 'bad'"},
                    {"rule": "self == oldSelf", "message": "immutable"},
                ],
            },
        },
        "l": {
            "type": "array",
            "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]},
        },
        "ml": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "x-kubernetes-validations": [{"rule": "self.size() < 3"}],
            "items": {
                "type": "object",
                "required": ["k"],
                "x-kubernetes-validations": [
                    {"rule": "self.v >= oldSelf.v", "message": "v grows"},
                    {"rule": "self.v != 13"},
                ],
                "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
            },
        },
    },
}
THING = parse(
    {
        "type": "object",
        "x-kubernetes-validations": [
            {"rule": "self.metadata.name.startsWith('t')", "message": "name must start with t"},
            {"rule": "self.spec.a < 1000", "fieldPath": ".spec.a"},
        ],
        "properties": {"spec": SPEC},
    }
)
FULL = {"ios": "x", "l": [1], "m": {"q": "w"}}

GOLDEN_CREATIONS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "what breaks no rule passes": ({"a": 1}, []),
    "a fieldPath moves the fault": (
        {"a": 1001},
        [
            "spec.a: Invalid value: failed rule: self.spec.a < 1000",
            "spec: Invalid value: a too big",
        ],
    ),
    "a duplicate has no detail": ({"a": 1, "b": "dup"}, ["spec: Duplicate value"]),
    "a reason of required": ({"a": 1, "b": "req"}, ["spec: Required value: needs"]),
    "a reason of forbidden": (
        {"a": 1, "b": "forb"},
        ["spec.b: Forbidden: failed rule: !has(self.b) || self.b != 'forb'"],
    ),
    "a scalar is shown": (
        {"a": 1, "b": "longerthanten"},
        ['spec.b: Invalid value: "longerthanten": failed rule: self.size() < 10'],
    ),
    "a message is computed": ({"a": 7}, ["spec: Invalid value: seven: yes"]),
    "a message that cannot be computed gives way": ({"a": 8}, ["spec: Invalid value: fall"]),
    "a missing key": (
        {"a": 9, **FULL},
        [
            (
                'spec: Invalid value: "object": no such key: zz evaluating rule: '
                "self.a != 9 || self.m['zz'] == 'b'"
            )
        ],
    ),
    "a division by zero": (
        {"a": 10},
        [
            (
                'spec: Invalid value: "object": division by zero evaluating rule: '
                "self.a != 10 || 1 / (self.a - 10) == 0"
            )
        ],
    ),
    "an operator without such an overload": (
        {"a": 11, **FULL},
        [
            (
                "spec: Invalid value: \"object\": 'no such overload': "
                "call arguments did not match a supported operator, function or macro "
                "signature for rule: "
                "self.a != 11 || self.ios > 5"
            )
        ],
    ),
    "an index out of bounds": (
        {"a": 12, **FULL},
        [
            (
                'spec: Invalid value: "object": index out of bounds: 5 evaluating rule: '
                "self.a != 12 || self.l[5] == 5"
            )
        ],
    ),
    "a failed conversion": (
        {"a": 15, "b": "A_"},
        [
            (
                "spec: Invalid value: \"object\": type conversion error from 'string' to 'int' "
                "evaluating rule: self.a != 15 || int(self.b) == 1"
            )
        ],
    ),
    "items and map values by index and key": (
        {"a": 1, "m": {"k.x": "bad"}, "l": [0, 1, -1]},
        [
            "spec.m[k.x]: Invalid value: \"bad\": failed rule: self != 'bad'",
            "spec.l[0]: Invalid value: 0: failed rule: self > 0",
            "spec.l[2]: Invalid value: -1: failed rule: self > 0",
        ],
    ),
    "a list and its items": (
        {"a": 1, "ml": [{"k": "a", "v": 13}, {"k": "b", "v": 1}, {"k": "c", "v": 1}]},
        [
            "spec.ml: Invalid value: failed rule: self.size() < 3",
            "spec.ml[0]: Invalid value: failed rule: self.v != 13",
        ],
    ),
    "an optional oldSelf is none at creation": (
        {"a": 51},
        ["spec: Invalid value: not 51 at creation"],
    ),
}
GOLDEN_UPDATES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "a transition rule compares": (
        {"a": 5},
        {"a": 4},
        ["spec: Invalid value: a may not shrink"],
    ),
    "an optional oldSelf has a value": (
        {"a": 50},
        {"a": 52},
        ["spec: Invalid value: fifty is final"],
    ),
    "map values are matched by key, and a new key has no old value": (
        {"a": 5, "m": {"x": "y"}},
        {"a": 5, "m": {"x": "z", "n": "new"}},
        ['spec.m[x]: Invalid value: "z": immutable'],
    ),
    "items of a map list are matched by their key": (
        {"a": 5, "ml": [{"k": "x", "v": 5}]},
        {"a": 5, "ml": [{"k": "y", "v": 1}, {"k": "x", "v": 4}]},
        ["spec.ml[1]: Invalid value: v grows"],
    ),
    "an unchanged list item of an atomic list that changed is still checked": (
        {"a": 5, "l": [0]},
        {"a": 5, "l": [0, 1]},
        ["spec.l[0]: Invalid value: 0: failed rule: self > 0"],
    ),
    "a value that was wrong and did not change is let be": (
        {"a": 101, "b": "longerthanten", "l": [0], "m": {"k": "bad"}},
        {"a": 102, "b": "longerthanten", "l": [0], "m": {"k": "bad"}},
        ["spec: Invalid value: a too big"],
    ),
    "an unchanged item of a map list is let be": (
        {"a": 5, "ml": [{"k": "x", "v": 13}]},
        {"a": 5, "ml": [{"k": "y", "v": 13}, {"k": "x", "v": 13}]},
        ["spec.ml[0]: Invalid value: failed rule: self.v != 13"],
    ),
}


def thing(spec: dict[str, Any], name: str = "t") -> dict[str, Any]:
    return {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def faults(value: Any, node: Node, old: Any = None, path: str = "") -> list[str]:
    found = check_rules(value, old, node, path, is_update=old is not None)
    return [str(fault) for fault in found]


@pytest.mark.parametrize(("spec", "expected"), GOLDEN_CREATIONS.values(), ids=GOLDEN_CREATIONS)
def test_creation(spec: dict[str, Any], expected: list[str]) -> None:
    assert faults(thing(spec), THING) == expected


@pytest.mark.parametrize(("old", "spec", "expected"), GOLDEN_UPDATES.values(), ids=GOLDEN_UPDATES)
def test_update(old: dict[str, Any], spec: dict[str, Any], expected: list[str]) -> None:
    assert faults(thing(spec), THING, thing(old)) == expected


def test_a_rule_on_the_whole_object_has_no_path() -> None:
    (found,) = check_rules(thing({"a": 1}, "x"), None, THING, is_update=False)
    assert (found.path, found.message) == ("", "name must start with t")


def test_the_whole_object_shows_of_its_metadata_only_the_names() -> None:
    node = parse(
        {
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "self.kind == 'Thing' && has(self.metadata.name)"},
                {"rule": "!has(self.metadata.labels)"},
            ],
        }
    )
    value = thing({})
    value["metadata"]["labels"] = {"x": "y"}
    assert faults(value, node) == []


def test_an_old_value_is_no_matter_at_creation() -> None:
    found = check_rules(thing({"a": 4}), thing({"a": 5}), THING, is_update=False)
    assert found == []


CONVERSIONS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "a date-time is a timestamp": (
        "self.x.getHours() == 8",
        {"type": "string", "format": "date-time"},
        "2024-03-01T10:00:00.5+02:00",
    ),
    "a date is a timestamp": (
        "self.x < timestamp('2024-03-01T00:00:01Z')",
        {"type": "string", "format": "date"},
        "2024-03-01",
    ),
    "a duration is a duration": (
        "self.x == duration('90m')",
        {"type": "string", "format": "duration"},
        "1h30m",
    ),
    "a nullable duration may be null": (
        "self.x == null",
        {"type": "string", "format": "duration", "nullable": True},
        None,
    ),
    "items of a list are converted": (
        "self.x.all(one, one.getFullYear() == 2024)",
        {"type": "array", "items": {"type": "string", "format": "date-time"}},
        ["2024-03-01T10:00:00Z"],
    ),
    "values of a map are converted": (
        "self.x['a'] < duration('6s')",
        {"type": "object", "additionalProperties": {"type": "string", "format": "duration"}},
        {"a": "5s"},
    ),
    "parts deep inside are converted, and absent ones stay absent": (
        "has(self.x.l[0].at) && !has(self.x.l[1].at) && self.x.l[0].at.getDayOfMonth() == 28",
        {
            "type": "object",
            "properties": {
                "l": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"at": {"type": "string", "format": "date"}},
                    },
                }
            },
        },
        {"l": [{"at": "2024-02-29"}, {}]},
    ),
    "bytes are decoded": (
        "self.x == b'hello'",
        {"type": "string", "format": "byte"},
        "aGVsbG8=",
    ),
    "a whole number is a double where the schema says number": (
        "self.x / 4.0 == 0.5 && type(self.x) == double",
        {"type": "number"},
        2,
    ),
    "an int-or-string is what it is": (
        "type(self.x) == string && self.x == '50%'",
        {"x-kubernetes-int-or-string": True},
        "50%",
    ),
}


@pytest.mark.parametrize(("rule", "schema", "value"), CONVERSIONS.values(), ids=CONVERSIONS)
def test_a_rule_sees_the_type_that_the_schema_names(
    rule: str, schema: dict[str, Any], value: Any
) -> None:
    node = parse(
        {
            "type": "object",
            "properties": {"x": schema, "other": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": f"self.other == 1 && {rule}"}],
        }
    )
    assert faults({"x": value, "other": 1}, node, path="spec") == []
    assert faults({"x": value, "other": 2}, node, path="spec") != []


def test_names_that_cel_cannot_spell_are_escaped() -> None:
    names = {
        "a-b": "a__dash__b",
        "a.b": "a__dot__b",
        "a/b": "a__slash__b",
        "a__b": "a__underscores__b",
        "namespace": "__namespace__",
        "for": "__for__",
        "plain": "plain",
    }
    rule = " && ".join(f"self.{name} == 1" for name in names.values())
    node = parse(
        {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in names},
            "x-kubernetes-validations": [{"rule": rule}],
        }
    )
    assert faults(dict.fromkeys(names, 1), node) == []
    assert faults({**dict.fromkeys(names, 1), "a-b": 2}, node) != []


def test_transition_rules_see_converted_old_values() -> None:
    node = parse(
        {
            "type": "object",
            "properties": {"at": {"type": "string", "format": "date-time"}},
            "x-kubernetes-validations": [
                {"rule": "self.at >= oldSelf.at", "message": "back in time"},
                {
                    "rule": "!oldSelf.hasValue() || oldSelf.value().at.getFullYear() == 2024",
                    "optionalOldSelf": True,
                    "message": "not of 2024",
                },
            ],
        }
    )
    early, late = {"at": "2024-01-01T00:00:00Z"}, {"at": "2024-01-01T01:00:00+00:30"}
    assert faults(late, node, early) == []
    assert faults(early, node, late) == ["<nil>: Invalid value: back in time"]
    assert faults(late, node, {"at": "2023-01-01T00:00:00Z"}) == [
        "<nil>: Invalid value: not of 2024"
    ]


def test_rules_under_all_of_hold_too() -> None:
    node = parse(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "allOf": [
                {"x-kubernetes-validations": [{"rule": "self.a > 1"}]},
                {"properties": {"a": {"x-kubernetes-validations": [{"rule": "self < 9"}]}}},
            ],
        }
    )
    assert faults({"a": 1}, node) == ["<nil>: Invalid value: failed rule: self.a > 1"]
    assert faults({"a": 9}, node) == ["a: Invalid value: 9: failed rule: self < 9"]


def test_a_recursive_schema_is_walked_as_deep_as_the_value() -> None:
    definitions = {
        "Tree": {
            "type": "object",
            "properties": {
                "size": {
                    "type": "integer",
                    "x-kubernetes-validations": [{"rule": "self < 5"}],
                },
                "below": {"type": "array", "items": {"$ref": "#/definitions/Tree"}},
            },
        }
    }
    node = parse({"$ref": "#/definitions/Tree"}, definitions)
    value = {"size": 1, "below": [{"size": 2, "below": [{"size": 7}]}]}
    assert faults(value, node) == [
        "below[0].below[0].size: Invalid value: 7: failed rule: self < 5"
    ]


def test_a_schema_without_rules_is_marked_once() -> None:
    node = parse({"type": "object", "properties": {"a": {"type": "integer"}}})
    assert faults({"a": 1}, node) == []
    assert node.rule_plan is False


def test_a_rule_that_loops_too_long_ends_the_check() -> None:
    node = parse(
        {
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "self.l.all(x, self.l.all(y, x + y >= 0))"},
                {"rule": "false"},
            ],
        }
    )
    (found,) = faults({"l": list(range(200))}, node)
    assert "no further validation rules will be run due to call cost exceeds limit" in found


def test_a_rule_that_does_not_compile_refuses_the_value() -> None:
    node = parse({"type": "object", "x-kubernetes-validations": [{"rule": "self.a <"}]})
    (found,) = faults({}, node)
    assert found.startswith('<nil>: Invalid value: "object": rule compile error:')
