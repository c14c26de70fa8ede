"""Names and their numbers: samples of many things over time, kept in three tracks.

A name has parts, and each part has a few numbers; the part without a name is the thing itself. A
part has its own columns from the first time it is seen; when there are too many columns, parts that
no row has are dropped. A name whose sample equals the last one is not processed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fairway.controllers.history.tracks import Columns, Peaks, Resolution, Track, Values

OTHERS = "(others)"  # never the name of an object
FLEET = ""  # all of a kind together
NAMES_MOST = 2_000  # of each kind
PARTS_MOST = 16
COLUMNS_MOST = 262_144
BYTES_MOST = 16 << 20  # of each track
RESOLUTIONS = (
    Resolution(step=10, rows_most=360),
    Resolution(step=60, rows_most=720),
    Resolution(step=600, rows_most=1_008),
)

Number = TypeVar("Number", np.float32, np.bool_)
Part = tuple[str, tuple[float, ...]]  # its name, and its numbers
NamedParts = tuple[Part, ...]
Sight = Mapping[str, Mapping[str, NamedParts]]  # kind -> name -> its sample
Key = tuple[str, str, str]  # kind, name, part


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The fields of one kind."""

    fields: tuple[str, ...]
    part_fields: tuple[str, ...]
    peaks: frozenset[str] = frozenset()  # fields whose maximum counts, not the mean
    single: frozenset[str] = frozenset()  # fields that cannot be summed over several

    def of_part(self, part: str) -> tuple[str, ...]:
        return self.part_fields if part else self.fields


_PLACE = ("whole", "used", "starting", "free", "elastic")
KINDS: Mapping[str, Kind] = {
    "queues": Kind(
        fields=("waiting", "running", "share", "used", "fair"),
        part_fields=("nominal", "used", "borrowed", "lent"),
        peaks=frozenset({"waiting"}),
        single=frozenset({"share"}),
    ),
    "clusters": Kind(fields=_PLACE, part_fields=_PLACE),
    "services": Kind(
        fields=("wanted", "placed", "ready"),
        part_fields=("placed",),
        peaks=frozenset({"wanted"}),
    ),
}


