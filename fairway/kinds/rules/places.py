"""Paths into plain JSON that can be read and written.

This is the writable part of JSONPath: fields (`.a`, `['a.b']`), items (`[0]`), all of a map or list
(`.*`, `[*]`), and list items selected by a string in them (`[?(@.name=="node")]`). Writing creates
missing fields, and adds the list item that such a string selects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

Keys = tuple[str | int, ...]

_STEP = re.compile(
    r"""
      \.(?P<every>\*)
    | \.(?P<field>(?:[^.\[\]\\{}'"\s*]|\\.)+)
    | \[\s*(?P<quoted>'[^']*'|"[^"]*")\s*\]
    | \[\s*(?P<all>\*)\s*\]
    | \[\s*(?P<item>\d{1,6})\s*\]
    | \[\?\(\s*@\.(?P<key>\w+)\s*==\s*(?P<text>'[^']*'|"[^"]*")\s*\)\]
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Step:
    how: Literal["field", "item", "every", "where"]
    key: str = ""
    text: str = ""
    index: int = 0


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled path."""

    text: str
    steps: tuple[_Step, ...]

    @property
    def is_single(self) -> bool:
        """Whether it matches at most one place."""
        return all(step.how != "every" for step in self.steps)

    def places(self, value: Any) -> list[tuple[Keys, Any]]:
        """Each matching place, with its value."""
        result: list[tuple[Keys, Any]] = [((), value)]
        for step in self.steps:
            result = [
                ((*keys, key), part)
                for keys, other in result
                for key, part in _children(other, step)
            ]
        return result

    def values(self, value: Any) -> list[Any]:
        return [part for _, part in self.places(value)]

    def first(self, value: Any) -> Any:
        """The value at the first place; None if there is none."""
        return next(iter(self.values(value)), None)

    def write(self, value: Any, new: Any) -> None:
        """Writes in place; missing fields are created."""
        *before, last = self.steps
        for step, following in zip(before, self.steps[1:], strict=True):
            value = _enter(value, step, following)
        value[last.index if last.how == "item" else last.key] = new

    def make(self, value: Any) -> None:
        """Creates a map at the path, if there is none yet."""
        for position, step in enumerate(self.steps, 1):
            following = self.steps[position] if position < len(self.steps) else None
            value = _enter(value, step, following)


@lru_cache(maxsize=2048)
def compile_path(text: str) -> Path:
    """Compiles a path; ValueError if it is invalid. The empty path is the value itself."""
    body = text.strip().removeprefix("$")
    if body and body[0] not in ".[":
        body = f".{body}"
    steps = []
    position = 0
    while position < len(body):
        match = _STEP.match(body, position)
        if match is None:
            raise ValueError(f"the path {text!r} cannot be read at {body[position:]!r}")
        steps.append(_step(match))
        position = match.end()
    return Path(text, tuple(steps))


def _step(match: re.Match[str]) -> _Step:
    part = match.groupdict()
    if part["field"] is not None:
        return _Step("field", re.sub(r"\\(.)", r"\1", part["field"]))
    if part["quoted"] is not None:
        return _Step("field", part["quoted"][1:-1])
    if part["item"] is not None:
        return _Step("item", index=int(part["item"]))
    if part["key"] is not None:
        return _Step("where", part["key"], part["text"][1:-1])
    return _Step("every")


def _children(value: Any, step: _Step) -> Iterator[tuple[str | int, Any]]:
    match step.how:
        case "field" if isinstance(value, dict) and step.key in value:
            yield step.key, value[step.key]
        case "item" if isinstance(value, list) and step.index < len(value):
            yield step.index, value[step.index]
        case "every" if isinstance(value, dict):
            yield from value.items()
        case "every" if isinstance(value, list):
            yield from enumerate(value)
        case "where" if isinstance(value, list):
            for index, other in enumerate(value):
                if isinstance(other, dict) and other.get(step.key) == step.text:
                    yield index, other


def _enter(value: Any, step: _Step, following: _Step | None) -> Any:
    """The value one step further, created if missing."""
    result = next((part for _, part in _children(value, step) if part is not None), None)
    if result is not None:
        return result
    made: Any = [] if following is not None and following.how == "where" else {}
    if step.how == "where" and isinstance(value, list):
        value.append({step.key: step.text})
        return value[-1]
    value[step.key] = made
    return made


def show_place(keys: Keys) -> str:
    """A place as text, such as `spec.groups[0]`."""
    out = ""
    for key in keys:
        if isinstance(key, int):
            out += f"[{key}]"
        else:
            out += f".{key}" if re.fullmatch(r"[\w-]+", key) else f"[{key}]"
    return out.removeprefix(".")
