"""One object in full, for people: what it is, its spec, its status, its events.

Works for every kind: the spec is shown as a tree, conditions and events as tables. Secrets show the
length of their values, never the values.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from fairway.cli import ages, events, terminal
from fairway.cli.render_table import (
    Grid,
    plain_layout,
    plain_lines,
    rich_layout,
    rich_lines,
)
from fairway.client.wire import Object

KEY_STYLE = "cyan"
CONDITION_HEADINGS = ["CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"]


def lines(obj: Object, happened: list[Object]) -> list[Text]:
    """The whole description."""
    out = [*_head(obj)]
    for key, value in obj.items():
        if key in {"apiVersion", "kind", "metadata", "status"}:
            continue
        if obj["kind"] == "Secret" and key in {"data", "stringData"}:
            value = {name: _length(text) for name, text in (value or {}).items()}  # noqa: PLW2901
        out += [Text(), *_section(key, value)]
    status = dict(obj.get("status") or {})
    conditions = status.pop("conditions", None)
    if status:
        out += [Text(), *_section("status", status)]
    if isinstance(conditions, list) and conditions:
        out += [Text(), _heading("Conditions"), *_table(_conditions(conditions))]
    out.append(Text())
    if happened:
        out += [_heading("Events"), *_table(_without_object(happened))]
    else:
        out.append(_pair("Events", "<none>", 0))
    return out


def _head(obj: Object) -> Iterator[Text]:
    metadata = obj["metadata"]
    created = metadata.get("creationTimestamp")
    pairs: dict[str, Any] = {
        "Name": metadata["name"],
        "Namespace": metadata.get("namespace"),
        "Kind": f"{obj['kind']} ({obj['apiVersion']})",
        "Created": f"{created} ({ages.since(created)} ago)" if created else None,
        "Deleted": metadata.get("deletionTimestamp"),
        "Finalizers": ", ".join(metadata.get("finalizers") or ()) or None,
        "Owned by": ", ".join(
            f"{owner['kind']}/{owner['name']}" for owner in metadata.get("ownerReferences") or ()
        )
        or None,
    }
    wide = max(len(key) for key in (*pairs, "Annotations")) + 1
    for key, value in pairs.items():
        if value is not None:
            yield _pair(key, str(value), wide)
    for title, key in (("Labels", "labels"), ("Annotations", "annotations")):
        yield from _marks(title, metadata.get(key) or {}, wide)


def _marks(title: str, marks: dict[str, str], wide: int) -> Iterator[Text]:
    shown = [f"{key}={_short(value)}" for key, value in sorted(marks.items())] or ["<none>"]
    yield _pair(title, shown[0], wide)
    for text in shown[1:]:
        yield Text(" " * (wide + 1) + text)


def _section(key: str, value: Any) -> list[Text]:
    title = key[:1].upper() + key[1:]
    if not isinstance(value, dict | list):
        return [_pair(title, _scalar(value), 0)]
    return [_heading(title), *_tree(value, 2)]


def _tree(value: Any, indent: int) -> Iterator[Text]:
    """Nested values, as YAML would show them."""
    space = " " * indent
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list) and inner:
                yield Text.assemble(space, (f"{key}:", KEY_STYLE))
                yield from _tree(inner, indent + 2)
            else:
                yield from _leaf(Text.assemble(space, (f"{key}:", KEY_STYLE), " "), inner, indent)
    else:
        for inner in value:
            if isinstance(inner, dict | list) and inner:
                first, *rest = _tree(inner, indent + 2)
                yield Text.assemble(space, "- ", first[indent + 2 :])
                yield from rest
            else:
                yield from _leaf(Text.assemble(space, "- "), inner, indent)


def _leaf(start: Text, value: Any, indent: int) -> Iterator[Text]:
    first, *rest = _scalar(value).split("\n")
    is_state = terminal.is_rich() and start.plain.strip() in {"phase:", "state:"}
    yield start.append_text(terminal.state(first) if is_state else Text(first))
    for line in rest:
        yield Text(" " * (indent + 2) + line)


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "<none>"
        case bool():
            return str(value).lower()
        case dict() | list():
            return "{}" if isinstance(value, dict) else "[]"
        case _:
            return str(value).rstrip("\n")


def _conditions(conditions: list[Object]) -> Grid:
    rows = [
        [
            str(condition.get("type", "")),
            str(condition.get("status", "")),
            str(condition.get("reason") or ""),
            ages.since(condition.get("lastTransitionTime")),
            " ".join(str(condition.get("message") or "").split()),
        ]
        for condition in conditions
    ]
    return Grid(CONDITION_HEADINGS, rows)


def _without_object(happened: list[Object]) -> Grid:
    grid = events.as_grid(sorted(happened, key=events.last_seen))
    at = grid.headings.index("OBJECT")
    rows = [[*row[:at], *row[at + 1 :]] for row in grid.rows]
    return Grid([*grid.headings[:at], *grid.headings[at + 1 :]], rows)


def _table(grid: Grid) -> list[Text]:
    if not terminal.is_rich():
        return [Text(f"  {line}") for line in plain_lines(grid, plain_layout(grid))]
    layout = rich_layout(grid, terminal.width() - 2)
    return [Text("  ").append_text(line) for line in rich_lines(grid, layout)]


def _heading(text: str) -> Text:
    return Text(f"{text}:", style="bold")


def _pair(key: str, value: str, wide: int) -> Text:
    label = f"{key}:".ljust(wide)
    return Text.assemble((label, "bold"), " ", (value, "dim" if value == "<none>" else ""))


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= 120 else f"{line[:117]}..."


def _length(text: str) -> str:
    try:
        return f"{len(base64.b64decode(text, validate=True))} bytes"
    except (binascii.Error, ValueError):
        return f"{len(text)} characters"
