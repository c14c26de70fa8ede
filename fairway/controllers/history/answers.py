"""Answers from a book: the numbers of some names at equally spaced moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairway.controllers.history.book import KINDS, OTHERS, Book
from fairway.controllers.history.tracks import Columns, Track, Values

_BESIDE = " "  # between a flavor and a resource in the name of a part


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which series and names, since when, and at most how many points."""

    series: str
    names: Sequence[str]
    since: int  # seconds
    points: int


def answer(book: Book, asked: Asked, now: float) -> dict[str, Any]:
    """The history of the names that are known."""
    track = _track(book, asked.since)
    times = _times(track, asked, now)
    kind, series = KINDS[asked.series], asked.series
    labels = [
        (name, part, field)
        for name in asked.names
        for part in book.of_name.get((series, name), ())
        for field in kind.of_part(part)
    ]
    values: dict[str, dict[str, dict[str, list[float | None]]]] = {}
    numbers = track.read(_columns(book, asked), times, book.peaks)
    for (name, part, field), line in zip(labels, numbers, strict=True):
        values.setdefault(name, {}).setdefault(part, {})[field] = _plain(line)
    return {
        "now": now,
        "series": series,
        "step": int(times[1] - times[0]),
        "times": times.tolist(),
        "found": [_describe(name, parts) for name, parts in values.items()],
    }


def _columns(book: Book, asked: Asked) -> Columns:
    """All columns of all names, in order."""
    kind, series = KINDS[asked.series], asked.series
    columns: list[int] = []
    for name in asked.names:
        for part in book.of_name.get((series, name), ()):
            first = book.columns[series, name, part]
            columns.extend(range(first, first + len(kind.of_part(part))))
    return np.array(columns, np.uint32)


def _track(book: Book, since: int) -> Track:
    """The finest track that reaches this far back."""
    return next(
        (track for track in book.tracks if track.resolution.seconds >= since), book.tracks[-1]
    )


def _times(track: Track, asked: Asked, now: float) -> npt.NDArray[np.int64]:
    """Multiples of the step, so that the same moment has the same value in every answer."""
    step = track.resolution.step
    seconds = min(asked.since, track.resolution.seconds)
    width = step * max(1, -(-seconds // (step * (asked.points - 1))))
    last = int(now // width) * width
    count = max(2, min(asked.points, -(-seconds // width) + 1))
    return last - width * np.arange(count - 1, -1, -1, dtype=np.int64)


def _describe(name: str, values: Mapping[str, dict[str, list[float | None]]]) -> dict[str, Any]:
    """A name, and those of its parts that have values."""
    parts = [
        {**_name(part), "values": columns}
        for part, columns in sorted(values.items(), key=lambda pair: (pair[0] == OTHERS, pair[0]))
        if part and any(number is not None for line in columns.values() for number in line)
    ]
    return {"name": name, "values": values.get("", {}), "parts": parts}


def _name(part: str) -> dict[str, str]:
    name, _, resource = part.partition(_BESIDE)
    return {"name": name, "resource": resource} if resource else {"name": name}


def part_of(flavor: str, resource: str) -> str:
    return f"{flavor}{_BESIDE}{resource}"


def _plain(line: Values) -> list[float | None]:
    """For JSON: gaps are null, whole numbers are whole, others have three decimals."""
    rounded = np.round(line.astype(np.float64), 3)
    return [
        None if number != number else int(number) if number.is_integer() else number  # noqa: PLR0124 - NaN alone
        for number in rounded.tolist()
    ]
