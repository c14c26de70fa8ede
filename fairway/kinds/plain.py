"""Plain JSON, read leniently and changed without touching what came in.

What a user wrote may lack anything or have a value of another type where a map is expected; then
there is nothing to find, and it is for `faults` to say so.
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
    """A copy of plain JSON that may be changed; by its text, which is quicker than walking it."""
    decoded: T = _decode(_encode(value))
    return decoded


def _at(value: Any, keys: Sequence[str]) -> Any:
    """Whatever is at a path of keys; None where there is nothing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def child(value: Any, *keys: str) -> JsonObject:
    """The map at a path of keys; an empty one where there is none. Not to be changed."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else _NOTHING


def maps_at(value: Any, *keys: str) -> list[JsonObject]:
    """The maps in the list at a path of keys."""
    result = _at(value, keys)
    return [item for item in result if isinstance(item, dict)] if isinstance(result, list) else []


def number(value: Any, *keys: str, default: int = 0) -> int:
    """The whole number at a path of keys."""
    result = _at(value, keys)
    return result if isinstance(result, int) and not isinstance(result, bool) else default


def text(value: Any, *keys: str, default: str = "") -> str:
    """The text at a path of keys."""
    result = _at(value, keys)
    return result if isinstance(result, str) else default


def texts(value: Any, *keys: str) -> dict[str, str]:
    """The map of texts at a path of keys, such as labels; a copy."""
    return {key: str(other) for key, other in child(value, *keys).items()}


def with_value(value: Mapping[str, Any], keys: Sequence[str], to: Any) -> JsonObject:
    """A copy with another value at a path of keys; what is beside the path is shared."""
    first, *rest = keys
    if rest:
        to = with_value(child(value, first), rest, to)
    return {**value, first: to}


def without(value: JsonObject, *keys: str) -> JsonObject:
    """A copy that lacks what is at a path of keys."""
    first, *rest = keys
    if first not in value:
        return value
    if not rest:
        return {key: other for key, other in value.items() if key != first}
    return {**value, first: without(child(value, first), *rest)}


def with_value_of(value: Any, wanted: Any, pointer: str) -> Any:
    """What is wanted, but for one field, at a JSON pointer, that stays as it was found."""
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
    """The first of several annotations that is there."""
    annotations = child(manifest, "metadata", "annotations")
    return next((str(annotations[key]) for key in keys if key in annotations), "")
