"""Kubernetes' functions on lists and maps, and its regular expression searches.

Patterns are RE2's, which match in linear time, so no rule can stall the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import re2

from fairway.schema.cel.declared import Declared, function, method

_PATTERN_LENGTH_MOST = 4096
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 18


def _is_sorted(values: list[Any]) -> bool:
    try:
        return all(values[place] <= values[place + 1] for place in range(len(values) - 1))
    except TypeError:
        raise ValueError("no such overload") from None


def _total(values: list[Any]) -> Any:
    if any(isinstance(item, bool) or not isinstance(item, (int, float)) for item in values):
        raise ValueError("no such overload")
    total = sum(values)
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise ValueError("integer overflow")
    return total


def _extreme(choose: Callable[[list[Any]], Any], name: str) -> Callable[[list[Any]], Any]:
    def of(values: list[Any]) -> Any:
        if not values:
            raise ValueError(f"{name} called on empty list")
        try:
            return choose(values)
        except TypeError:
            raise ValueError("no such overload") from None

    return of


def _equal(left: Any, right: Any) -> bool:
    """Compares as CEL does: unlike in Python, True is not 1."""
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _index_of(values: list[Any], wanted: Any) -> int:
    return next((place for place, value in enumerate(values) if _equal(value, wanted)), -1)


def _last_index_of(values: list[Any], wanted: Any) -> int:
    places = range(len(values) - 1, -1, -1)
    return next((place for place in places if _equal(values[place], wanted)), -1)


def _pattern(text: str) -> Any:
    if len(text) > _PATTERN_LENGTH_MOST:
        raise ValueError("the regular expression is too long")
    try:
        return re2.compile(text, _OPTIONS)
    except re2.error:
        raise ValueError(f"Illegal regex: {text[:60]!r}") from None


def _find(text: str, pattern: str) -> str:
    match = _pattern(pattern).search(text)
    return match.group() if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    matches: list[str] = []
    end = -1
    for match in _pattern(pattern).finditer(text):
        if 0 <= limit <= len(matches):
            break
        # An empty match directly after another match does not count.
        if match.start() == match.end() == end:
            continue
        end = match.end()
        matches.append(match.group())
    return matches


def _with_entry(entries: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A step of the macro transformMap, which the runtime declares but does not implement."""
    return {**entries, key: value}


FUNCTIONS: tuple[Declared, ...] = (
    method("isSorted", ("list",), "bool", _is_sorted),
    method("sum", ("list",), "dyn", _total),
    method("min", ("list",), "dyn", _extreme(min, "min")),
    method("max", ("list",), "dyn", _extreme(max, "max")),
    method("indexOf", ("list", "dyn"), "int", _index_of),
    method("lastIndexOf", ("list", "dyn"), "int", _last_index_of),
    # Narrower than the declared signature, because an equal one would collide with it.
    function("cel.@mapInsert", ("map<string,string>", "string", "dyn"), "map", _with_entry),
    method("find", ("string", "string"), "string", _find),
    method("findAll", ("string", "string"), "list<string>", _find_all),
    method("findAll", ("string", "string", "int"), "list<string>", _find_all),
)
