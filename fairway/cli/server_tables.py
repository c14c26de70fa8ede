"""Converts the server's `Table` to a grid of text.

The server decides columns and cells, so that a new kind needs no new client; here only the
requested columns are selected, and namespaces and labels added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairway.cli.render_table import Grid
from fairway.cli.workloads import shown_phase
from fairway.client.wire import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Which parts of a table to show."""

    is_wide: bool = False
    with_namespace: bool = False
    with_labels: bool = False
    label_columns: Sequence[str] = ()
    name_prefix: str = ""


def grid(table: Object, view: View) -> Grid:
    """The grid of a server's table."""
    columns: list[Object] = table.get("columnDefinitions") or []
    kept = [at for at, column in enumerate(columns) if view.is_wide or not column.get("priority")]
    headings = [str(columns[at]["name"]).upper() for at in kept]
    is_name = [columns[at].get("format") == "name" for at in kept]
    if not any(is_name) and headings:
        is_name[0] = headings[0] == "NAME"
    rows = []
    for row in table.get("rows") or ():
        cells = [
            shown_phase(text) if heading == "PHASE" else text
            for heading, text in zip(
                headings, (_text(row["cells"][at]) for at in kept), strict=True
            )
        ]
        cells = [
            view.name_prefix + cell if named else cell
            for cell, named in zip(cells, is_name, strict=True)
        ]
        rows.append([*_before(row, view), *cells, *_after(row, view)])
    before = ["NAMESPACE"] if view.with_namespace else []
    after = [key.rsplit("/", 1)[-1].upper() for key in view.label_columns]
    after += ["LABELS"] if view.with_labels else []
    return Grid([*before, *headings, *after], rows)


def metadata(row: Object) -> Object:
    """The metadata of a row's object."""
    result: Object = (row.get("object") or {}).get("metadata") or {}
    return result


def _before(row: Object, view: View) -> list[str]:
    return [str(metadata(row).get("namespace", ""))] if view.with_namespace else []


def _after(row: Object, view: View) -> list[str]:
    labels: dict[str, str] = metadata(row).get("labels") or {}
    cells = [labels.get(key, "") for key in view.label_columns]
    if view.with_labels:
        cells.append(
            ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"
        )
    return cells


def _text(cell: Any) -> str:
    match cell:
        case None:
            return ""
        case bool():
            return str(cell).lower()
        case list():
            return ",".join(map(_text, cell))
        case _:
            # A cell is always on one line.
            return " ".join(str(cell).split("\n"))
