"""A value as CEL rules see it: valid identifiers, and numbers, bytes and times of the right type.

Most schemas need no conversion, and their values go to the runtime unchanged. Where one does:

- property names that are not CEL identifiers are escaped, `byte` strings become bytes and integer
  values of type `number` become floats, in Python, before the value is bound;
- strings of format `date-time`, `date` and `duration` become timestamps and durations inside the
  expression, because the runtime accepts no such values from Python inside a map.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from fairway.schema.cel.library_times import DATES, DURATIONS, TIMESTAMPS
from fairway.schema.node import Node

Convert = Callable[[Any], Any]

_KEYWORDS = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for",
        "function", "if", "import", "let", "loop", "package", "namespace", "return", "var",
        "void", "while",
    }
)  # fmt: skip
_ESCAPABLE = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_ESCAPED = re.compile(r"__|[-./]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_TIMES = {
    "date-time": ("timestamp({0})", TIMESTAMPS),
    "date": ("timestamp(string({0}) + 'T00:00:00Z')", DATES),
    "duration": ("duration({0})", DURATIONS),
}
_NONE: frozenset[int] = frozenset()
# Fields of every whole object, whether or not its schema has them.
_RESOURCE_PARTS = ("apiVersion", "kind", "metadata")


def escape(name: str) -> str | None:
    """The CEL identifier of a property; None if it has none, so that rules can't see it."""
    if name in _KEYWORDS:
        return f"__{name}__"
    if not _ESCAPABLE.fullmatch(name):
        return None
    return _ESCAPED.sub(lambda match: _ESCAPES[match.group()], name)


def converter(node: Node, above: frozenset[int] = _NONE) -> Convert | None:
    """A function that converts a value of this schema in Python; None if none is needed."""
    if id(node) in above or node.int_or_string:
        return None
    above |= {id(node)}
    if node.type == "number":
        return lambda value: float(value) if type(value) is int else value
    if node.type == "string":
        return _decode if node.format == "byte" else None
    if node.type == "array" and node.items is not None:
        each = converter(node.items, above)
        return _list_converter(each) if each else None
    if node.properties:
        return _object_converter(node, above)
    if node.type == "object" and node.additional is not None:
        each = converter(node.additional, above)
        return _map_converter(each) if each else None
    return None


def _decode(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else value
    except binascii.Error:
        return value


def _list_converter(each: Convert) -> Convert:
    return lambda value: [each(item) for item in value] if isinstance(value, list) else value


def _map_converter(each: Convert) -> Convert:
    return lambda value: (
        {key: each(other) for key, other in value.items()} if isinstance(value, dict) else value
    )


def _object_converter(node: Node, above: frozenset[int]) -> Convert | None:
    names = {name: escape(name) or name for name in node.properties}
    names = {name: escaped for name, escaped in names.items() if name != escaped}
    parts = {name: converter(part, above) for name, part in node.properties.items()}
    needed = {name: part for name, part in parts.items() if part is not None}
    if not names and not needed:
        return None

    taken = frozenset(names.values()) - names.keys()

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            names.get(key, key): needed[key](other) if key in needed else other
            for key, other in value.items()
            if key not in taken  # an unknown field must not pass for an escaped one
        }

    return convert


def expression(
    node: Node, of: str, *, levels: int, is_resource: bool = False, above: frozenset[int] = _NONE
) -> str | None:
    """CEL that converts the times in `of`, down to `levels`; None if there are none."""
    if id(node) in above or node.int_or_string or len(above) > levels:
        return None
    above |= {id(node)}
    variable = f"part{len(above)}"
    converted = None
    if node.type == "string" and node.format in _TIMES:
        converted = _TIMES[node.format][0].format(of)
    elif node.type == "array" and node.items is not None:
        each = expression(node.items, variable, levels=levels, above=above)
        converted = f"{of}.map({variable}, {each})" if each else None
    elif node.properties:
        names = (*node.properties, *(_RESOURCE_PARTS if is_resource else ()))
        converted = _object_expression(node, of, names, levels=levels, above=above)
    elif node.additional is not None and node.additional.type == "string":
        # Only maps whose values are times are converted: no function can return nested ones.
        times = _TIMES.get(node.additional.format)
        converted = f"{times[1]}({of})" if times else None
    if converted is None:
        return None
    # Without `dyn` the type checker would use one entry's type for all.
    return unless_null(of, converted) if node.nullable else f"dyn({converted})"


def unless_null(of: str, converted: str) -> str:
    """CEL that leaves null unchanged."""
    return f"({of} == null ? dyn(null) : dyn({converted}))"


def _object_expression(
    node: Node, of: str, names: tuple[str, ...], *, levels: int, above: frozenset[int]
) -> str | None:
    variable = f"part{len(above)}"
    entries: dict[str, str] = {}
    is_needed = False
    for name in names:
        key = escape(name)
        if key is None:
            continue
        part = node.properties.get(name)
        converted = expression(part, variable, levels=levels, above=above) if part else None
        entries[key] = f"?'{key}': {of}.?{key}"
        if converted is not None:
            is_needed = True
            entries[key] += f".optMap({variable}, {converted})"
    return "{" + ", ".join(entries.values()) + "}" if is_needed else None
