"""Tables, laid out once for pipes and terminals alike.

Into a pipe goes what kubectl prints: upper-case headings, columns three spaces apart, nothing cut.
On a terminal states get colour and symbol, and when the lines are too long for it, the widest
columns are cut with an ellipsis; names and namespaces never are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from fairway.cli import terminal

STATE_COLUMNS = {"STATUS", "PHASE", "STATE", "READY", "MODE", "TYPE", "ADMITTED", "ACCEPTED"}
FAINT_COLUMNS = {"AGE", "NAMESPACE", "LAST SEEN", "LABELS", "CREATED AT"}
WHOLE_COLUMNS = {"NAME", "NAMESPACE"}
LEAST_WIDTH = 6


@dataclass(frozen=True, slots=True)
class Grid:
    """Headings and rows of text."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def plain_lines(grid: Grid, *, with_headings: bool = True, widths: Sequence[int] = ()) -> list[str]:
    """Lines as kubectl prints them."""
    rows = [*([grid.headings] if with_headings else []), *grid.rows]
    least = _widths(rows, len(grid.headings), list(widths))
    return ["   ".join(_pad(row, least)).rstrip() for row in rows]


def rich_lines(
    grid: Grid, *, limit: int, with_headings: bool = True, widths: Sequence[int] = ()
) -> list[Text]:
    """Styled lines that fit a terminal."""
    styled = [
        [_cell(heading, cell) for heading, cell in zip(grid.headings, row, strict=True)]
        for row in grid.rows
    ]
    texts = [[cell.plain for cell in row] for row in styled]
    full = _widths([grid.headings, *texts], len(grid.headings), list(widths))
    gap = "   " if sum(full) + 3 * (len(full) - 1) <= limit else "  "
    fitted = fit(full, grid.headings, limit - len(gap) * (len(full) - 1))
    lines = []
    if with_headings:
        head = gap.join(
            _pad([_cut(h, w) for h, w in zip(grid.headings, fitted, strict=True)], fitted)
        )
        lines.append(Text(head.rstrip(), style="bold dim"))
    for row in styled:
        line = Text()
        for position, (cell, size) in enumerate(zip(row, fitted, strict=True)):
            cell.truncate(size, overflow="ellipsis")
            is_last = position == len(fitted) - 1
            line.append_text(cell)
            if not is_last:
                line.append(" " * (size - cell_len(cell.plain)) + gap)
        lines.append(line)
    return lines


def fit(widths: Sequence[int], headings: Sequence[str], limit: int) -> list[int]:
    """Widths that sum to at most the limit where that is possible, taken from the widest first."""
    fitted = list(widths)
    least = [
        width if heading in WHOLE_COLUMNS else min(width, max(LEAST_WIDTH, len(heading)))
        for heading, width in zip(headings, widths, strict=True)
    ]
    while sum(fitted) > limit:
        shrinkable = [at for at, width in enumerate(fitted) if width > least[at]]
        if not shrinkable:
            break
        fitted[max(shrinkable, key=lambda at: fitted[at])] -= 1
    return fitted


def show(grid: Grid, *, with_headings: bool = True, widths: Sequence[int] = ()) -> list[int]:
    """Prints a grid; gives the widths, so that rows which come later can line up."""
    kept = _widths([grid.headings, *grid.rows], len(grid.headings), list(widths))
    if terminal.is_rich():
        limit = terminal.width()
        terminal.write(rich_lines(grid, limit=limit, with_headings=with_headings, widths=widths))
        kept = [
            width + 2 if h in STATE_COLUMNS else width
            for h, width in zip(grid.headings, kept, strict=True)
        ]
    else:
        terminal.write(plain_lines(grid, with_headings=with_headings, widths=widths))
    return kept


def _cell(heading: str, cell: str) -> Text:
    if not cell or cell in {"<none>", "<unknown>", "<unset>"}:
        return Text(cell or "-", style="dim")
    if heading in STATE_COLUMNS:
        return terminal.state(cell)
    if heading in FAINT_COLUMNS:
        return Text(cell, style="dim")
    return Text(cell, style="bold" if heading == "NAME" else "")


def _widths(rows: Sequence[Sequence[str]], count: int, least: list[int]) -> list[int]:
    widths = least or [0] * count
    for row in rows:
        widths = [max(width, cell_len(cell)) for width, cell in zip(widths, row, strict=True)]
    return widths


def _pad(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)) + "…"
