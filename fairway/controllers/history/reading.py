"""Answers from a book: the numbers of some names at moments of equal distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairway.controllers.history.book import KINDS, OTHERS, Book
from fairway.controllers.history.tracks import Track, Values

_BESIDE = " "  # between a flavor and a resource in the name of a part


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Of what, since when, and how much may be told."""

    series: str
    names: Sequence[str]
    since: int  # seconds
    points: int


def answer(book: Book, asked: Asked, now: float) -> dict[str, Any]:
    """What is kept of the names that are known."""
    track = _track(book, asked.since)
    times = _times(track, asked, now)
    found = []
    for name in asked.names:
        parts = book.of_name.get((asked.series, name))
        if parts:
            found.append({"name": name, **_told(book, track, times, (asked.series, name))})
    return {
        "now": now,
        "series": asked.series,
        "step": int(times[1] - times[0]),
        "times": times.tolist(),
        "found": found,
    }


def _track(book: Book, since: int) -> Track:
    """The finest that reaches so far back."""
    return next((one for one in book.tracks if one.resolution.seconds >= since), book.tracks[-1])


def _times(track: Track, asked: Asked, now: float) -> npt.NDArray[np.int64]:
    """At multiples of their distance, so that the same moment is told the same each time."""
    step = track.resolution.step
    seconds = min(asked.since, track.resolution.seconds)
    width = step * max(1, -(-seconds // (step * (asked.points - 1))))
    last = int(now // width) * width
    count = max(2, min(asked.points, -(-seconds // width) + 1))
    return last - width * np.arange(count - 1, -1, -1, dtype=np.int64)


def _told(
    book: Book, track: Track, times: npt.NDArray[np.int64], key: tuple[str, str]
) -> dict[str, Any]:
    """The numbers of a thing and of those parts that were there."""
    series, name = key
    kind = KINDS[series]
    labels = [(part, field) for part in book.of_name[key] for field in kind.of_part(part)]
    columns = np.concatenate(
        [
            np.arange(len(kind.of_part(part)), dtype=np.uint32) + book.columns[series, name, part]
            for part in book.of_name[key]
        ]
    )
    numbers = track.read(columns.astype(np.uint32), times, book.peaks)
    values: dict[str, dict[str, list[float | None]]] = {}
    for (part, field), line in zip(labels, numbers, strict=True):
        values.setdefault(part, {})[field] = _plain(line)
    parts = [
        {**_named(part), "values": told}
        for part, told in sorted(values.items(), key=lambda one: (one[0] == OTHERS, one[0]))
        if part and any(one is not None for line in told.values() for one in line)
    ]
    return {"values": values.get("", {}), "parts": parts}


def _named(part: str) -> dict[str, str]:
    name, _, resource = part.partition(_BESIDE)
    return {"name": name, "resource": resource} if resource else {"name": name}


def part_of(flavor: str, resource: str) -> str:
    return f"{flavor}{_BESIDE}{resource}"


def _plain(line: Values) -> list[float | None]:
    """For JSON: gaps are null, whole numbers are whole, others have three decimals."""
    rounded = np.round(line.astype(np.float64), 3)
    return [
        None if one != one else int(one) if one.is_integer() else one  # noqa: PLR0124 - NaN alone
        for one in rounded.tolist()
    ]
