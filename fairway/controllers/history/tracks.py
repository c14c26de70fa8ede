"""One resolution: the values at each moment, as differences from the moment before.

Columns are numbers recorded together; a column that is NaN has no value. A row has only the columns
that changed, so a constant value takes no room and no time. Values before the first row are the
base; rows that are too old are merged into it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float32]
Sums = npt.NDArray[np.float64]
Columns = npt.NDArray[np.uint32]
Peaks = npt.NDArray[np.bool_]  # columns whose maximum counts, not the mean
_ROW_BYTES = 256  # per row, besides its numbers
_ROOM = 256  # initial number of columns
_BACK_SECONDS_MOST = 600  # past values stay valid if the clock is set back by no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How often values are recorded, and for how long they are kept."""

    step: int  # seconds
    rows_most: int

    @property
    def seconds(self) -> int:
        return self.step * self.rows_most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    at: int  # the beginning of its step
    columns: Columns
    values: Values

    @property
    def bytes(self) -> int:
        return self.columns.nbytes + self.values.nbytes + _ROW_BYTES


class Sum:
    """The samples of one step, combined."""

    __slots__ = ("counts", "most", "sums")

    def __init__(self, room: int) -> None:
        self.sums: Sums = np.zeros(room)
        self.counts: Sums = np.zeros(room)
        self.most: Values = np.full(room, np.nan, np.float32)

    def add(self, values: Values) -> None:
        size = len(values)
        is_there = ~np.isnan(values)
        self.sums[:size] += np.where(is_there, values, 0)
        self.counts[:size] += is_there
        np.fmax(self.most[:size], values, out=self.most[:size])

    def values(self, peaks: Peaks) -> Values:
        """The mean of each column, or its maximum; NaN for a column that had no value."""
        size = len(peaks)
        counts = self.counts[:size]
        means = np.divide(
            self.sums[:size], counts, out=np.full(size, np.nan), where=counts > 0
        ).astype(np.float32)
        column: Values = np.where(peaks, self.most[:size], means)
        return column

    def clear(self) -> None:
        self.sums[:] = self.counts[:] = 0
        self.most[:] = np.nan


class Track:
    """The rows of one resolution."""

    def __init__(self, resolution: Resolution, *, bytes_most: int) -> None:
        self.resolution = resolution
        self.rows: deque[Row] = deque()
        self.bytes = 0
        self._bytes_most = bytes_most
        self.base: Values = _nothing(_ROOM)
        self.last: Values = _nothing(_ROOM)
        self.sum = Sum(_ROOM)  # of the open step
        self.open_at: int | None = None  # when the open step began

    def grow(self, room: int) -> None:
        """Makes room for at least this many columns."""
        if room <= len(self.base):
            return
        room = max(room, 2 * len(self.base))
        before, self.sum = self.sum, Sum(room)
        for name in ("base", "last"):
            old, new = getattr(self, name), _nothing(room)
            new[: len(old)] = old
            setattr(self, name, new)
        for name in Sum.__slots__:
            old = getattr(before, name)
            getattr(self.sum, name)[: len(old)] = old

    def add(self, at: float, values: Values, peaks: Peaks) -> None:
        """Adds a sample; a sample of a step that is over is ignored.

        Unless it is so far back that the clock must have been ahead.
        """
        began = int(at // self.resolution.step) * self.resolution.step
        if self.open_at is not None and began < self.open_at:
            if at >= self.open_at - _BACK_SECONDS_MOST:
                return
            self._rewind(began)
        if self.open_at is not None and began > self.open_at:
            self.close(peaks)
        self.open_at = began
        self.sum.add(values)

    def _rewind(self, moment: int) -> None:
        """Drops everything at or after a moment."""
        while self.rows and self.rows[-1].at >= moment:
            self.bytes -= self.rows.pop().bytes
        self.last = self.base.copy()
        for row in self.rows:
            self.last[row.columns] = row.values
        self.sum.clear()
        self.open_at = None

    def close(self, peaks: Peaks) -> None:
        """Ends the open step."""
        row = self.open_row(peaks)
        if row is not None:
            self.put(row)
            self.sum.clear()
            self.open_at = None

    def open_row(self, peaks: Peaks) -> Row | None:
        """The open step, as a row."""
        if self.open_at is None:
            return None
        values = self.sum.values(peaks)
        before = self.last[: len(values)]
        is_other = (values != before) & ~(np.isnan(values) & np.isnan(before))
        columns = np.flatnonzero(is_other).astype(np.uint32)
        return Row(at=self.open_at, columns=columns, values=values[columns])

    def put(self, row: Row) -> None:
        """Adds a row, and drops rows that are too old or too many."""
        self.last[row.columns] = row.values
        self.rows.append(row)
        self.bytes += row.bytes
        oldest = row.at - self.resolution.seconds
        while self.rows and (self.rows[0].at <= oldest or self.bytes > self._bytes_most):
            gone = self.rows.popleft()
            self.base[gone.columns] = gone.values
            self.bytes -= gone.bytes

    def renumber(self, kept: Columns, room: int) -> None:
        """Drops all columns but these, which are numbered from zero in this order."""
        numbers = np.full(len(self.base), -1, np.int64)
        numbers[kept] = np.arange(len(kept))
        old = self.sum
        base, last = self.base[kept], self.last[kept]
        self.base, self.last, self.sum = _nothing(room), _nothing(room), Sum(room)
        self.base[: len(kept)], self.last[: len(kept)] = base, last
        for name in Sum.__slots__:
            getattr(self.sum, name)[: len(kept)] = getattr(old, name)[kept]
        rows, self.rows, self.bytes = self.rows, deque(), 0
        for row in rows:
            column = numbers[row.columns]
            stays = column >= 0
            columns = column[stays].astype(np.uint32)
            self.rows.append(Row(at=row.at, columns=columns, values=row.values[stays]))
            self.bytes += self.rows[-1].bytes

    def read(self, columns: Columns, times: npt.NDArray[np.int64], peaks: Peaks) -> Values:
        """The values of some columns at equally spaced moments: one row for each column.

        `peaks` covers all columns. Moments without a sample are NaN.
        """
        width = int(times[1] - times[0])
        begin, count = int(times[0]), len(times)
        sums = np.zeros((count, len(columns)))
        counts = np.zeros((count, len(columns)))
        most: Values = np.full((count, len(columns)), np.nan, np.float32)
        where = np.full(len(self.base), -1, np.int64)
        where[columns] = np.arange(len(columns))
        state = self.base[columns]
        unfinished = self.open_row(peaks)
        for row in (*self.rows, *((unfinished,) if unfinished is not None else ())):
            result = where[row.columns]
            hits = result >= 0
            state[result[hits]] = row.values[hits]
            at = (row.at - begin) // width
            if 0 <= at < count:
                is_there = ~np.isnan(state)
                sums[at] += np.where(is_there, state, 0)
                counts[at] += is_there
                np.fmax(most[at], state, out=most[at])
        means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        values: Values = np.where(peaks[columns], most, means).astype(np.float32).T
        return values


def _nothing(room: int) -> Values:
    return np.full(room, np.nan, np.float32)
