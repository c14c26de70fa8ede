"""Duplicate keys in an object of a JSON text.

A decoder silently keeps the last, so a person never learns that a setting was lost. Finding them
with a slow decoder costs more than everything else, so a cheap count comes first: if the text has
as many keys as the decoded value, none was lost.
"""

from __future__ import annotations

import json
from typing import Any

_SHOWN_MAX = 20


def duplicate_fields(text: bytes, decoded: Any) -> list[str]:
    """The paths of keys that occur more than once in their object."""
    if text.count(b'":') == _key_count(decoded):
        return []
    result: list[str] = []
    try:
        _Paths(result).read(text)
    except (ValueError, RecursionError):
        return []
    return result[:_SHOWN_MAX]


def _key_count(value: Any) -> int:
    """The number of keys in a value, at all depths."""
    count = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if type(item) is dict:
            count += len(item)
            waiting.extend(part for part in item.values() if type(part) in (dict, list))
        elif type(item) is list:
            waiting.extend(part for part in item if type(part) in (dict, list))
    return count


class _Pairs(list[tuple[str, Any]]):
    """An object as its pairs, duplicates included."""


class _Paths:
    def __init__(self, places: list[str]) -> None:
        self._places = places

    def read(self, text: bytes) -> None:
        self._look(json.loads(text, object_pairs_hook=_Pairs), "")

    def _look(self, value: Any, path: str) -> None:
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for key, part in value:
                place = f"{path}.{key}" if path else key
                if key in seen:
                    self._places.append(place)
                seen.add(key)
                self._look(part, place)
        elif isinstance(value, list):
            for index, part in enumerate(value):
                self._look(part, f"{path}[{index}]")
