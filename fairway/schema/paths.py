"""Finds values in objects: dotted paths, and JSONPath as Kubernetes writes it.

The JSONPath is that of printer columns and of kubectl: `.status.conditions[?(@.type=="Ready")]`,
with or without braces. A path that matches nothing returns nothing and is no error. Paths are
compiled once into a chain of steps, each of which turns a list of values into the next one.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[list[Any]], list[Any]]
Finder = Callable[[Any], list[Any]]

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# An escaped character belongs to the name; anything that could start another step ends it.
_NAME = re.compile(r"(?:\\.|[^.\[\]{}()\s'\"=!<>,\\])+")
_SLICE = re.compile(r"(-?\d*)(?::(-?\d*))?(?::(-?\d*))?")
_QUOTED = re.compile(r"'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\"")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_INDEX_DIGITS_MAX = 9


def dotted_get(value: Any, path: str) -> Any:
    """The value at a path of plain keys, such as `spec.replicas`; None if there is none."""
    for key in path.removeprefix(".").split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def jsonpath(value: Any, expression: str) -> list[Any]:
    """All values that a JSONPath matches."""
    return compile_jsonpath(expression)(value)


@lru_cache(maxsize=1024)
def compile_jsonpath(text: str) -> Finder:
    """A function that finds all values of a JSONPath; ValueError if the text is invalid."""
    body = text.strip()
    if body.startswith("{"):
        if not body.endswith("}"):
            raise ValueError(f"the path {text!r} opens a brace and does not close it")
        body = body[1:-1].strip()
    reader = _Reader(text, body)
    steps = reader.steps(until="")

    def find(value: Any) -> list[Any]:
        values = [value]
        for step in steps:
            values = step(values)
        return values

    return find


class _Reader:
    """Parses a path from left to right."""

    def __init__(self, whole: str, body: str) -> None:
        self._whole, self._body, self._at = whole, body, 0

    def steps(self, *, until: str) -> list[Step]:
        """The steps up to the end, or to the first character that ends an operand."""
        steps: list[Step] = []
        if self._peek() in ("$", "@"):
            self._at += 1
        while self._at < len(self._body):
            if self._peek() == "[":
                steps.append(self._brackets())
            elif self._body.startswith("..", self._at):
                self._at += 1
                steps.append(_descend)
                if self._body.startswith(".[", self._at):
                    self._at += 1
            elif self._peek() == ".":
                self._at += 1
                if self._at == len(self._body) and steps:
                    raise self._fault("a name must follow the dot")
                steps.extend(self._after_dot())
            elif self._peek() in until:
                break
            elif not steps and self._at == 0 and not until:
                # The first name may omit its dot, as in `spec.replicas`.
                steps.extend(self._after_dot())
            else:
                raise self._fault(f"{self._peek()!r} was not expected")
        return steps

    def _after_dot(self) -> Iterator[Step]:
        if self._peek() == "*":
            self._at += 1
            yield _every
        elif self._peek() == "[":
            return
        elif self._at < len(self._body):
            match = _NAME.match(self._body, self._at)
            if match is None:
                raise self._fault("a name must follow the dot")
            self._at = match.end()
            yield _field(re.sub(r"\\(.)", r"\1", match.group()))

    def _brackets(self) -> Step:
        self._at += 1
        if self._body.startswith("?(", self._at):
            self._at += 2
            return self._filter()
        parts = [self._selector()]
        while self._peek() == ",":
            self._at += 1
            parts.append(self._selector())
        self._expect("]")
        return parts[0] if len(parts) == 1 else _union(parts)

    def _selector(self) -> Step:
        self._skip_spaces()
        if self._peek() == "*":
            self._at += 1
            step: Step = _every
        elif self._peek() in ("'", '"'):
            step = _field(self._quote())
        else:
            step = self._slice()
        self._skip_spaces()
        return step

    def _slice(self) -> Step:
        match = _SLICE.match(self._body, self._at)
        if match is None or not match.group() or "-" in match.groups():
            raise self._fault("brackets must hold an index, a slice, a quoted name, * or ?(...)")
        if any(len(part or "") > _INDEX_DIGITS_MAX for part in match.groups()):
            raise self._fault("an index is too large")
        self._at = match.end()
        start, stop, stride = (int(part) if part else None for part in match.groups())
        if ":" not in match.group():
            return _item(start or 0)
        if stride is not None and stride <= 0:
            raise self._fault("the step of a slice must be above zero")
        return _slice(slice(start, stop, stride))

    def _filter(self) -> Step:
        left = self._operand()
        self._skip_spaces()
        sign = next((item for item in ("==", "!=", "<=", ">=", "<", ">") if self._take(item)), "")
        right = self._operand() if sign else None
        self._skip_spaces()
        self._expect(")")
        self._expect("]")
        if right is None:
            return _filter(lambda item: bool(left(item)))
        return _filter(_comparison(left, right, _COMPARISONS[sign]))

    def _operand(self) -> Finder:
        """One side of a comparison: a path from the item, or a constant."""
        self._skip_spaces()
        if self._peek() in ("'", '"'):
            return _constant(self._quote())
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self._take(word):
                return _constant(value)
        number = _NUMBER.match(self._body, self._at)
        if number is not None:
            self._at = number.end()
            text = number.group()
            return _constant(float(text) if "." in text else int(text))
        if self._peek() not in ("@", "."):
            raise self._fault("a filter compares paths that start with @ and constants")
        steps = self.steps(until=")=!<> ")

        def find(item: Any) -> list[Any]:
            values = [item]
            for step in steps:
                values = step(values)
            return values

        return find

    def _quote(self) -> str:
        match = _QUOTED.match(self._body, self._at)
        if match is None:
            raise self._fault("a quote is not closed")
        self._at = match.end()
        text = match.group(1) if match.group(1) is not None else match.group(2)
        return re.sub(r"\\(.)", r"\1", text)

    def _peek(self) -> str:
        return self._body[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        taken = self._body.startswith(text, self._at)
        self._at += len(text) if taken else 0
        return taken

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._fault(f"{text!r} was expected")

    def _skip_spaces(self) -> None:
        while self._peek() == " ":
            self._at += 1

    def _fault(self, why: str) -> ValueError:
        return ValueError(f"the path {self._whole!r} cannot be read at {self._at + 1}: {why}")


def _field(name: str) -> Step:
    def step(values: list[Any]) -> list[Any]:
        return [value[name] for value in values if isinstance(value, dict) and name in value]

    return step


def _item(position: int) -> Step:
    def step(values: list[Any]) -> list[Any]:
        return [
            value[position]
            for value in values
            if isinstance(value, list) and -len(value) <= position < len(value)
        ]

    return step


def _slice(bounds: slice) -> Step:
    def step(values: list[Any]) -> list[Any]:
        return [item for value in values if isinstance(value, list) for item in value[bounds]]

    return step


def _union(parts: list[Step]) -> Step:
    return lambda values: [item for part in parts for item in part(values)]


def _filter(holds: Callable[[Any], bool]) -> Step:
    def step(values: list[Any]) -> list[Any]:
        lists = (value for value in values if isinstance(value, list))
        return [item for value in lists for item in value if holds(item)]

    return step


def _comparison(left: Finder, right: Finder, compares: Callable[[Any, Any], bool]) -> Any:
    def holds(item: Any) -> bool:
        mine, theirs = left(item), right(item)
        # Only single values of the same sort compare.
        if len(mine) != 1 or len(theirs) != 1 or _sort(mine[0]) != _sort(theirs[0]):
            return False
        return bool(compares(mine[0], theirs[0]))

    return holds


def _sort(value: Any) -> str:
    """The sort of a value; values of different sorts do not compare."""
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "other"


def _constant(value: Any) -> Finder:
    return lambda _item: [value]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _every(values: list[Any]) -> list[Any]:
    return [child for value in values for child in _children(value)]


def _descend(values: list[Any]) -> list[Any]:
    """Every map and list from here down, each before its parts."""
    out: list[Any] = []
    waiting = list(reversed(values))
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            out.append(value)
            waiting.extend(reversed(_children(value)))
    return out
