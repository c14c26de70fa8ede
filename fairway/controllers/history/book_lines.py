"""A book in lines, from which a restarted hub continues.

A segment begins with the whole book, then has a line for each moment: what changed. Moments are
replayed as they were sampled, so the result is the same. The keeper of the lines is given from
outside; a hub that keeps none begins with an empty book.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec
import numpy as np

from fairway.controllers.history.book import Book, Key
from fairway.controllers.history.tracks import Row, Sum, Track

_VERSION = 1
_MOMENTS_MOST = 1_000  # per segment: a hub that starts replays them


class Keeper(Protocol):
    """Where lines are kept."""

    @property
    def is_full(self) -> bool:
        """Whether another segment should begin."""
        ...

    def read(self) -> Iterable[Iterable[bytes]]:
        """The segments that there are, the newest first; truncated lines are left out."""
        ...

    def begin(self, whole: Iterator[bytes]) -> None:
        """Begins a segment with the whole of a book."""
        ...

    def write(self, line: bytes) -> None: ...


class NoKeeper:
    """Keeps nothing."""

    is_full = False

    def read(self) -> Iterable[Iterable[bytes]]:
        return ()

    def begin(self, whole: Iterator[bytes]) -> None:
        """Drops it."""

    def write(self, line: bytes) -> None:
        """Drops it."""


class _Names(msgspec.Struct, tag="names"):
    """The parts that have columns, in order: the first line of a whole book."""

    version: int
    names: list[Key]
    now: bytes


class _Track(msgspec.Struct, tag="track"):
    step: int
    base: bytes
    last: bytes
    open_at: int | None
    sums: bytes
    counts: bytes
    most: bytes


class _Row(msgspec.Struct, tag="row"):
    step: int
    at: int
    columns: bytes
    values: bytes


class _End(msgspec.Struct, tag="end"):
    """The end of the whole book."""


class _Moment(msgspec.Struct, tag="moment"):
    """What changed since the moment before."""

    at: float
    names: list[Key]  # new ones
    columns: bytes
    values: bytes


_Line = _Names | _Track | _Row | _End | _Moment
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


def whole(book: Book) -> Iterator[bytes]:
    """A book as it is now, in lines; they are made one by one, while the book may change."""
    size = book.count
    names = list(book.columns)  # in the order of their columns
    head = _Names(version=_VERSION, names=names, now=book.now.tobytes())
    # Rows never change; what does is copied before another task runs.
    tracks = [(_track(track, size), tuple(track.rows)) for track in book.tracks]
    return _lines(head, tracks)


def _lines(head: _Names, tracks: list[tuple[_Track, tuple[Row, ...]]]) -> Iterator[bytes]:
    yield _encode(head)
    for track, rows in tracks:
        yield _encode(track)
        for row in rows:
            columns, values = row.columns.tobytes(), row.values.tobytes()
            yield _encode(_Row(step=track.step, at=row.at, columns=columns, values=values))
    yield _encode(_End())


def _track(track: Track, size: int) -> _Track:
    return _Track(
        step=track.resolution.step,
        base=track.base[:size].tobytes(),
        last=track.last[:size].tobytes(),
        open_at=track.open_at,
        sums=track.sum.sums[:size].tobytes(),
        counts=track.sum.counts[:size].tobytes(),
        most=track.sum.most[:size].tobytes(),
    )


class Journal:
    """Writes to a keeper what changes from moment to moment."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._moments = 0  # written since the whole book
        self._named = 0  # parts already written
        self._told = np.full(0, np.nan, np.float32)

    def load(self) -> Book | None:
        """The newest book that was kept whole, as of its last moment."""
        for lines in self._keeper.read():
            book = _load(lines)
            if book is not None:
                return book
        return None

    def begin(self, book: Book) -> None:
        self._moments = 0
        self._named, self._told = len(book.columns), book.now.copy()
        self._keeper.begin(whole(book))

    def write(self, book: Book, at: float, *, is_renumbered: bool) -> None:
        """Writes a moment; if columns were renumbered, the whole book is written again."""
        if is_renumbered or self._keeper.is_full or self._moments >= _MOMENTS_MOST:
            self.begin(book)
            return
        self._moments += 1
        names = list(book.columns)[self._named :] if len(book.columns) > self._named else []
        before = np.full(book.count, np.nan, np.float32)
        before[: len(self._told)] = self._told
        now = book.now
        is_other = (now != before) & ~(np.isnan(now) & np.isnan(before))
        columns = np.flatnonzero(is_other).astype(np.uint32)
        moment = _Moment(
            at=at, names=names, columns=columns.tobytes(), values=now[columns].tobytes()
        )
        self._named, self._told = len(book.columns), now.copy()
        self._keeper.write(_encode(moment))


def _load(lines: Iterable[bytes]) -> Book | None:
    """A book from a segment; None if its beginning is not whole or cannot be read."""
    book = Book()
    is_whole = False
    try:
        for line in lines:
            entry = _decode(line)
            match entry:
                case _Names():
                    if entry.version != _VERSION:
                        return None
                    _name(book, entry.names)
                    book.put(_numbers(book), np.frombuffer(entry.now, np.float32))
                case _Track():
                    _restore(book, entry)
                case _Row():
                    _track_of(book, entry.step).put(_row(entry))
                case _End():
                    is_whole = True
                case _Moment():
                    _name(book, entry.names)
                    columns = np.frombuffer(entry.columns, np.uint32)
                    book.put(columns, np.frombuffer(entry.values, np.float32))
                    book.write(entry.at)
    except (msgspec.MsgspecError, ValueError, IndexError, KeyError, StopIteration):
        return book if is_whole else None
    return book if is_whole else None


def _name(book: Book, names: Iterable[Key]) -> None:
    for key in names:
        book.name(key)


def _numbers(book: Book) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return np.arange(book.count, dtype=np.uint32)


def _track_of(book: Book, step: int) -> Track:
    return next(track for track in book.tracks if track.resolution.step == step)


def _restore(book: Book, entry: _Track) -> None:
    track = _track_of(book, entry.step)
    track.grow(book.count)
    track.base[: book.count] = np.frombuffer(entry.base, np.float32)
    track.open_at = entry.open_at
    track.sum = Sum(len(track.base))
    track.sum.sums[: book.count] = np.frombuffer(entry.sums, np.float64)
    track.sum.counts[: book.count] = np.frombuffer(entry.counts, np.float64)
    track.sum.most[: book.count] = np.frombuffer(entry.most, np.float32)
    track.last[: book.count] = np.frombuffer(entry.last, np.float32)


def _row(entry: _Row) -> Row:
    columns = np.frombuffer(entry.columns, np.uint32)
    return Row(at=entry.at, columns=columns, values=np.frombuffer(entry.values, np.float32))
