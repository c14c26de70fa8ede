"""Whether a configuration can be applied: it must fit its schema to be split into fields.

Server-side apply needs the type of every part to track field ownership. So a field that is not in
the schema, a value of another type, a list item without its key, and two items with the same key
are refused before anything is merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairway.api.errors import BadRequest, json_type
from fairway.schema.fieldset import show_path
from fairway.schema.node import ANY, JsonObject, Node
from fairway.schema.structure import (
    ShapeError,
    is_atomic_list,
    item_element,
    list_keys,
    part_of,
    part_of_object,
)

_SCALARS = {
    "string": "string",
    "boolean": "boolean",
    "integer": "numeric (int or float)",
    "number": "numeric (int or float)",
}
_JSON_SCALARS = frozenset(("string", "boolean", "integer", "number"))


def check_applicable(applied: JsonObject, node: Node) -> None:
    """Refuses a configuration that does not fit its schema."""
    faults = list(_map_faults(applied, node, (), is_object=True))
    if not faults:
        return
    metadata = applied.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    api_version, kind = str(applied.get("apiVersion", "")), applied.get("kind", "")
    # The core group's version is shown as "/v1", others as "apps/v1".
    shown = api_version if "/" in api_version else f"/{api_version}"
    who = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {shown}, Kind={kind}"
    listed = faults[0] if len(faults) == 1 else "\n".join(["errors:", *(f"  {f}" for f in faults)])
    raise BadRequest(f"failed to create typed patch object ({who}): {listed}")


def _faults(value: Any, node: Node, path: tuple[str, ...]) -> Iterator[str]:
    if value is None:
        return
    wanted = json_type(value) if node.int_or_string or node.type == "" else node.type
    if wanted == "object":
        if isinstance(value, dict):
            yield from _map_faults(value, node, path, is_object=False)
        else:
            yield f"{show_path(path)}: expected map, got {json_type(value)}"
    elif wanted == "array":
        if isinstance(value, list):
            yield from _list_faults(value, node, path)
        else:
            yield f"{show_path(path)}: expected list, got {json_type(value)}"
    elif not _is_scalar(value, wanted, node):
        yield f"{show_path(path)}: expected {_SCALARS[wanted]}, got {json_type(value)}"


def _is_scalar(value: Any, wanted: str, node: Node) -> bool:
    got = json_type(value)
    if wanted in ("integer", "number"):
        return got in ("integer", "number")
    # A formatted string (a quantity, a time, a port) may be any scalar.
    return got == wanted or (wanted == "string" and bool(node.format) and got in _JSON_SCALARS)


def _map_faults(
    value: JsonObject, node: Node, path: tuple[str, ...], *, is_object: bool
) -> Iterator[str]:
    declared = node.properties or node.additional_forbidden
    closed = declared and node.additional is None and not node.preserve_unknown
    for key, item in value.items():
        here = (*path, f"f:{key}")
        part = part_of_object(node, key) if is_object else part_of(node, key)
        if part is ANY and closed and not _is_embedded(node, key):
            yield f"{show_path(here)}: field not declared in schema"
        else:
            yield from _faults(item, part, here)


def _is_embedded(node: Node, key: str) -> bool:
    return node.embedded_resource and key in ("apiVersion", "kind", "metadata")


def _list_faults(value: list[Any], node: Node, path: tuple[str, ...]) -> Iterator[str]:
    atomic, keys, seen = is_atomic_list(node), list_keys(node), set[str]()
    for position, item in enumerate(value):
        element = f"i:{position}"
        if not atomic:
            try:
                element = item_element(item, keys, node)
            except ShapeError as error:
                yield f"{show_path(path)}: element {position}: {error}"
                return
            if element in seen:
                yield f"{show_path(path)}: duplicate entries for key {show_path((element,))}"
            seen.add(element)
        yield from _faults(item, node.items or ANY, (*path, element))
