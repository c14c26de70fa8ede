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
WHOLE_COLUMNS = {"NAME", "NAMESPACE", "OBJECT", "CONDITION"}
SENTENCES = {"MESSAGE", "DESCRIPTION"}
SHORTEST = 4
LEAST_WIDTH = 6
SENTENCE_WIDTH = 24
LONGEST = 1000


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
    fitted = fit(full, grid, limit - len(gap) * (len(full) - 1))
    lines = []
    if with_headings:
        cut = [_cut(text, size) for text, size in zip(grid.headings, fitted, strict=True)]
        lines.append(Text(gap.join(_pad(cut, fitted)).rstrip(), style="bold dim"))
    for row in styled:
        lines += _row_lines(row, fitted, gap, wraps=grid.headings[-1] in SENTENCES)
    return lines


def _row_lines(row: Sequence[Text], widths: Sequence[int], gap: str, *, wraps: bool) -> list[Text]:
    """A row on one line; sentences in its last column go on below themselves."""
    line = Text()
    for cell, size in zip(row[:-1], widths[:-1], strict=True):
        cell.truncate(size, overflow="ellipsis")
        line.append_text(cell).append(" " * (size - cell_len(cell.plain)) + gap)
    start = cell_len(line.plain)
    parts = [row[-1]]
    if wraps:
        parts = list(row[-1].wrap(terminal.console(), max(widths[-1], 1))) or [Text()]
    else:
        row[-1].truncate(widths[-1], overflow="ellipsis")
    rest = [Text(" " * start).append_text(part) for part in parts[1:]]
    return [line.append_text(parts[0]), *rest]


def fit(widths: Sequence[int], grid: Grid, limit: int) -> list[int]:
    """Widths that sum to at most the limit where that is possible.

    First sentences give way, since they go on below themselves; then headings that are longer than
    their cells, then long cells, widest first; words for states only when nothing else is left,
    and names never.
    """
    fitted = list(widths)
    cells = [max((cell_len(row[at]) for row in grid.rows), default=0) for at in range(len(widths))]
    is_state = [heading in STATE_COLUMNS for heading in grid.headings]
    is_whole = [heading in WHOLE_COLUMNS for heading in grid.headings]
    is_sentence = [heading in SENTENCES for heading in grid.headings]
    for least in (
        [SENTENCE_WIDTH if sentence else LONGEST for sentence in is_sentence],
        [max(cell + 2 * state, SHORTEST) for cell, state in zip(cells, is_state, strict=True)],
        [LONGEST if state else LEAST_WIDTH for state in is_state],
        [LEAST_WIDTH] * len(widths),
    ):
        while sum(fitted) > limit:
            open_ones = [
                at for at, width in enumerate(fitted) if width > least[at] and not is_whole[at]
            ]
            if not open_ones:
                break
            fitted[max(open_ones, key=lambda at: fitted[at])] -= 1
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
