"""Ownership rules for both updates and applies.

Some fields belong to the server and never to a manager; and a built-in kind has containers that
always exist, so creating an object does not create them.
"""

from __future__ import annotations

from typing import Any

from fairway.schema.fieldset import Tree
from fairway.schema.node import ANY, JsonObject, Node
from fairway.schema.structure import is_atomic_list, metadata_of, part_of, part_of_object

UNOWNED = frozenset(
    (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    )
)
_UNOWNED_ELEMENTS = frozenset([".", *(f"f:{name}" for name in UNOWNED)])


def strip(fields: Tree) -> Tree:
    """An object's fields without those that no manager owns."""
    out = {
        element: branch
        for element, branch in fields.items()
        if element not in ("f:apiVersion", "f:kind", "f:metadata", ".")
    }
    metadata = fields.get("f:metadata")
    if metadata:
        kept = {
            element: branch
            for element, branch in metadata.items()
            if element not in _UNOWNED_ELEMENTS
        }
        if kept:
            out["f:metadata"] = kept
    return out


def reconcile(fields: Tree, node: Node, *, is_object: bool = True) -> Tree:
    """A set adapted to a schema in which a map or a list has become atomic."""
    out: Tree = {}
    for element, branch in fields.items():
        if not branch:
            out[element] = branch
            continue
        if element[0] == "f":
            key = element[2:]
            part = part_of_object(node, key) if is_object else part_of(node, key)
        else:
            part = node.items or ANY
        whole = part.map_type == "atomic" or (part.type == "array" and is_atomic_list(part))
        out[element] = {} if whole else reconcile(branch, part, is_object=False)
    return out


# Always written too: no schema requires them, but the kinds' own checks do.
_ALWAYS_WRITTEN = frozenset(("containers", "reportingComponent", "reportingInstance"))


def blank_of(node: Node) -> JsonObject:
    """The content of an object of a built-in kind before any field is set.

    The schemas of built-in kinds give such containers an empty default, and plain fields that are
    always written their zero value; a required list is null at first.
    """
    blank = _blank(node)
    blank["metadata"] = _blank(metadata_of(node))
    return blank


def _blank(node: Node) -> JsonObject:
    out: JsonObject = {}
    for name, part in node.properties.items():
        if part.has_default and part.default == {} and part.properties:
            out[name] = _blank(part)
        elif name in node.required or name in _ALWAYS_WRITTEN:
            out[name] = _zero(part)
    return out


def _zero(part: Node) -> Any:
    match part.type:
        case "array":
            return None
        case "string" if not part.format:
            return ""
        case "integer" | "number":
            return 0
        case "boolean":
            return False
        case _:
            return None
