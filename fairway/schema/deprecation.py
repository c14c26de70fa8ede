"""Deprecated fields of a kind, found in its schema.

The rule on such a field (`api.doc.Deprecated`) accepts only the existing value. A write of an
object that has one gets a warning: in the next minor version the field is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fairway.api.doc import AS_BEFORE
from fairway.schema.node import Node

ITEMS, VALUES = "[*]", "{*}"  # steps into each item of a list, and each value of a map


@dataclass(frozen=True, slots=True, kw_only=True)
class DeprecatedField:
    """The path of a deprecated field, and what to use instead."""

    steps: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        path = ".".join(self.steps).replace(f".{ITEMS}", ITEMS).replace(VALUES, "*")
        return f"{path}: {self.message}"

    def is_in(self, body: Any) -> bool:
        return _has(body, self.steps)


def deprecated_fields(node: Node) -> tuple[DeprecatedField, ...]:
    """All deprecated fields of a custom kind, whose schema has no cycles."""
    return tuple(_below(node, ()))


def _below(node: Node, steps: tuple[str, ...]) -> Iterator[DeprecatedField]:
    for rule in node.rules:
        if rule.rule == AS_BEFORE:
            yield DeprecatedField(steps=steps, message=rule.message)
    for name, part in node.properties.items():
        yield from _below(part, (*steps, name))
    if node.items is not None:
        yield from _below(node.items, (*steps, ITEMS))
    if node.additional is not None:
        yield from _below(node.additional, (*steps, VALUES))


def _has(value: Any, steps: tuple[str, ...]) -> bool:
    if not steps:
        return True
    first, rest = steps[0], steps[1:]
    match first:
        case "[*]":
            return isinstance(value, list) and any(_has(item, rest) for item in value)
        case "{*}":
            return isinstance(value, dict) and any(_has(item, rest) for item in value.values())
    return isinstance(value, dict) and first in value and _has(value[first], rest)
