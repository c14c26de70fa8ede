"""Plain JSON, read leniently and changed without touching the input.

A user's manifest may lack any field, or have a value of another type in place of a map. Reading
then finds nothing; it is up to `faults` to report it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from fairway.api.meta import JsonObject

T = TypeVar("T")

_NOTHING: JsonObject = {}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def copy_of(value: T) -> T:
    """A deep copy of plain JSON, made by encoding it, which is faster than walking it."""
    decoded: T = _decode(_encode(value))
    return decoded


def _at(value: Any, keys: Sequence[str]) -> Any:
    """The value at a path of keys; None if missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def child(value: Any, *keys: str) -> JsonObject:
    """The map at a path of keys; empty if missing. Read-only."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else _NOTHING


def maps_at(value: Any, *keys: str) -> list[JsonObject]:
    """The maps in the list at a path of keys."""
    result = _at(value, keys)
    return [item for item in result if isinstance(item, dict)] if isinstance(result, list) else []


def number(value: Any, *keys: str, default: int = 0) -> int:
    """The integer at a path of keys."""
    result = _at(value, keys)
    return result if isinstance(result, int) and not isinstance(result, bool) else default


def text(value: Any, *keys: str, default: str = "") -> str:
    """The string at a path of keys."""
    result = _at(value, keys)
    return result if isinstance(result, str) else default


def texts(value: Any, *keys: str) -> dict[str, str]:
    """A copy of the map of strings at a path of keys, such as labels."""
    return {key: str(other) for key, other in child(value, *keys).items()}


def with_value(value: Mapping[str, Any], keys: Sequence[str], to: Any) -> JsonObject:
    """A copy with another value at a path of keys; the rest is shared."""
    first, *rest = keys
    if rest:
        to = with_value(child(value, first), rest, to)
    return {**value, first: to}


def without(value: JsonObject, *keys: str) -> JsonObject:
    """A copy without the value at a path of keys."""
    first, *rest = keys
    if first not in value:
        return value
    if not rest:
        return {key: other for key, other in value.items() if key != first}
    return {**value, first: without(child(value, first), *rest)}


def with_value_of(value: Any, wanted: Any, pointer: str) -> Any:
    """The wanted value, except for one field, at a JSON pointer, which keeps its current value."""
    return _keep(value, wanted, pointer.strip("/").split("/"))


def _keep(value: Any, wanted: Any, steps: list[str]) -> Any:
    if not isinstance(value, dict) or not isinstance(wanted, dict):
        return wanted
    step, rest = steps[0].replace("~1", "/").replace("~0", "~"), steps[1:]
    if step not in value:
        return wanted
    if not rest:
        return {**wanted, step: value[step]}
    return {**wanted, step: _keep(value[step], wanted.get(step, {}), rest)}


def name_of(manifest: JsonObject) -> str:
    return text(manifest, "metadata", "name")


def namespace_of(manifest: JsonObject) -> str:
    return text(manifest, "metadata", "namespace", default="default")


def annotation(manifest: JsonObject, *keys: str) -> str:
    """The first of these annotations that is set."""
    annotations = child(manifest, "metadata", "annotations")
    return next((str(annotations[key]) for key in keys if key in annotations), "")
