"""Manifest text to plain objects: YAML or JSON, many documents, with the line of every fault.

Only JSON types come out. Plain scalars are read as kubectl reads them, by YAML 1.1: `yes`, `on`
and `y` are booleans, `010` is eight and `1_000` a thousand, `1e3` is a number; dates stay text.
Keys are always text as written. Stricter than kubectl where it guesses: duplicate keys, unknown
tags, and numbers that JSON cannot represent are refused. Aliases are copied, within a budget, so
that a small file cannot grow into a giant one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from fairway.api.errors import BadRequest
from fairway.api.meta import JsonObject

_DEPTH_MAX = 200
_ALIASED_NODES_MAX = 100_000
_ALIASED_BYTES_MAX = 3 << 20

_WORDS: dict[str, bool | None] = {
    word: value
    for value, words in (
        (True, "y Y yes Yes YES true True TRUE on On ON"),
        (False, "n N no No NO false False FALSE off Off OFF"),
        (None, "~ null Null NULL"),
    )
    for word in words.split()
} | {"": None}
_NOT_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BLANK = re.compile(r"\s*")
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = (None, "!", f"{_TAG}str")


class ManifestError(BadRequest):
    """Text that is not a manifest, with the line of the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object of a text, and where it begins."""

    value: JsonObject
    source: str = ""
    line: int = 1

    @property
    def place(self) -> str:
        return _place(self.source, self.line)


def read_documents(text: str | bytes, source: str = "") -> list[Document]:
    """All objects of a text in order; lists are expanded, and empty documents omitted."""
    decoded = _decode(text, source)
    result = None
    if decoded.lstrip()[:1] in ("{", "["):
        result = _read_json(decoded, source)
    if result is None:
        result = list(_Reader(decoded, source).documents())
    return [item for value, line in result for item in _expand(value, source, line)]


def read_value(text: str | bytes) -> Any:
    """The single value of a text, of any type; what a server accepts as a body."""
    decoded = _decode(text, "")
    result = list(_Reader(decoded, "").documents())
    if len(result) != 1:
        raise ManifestError(f"one document is expected, and there are {len(result)}")
    return result[0][0]


def _decode(text: str | bytes, source: str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = text[: fault.start].count(b"\n") + 1
        raise ManifestError(f"{_place(source, line)}: the text is not UTF-8") from fault


def _place(source: str, line: int) -> str:
    return f"{source}:{line}" if source else f"line {line}"


def _expand(value: Any, source: str, line: int) -> Iterator[Document]:
    """The objects of a document, each checked to have an apiVersion and a kind."""
    if value is None:
        return
    if not isinstance(value, dict):
        raise ManifestError(f"{_place(source, line)}: an object is expected, with kind and name")
    for key in ("apiVersion", "kind"):
        if not isinstance(value.get(key), str) or not value[key]:
            raise ManifestError(f"{_place(source, line)}: the object has no {key}")
    if value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _expand(item, source, line)
        return
    yield Document(value=value, source=source, line=line)


def _read_json(text: str, source: str) -> list[tuple[Any, int]] | None:
    """The values of a stream of JSON; None if it is not JSON, and may be YAML."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
    result = []
    at = _end_of_blank(text, 0)
    try:
        while at < len(text):
            start = at
            value, at = decoder.raw_decode(text, at)
            result.append((value, text.count("\n", 0, start) + 1))
            at = _end_of_blank(text, at)
    except json.JSONDecodeError:
        return None
    except RecursionError as fault:
        raise ManifestError(f"{source or 'the text'} is nested too deeply") from fault
    except ManifestError as fault:
        line = text.count("\n", 0, start) + 1
        raise ManifestError(f"{_place(source, line)}: {fault.message}") from fault
    return result


def _end_of_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    result: JsonObject = {}
    for key, value in pairs:
        if key in result:
            raise ManifestError(f"key {key!r} is there twice")
        result[key] = value
    return result


def _refuse_constant(name: str) -> Any:
    raise ManifestError(f"{name} is not a JSON number")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


