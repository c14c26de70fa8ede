"""Rules that a custom kind may not have; wording compared with kube-apiserver 1.36.4."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.schema.cel.rules import compile_faults
from fairway.schema.node import parse

ROOT = "spec.validation.openAPIV3Schema"
SPEC = f"{ROOT}.properties[spec]"
RULES = "x-kubernetes-validations[0]"


def schema(rule: dict[str, Any], place: str = "spec") -> dict[str, Any]:
    parts: dict[str, Any] = {
        "root": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "s": {"type": "string"},
                "m": {"type": "object", "additionalProperties": {"type": "string"}},
                "l": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"x": {"type": "integer"}}},
                },
                "e": {"type": "object", "x-kubernetes-embedded-resource": True},
                "dash-ed": {"type": "integer"},
            },
        },
    }
    parts["items"] = parts["spec"]["properties"]["l"]["items"]
    parts[place]["x-kubernetes-validations"] = [rule]
    return {**parts["root"], "properties": {"spec": parts["spec"]}}


def faults(rule: dict[str, Any], place: str = "spec") -> list[str]:
    return [str(fault) for fault in compile_faults(parse(schema(rule, place)), ROOT)]


def shown(rule: str, message_expression: str = "") -> str:
    return (
        f'{{"Rule":"{rule}","Message":"","MessageExpression":"{message_expression}",'
        '"Reason":null,"FieldPath":"","OptionalOldSelf":null}'
    )


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a rule of the wrong type": (
        {"rule": "self.a + 1"},
        f"rule: Invalid value: {shown('self.a + 1')}: cel expression must evaluate to a bool",
    ),
    "unknown names": (
        {"rule": "foo(self.a) || bar"},
        (
            f"rule: Invalid value: {shown('foo(self.a) || bar')}: compilation failed: "
            "ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')\n"
            " | foo(self.a) || bar\n | ...^\n"
            "ERROR: <input>:1:16: undeclared reference to 'bar' (in container '')\n"
            " | foo(self.a) || bar\n | ...............^"
        ),
    ),
    "a field that the schema lacks": (
        {"rule": "self.zz == 3"},
        (
            f"rule: Invalid value: {shown('self.zz == 3')}: compilation failed: "
            "ERROR: <input>:1:5: undefined field 'zz'\n | self.zz == 3\n | ....^"
        ),
    ),
    "no rule": ({"rule": " "}, "rule: Required value: rule is not specified"),
    "a message of two lines": (
        {"rule": "self.a < 1", "message": "a\nb"},
        'message: Invalid value: "a\\nb": must not contain line breaks',
    ),
    "a rule of two lines without a message": (
        {"rule": "self.a <\n1"},
        "message: Required value: message must be specified if rule contains line breaks",
    ),
    "a message of the wrong type": (
        {"rule": "self.a == 1", "messageExpression": "1"},
        (
            f"messageExpression: Invalid value: {shown('self.a == 1', '1')}: "
            "messageExpression must evaluate to a string"
        ),
    ),
    "a message that does not compile": (
        {"rule": "self.a == 1", "messageExpression": "self.("},
        (
            f"messageExpression: Invalid value: {shown('self.a == 1', 'self.(')}: "
            "messageExpression compilation failed: ERROR: <input>:1:6: Syntax error: "
            "no viable alternative at input '.('\n | self.(\n | .....^"
        ),
    ),
    "an unknown reason": (
        {"rule": "self.a < 1", "reason": "Nope"},
        (
            'reason: Unsupported value: "Nope": supported values: "FieldValueDuplicate", '
            '"FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'
        ),
    ),
    "a fieldPath that leads nowhere": (
        {"rule": "self.a < 1", "fieldPath": ".nope"},
        'fieldPath: Invalid value: ".nope": must be a valid path',
    ),
    "an optional oldSelf that is not used": (
        {"rule": "self.a == 1", "optionalOldSelf": True},
        "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
    ),
}
UNDEFINED: dict[str, str] = {
    "self.a == 1 && self.?zz.hasValue()": "zz",
    "has(self.e.zz)": "zz",
    "self.l.all(one, one.zz == 1)": "zz",
    "self.l.all(place, one, one.zz == place)": "zz",
    "self.l[0].zz == 1": "zz",
    "self.e.metadata.labels.size() == 0": "labels",
    "cel.bind(one, self.l[0], one.zz == 1)": "zz",
    "[self.zz].size() == 1 || {'k': self.a}.size() == 1": "zz",
    "oldSelf.zz == self.a": "zz",
}
ACCEPTED: tuple[dict[str, Any], ...] = (
    {"rule": "self.a < 1", "fieldPath": ".a", "message": "  hi "},
    {"rule": "self.a < 1", "fieldPath": "['dash-ed']"},
    {"rule": "self.a < 1", "fieldPath": ".m['x.y']"},
    {"rule": "self.a < 1", "fieldPath": ".m.x"},
    {"rule": "self.l.all(i, v, v.x > i) && self.m.any == 'x' && self.m['k'] == 'y'"},
    {"rule": "self.dash__dash__ed == 1 && self.e.metadata.name == self.e.kind"},
    {"rule": "self.l.filter(one, one.x > 1).map(one, one.x).exists(x, x == 2)"},
    {"rule": "self.?a.orValue(1) == 1 && (oldSelf == null || oldSelf.a == self.a)"},
    {"rule": "oldSelf.optMap(o, o.a == 1).orValue(true)", "optionalOldSelf": True},
    {"rule": "self.s == 'self.zz' // self.zz", "messageExpression": "'a' + self.s"},
)


@pytest.mark.parametrize(("rule", "expected"), REFUSED.values(), ids=REFUSED)
def test_refused(rule: dict[str, Any], expected: str) -> None:
    assert faults(rule) == [f"{SPEC}.{RULES}.{expected}"]


@pytest.mark.parametrize(("rule", "name"), UNDEFINED.items(), ids=UNDEFINED)
def test_a_field_that_the_schema_lacks_is_found(rule: str, name: str) -> None:
    (found,) = faults({"rule": rule})
    assert f"undefined field '{name}'" in found


@pytest.mark.parametrize("rule", ACCEPTED, ids=lambda rule: str(rule["rule"]))
def test_accepted(rule: dict[str, Any]) -> None:
    assert faults(rule) == []


def test_a_syntax_error_points_at_its_place() -> None:
    (found,) = faults({"rule": "self.a <"})
    assert "compilation failed: ERROR: <input>:1:9: Syntax error" in found
    assert found.endswith(" | self.a <\n | ........^")


def test_the_root_knows_what_every_object_has() -> None:
    known = "self.metadata.name == 'x' && self.kind == self.apiVersion && has(self.spec.a)"
    assert faults({"rule": known}, "root") == []
    (found,) = faults({"rule": "self.metadata.labels.size() == 0"}, "root")
    assert found.startswith(f"{ROOT}.{RULES}.rule: ")


def test_old_self_cannot_be_told_inside_a_list_without_keys() -> None:
    assert faults({"rule": "self == oldSelf"}, "items") == [
        (
            f'{SPEC}.properties[l].items.{RULES}.rule: Invalid value: "self == oldSelf": oldSelf '
            "cannot be used on the uncorrelatable portion of the schema within "
            f"{SPEC}.properties[l]"
        )
    ]


def test_faults_of_form_come_alone() -> None:
    node = parse(
        {
            "type": "object",
            "x-kubernetes-validations": [{"rule": ""}, {"rule": "self.("}],
        }
    )
    assert [fault.path for fault in compile_faults(node, ROOT)] == [f"{ROOT}.{RULES}.rule"]
