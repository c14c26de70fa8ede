"""The demo in a terminal: the lines of its story, with the time, in colour for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from fairway.cli import terminal

if TYPE_CHECKING:
    from fairway.demo.narrator import Line

_STYLES = {
    "submitted": "cyan",
    "placed": "blue",
    "overflowed": "magenta",
    "running": "green",
    "spread": "green",
    "scaled": "cyan",
    "updates": "cyan",
    "updated": "bright_green",
    "waits": "yellow",
    "preempted": "bold yellow",
    "moves": "bold magenta",
    "nodes": "magenta",
    "succeeded": "bright_green",
    "ready": "green",
    "silent": "yellow",
    "lost": "bold red",
    "ended": "red",
    "failed": "bold red",
}


def tell(at: float, line: Line) -> None:
    """Writes one line: when, what, which object, why. The story's own text begins a paragraph."""
    terminal.write([render_line(at, line)] if line.verb else ["", render_line(at, line)])


def render_line(at: float, line: Line) -> Text:
    clock = f"{int(at) // 60:02d}:{int(at) % 60:02d}"
    if not line.verb:
        return Text.assemble((f"{clock}  ", "dim"), (f"\N{EM DASH} {line.text}", "italic"))
    return Text.assemble(
        (f"{clock}  ", "dim"),
        (f"{line.verb:<11}", _STYLES.get(line.verb, "")),
        (line.who, "bold"),
        f" {line.text}" if line.text else "",
    )
