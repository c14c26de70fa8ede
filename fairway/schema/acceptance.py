"""A fast check whether a value already conforms to its schema.

Most values do: they were made from the types that the schemas were generated from. The walk in
`validation` tracks paths, faults, pruned fields and defaults; here each Node becomes one function
that returns true only if that walk would find nothing and change nothing. A rejected value is
walked, so this check may be stricter than the walk, never laxer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from fairway.api.errors import FieldError
from fairway.schema.limits import limits_of
from fairway.schema.node import Node

Accepts = Callable[[Any], bool]

_REMEMBERED_LENGTH_MOST = 64
_REMEMBERED_MOST = 1024
_SCALARS: dict[str, type] = {"string": str, "integer": int, "boolean": bool}
_INT64_LIMIT = 1 << 63


def accepts_of(node: Node) -> Accepts:
    """The check function of a Node; made at first use and stored on the Node."""
    result: Accepts | None = node.accepts
    if result is None:
        result = node.accepts = _make(node)
    return result


def _make(node: Node) -> Accepts:
    if node.embedded_resource or node.int_or_string:
        return _never if node.embedded_resource else _scalar(node, (int, str))
    match node.type:
        case "object":
            return _object(node)
        case "array":
            return _list(node)
        case "string" | "integer" | "boolean":
            return _scalar(node, (_SCALARS[node.type],))
        case _:
            return _always if _is_any(node) else _never


def _never(_value: Any) -> bool:
    return False


def _always(_value: Any) -> bool:
    return True


def _is_any(node: Node) -> bool:
    return not (node.type or node.properties or node.additional or node.items or limits_of(node))


def _within(node: Node) -> Accepts | None:
    """A check of a Node's limits; None if it has none."""
    checks = limits_of(node)
    if not checks:
        return None

    def within(value: Any) -> bool:
        faults: list[FieldError] = []
        for check in checks:
            check(value, "", faults)
        return not faults

    return within


def _scalar(node: Node, types: tuple[type, ...]) -> Accepts:
    within = _within(node)
    if within is None:
        return lambda value: type(value) in types
    if _is_range(node):
        least = -_INT64_LIMIT if node.minimum is None else node.minimum
        most = _INT64_LIMIT - 1 if node.maximum is None else node.maximum
        return lambda value: type(value) is int and least <= value <= most
    # Names and short words repeat often; timestamps and other long strings do not.
    remembered = lru_cache(maxsize=_REMEMBERED_MOST)(within)
    is_remembered = node.type == "string" and not node.format

    def accepts(value: Any) -> bool:
        if type(value) not in types:
            return False
        if is_remembered and len(value) <= _REMEMBERED_LENGTH_MOST:
            return remembered(value)
        return within(value)

    return accepts


def _is_range(node: Node) -> bool:
    """Whether an integer only has to be within a 64-bit range."""
    bounds = (node.minimum is not None) + (node.maximum is not None)
    return (
        node.type == "integer"
        and node.format == "int64"
        and not (node.exclusive_minimum or node.exclusive_maximum)
        and len(limits_of(node)) == bounds + 1
        and all(
            abs(number) < _INT64_LIMIT
            for number in (node.minimum, node.maximum)
            if number is not None
        )
    )


def _object(node: Node) -> Accepts:
    properties, additional = node.properties, node.additional
    allows_more = node.preserve_unknown
    within = _within(node)
    needed = tuple(
        dict.fromkeys(
            (*node.required, *(name for name, value in properties.items() if value.has_default))
        )
    )

    def accepts(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for name in needed:
            if name not in value:
                return False
        for name, part in value.items():
            child = properties.get(name) or additional
            if child is None:
                if not allows_more:
                    return False
            elif not (child.accepts or accepts_of(child))(part):
                return False
        return within is None or within(value)

    return accepts


def _list(node: Node) -> Accepts:
    items, within = node.items, _within(node)
    is_unique = _identify(node)

    def accepts(value: Any) -> bool:
        if type(value) is not list:
            return False
        if items is not None:
            accepts_item = items.accepts or accepts_of(items)
            for item in value:
                if not accepts_item(item):
                    return False
        return (is_unique is None or is_unique(value)) and (within is None or within(value))

    return accepts


def _identify(node: Node) -> Accepts | None:
    """A check that all items of a set or of a keyed list differ; None if they need not."""
    if node.list_type == "atomic" or node.items is None:
        return None
    keys = node.list_map_keys if node.list_type == "map" else ()

    def are_unique(value: list[Any]) -> bool:
        if len(value) < 2:
            return True
        try:
            if keys:
                return len({tuple(map(item.get, keys)) for item in value}) == len(value)
            return len(set(value)) == len(value)
        except (TypeError, AttributeError):
            return False  # items can't be compared by their keys

    return are_unique
