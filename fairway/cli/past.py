"""The history of a queue over the last hours, as lines of small bars."""

from __future__ import annotations

from collections.abc import Sequence

from fairway.cli.ages import span
from fairway.cli.render_table import Grid
from fairway.cli.session import Failure, Session
from fairway.client.wire import Object

SECONDS_MOST = 7 * 86_400.0
HEADINGS = ["WHAT", "NOW", "LEAST", "MOST", "OVER TIME"]
_POINTS = 48  # as many as fit on a line beside the rest
_BARS = "▁▂▃▄▅▆▇█"
_GAP = " "
_OF_QUEUE = {
    "used": "in use",
    "fair": "fair share",
    "waiting": "waiting",
    "running": "running",
}
_OF_FLAVOR = ("nominal", "used", "borrowed", "lent")

Line = Sequence[float | None]


def read(session: Session, queue: str, seconds: float) -> Object:
    """The hub's recorded history of a queue."""
    query = {
        "series": "queues",
        "name": queue,
        "since": str(int(min(max(seconds, 60), SECONDS_MOST))),
        "points": str(_POINTS),
    }
    answer = session.client.ask("fleets.fairway.dev", "fleet", "history", query=query)
    if not answer.get("found"):
        raise Failure(f"the hub has kept nothing of a queue {queue} in this time")
    return answer


def title(body: Object) -> str:
    """Such as `research, 48 steps of 15m, the last is now`."""
    step, count = float(body["step"]), len(body["times"])
    return f"{body['found'][0]['name']}, {count} steps of {span(step)}, the last is now"


def grid(body: Object) -> Grid:
    """A row for each number of the queue and of its flavors."""
    item = body["found"][0]
    rows = [_row(word, item["values"][field]) for field, word in _OF_QUEUE.items()]
    for part in item["parts"]:
        for field in _OF_FLAVOR:
            line = part["values"][field]
            if field in ("nominal", "used") or any(line):
                rows.append(_row(f"{part['name']} {field}", line))
    return Grid(HEADINGS, rows)


def _row(what: str, line: Line) -> list[str]:
    known = [number for number in line if number is not None]
    if not known:
        return [what, "", "", "", ""]
    amounts = [known[-1], min(known), max(known)]
    return [what, *(f"{amount:g}" for amount in amounts), bars(line)]


def bars(line: Line) -> str:
    """A line of small bars, scaled from zero to its maximum; times without data are blank."""
    most = max((number for number in line if number is not None), default=0)
    return "".join(
        _GAP
        if number is None
        else _BARS[round(number / most * (len(_BARS) - 1))]
        if most > 0
        else _BARS[0]
        for number in line
    )
