"""`fairway demo`: a day of a model service in a minute, on a whole hub that runs on virtual time.

On a terminal a picture grows as the day passes: replicas of each cluster, stacked. In a pipe it
prints plain lines, one for each change.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Sequence

import click
from rich.live import Live
from rich.text import Text

from fairway.app.days import play
from fairway.cli import terminal
from fairway.cli.commands import Command
from fairway.demo.days.day import HOURS, Day, Reading
from fairway.demo.days.stories import DAYS

EXAMPLES = """
    fairway demo cross-region          the near region first, the far one when it is full
    fairway demo hybrid                a site of our own first, then nodes of a cloud
    fairway demo hybrid --seconds 20   the day in twenty seconds
    fairway demo hybrid | cat          lines instead of a picture
"""
_COLORS = ("cyan", "yellow", "magenta", "red")
_ROWS = 14
_COLUMNS = 72
_SAID_MOST = 6  # number of event lines shown, the latest ones
_HELD_SECONDS = 0.05  # minimum time between two pictures


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("day", type=click.Choice(list(DAYS)))
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the day takes on a terminal; 0 plays it as fast as possible.",
)
def demo(*, day: str, seconds: float) -> int:
    """Play a day of a model service: where its replicas are, hour by hour.

    Nothing is needed for it and nothing is left behind: hub, agents and clusters are simulated.
    """
    story = DAYS[day]
    told_in = textwrap.wrap(story.says, max(min(terminal.width(), 100), 20))
    terminal.write(["", Text(story.title, style="bold"), *told_in, ""])
    if terminal.is_rich():
        _draw(story, seconds)
    else:
        play(story, _Lines(story, lambda line: terminal.write([line])))
    return 0


class _Lines:
    """Prints a line whenever something changed."""

    def __init__(self, day: Day, say: Callable[[str], None]) -> None:
        self._day = day
        self._say = say
        self._last: object = None

    def __call__(self, reading: Reading) -> None:
        for said in reading.says:
            self._say(f"{clock(reading.hour)}  -- {said}")
        now = (reading.wanted, dict(reading.ready), _nodes(reading))
        if now != self._last:
            self._last = now
            self._say(sentence(self._day, reading))


def clock(hour: float) -> str:
    minutes = round(hour * 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def sentence(day: Day, reading: Reading) -> str:
    """Such as `08:20  asked for 17: on-premises 16, cloud 1 (1 node bought)`."""
    nodes = _nodes(reading)
    parts = []
    for name, ready in reading.ready.items():
        bought = nodes.get(name, 0)
        more = f" ({bought} node{'s' if bought != 1 else ''} bought)" if bought else ""
        parts.append(f"{name} {ready}{more}")
    missing = reading.wanted - reading.worth(day)
    lacks = f"; {missing:g} not there yet" if missing > 0 else ""
    return f"{clock(reading.hour)}  asked for {reading.wanted:>2}: {', '.join(parts)}{lacks}"


def _nodes(reading: Reading) -> dict[str, int]:
    return {name: sum(pools.values()) for name, pools in reading.nodes.items()}


def _draw(day: Day, seconds: float) -> None:
    """Draws the growing picture, at the requested pace."""
    readings: list[Reading] = []
    began = time.monotonic()
    drawn_at = 0.0
    with Live(console=terminal.console(), auto_refresh=False) as live:

        def look(reading: Reading) -> None:
            nonlocal drawn_at
            readings.append(reading)
            ahead = began + seconds * reading.hour / HOURS - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
            if time.monotonic() - drawn_at >= _HELD_SECONDS:
                live.update(picture(day, readings), refresh=True)
                drawn_at = time.monotonic()

        play(day, look)
        live.update(picture(day, readings), refresh=True)


def picture(day: Day, readings: Sequence[Reading]) -> Text:
    """The day so far: one column per third of an hour, one colour per cluster."""
    top = max(most for _, most in day.demand)
    columns = {int(reading.hour * _COLUMNS / HOURS): reading for reading in readings}
    lines = []
    for row in range(_ROWS, 0, -1):
        label = f"{round(row * top / _ROWS):>3} " if row % 3 == 2 else "    "
        line = Text(label, style="dim")
        for column in range(_COLUMNS):
            line.append_text(_cell(day, columns.get(column), (row - 0.5) * top / _ROWS))
        lines.append(line)
    step = _COLUMNS // 8
    starts = (clock(column * HOURS / _COLUMNS) for column in range(0, _COLUMNS, step))
    hours = Text("    " + "".join(name.ljust(step) for name in starts), style="dim")
    said = [f"{clock(reading.hour)}  {text}" for reading in readings for text in reading.says]
    tail = [Text(name, style="italic") for name in said[-_SAID_MOST:]]
    return Text("\n").join([*lines, hours, *_legend(day, readings), *tail])


def _cell(day: Day, reading: Reading | None, level: float) -> Text:
    if reading is None:
        return Text(" ")
    reached = 0.0
    for position, (name, ready) in enumerate(reading.ready.items()):
        reached += ready * day.speed(name)
        if level <= reached:
            return Text("█", style=_COLORS[position % len(_COLORS)])
    return Text("░", style="dim") if level <= reading.wanted else Text(" ")


def _legend(day: Day, readings: Sequence[Reading]) -> list[Text]:
    if not readings:
        return []
    line = Text("    ")
    for position, (name, ready) in enumerate(readings[-1].ready.items()):
        line.append("█ ", style=_COLORS[position % len(_COLORS)])
        line.append(f"{name} {ready}   ")
    line.append("░ asked for and not there yet", style="dim")
    return [line, Text(sentence(day, readings[-1]), style="bold")]