class Book:
    """All samples."""

    def __init__(self, *, bytes_most: int = BYTES_MOST, columns_most: int = COLUMNS_MOST) -> None:
        self.tracks = [Track(resolution, bytes_most=bytes_most) for resolution in RESOLUTIONS]
        self.columns: dict[Key, int] = {}  # the first column of each part
        self.of_name: dict[tuple[str, str], list[str]] = {}  # parts, in order of appearance
        self.count = 0  # of columns
        self._columns_most = columns_most
        self._seen: dict[str, dict[str, NamedParts]] = {kind: {} for kind in KINDS}
        self._now: Values = np.full(0, np.nan, np.float32)
        self._peaks: Peaks = np.zeros(0, np.bool_)

    @property
    def peaks(self) -> Peaks:
        return self._peaks[: self.count]

    @property
    def now(self) -> Values:
        return self._now[: self.count]

    def see(self, at: float, sight: Sight) -> bool:
        """Records a sample; returns whether columns were renumbered."""
        for kind, seen in sight.items():
            self._see(kind, seen)
        self.write(at)
        return self._forget() if self.count > self._columns_most else False

    def write(self, at: float) -> None:
        """Records the current values at a moment."""
        for track in self.tracks:
            track.grow(self.count)
            track.add(at, self.now, self.peaks)

    def put(self, columns: Columns, values: Values) -> None:
        self._now[columns] = values

    def clear(self) -> None:
        """Clears the current values; the past stays."""
        self._now[:] = np.nan
        self._seen = {kind: {} for kind in KINDS}

    def _see(self, kind: str, seen: Mapping[str, NamedParts]) -> None:
        before = self._seen[kind]
        for name, parts in seen.items():
            if before.get(name) != parts:
                self._set(kind, name, before.get(name, ()), parts)
        for name in before.keys() - seen.keys():
            self._set(kind, name, before[name], ())
        self._seen[kind] = dict(seen)

    def _set(self, kind: str, name: str, before: NamedParts, parts: NamedParts) -> None:
        for part, numbers in parts:
            first = self.columns.get((kind, name, part))
            if first is None:
                first = self.name((kind, name, part))
            self._now[first : first + len(numbers)] = numbers
        for part in {value for value, _ in before} - {value for value, _ in parts}:
            first = self.columns[kind, name, part]
            self._now[first : first + len(KINDS[kind].of_part(part))] = np.nan

    def name(self, key: Key) -> int:
        """Gives a part its columns."""
        kind, name, part = key
        fields = KINDS[kind].of_part(part)
        first, self.count = self.count, self.count + len(fields)
        if self.count > len(self._now):
            room = max(256, 2 * self.count)
            self._now = _longer(self._now, room, np.nan)
            self._peaks = _longer(self._peaks, room, 0)
        self._peaks[first : self.count] = [field in KINDS[kind].peaks for field in fields]
        self.columns[key] = first
        self.of_name.setdefault((kind, name), []).append(part)
        return first

    def _forget(self) -> bool:
        """Drops parts that no row has, and if need be those gone longest."""
        is_kept = np.zeros(self.count, np.int64)  # when each column last changed
        for track in self.tracks:
            for row in track.rows:
                is_kept[row.columns] = np.maximum(is_kept[row.columns], row.at)
        is_kept[~np.isnan(self.now)] = np.iinfo(np.int64).max
        keys = sorted(self.columns, key=lambda key: (-int(is_kept[self.columns[key]]), key))
        kept: list[Key] = []
        count = 0
        for key in keys:
            width = len(KINDS[key[0]].of_part(key[2]))
            is_there = not np.isnan(self._now[self.columns[key]])
            # A quarter is freed, so that this is not done again at once.
            if is_there or (
                is_kept[self.columns[key]] and count + width <= self._columns_most * 3 / 4
            ):
                kept.append(key)
                count += width
        self._renumber(sorted(kept, key=lambda key: self.columns[key]))
        return True

    def _renumber(self, kept: list[Key]) -> None:
        numbers: list[int] = []
        columns, self.columns, self.of_name = self.columns, {}, {}
        for key in kept:
            first, width = columns[key], len(KINDS[key[0]].of_part(key[2]))
            self.columns[key] = len(numbers)
            self.of_name.setdefault(key[:2], []).append(key[2])
            numbers.extend(range(first, first + width))
        chosen = np.array(numbers, np.uint32)
        self.count = len(numbers)
        room = max(256, 2 * self.count)
        self._now = _longer(self._now[chosen], room, np.nan)
        self._peaks = _longer(self._peaks[chosen], room, 0)
        for track in self.tracks:
            track.renumber(chosen, room)


def _longer(values: npt.NDArray[Number], room: int, nothing: float) -> npt.NDArray[Number]:
    column = np.full(room, nothing, values.dtype)
    column[: len(values)] = values
    return column


def largest(
    kind: str,
    seen: Mapping[str, NamedParts],
    size: Callable[[NamedParts], float],
    *,
    most: int = NAMES_MOST,
) -> Mapping[str, NamedParts]:
    """The largest by their size, and the rest summed as others."""
    if len(seen) <= most:
        return seen
    order = sorted(seen, key=lambda name: (-size(seen[name]), name))
    kept = {name: seen[name] for name in order[: most - 1]}
    kept[OTHERS] = total(kind, [seen[name] for name in order[most - 1 :]])
    return kept


def fewer(parts: NamedParts) -> NamedParts:
    """The thing itself and its largest parts, and the rest summed as others."""
    if len(parts) <= PARTS_MOST + 1:
        return parts
    itself = [part for part in parts if not part[0]]
    order = sorted((part for part in parts if part[0]), key=lambda part: (-part[1][0], part[0]))
    rest = [numbers for _, numbers in order[PARTS_MOST - 1 :]]
    summed = tuple(sum(each) for each in zip(*rest, strict=True))
    return (*itself, *order[: PARTS_MOST - 1], (OTHERS, summed))


def total(kind: str, all_seen: Sequence[NamedParts]) -> NamedParts:
    """Several things as one, part by part."""
    sums: dict[str, list[float]] = {}
    for seen in all_seen:
        for part, numbers in seen:
            known = sums.setdefault(part, [0.0] * len(numbers))
            for at, number in enumerate(numbers):
                known[at] += number
    for at, field in enumerate(KINDS[kind].fields):
        if field in KINDS[kind].single and "" in sums:
            sums[""][at] = math.nan
    return fewer(tuple((part, tuple(numbers)) for part, numbers in sums.items()))
