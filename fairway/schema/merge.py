"""Merges an applied configuration into a live object, and removes fields again.

`merge` keeps everything of the live object, and the configuration wins where both set a value.
Lists with parts keep the live order, with the configuration's items in the configuration's order.
`remove` is its opposite: it drops the fields of a set. Inputs are not changed in place, and results
may share parts with them.
"""

from __future__ import annotations

from typing import Any

from fairway.schema.compare import PartOf, by_element
from fairway.schema.fieldset import Tree, is_member
from fairway.schema.node import ANY, JsonObject, Node
from fairway.schema.structure import (
    is_atomic_list,
    is_named,
    item_element,
    list_keys,
    part_of,
    part_of_object,
)


def merge(live: JsonObject, applied: JsonObject, node: Node) -> JsonObject:
    """The live object with the applied configuration merged over it."""
    return _merge_maps(live, applied, node, part_of_object)


def _merge_maps(live: JsonObject, applied: JsonObject, node: Node, part: PartOf) -> JsonObject:
    out = dict(live)
    for key, value in applied.items():
        out[key] = _merge_values(live[key], value, part(node, key)) if key in live else value
    return out


def _merge_values(live: Any, applied: Any, node: Node) -> Any:
    # Null or an empty container applies no fields, so it removes none.
    if _has_parts(live, dict, applied) and node.map_type != "atomic":
        return _merge_maps(live, applied or {}, node, part_of)
    if _has_parts(live, list, applied) and not is_atomic_list(node):
        return _merge_lists(live, applied or [], node)
    return applied


def _has_parts(live: Any, kind: type, applied: Any) -> bool:
    return isinstance(live, kind) and bool(live) and (applied is None or isinstance(applied, kind))


def _merge_lists(live: list[Any], applied: list[Any], node: Node) -> list[Any]:
    keys, items = list_keys(node), node.items or ANY
    theirs = {item_element(item, keys, node): item for item in applied}
    mine = by_element(live, node)

    def merged(element: str) -> Any:
        known = mine.get(element, ())
        # Live items with the same key cannot be told apart: the applied one replaces them.
        return (
            _merge_values(known[0], theirs[element], items)
            if len(known) == 1
            else (theirs[element])
        )

    order = [item_element(item, keys, node) for item in live]
    return [
        merged(element) if element in theirs else live[position]
        for position, element in _interleave(order, list(theirs))
    ]


def _interleave(live: list[str], applied: list[str]) -> list[tuple[int, str]]:
    """One order for the items of two lists, each with its live position (-1 if it has none).

    Items in both come in the applied order; live items stay before the shared item that they
    preceded.
    """
    out: list[tuple[int, str]] = []
    in_live, in_applied = set(live), set(applied)
    awaited = iter([element for element in applied if element in in_live])
    next_shared = next(awaited, None)
    done: set[str] = set()
    left = right = 0
    while left < len(live) or right < len(applied):
        same = left < len(live) and right < len(applied) and live[left] == applied[right]
        if left < len(live) and not same:
            element = live[left]
            if element not in in_applied:
                out.append((left, element))
                left += 1
                continue
            if right < len(applied) and next_shared not in (None, element):
                left += 1
                continue
            left += element in done
        if right < len(applied):
            element = applied[right]
            out.append((-1, element))
            done.add(element)
            left += same
            right += 1
            if element == next_shared:
                next_shared = next(awaited, None)
    return out


def remove(value: JsonObject, fields: Tree, node: Node) -> JsonObject:
    """The object without the fields of a set."""
    return _remove_from_map(value, fields, node, part_of_object)


def _remove(value: Any, fields: Tree, node: Node) -> Any:
    if isinstance(value, dict) and node.map_type != "atomic":
        return _remove_from_map(value, fields, node, part_of)
    if isinstance(value, list) and not is_atomic_list(node):
        return _remove_from_list(value, fields, node)
    return value


def _remove_from_map(value: JsonObject, fields: Tree, node: Node, part: PartOf) -> JsonObject:
    out: JsonObject = {}
    for key, item in value.items():
        branch = fields.get(f"f:{key}")
        if branch is None:
            out[key] = item
        elif not is_member(branch):
            out[key] = _remove(item, branch, part(node, key))
    return out


def _remove_from_list(value: list[Any], fields: Tree, node: Node) -> list[Any]:
    keys, items = list_keys(node), node.items or ANY
    out = []
    for item in value:
        branch = fields.get(item_element(item, keys, node))
        if branch is None:
            out.append(item)
        elif not is_member(branch):
            out.append(_remove(item, branch, items))
    return out


def only(value: JsonObject, fields: Tree, node: Node) -> JsonObject:
    """The object with only the fields of a set."""
    return _only_of_map(value, fields, node, part_of_object)


def _only(value: Any, fields: Tree, node: Node) -> Any:
    if not fields:
        return value  # atomic, or wholly in the set
    if isinstance(value, dict):
        return _only_of_map(value, fields, node, part_of)
    if isinstance(value, list) and not is_atomic_list(node):
        keys, items = list_keys(node), node.items or ANY
        result = [(item, fields.get(item_element(item, keys, node))) for item in value]
        return [_only(item, branch, items) for item, branch in result if branch is not None]
    return value


def _only_of_map(value: JsonObject, fields: Tree, node: Node, part: PartOf) -> JsonObject:
    result = {key: fields.get(f"f:{key}") for key in value}
    return {
        key: _only(value[key], branch, part(node, key))
        for key, branch in result.items()
        if branch is not None
    }


def with_named_fields(fields: Tree, node: Node, *, is_object: bool = True) -> Tree:
    """The set with every named field that leads to a member made a member too.

    A named field of the schema exists only for its content, so an owner of all of its content owns
    it; an item or a free key has its own owner.
    """
    out: Tree = {}
    for element, branch in fields.items():
        if element == "." or not branch:
            out[element] = branch
            continue
        if element[0] == "f":
            key = element[2:]
            part = part_of_object(node, key) if is_object else part_of(node, key)
            below = with_named_fields(branch, part, is_object=False)
            if is_named(node, key, is_object=is_object):
                below = {".": {}, **below}
        else:
            below = with_named_fields(branch, node.items or ANY, is_object=False)
        out[element] = below
    return out
