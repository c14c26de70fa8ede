"""Tables, laid out once for pipes and terminals alike.

In a pipe the output is as kubectl's: upper-case headings, columns three spaces apart, nothing cut.
On a terminal states get a colour and a symbol, and sentences wrap below themselves. If lines are
still too long, the widest columns are cut with an ellipsis; names and namespaces never are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from fairway.cli import terminal

STATE_COLUMNS = {"STATUS", "PHASE", "STATE", "READY", "MODE", "TYPE", "ADMITTED", "ACCEPTED"}
FAINT_COLUMNS = {"AGE", "NAMESPACE", "LAST SEEN", "SINCE", "LABELS", "CREATED AT"}
WHOLE_COLUMNS = {"NAME", "NAMESPACE", "OBJECT", "CONDITION", "QUEUE", "CLUSTER", "WORKLOAD"}
SENTENCES = {"MESSAGE", "DESCRIPTION"}

PLAIN_LEAST = 3  # as in kubectl
SHORTEST = 4
LEAST_WIDTH = 6
SENTENCE_WIDTH = 24
UNLIMITED = 10_000


@dataclass(frozen=True, slots=True)
class Grid:
    """Headings and rows of text."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The width of each column, and the gap between them."""

    widths: Sequence[int]
    gap: str = "   "


class Printer:
    """Prints grids of the same columns, aligned with those before."""

    def __init__(self) -> None:
        self._layout: Layout | None = None

    def show(self, grid: Grid, *, with_headings: bool = True) -> None:
        lines: Sequence[Text | str]
        if terminal.is_rich():
            limit = terminal.width()
            self._layout = rich_layout(grid, limit, self._layout)
            lines = rich_lines(grid, self._layout, with_headings=with_headings)
        else:
            self._layout = plain_layout(grid, self._layout, with_headings=with_headings)
            lines = plain_lines(grid, self._layout, with_headings=with_headings)
        terminal.write(lines)


def show(grid: Grid, *, with_headings: bool = True) -> None:
    """Prints one grid."""
    terminal.write(lines(grid, with_headings=with_headings))


def lines(grid: Grid, *, with_headings: bool = True) -> Sequence[Text | str]:
    """One grid, laid out for the output's destination."""
    if not terminal.is_rich():
        layout = plain_layout(grid, with_headings=with_headings)
        return plain_lines(grid, layout, with_headings=with_headings)
    limit = terminal.width()
    grid = without_empty(grid, limit)
    return rich_lines(grid, rich_layout(grid, limit), with_headings=with_headings)


def without_empty(grid: Grid, limit: int) -> Grid:
    """The grid; if it is too wide even when cut, without empty columns."""
    for at in reversed(range(len(grid.headings))):
        layout = rich_layout(grid, limit)
        if _length(layout.widths, layout.gap) <= limit:
            break
        if not any(row[at] for row in grid.rows):
            headings = [*grid.headings[:at], *grid.headings[at + 1 :]]
            grid = Grid(headings, [[*row[:at], *row[at + 1 :]] for row in grid.rows])
    return grid


def plain_layout(grid: Grid, before: Layout | None = None, *, with_headings: bool = True) -> Layout:
    """As wide as the widest cell, now or before."""
    least = before.widths if before else [PLAIN_LEAST] * len(grid.headings)
    rows = [grid.headings, *grid.rows] if with_headings else grid.rows
    return Layout(_widest(rows, least))


def plain_lines(grid: Grid, layout: Layout, *, with_headings: bool = True) -> list[str]:
    """Lines as kubectl prints them."""
    rows = [*([grid.headings] if with_headings else []), *grid.rows]
    return [layout.gap.join(_pad(row, layout.widths)).rstrip() for row in rows]


