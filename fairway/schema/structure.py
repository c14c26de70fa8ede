"""How a value is split for ownership and merging: which maps and lists have parts.

The schema says which maps are granular, which lists are sets or lists of keyed items, and what
identifies a list item. By default maps are granular and lists are atomic. Every object has the same
`metadata`, whether or not its schema describes it.
"""

from __future__ import annotations

from typing import Any

from fairway.schema.fieldset import encode, key_element
from fairway.schema.node import ANY, Node, parse

_METADATA_SCHEMA = {
    "type": "object",
    "properties": {
        **{
            name: {"type": "string"}
            for name in (
                "name",
                "generateName",
                "namespace",
                "selfLink",
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "deletionTimestamp",
            )
        },
        "generation": {"type": "integer"},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "x-kubernetes-patch-strategy": "merge",
            "items": {"type": "string"},
        },
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "uid",
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {
                    **{name: {"type": "string"} for name in ("apiVersion", "kind", "name", "uid")},
                    "controller": {"type": "boolean"},
                    "blockOwnerDeletion": {"type": "boolean"},
                },
            },
        },
        "managedFields": {
            "type": "array",
            "x-kubernetes-list-type": "atomic",
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    },
}
METADATA = parse(_METADATA_SCHEMA)
TEXT = Node(type="string")


class ShapeError(ValueError):
    """A value that cannot be split as its schema requires."""


def part_of(node: Node, key: str) -> Node:
    """The schema of a key of a map."""
    return node.properties.get(key) or node.additional or ANY


def part_of_object(node: Node, key: str) -> Node:
    """The schema of a top-level key of a whole object."""
    match key:
        case "metadata":
            return metadata_of(node)
        case "apiVersion" | "kind":
            return TEXT
        case _:
            return part_of(node, key)


def metadata_of(node: Node) -> Node:
    metadata = node.properties.get("metadata")
    return metadata if metadata is not None and metadata.properties else METADATA


def is_named(node: Node, key: str, *, is_object: bool = False) -> bool:
    """Whether the schema names the key, rather than admitting any key."""
    return key in node.properties or (is_object and key in ("apiVersion", "kind", "metadata"))


def is_atomic_list(node: Node) -> bool:
    # Old built-in types only have a patch strategy, and a list that merges has parts.
    return node.list_type == "atomic" and "merge" not in node.patch_strategies


def list_keys(node: Node) -> tuple[str, ...]:
    """The fields that identify an item of a list with parts; empty for a set."""
    if node.list_type == "map":
        return node.list_map_keys
    if node.list_type == "atomic" and node.patch_merge_key:
        return (node.patch_merge_key,)
    return ()


def item_element(item: Any, keys: tuple[str, ...], node: Node) -> str:
    """The path element of an item of a list with parts."""
    if not keys:
        if item is None or isinstance(item, dict | list):
            raise ShapeError("a set may hold only strings, numbers and booleans")
        return f"v:{encode(item)}"
    if not isinstance(item, dict):
        raise ShapeError("associative list with keys may not have non-map elements")
    result: dict[str, Any] = {}
    for key in keys:
        if key in item:
            result[key] = item[key]
        elif node.items is not None:
            part = node.items.properties.get(key)
            # A null default is no default.
            if part is not None and part.default is not None:
                result[key] = part.default
    if not result:
        listed = " ".join(f'"{key}"' for key in keys)
        raise ShapeError(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(result)