class _Reader:
    """Builds values from YAML events, which have the line numbers."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        # libyaml's parser if it is available: the same events, many times faster.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events = yaml.parse(text, Loader=loader)
        self._anchors: dict[str, Any] = {}
        self._aliased_nodes = 0
        self._aliased_bytes = 0

    def documents(self) -> Iterator[tuple[Any, int]]:
        try:
            for event in self._events:
                if isinstance(event, yaml.DocumentStartEvent):
                    self._anchors = {}
                    first = next(self._events)
                    yield self._value(first, 0), _line(first)
        except yaml.MarkedYAMLError as fault:
            mark = fault.problem_mark or fault.context_mark
            line = mark.line + 1 if mark else 1
            said = fault.problem or fault.context or "the text is not YAML"
            raise ManifestError(f"{_place(self._source, line)}: {said}") from fault
        except yaml.YAMLError as fault:
            said = getattr(fault, "reason", "") or "the text is not YAML"
            raise ManifestError(f"{_place(self._source, 1)}: {said}") from fault

    def _refuse(self, event: yaml.Event, why: str) -> ManifestError:
        return ManifestError(f"{_place(self._source, _line(event))}: {why}")

    def _value(self, event: yaml.Event, depth: int) -> Any:
        if depth > _DEPTH_MAX:
            raise self._refuse(event, f"nested deeper than {_DEPTH_MAX} levels")
        match event:
            case yaml.AliasEvent():
                return self._resolve_alias(event)
            case yaml.ScalarEvent():
                value = self._scalar(event)
            case yaml.SequenceStartEvent():
                value = self._sequence(depth)
            case yaml.MappingStartEvent():
                value = self._mapping(depth)
            case _:
                raise self._refuse(event, "the text is not YAML")
        if event.anchor:
            self._anchors[event.anchor] = value
        return value

    def _resolve_alias(self, event: yaml.AliasEvent) -> Any:
        if event.anchor not in self._anchors:
            raise self._refuse(event, f"alias *{event.anchor} has no anchor before it")
        return self._copy(self._anchors[event.anchor], event)

    def _copy(self, value: Any, event: yaml.Event) -> Any:
        self._aliased_nodes += 1
        if self._aliased_nodes > _ALIASED_NODES_MAX:
            raise self._refuse(event, f"aliases grow beyond {_ALIASED_NODES_MAX} values")
        match value:
            case dict():
                self._copy_text("".join(value), event)
                return {key: self._copy(part, event) for key, part in value.items()}
            case list():
                return [self._copy(part, event) for part in value]
            case str():
                return self._copy_text(value, event)
            case _:
                return value

    def _copy_text(self, text: str, event: yaml.Event) -> str:
        self._aliased_bytes += len(text)
        if self._aliased_bytes > _ALIASED_BYTES_MAX:
            raise self._refuse(event, f"aliases grow beyond {_ALIASED_BYTES_MAX} bytes")
        return text

    def _sequence(self, depth: int) -> list[Any]:
        result = []
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            result.append(self._value(event, depth + 1))
        return result

    def _mapping(self, depth: int) -> JsonObject:
        result: JsonObject = {}
        merged: JsonObject = {}
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if not isinstance(event, yaml.ScalarEvent):
                raise self._refuse(event, "a key must be text")
            if event.tag not in _TEXT_TAGS:  # other readers may take it for another key
                raise self._refuse(event, f"tag {event.tag} is not of a key")
            value = self._value(next(self._events), depth + 1)
            if event.value == "<<" and not event.style:
                merged = self._merge(event, value) | merged
            elif event.value in result:
                raise self._refuse(event, f"key {event.value!r} is there twice")
            else:
                result[event.value] = value
        return merged | result

    def _merge(self, event: yaml.Event, value: Any) -> JsonObject:
        """The fields of a merge key; an earlier mapping takes precedence over a later one."""
        together: JsonObject = {}
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                raise self._refuse(event, "<< merges mappings only")
            together = item | together
        return together

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text: str = event.value
        tag = event.tag
        if tag in ("!", f"{_TAG}str") or (tag is None and event.style):
            return text
        if tag is not None and tag not in (
            f"{_TAG}{name}" for name in ("int", "float", "bool", "null")
        ):
            raise self._refuse(event, f"tag {tag} is not of JSON")
        if text in _WORDS:
            return _WORDS[text]
        if _NOT_JSON.fullmatch(text):
            raise self._refuse(event, f"{text} is not a JSON number")
        return _number(text)


def _number(text: str) -> int | float | str:
    """A plain scalar as a number, or as text if it is none."""
    plain = text.replace("_", "") if text[:1] in "+-.0123456789" else text
    match = _INTEGER.fullmatch(plain)
    if match and len(plain) <= 64:
        sign, digits = match.groups()
        return int(sign + _octal(digits), 0)
    if _FLOAT.fullmatch(plain):
        value = float(plain)
        # Too large for a float, hence for readers of JSON: it stays text.
        return value if abs(value) != float("inf") else text
    return text


def _octal(digits: str) -> str:
    """Octal digits of YAML 1.1 (010) in Python's form (0o10)."""
    is_old = len(digits) > 1 and digits[0] == "0" and digits[1].isdecimal()
    return f"0o{digits[1:]}" if is_old else digits
