"""JSONPath as in kubectl: `{.items[*].metadata.name}`, filters, ranges and plain text.

A template is text with expressions in braces; an expression is a path as `paths` parses it, and
`{range PATH}...{end}` repeats its content for each value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from fairway.schema.paths import compile_jsonpath


class PathError(ValueError):
    """A path that cannot be parsed."""


def find(path: str, value: Any) -> list[Any]:
    """All values at a path; the braces and the first dot may be left out."""
    try:
        return compile_jsonpath(path)(value)
    except ValueError as fault:
        raise PathError(str(fault)) from fault


@dataclass(frozen=True, slots=True)
class _Range:
    path: str
    body: list[Any]


def render(template: str, value: Any) -> str:
    """Renders a template."""
    parts, rest = _parse(_pieces(template))
    if rest:
        raise PathError("{end} without {range}")
    return _fill(parts, value, value)


def _pieces(template: str) -> list[tuple[bool, str]]:
    """The template split into text and expressions; True marks an expression."""
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
            out += [_fill(part.body, item, root) for item in find(part.path, value)]
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
    """A value as text: strings without quotes, the rest as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
