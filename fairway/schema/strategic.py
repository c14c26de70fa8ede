"""Strategic merge patch: a merge patch that knows from the schema how lists merge.

A list with the `merge` strategy is merged item by item, by its merge key, or as a set if its items
are scalars. Directives in the patch say what a merge cannot: `$patch: delete|replace`,
`$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>` and `$retainKeys`. A document and a
patch are never changed; a result may share parts with both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairway.api.equality import same
from fairway.api.errors import BadRequest, Invalid, json_type, show_value
from fairway.schema.node import ANY, JsonObject, Node
from fairway.schema.structure import METADATA, part_of

_PATCH, _RETAIN = "$patch", "$retainKeys"
_DELETE, _ORDER = "$deleteFromPrimitiveList", "$setElementOrder"

Identity = Callable[[Any], Any]


def strategic_merge(document: JsonObject, patch: Any, node: Node) -> JsonObject:
    """The document with the patch merged in, lists by their strategies."""
    if not isinstance(patch, Mapping):
        raise BadRequest("error decoding patch: a strategic merge patch must be an object")
    return _merge_map(document, dict(patch), node)


def _part(node: Node, key: str) -> Node:
    part = part_of(node, key)
    return METADATA if key == "metadata" and part is ANY else part


def _merge_map(original: JsonObject, patch: JsonObject, node: Node) -> JsonObject:
    if _PATCH in patch:
        return _directed_map(patch)
    out = _retain(original, patch)
    orders = {key: value for key, value in patch.items() if _is_directive(key, _ORDER)}
    ordered = {_field_of(key, _ORDER): value for key, value in orders.items()}
    for key, value in patch.items():
        if key in orders or key == _RETAIN or key in ordered:
            continue
        if _is_directive(key, _DELETE):
            _delete_values(out, _field_of(key, _DELETE), value)
        elif value is None:
            out.pop(key, None)
        else:
            _merge_key(out, key, value, _part(node, key))
    for key, order in ordered.items():
        _merge_ordered(out, key, patch, order, _part(node, key))
    return out


def _directed_map(patch: JsonObject) -> JsonObject:
    match patch[_PATCH]:
        case "replace":
            return {key: value for key, value in patch.items() if key != _PATCH}
        case "delete":
            return {}
        case other:
            raise Invalid(f"unknown patch type: {other} in map: {show_value(patch)}")


def _is_directive(key: str, directive: str) -> bool:
    return key.startswith(directive)


def _field_of(key: str, directive: str) -> str:
    """The field of a directive such as `$setElementOrder/ports`."""
    head, slash, field = key.partition("/")
    if not slash or head != directive:
        what = "primitive" if directive == _DELETE else "setElementOrder"
        raise BadRequest(f"invalid patch format of {what} list")
    return field


def _retain(original: JsonObject, patch: JsonObject) -> JsonObject:
    """The original's keys that `$retainKeys` keeps."""
    if _RETAIN not in patch:
        return dict(original)
    keys = patch[_RETAIN]
    if not isinstance(keys, list):
        raise BadRequest("invalid patch format of retainKeys")
    for key, value in patch.items():
        special = key == _RETAIN or _is_directive(key, _DELETE) or _is_directive(key, _ORDER)
        if value is not None and not special and key not in keys:
            raise BadRequest("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in keys}


def _merge_key(out: JsonObject, key: str, value: Any, node: Node) -> None:
    before = out.get(key)
    if isinstance(before, dict) and isinstance(value, dict):
        replaces = "replace" in node.patch_strategies
        out[key] = value if replaces else _merge_map(before, value, node)
    elif isinstance(before, list) and isinstance(value, list):
        out[key] = _merge_list(before, value, node)
    else:
        kept, clean = clean_value(value)
        if kept:
            out[key] = clean
        else:
            out.pop(key, None)


def clean_value(value: Any) -> tuple[bool, Any]:
    """Whether a value with no counterpart to merge with is kept, and its cleaned content."""
    if isinstance(value, dict):
        if _PATCH in value:
            return False, None
        parts = {
            key: clean_value(part)
            for key, part in value.items()
            if part is not None and not _is_any_directive(key)
        }
        return True, {key: part for key, (kept, part) in parts.items() if kept}
    if isinstance(value, list):
        return True, [part for kept, part in map(clean_value, value) if kept]
    return True, value


def _is_any_directive(key: str) -> bool:
    return key == _RETAIN or key.startswith((f"{_ORDER}/", f"{_DELETE}/"))


def _delete_values(out: JsonObject, field: str, values: Any) -> None:
    if not isinstance(values, list):
        raise BadRequest("invalid patch format of primitive list")
    if isinstance(out.get(field), list):
        out[field] = [item for item in out[field] if not _among(item, values)]


def _among(item: Any, values: list[Any]) -> bool:
    return any(same(item, value) for value in values)


def _merge_list(original: list[Any], patch: list[Any], node: Node) -> list[Any]:
    if "merge" not in node.patch_strategies:
        return [part for kept, part in map(clean_value, patch) if kept]
    if not original and not patch:
        return original
    if not _holds_maps(original + patch):
        merged = _distinct(original + patch)
        return _in_order(merged, patch, original, _itself)
    key = node.patch_merge_key
    if not key:
        raise Invalid("cannot merge lists without a merge key")
    original, patch = _directed_items(original, patch, key)
    merged = list(original)
    for item in patch:
        _merge_item(merged, item, key, node.items or ANY)
    return _in_order(merged, patch, original, lambda item: _key_of(item, key))


def _holds_maps(items: list[Any]) -> bool:
    kinds = {json_type(item) for item in items}
    if "array" in kinds:
        raise Invalid("lists of lists are not supported")
    if "object" in kinds and len(kinds) > 1:
        raise Invalid("list element types are not identical")
    return kinds == {"object"}


def _itself(item: Any) -> Any:
    return item


def _key_of(item: Any, key: str) -> Any:
    if not isinstance(item, dict) or key not in item:
        raise Invalid(f"map: {show_value(item)} does not contain declared merge key: {key}")
    return item[key]


def _distinct(items: list[Any]) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if not _among(item, out):
            out.append(item)
    return out


def _directed_items(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Both lists after the directives among the patch's items are applied."""
    plain = [item for item in patch if _PATCH not in item]
    replaces = False
    for item in patch:
        match item.get(_PATCH, _itself):
            case "delete":
                unwanted = _key_of(item, key)
                original = [
                    entry for entry in original if not (key in entry and same(entry[key], unwanted))
                ]
            case "replace":
                replaces = True
            case "merge":
                raise Invalid("merging lists cannot yet be specified in the patch")
            case other if other is not _itself:
                raise Invalid(f"unknown patch type: {other} in map: {show_value(item)}")
    return (
        ([part for kept, part in map(clean_value, plain) if kept], [])
        if replaces
        else (
            original,
            plain,
        )
    )


def _merge_item(merged: list[Any], item: JsonObject, key: str, node: Node) -> None:
    wanted = _key_of(item, key)
    for position, value in enumerate(merged):
        if key in value and same(value[key], wanted):
            merged[position] = _merge_map(value, item, node)
            return
    merged.append(clean_value(item)[1])


def _merge_ordered(out: JsonObject, field: str, patch: JsonObject, order: Any, node: Node) -> None:
    """Merges a list whose order the patch gives; items not in that order keep their place."""
    before, change = out.get(field), patch.get(field)
    if not isinstance(order, list) or not isinstance(change, list | None):
        raise BadRequest("invalid patch format of setElementOrder list")
    if not isinstance(before, list | None):
        raise Invalid(f"{field} is not a list and has no order")
    identity = _identity(node, order)
    _check_order(change or [], order, identity)
    if field in patch and change is None:
        out.pop(field, None)
        return
    if before is None and change is None:
        return
    merged = before or []
    if change is not None:
        merged = _merge_list(before, change, node) if before is not None else clean_value(change)[1]
    out[field] = _in_order(merged, order, before or [], identity)


def _identity(node: Node, order: list[Any]) -> Identity:
    if node.patch_merge_key and (not order or isinstance(order[0], dict)):
        return lambda item: _key_of(item, node.patch_merge_key)
    return _itself


def _check_order(change: list[Any], order: list[Any], identity: Identity) -> None:
    """The merged items of a patch must be in its order list, in that order."""
    if not order:
        return
    rest = iter([identity(item) for item in order])
    for item in change:
        if isinstance(item, dict) and _PATCH in item:
            continue
        wanted = identity(item)
        if not any(same(wanted, entry) for entry in rest):
            raise Invalid(
                f"The order in patch list: {show_value(change)} doesn't match "
                f"{_ORDER} list: {show_value(order)}"
            )


def _in_order(
    merged: list[Any], order: list[Any], live: list[Any], identity: Identity
) -> list[Any]:
    """Merged items: those in the order list in that order, the others at their live positions."""
    wanted = [identity(item) for item in order]
    stood = [identity(item) for item in live]
    placed = [(identity(item), item) for item in merged]
    first = [pair for pair in placed if _among(pair[0], wanted)]
    first.sort(key=lambda pair: _position(pair[0], wanted))
    others = [pair for pair in placed if not _among(pair[0], wanted)]
    others.sort(key=lambda pair: _position(pair[0], stood))
    out: list[Any] = []
    while first and others:
        left, right = _position(others[0][0], stood), _position(first[0][0], stood)
        known = left < len(stood) and right < len(stood)
        out.append((others if known and left < right else first).pop(0)[1])
    return out + [item for _, item in first + others]


def _position(wanted: Any, among: list[Any]) -> int:
    """The position of a value; the length of the list if it is not there."""
    for position, value in enumerate(among):
        if same(wanted, value):
            return position
    return len(among)
