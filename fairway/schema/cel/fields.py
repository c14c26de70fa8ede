"""Finds fields in a rule that its schema lacks.

The runtime checks fields only of protocol-buffer messages, but rules run on plain maps, where any
field may exist. So this module reads the compiled expression (in cel-spec's wire form, of which it
needs a few field numbers) and follows the schema beside it. It handles `self`, `oldSelf`,
selections, indexes, loops and bindings; it ignores anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fairway.schema.cel import environment
from fairway.schema.cel.conversion import escape
from fairway.schema.cel.declared import Kind
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


class _Message(NamedTuple):
    """A message of the wire form: values by field number."""

    values: dict[int, list[Any]]

    def number(self, field: int) -> int:
        return int(self.values.get(field, [0])[-1])

    def text(self, field: int) -> str:
        return bytes(self.values.get(field, [b""])[-1]).decode()

    def part(self, field: int) -> _Message | None:
        known = self.values.get(field)
        return _read(known[-1]) if known else None

    def parts(self, field: int) -> Iterator[_Message]:
        return map(_read, self.values.get(field, ()))


def undefined_field(source: str, node: Node, *, is_resource: bool) -> str:
    """The fault of the first unknown field in a valid expression; empty if there is none."""
    # The checked expression is wrapped in an envelope that names its type.
    checked = _read(environment.compile(source, _VARIABLES).serialize()).part(2)
    expression = checked.part(4) if checked else None
    if checked is None or expression is None:
        return ""
    if is_resource:
        node = Node(type="object", properties=node.properties, embedded_resource=True)
    try:
        _type_of(expression, {"self": node, "oldSelf": node})
    except _Undefined as undefined:
        return _point(source, checked, undefined)
    except RecursionError:
        return ""  # too deeply nested to check; the runtime still checks what it can
    return ""


def _type_of(expression: _Message, scope: _Scope) -> Node | None:
    """The schema of an expression's value, None if unknown; visits all subexpressions."""
    if (ident := expression.part(4)) is not None:
        return scope.get(ident.text(1))
    if (select := expression.part(5)) is not None:
        operand = select.part(1)
        of = _type_of(operand, scope) if operand else None
        return _field(of, select.text(2), expression.number(2))
    if (call := expression.part(6)) is not None:
        return _type_of_call(call, expression.number(2), scope)
    if (elements := expression.part(7)) is not None:
        for element in elements.parts(1):
            _type_of(element, scope)
    if (struct := expression.part(8)) is not None:
        for entry in struct.parts(2):
            for number in (3, 4):
                if (part := entry.part(number)) is not None:
                    _type_of(part, scope)
    if (loop := expression.part(9)) is not None:
        return _type_of_loop(loop, scope)
    return None


def _type_of_call(call: _Message, expression_id: int, scope: _Scope) -> Node | None:
    target = call.part(1)
    name = call.text(2)
    arguments = list(call.parts(3))
    types = [_type_of(part, scope) for part in ([target] if target else []) + arguments]
    if name == "_?._" and types:
        constant = arguments[1].part(3)
        return _field(types[0], constant.text(6), expression_id) if constant else None
    if name in ("_[_]", "_[?_]") and types[0] is not None:
        of = types[0]
        return of.items if of.type == "array" else None if of.properties else of.additional
    return types[0] if types and name in _TRANSPARENT else None


def _type_of_loop(loop: _Message, scope: _Scope) -> Node | None:
    ranged, start = loop.part(2), loop.part(4)
    of = _type_of(ranged, scope) if ranged else None
    collected = _type_of(start, scope) if start else None
    first, second = loop.text(1), loop.text(8)
    element = None
    if of is not None:
        element = of.items if of.type == "array" else of.additional if second else None
    inner = {**scope, loop.text(3): collected, first: None if second else element}
    if second:
        inner[second] = element
    for number in (5, 6):
        if (part := loop.part(number)) is not None:
            _type_of(part, inner)
    result = loop.part(7)
    return _type_of(result, {**scope, loop.text(3): collected}) if result else None


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


def _point(source: str, checked: _Message, undefined: _Undefined) -> str:
    """The fault with its position, in the format of the runtime."""
    information = checked.part(5)
    positions = information.parts(4) if information else iter(())
    offset = next(
        (
            position.number(2)
            for position in positions
            if position.number(1) == undefined.expression_id
        ),
        0,
    )
    before = source[:offset]
    line = before.count("\n") + 1
    column = offset - (before.rfind("\n") + 1)
    text = source.split("\n")[line - 1]
    return (
        f"ERROR: <input>:{line}:{column + 1}: undefined field '{undefined.name}'\n"
        f" | {text}\n | {'.' * column}^"
    )


def _read(data: bytes) -> _Message:
    values: dict[int, list[Any]] = {}
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        value: Any
        match tag & 7:
            case 0:
                value, place = _varint(data, place)
            case 1:
                value, place = data[place : place + 8], place + 8
            case 2:
                size, place = _varint(data, place)
                value, place = data[place : place + size], place + size
            case _:
                value, place = data[place : place + 4], place + 4
        values.setdefault(tag >> 3, []).append(value)
    return _Message(values)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
