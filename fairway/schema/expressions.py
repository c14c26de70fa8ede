"""Expressions of users in an object, and those that do not compile.

An embedded store finds these faults with all others, by the walk of `validation`. A kube-apiserver
checks the rest of a schema, and accepts anything as an expression: it does not know their formats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairway.api.errors import FieldError
from fairway.schema.limits import expression_checks
from fairway.schema.node import Node


def expression_faults(value: Any, node: Node, path: str = "") -> list[FieldError]:
    """The expressions in a value that do not compile."""
    faults: list[FieldError] = []
    for check in expression_checks(node):
        check(value, path, faults)
    if isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            faults += expression_faults(item, node.items, f"{path}[{index}]")
    elif isinstance(value, dict):
        prefix = path + "." if path else ""
        for name, part in value.items():
            child = node.child(name)
            if child is not None:
                faults += expression_faults(part, child, prefix + name)
    return faults


def has_expressions(node: Node) -> bool:
    """Whether a schema has a place for an expression."""
    return bool(expression_checks(node)) or any(map(has_expressions, _parts(node)))


def _parts(node: Node) -> Iterator[Node]:
    yield from node.properties.values()
    yield from (part for part in (node.items, node.additional) if part is not None)
