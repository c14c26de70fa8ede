"""Removes fields that a schema no longer has.

A field that was removed from a kind's schema stays in objects stored before. No current reader or
writer has set it, so it is pruned as the object is read, as Kubernetes does. New writes are pruned
by the walk in `validation` instead.
"""

from __future__ import annotations

from typing import Any

from fairway.schema.node import JsonObject, Node
from fairway.schema.validation import OBJECT_FIELDS, shape_of

_CONTAINERS = (dict, list)
_PARTED = ("object", "array", "")


def prune(body: JsonObject, node: Node) -> bool:
    """Prunes unknown fields of an object in place; returns whether it had any."""
    return _prune(body, node, is_root=True)


def _prune(value: Any, node: Node, *, is_root: bool) -> bool:
    if type(value) is list:
        items = node.items
        if items is None or items.type not in _PARTED:
            return False
        return sum(_prune(item, items, is_root=items.embedded_resource) for item in value) > 0
    if type(value) is not dict or shape_of(node).is_any:
        return False
    properties, additional = node.properties, node.additional
    unknown = []
    result = False
    for name, part in value.items():
        child = properties.get(name) or additional
        if is_root and name in OBJECT_FIELDS:
            continue
        if child is None:
            if not node.preserve_unknown:
                unknown.append(name)
        elif type(part) in _CONTAINERS:
            result |= _prune(part, child, is_root=child.embedded_resource)
    for name in unknown:
        del value[name]
    return result or bool(unknown)
