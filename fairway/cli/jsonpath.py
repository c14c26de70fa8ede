"""JSONPath as kubectl has it: `{.items[*].metadata.name}`, filters, ranges and plain text.

A template is text with expressions in braces. An expression is a path of fields (`.a`, `['a.b']`),
indexes (`[0]`, `[-1]`, `[1:3]`), wildcards (`[*]`, `.*`), descent (`..a`) and filters
(`[?(@.type=="Ready")]`); `{range PATH}...{end}` repeats what is between for each value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

Step = Callable[[list[Any]], list[Any]]


class PathError(ValueError):
    """A path that cannot be read."""


_TOKEN = re.compile(
    r"""
      \.\.(?P<descent>[\w*-]+)
    | \.(?P<field>(?:[^.\[\]\\{}'"\s]|\\.)+)
    | \[\s*(?P<quoted>'[^']*'|"[^"]*")\s*\]
    | \[\s*(?P<index>-?\d+|\*)\s*\]
    | \[\s*(?P<start>-?\d+)?\s*:\s*(?P<end>-?\d+)?\s*\]
    | \[\?\(\s*@(?P<left>[^=!<>)]*?)\s*(?:(?P<operator>==|!=|>=|<=|>|<)\s*(?P<right>[^)]*?))?\s*\)\]
    """,
    re.VERBOSE,
)


def find(path: str, value: Any) -> list[Any]:
    """All values at a path; the braces and the first dot may be left out."""
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    text = text.removeprefix("$").removeprefix("@")
    if text and text[0] not in ".[":
        text = f".{text}"
    found = [value]
    for step in _steps(text):
        found = step(found)
    return found


def _steps(text: str) -> list[Step]:
    steps: list[Step] = []
    position = 0
    while position < len(text):
        if text[position:] == ".":
            break
        match = _TOKEN.match(text, position)
        if match is None:
            raise PathError(f"cannot read the path at {text[position:]!r}")
        steps.append(_step(match))
        position = match.end()
    return steps


def _step(match: re.Match[str]) -> Step:
    part = match.groupdict()
    if part["descent"] is not None:
        name = part["descent"]
        return lambda values: [hit for value in values for hit in _descend(value, name)]
    if part["field"] is not None:
        return _field(re.sub(r"\\(.)", r"\1", part["field"]))
    if part["quoted"] is not None:
        return _field(part["quoted"][1:-1])
    if part["index"] is not None:
        return _field("*") if part["index"] == "*" else _at(int(part["index"]))
    if part["left"] is not None:
        return _filter(part["left"], part["operator"], part["right"])
    bounds = slice(*(int(one) if one else None for one in (part["start"], part["end"])))
    return lambda values: [
        one for value in values if isinstance(value, list) for one in value[bounds]
    ]


def _field(name: str) -> Step:
    if name == "*":
        return lambda values: [one for value in values for one in _children(value)]
    return lambda values: [
        value[name] for value in values if isinstance(value, dict) and name in value
    ]


def _at(index: int) -> Step:
    return lambda values: [
        value[index]
        for value in values
        if isinstance(value, list) and -len(value) <= index < len(value)
    ]


def _filter(left: str, operator: str | None, right: str | None) -> Step:
    def holds(value: Any) -> bool:
        found = find(left, value)
        if operator is None or right is None:
            return bool(found)
        return any(_compare(one, operator, _literal(right)) for one in found)

    return lambda values: [
        one for value in values if isinstance(value, list) for one in value if holds(one)
    ]


def _compare(left: Any, operator: str, right: Any) -> bool:
    try:
        match operator:
            case "==":
                return bool(left == right)
            case "!=":
                return bool(left != right)
            case ">":
                return bool(left > right)
            case "<":
                return bool(left < right)
            case ">=":
                return bool(left >= right)
            case _:
                return bool(left <= right)
    except TypeError:
        return False


def _literal(text: str) -> Any:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise PathError(f"cannot read the value {text!r} of a filter") from error


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _descend(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict) and name in value:
        yield value[name]
    for child in _children(value):
        if name == "*":
            yield child
        yield from _descend(child, name)


@dataclass(frozen=True, slots=True)
class _Range:
    path: str
    body: list[Any]


def render(template: str, value: Any) -> str:
    """A template filled in."""
    parts, rest = _parse(_pieces(template))
    if rest:
        raise PathError("{end} without {range}")
    return _fill(parts, value, value)


def _pieces(template: str) -> list[tuple[bool, str]]:
    """The template cut into text and expressions; True marks an expression."""
    if "{" not in template:
        return [(True, template)]
    pieces = []
    for match in re.finditer(r"""\{((?:[^{}'"]|'[^']*'|"[^"]*")*)\}|([^{]+)|(.)""", template):
        if match[3] is not None:
            raise PathError(f"a brace is not closed in {template!r}")
        pieces.append((match[1] is not None, match[1] if match[1] is not None else match[2]))
    return pieces


def _parse(pieces: list[tuple[bool, str]]) -> tuple[list[Any], list[tuple[bool, str]]]:
    parts: list[Any] = []
    while pieces:
        (is_expression, text), *pieces = pieces
        text = text.strip() if is_expression else text
        if is_expression and text == "end":
            return parts, [(True, "end"), *pieces]
        if is_expression and text.startswith("range"):
            body, pieces = _parse(pieces)
            if not pieces:
                raise PathError("{range} without {end}")
            pieces = pieces[1:]
            parts.append(_Range(text.removeprefix("range").strip(), body))
        else:
            parts.append((is_expression, text))
    return parts, []


def _fill(parts: list[Any], value: Any, root: Any) -> str:
    out = []
    for part in parts:
        if isinstance(part, _Range):
            out += [_fill(part.body, one, root) for one in find(part.path, value)]
            continue
        is_expression, text = part
        if not is_expression:
            out.append(text)
        elif text[:1] in {"'", '"'}:
            out.append(text[1:-1].encode().decode("unicode_escape"))
        else:
            start = root if text.startswith("$") else value
            out.append(" ".join(map(show, find(text, start))))
    return "".join(out)


def show(value: Any) -> str:
    """A value as text: strings bare, the rest as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
