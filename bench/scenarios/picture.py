"""A day as a picture: replicas of each cluster over the hours, stacked, with what was asked for.

A replica that counts for more is as much higher. Plain SVG, readable on light and on dark ground.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil

from fairway.demo.days.day import HOURS, Day, Reading

_WIDTH, _HEIGHT = 960, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 18, 84, 40
_SAID_WIDTH = 190  # what an event says, at most
_COLORS = ("#2a9d8f", "#e9a03b", "#7b6fd0", "#d1495b")
_STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #333; }
  .title { font-size: 16px; font-weight: 600; }
  .small { font-size: 11px; fill: #666; }
  .grid { stroke: #8884; stroke-width: 1; }
  .wanted { stroke: #222; stroke-width: 1.6; fill: none; stroke-dasharray: 5 3; }
  .event { stroke: #c0392b; stroke-width: 1; stroke-dasharray: 2 3; }
  .said { font-size: 11px; fill: #c0392b; }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd; } .small { fill: #aaa; } .wanted { stroke: #eee; }
    .event { stroke: #ff8a7a; } .said { fill: #ff8a7a; }
  }
"""


def picture(day: Day, readings: Sequence[Reading], ratio: float) -> str:
    """The picture of a day that was played; `ratio` is its cost over the least there could be."""
    return "\n".join(_parts(day, readings, ratio)) + "\n"


def _parts(day: Day, readings: Sequence[Reading], ratio: float) -> Iterator[str]:
    top = ceil(max(max(item.worth(day), item.wanted) for item in readings))
    scale = _Scale(-(-top // 5) * 5)
    title = f"{day.title} \N{MIDDLE DOT} {ratio:.2f} times the least cost"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">'
    )
    yield f"<style>{_STYLE}</style>"
    yield f'<text class="title" x="{_LEFT}" y="26">{escape(title)}</text>'
    yield from _legend(day)
    yield from _grid(scale)
    yield from _areas(day, readings, scale)
    wanted = _steps([(item.hour, float(item.wanted)) for item in readings], scale)
    yield f'<path class="wanted" d="M{wanted}"/>'
    yield from _events(readings, scale)
    yield "</svg>"


class _Scale:
    """Where hours and replicas are in the picture."""

    def __init__(self, top: int) -> None:
        self.top = top

    def x(self, hour: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * hour / HOURS, 1)

    def y(self, replicas: float) -> float:
        span = _HEIGHT - _TOP - _BOTTOM
        return round(_HEIGHT - _BOTTOM - span * replicas / self.top, 1)


def _legend(day: Day) -> Iterator[str]:
    left = float(_LEFT)
    for position, body in enumerate(day.clusters()):
        name = body["metadata"]["name"]
        speed = f", each for {day.speed(name):g}" if day.speed(name) != 1 else ""
        text = f"{name}{speed}"
        yield f'<rect x="{left}" y="40" width="12" height="12" rx="2" fill="{_COLORS[position]}"/>'
        yield f'<text x="{left + 18}" y="51">{escape(text)}</text>'
        left += 34 + 7.4 * len(text)
    yield f'<path class="wanted" d="M{left} 46h24"/><text x="{left + 30}" y="51">asked for</text>'


def _grid(scale: _Scale) -> Iterator[str]:
    step = 5 if scale.top <= 30 else 10
    for replicas in range(0, scale.top + 1, step):
        y = scale.y(replicas)
        yield f'<path class="grid" d="M{_LEFT} {y}H{_WIDTH - _RIGHT}"/>'
        yield f'<text class="small" x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{replicas}</text>'
    for hour in range(0, int(HOURS) + 1, 3):
        x, y = scale.x(hour), _HEIGHT - _BOTTOM + 18
        yield f'<text class="small" x="{x}" y="{y}" text-anchor="middle">{hour:02d}:00</text>'


def _areas(day: Day, readings: Sequence[Reading], scale: _Scale) -> Iterator[str]:
    below = [0.0] * len(readings)
    for position, body in enumerate(day.clusters()):
        name = body["metadata"]["name"]
        above = [
            low + value.ready[name] * day.speed(name)
            for low, value in zip(below, readings, strict=True)
        ]
        hours = [item.hour for item in readings]
        upper = _steps(list(zip(hours, above, strict=True)), scale)
        lower = _steps(list(zip(hours, below, strict=True)), scale, is_backward=True)
        yield (
            f'<path d="M{upper}L{lower}Z" fill="{_COLORS[position]}" fill-opacity="0.85">'
            f"<title>{escape(name)}</title></path>"
        )
        below = above


def _steps(
    points: Sequence[tuple[float, float]], scale: _Scale, *, is_backward: bool = False
) -> str:
    """A line of steps, with corners only where something changes."""
    corners: list[tuple[float, float]] = []
    for at, (hour, value) in enumerate(points):
        if at and value == points[at - 1][1]:
            continue
        if corners:
            corners.append((scale.x(hour), corners[-1][1]))
        corners.append((scale.x(hour), scale.y(value)))
    corners.append((scale.x(HOURS), corners[-1][1]))
    if is_backward:
        corners.reverse()
    return "L".join(f"{x} {y}" for x, y in corners)


def _events(readings: Sequence[Reading], scale: _Scale) -> Iterator[str]:
    said = [(scale.x(item.hour), text) for item in readings for text in item.says]
    for at, (x, text) in enumerate(said):
        yield f'<path class="event" d="M{x} {_TOP - 8}V{_HEIGHT - _BOTTOM}"/>'
        # One that would run into the next is written to the left of its line.
        is_crowded = at + 1 < len(said) and said[at + 1][0] - x < _SAID_WIDTH
        place = f'x="{x - 4}" text-anchor="end"' if is_crowded else f'x="{x + 4}"'
        yield f'<text class="said" {place} y="{_TOP - 12}">{escape(text)}</text>'
