"""Which fields an object has, and which ones differ between two objects.

`fields_of` is what an applied configuration owns. `added_fields` and `compare` are what a write
changed: there a new part owns its container too, which is why the two differ. These walks run on
every write, so they build the wire form of a field set directly and skip equal branches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairway.api.equality import same
from fairway.schema.fieldset import FieldSet, Tree
from fairway.schema.node import ANY, JsonObject, Node
from fairway.schema.structure import (
    ShapeError,
    is_atomic_list,
    item_element,
    list_keys,
    part_of,
    part_of_object,
)

PartOf = Callable[[Node, str], Node]


@dataclass(slots=True)
class Comparison:
    """The effect of a write: fields that are new or changed, and fields that are removed."""

    changed: Tree = field(default_factory=dict)
    removed: Tree = field(default_factory=dict)


def fields_of(value: Any, node: Node) -> FieldSet:
    """Every field that an object sets, down to the smallest part that has an owner."""
    tree: Tree = {}
    for key, item in value.items():
        part = part_of_object(node, key)
        named = key in node.properties or key in ("apiVersion", "kind", "metadata")
        branch = _claim(item, part, named=named)
        if branch is not None:
            tree[f"f:{key}"] = branch
    return FieldSet(tree)


def _claim(value: Any, node: Node, *, named: bool) -> Tree | None:
    """The branch of a value; None if nothing in it can be owned."""
    if isinstance(value, dict) and value and node.map_type != "atomic":
        return _claimed_map(value, node, named=named)
    if isinstance(value, list) and not is_atomic_list(node):
        return _claimed_list(value, node, named=named)
    return {}


def _claimed_map(value: JsonObject, node: Node, *, named: bool) -> Tree | None:
    out: Tree = {} if named else {".": {}}
    properties = node.properties
    for key, item in value.items():
        branch = _claim(item, part_of(node, key), named=key in properties)
        if branch is not None:
            out[f"f:{key}"] = branch
    if len(out) == 1 and not named:
        return {}
    return out or None


def _claimed_list(value: list[Any], node: Node, *, named: bool) -> Tree | None:
    out: Tree = {} if named else {".": {}}
    keys, items, twice = list_keys(node), node.items or ANY, set[str]()
    for item in value:
        element = item_element(item, keys, node)
        if element in out:
            twice.add(element)
        branch = _claim(item, items, named=False)
        out[element] = {} if branch is None else branch
    out.update({element: {} for element in twice})
    if len(out) == 1 and not named:
        return {}
    return out or None


def added_fields(value: JsonObject, node: Node) -> Tree:
    """The branch of a new map: the map and all of its parts."""
    out: Tree = {".": {}}
    properties, additional = node.properties, node.additional
    for key, item in value.items():
        kind = type(item)
        if kind is dict and item:
            part = properties.get(key) or additional or ANY
            out["f:" + key] = added_fields(item, part) if part.map_type != "atomic" else {}
        elif kind is list and item:
            part = properties.get(key) or additional or ANY
            out["f:" + key] = {} if is_atomic_list(part) else _added_list(item, part)
        else:
            out["f:" + key] = {}
    return out


def _added_list(value: list[Any], node: Node) -> Tree:
    out: Tree = {".": {}}
    keys, items = list_keys(node), node.items or ANY
    for item in value:
        element = item_element(item, keys, node)
        if element in out:
            # Items that share a key have one owner and no parts of their own.
            out[element] = {}
        elif isinstance(item, dict) and item and items.map_type != "atomic":
            out[element] = added_fields(item, items)
        else:
            out[element] = {}
    return out


def _add(value: Any, node: Node) -> Tree:
    if isinstance(value, dict) and value and node.map_type != "atomic":
        return added_fields(value, node)
    if isinstance(value, list) and value and not is_atomic_list(node):
        return _added_list(value, node)
    return {}


def compare(old: JsonObject, new: JsonObject, node: Node) -> Comparison:
    """What differs between two whole objects."""
    comparison = Comparison()
    _compare_maps(old, new, node, comparison, part_of_object)
    return comparison


def _compare_maps(
    old: JsonObject, new: JsonObject, node: Node, into: Comparison, part: PartOf = part_of
) -> None:
    for key, after in new.items():
        has_parts = isinstance(after, dict | list)
        if key not in old:
            into.changed["f:" + key] = _add(after, part(node, key)) if has_parts else {}
            continue
        before = old[key]
        if same(before, after):
            continue
        if has_parts or isinstance(before, dict | list):
            _compare_values(before, after, part(node, key), "f:" + key, into)
        else:
            into.changed["f:" + key] = {}
    for key, before in old.items():
        if key not in new:
            into.removed["f:" + key] = _add(before, part(node, key))


def _compare_values(old: Any, new: Any, node: Node, element: str, into: Comparison) -> None:
    """Compares two unequal values; differences go under the element in `into`."""
    below = Comparison()
    # Null takes the type of the value it is compared with.
    old_map = old if isinstance(old, dict) else None
    new_map = new if isinstance(new, dict) else None
    if (old_map or new_map) and node.map_type != "atomic":
        _compare_maps(old_map or {}, new_map or {}, node, below)
        itself = not _is_map_or_null(old) or not _is_map_or_null(new)
    elif (isinstance(old, list) or isinstance(new, list)) and not is_atomic_list(node):
        itself = not _is_list_or_null(old) or not _is_list_or_null(new) or not (old or new)
        _compare_lists(
            old if isinstance(old, list) else [], new if isinstance(new, list) else [], node, below
        )
    else:
        itself = True
    if below.changed or itself:
        into.changed[element] = _branch(below.changed, member=itself)
    if below.removed:
        into.removed[element] = below.removed


def _is_map_or_null(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _is_list_or_null(value: Any) -> bool:
    return value is None or isinstance(value, list)


def _branch(below: Tree, *, member: bool) -> Tree:
    return {".": {}, **below} if member and below else below


def _compare_lists(old: list[Any], new: list[Any], node: Node, into: Comparison) -> None:
    before, after = by_element(old, node), by_element(new, node)
    items = node.items or ANY
    for element in (*after, *(name for name in before if name not in after)):
        left, right = before.get(element, []), after.get(element, [])
        if len(left) <= 1 and len(right) <= 1:
            if not left:
                into.changed[element] = _add(right[0], items)
            elif not right:
                into.removed[element] = _add(left[0], items)
            elif not same(left[0], right[0]):
                _compare_values(left[0], right[0], items, element, into)
        elif len(left) > 1 and len(right) > 1:
            if not same(left, right):
                into.changed[element] = {}
        elif len(left) > 1:
            # Several items under one owner become one item with parts.
            into.removed[element] = {}
            if right:
                into.changed[element] = _add(right[0], items)
        else:
            into.changed[element] = {}
            if left:
                into.removed[element] = _add(left[0], items)


def by_element(items: list[Any], node: Node) -> dict[str, list[Any]]:
    """The items of a list with parts, by their identity, in order."""
    keys = list_keys(node)
    result: dict[str, list[Any]] = {}
    for item in items:
        result.setdefault(item_element(item, keys, node), []).append(item)
    return result


__all__ = ["Comparison", "ShapeError", "added_fields", "by_element", "compare", "fields_of"]
