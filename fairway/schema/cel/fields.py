"""Finds fields in a rule that its schema lacks.

The runtime checks fields only of protocol-buffer messages, but rules run on plain maps, where any
field may exist. So this module walks the compiled expression and follows the schema beside it. It
handles `self`, `oldSelf`, selections, indexes, loops and bindings; it ignores anything else.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.schema.cel import environment
from fairway.schema.cel.conversion import escape
from fairway.schema.cel.declared import Kind
from fairway.schema.cel.syntax import (
    Call,
    Constant,
    Expression,
    Ident,
    Loop,
    Make,
    Select,
)
from fairway.schema.node import Node

_VARIABLES: dict[str, Kind] = {"self": "dyn", "oldSelf": "dyn"}
_TEXT = Node(type="string")
_METADATA = Node(type="object", properties={"name": _TEXT, "generateName": _TEXT})
_RESOURCE_PARTS = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}
# Calls that return the type of their receiver; an optional counts as its content.
_TRANSPARENT = frozenset({"value", "orValue", "or", "optional.of", "optional.ofNonZeroValue"})

_Scope = Mapping[str, Node | None]


class _Undefined(Exception):
    def __init__(self, expression_id: int, name: str) -> None:
        super().__init__(name)
        self.expression_id, self.name = expression_id, name


def undefined_field(source: str, node: Node, *, is_resource: bool) -> str:
    """The fault of the first unknown field in a valid expression; empty if there is none."""
    syntax = environment.compile(source, _VARIABLES).syntax
    if is_resource:
        node = Node(type="object", properties=node.properties, embedded_resource=True)
    try:
        _type_of(syntax.expression, {"self": node, "oldSelf": node})
    except _Undefined as undefined:
        return _point(source, syntax.offset_by_id.get(undefined.expression_id, 0), undefined.name)
    return ""


def _type_of(expression: Expression, scope: _Scope) -> Node | None:
    """The schema of an expression's value, None if unknown; visits all subexpressions."""
    match expression:
        case Ident(name):
            return scope.get(name)
        case Select():
            of = _type_of(expression.operand, scope)
            return _field(of, expression.field, expression.id)
        case Call():
            return _type_of_call(expression, scope)
        case Make():
            for part in expression.parts:
                _type_of(part, scope)
        case Loop():
            return _type_of_loop(expression, scope)
    return None


def _type_of_call(call: Call, scope: _Scope) -> Node | None:
    types = [_type_of(part, scope) for part in call.arguments]
    if call.name == "_?._" and types:
        match call.arguments[1]:
            case Constant(str(field)):
                return _field(types[0], field, call.id)
        return None
    if call.name in ("_[_]", "_[?_]") and types[0] is not None:
        of = types[0]
        return of.items if of.type == "array" else None if of.properties else of.additional
    return types[0] if types and call.name in _TRANSPARENT else None


def _type_of_loop(loop: Loop, scope: _Scope) -> Node | None:
    of = _type_of(loop.range, scope)
    collected = _type_of(loop.start, scope)
    second = loop.second_variable
    element = None
    if of is not None:
        element = of.items if of.type == "array" else of.additional if second else None
    inner = {**scope, loop.collected: collected, loop.variable: None if second else element}
    if second:
        inner[second] = element
    _type_of(loop.condition, inner)
    _type_of(loop.step, inner)
    return _type_of(loop.result, {**scope, loop.collected: collected})


def _field(of: Node | None, name: str, expression_id: int) -> Node | None:
    if of is None or of.int_or_string:
        return None
    known = {**of.properties, **_RESOURCE_PARTS} if of.embedded_resource else of.properties
    for property_name, part in known.items():
        if escape(property_name) == name:
            return part
    is_closed = of.type == "object" and of.additional is None and not of.preserve_unknown
    if (known and of.additional is None) or is_closed:
        raise _Undefined(expression_id, name)
    return of.additional


def _point(source: str, offset: int, name: str) -> str:
    """The fault with its position, in the format of the runtime."""
    before = source[:offset]
    line = before.count("\n") + 1
    column = offset - (before.rfind("\n") + 1)
    text = source.split("\n")[line - 1]
    return (
        f"ERROR: <input>:{line}:{column + 1}: undefined field '{name}'\n"
        f" | {text}\n | {'.' * column}^"
    )