def rich_layout(grid: Grid, limit: int, before: Layout | None = None) -> Layout:
    """Widths for a terminal; later rows may widen columns as long as the line has room."""
    texts = [[cell.plain for cell in row] for row in _style(grid)]
    if before is not None:
        grown = _widest(texts, before.widths)
        return Layout(grown, before.gap) if _length(grown, before.gap) <= limit else before
    full = _widest([grid.headings, *texts], [0] * len(grid.headings))
    gap = "   " if _length(full, "   ") <= limit else "  "
    cells = _widest(texts, [0] * len(grid.headings))
    return Layout(fit(full, cells, grid.headings, limit - len(gap) * (len(full) - 1)), gap)


def rich_lines(grid: Grid, layout: Layout, *, with_headings: bool = True) -> list[Text]:
    """Styled lines that fit a terminal."""
    lines = []
    if with_headings:
        cut = [_cut(text, size) for text, size in zip(grid.headings, layout.widths, strict=True)]
        head = layout.gap.join(_pad(cut, layout.widths)).rstrip()
        lines.append(Text(head, style="dim"))
    for row in _style(grid):
        lines += _row_lines(row, layout, wraps=grid.headings[-1] in SENTENCES)
    return lines


def fit(
    widths: Sequence[int], cells: Sequence[int], headings: Sequence[str], limit: int
) -> list[int]:
    """Widths that sum to at most the limit if possible.

    First sentences shrink, because they wrap below themselves; then headings that are longer than
    their cells, then long cells, widest first; state words only when nothing else is left, and
    names never.
    """
    fitted = list(widths)
    by_pass = [
        [SENTENCE_WIDTH if heading in SENTENCES else UNLIMITED for heading in headings],
        [max(cell, SHORTEST) for cell in cells],
        [UNLIMITED if heading in STATE_COLUMNS else LEAST_WIDTH for heading in headings],
        [LEAST_WIDTH for _ in headings],
    ]
    for least in by_pass:
        while sum(fitted) > limit:
            shrinkable = [
                at
                for at, width in enumerate(fitted)
                if width > least[at] and headings[at] not in WHOLE_COLUMNS
            ]
            if not shrinkable:
                break
            fitted[max(shrinkable, key=lambda at: fitted[at])] -= 1
    return fitted


def _row_lines(row: Sequence[Text], layout: Layout, *, wraps: bool) -> list[Text]:
    """A row on one line; sentences in its last column wrap below themselves."""
    line = Text()
    for cell, size in zip(row[:-1], layout.widths[:-1], strict=True):
        cell.truncate(size, overflow="ellipsis")
        line.append_text(cell).append(" " * (size - cell_len(cell.plain)) + layout.gap)
    start = cell_len(line.plain)
    last, width = row[-1], max(layout.widths[-1], 1)
    if wraps:
        first, *rest = list(last.wrap(terminal.console(), width)) or [Text()]
    else:
        last.truncate(width, overflow="ellipsis")
        first, rest = last, []
    return [line.append_text(first), *(Text(" " * start).append_text(part) for part in rest)]


def _style(grid: Grid) -> list[list[Text]]:
    return [
        [_cell(heading, cell) for heading, cell in zip(grid.headings, row, strict=True)]
        for row in grid.rows
    ]


def _cell(heading: str, cell: str) -> Text:
    if not cell or cell in {"<none>", "<unknown>", "<unset>"}:
        return Text(cell or "-", style="dim")
    if heading in STATE_COLUMNS:
        return terminal.state(cell)
    if heading in FAINT_COLUMNS:
        return Text(cell, style="dim")
    return Text(cell, style="bold" if heading == "NAME" else "")


def _widest(rows: Sequence[Sequence[str]], least: Sequence[int]) -> list[int]:
    widths = list(least)
    for row in rows:
        widths = [max(width, cell_len(cell)) for width, cell in zip(widths, row, strict=True)]
    return widths


def _length(widths: Sequence[int], gap: str) -> int:
    return sum(widths) + len(gap) * (len(widths) - 1)


def _pad(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)) + "…"
