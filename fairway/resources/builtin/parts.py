"""Reads and fills parts of unchecked JSON objects.

Defaults are set before an object is validated, so any part may be missing or of the wrong type.
These functions then return an empty stand-in, and the validation that follows reports the fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairway.schema.node import JsonObject


def make_object(parent: JsonObject, name: str) -> JsonObject:
    """The object under a name, created if missing; a stand-in if it is something else."""
    value = parent.get(name)
    if value is None:
        value = parent[name] = {}
    return value if isinstance(value, dict) else {}


def read(parent: Any, *names: str) -> JsonObject:
    """The object at a path, or an empty stand-in."""
    for name in names:
        parent = parent.get(name) if isinstance(parent, dict) else None
    return parent if isinstance(parent, dict) else {}


def text(parent: Any, *names: str) -> str:
    """The string at a path, or the empty string."""
    value = read(parent, *names[:-1]).get(names[-1])
    return value if isinstance(value, str) else ""


def number(parent: Any, *names: str) -> int:
    """The integer at a path, or zero."""
    value = read(parent, *names[:-1]).get(names[-1])
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def members(parent: Any, name: str) -> list[Any]:
    """The list under a name, or an empty one."""
    value = parent.get(name) if isinstance(parent, dict) else None
    return value if isinstance(value, list) else []


def objects(parent: Any, name: str) -> list[JsonObject]:
    """Those members of a list that are objects."""
    return [member for member in members(parent, name) if isinstance(member, dict)]


def with_paths(parent: Any, name: str, path: str) -> Iterator[tuple[str, JsonObject]]:
    """Each object of a list with its own field path."""
    for index, member in enumerate(members(parent, name)):
        if isinstance(member, dict):
            yield f"{path}.{name}[{index}]", member


def fill(parent: JsonObject, defaults: dict[str, Any]) -> None:
    """Sets fields that are missing or null; containers in `defaults` are copied."""
    for name, value in defaults.items():
        if parent.get(name) is None:
            parent[name] = dict(value) if isinstance(value, dict) else value


def fill_empty(parent: JsonObject, defaults: dict[str, Any]) -> None:
    """Sets fields that are missing, null, empty strings or zero: fields whose zero means unset."""
    for name, value in defaults.items():
        if parent.get(name) in (None, "", 0):
            parent[name] = value
