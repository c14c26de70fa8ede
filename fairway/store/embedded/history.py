"""The last changes, in order.

A watch that resumes reads them forward; a list that continues at an older version undoes them. The
window is bounded in number and in bytes. A change that leaves it raises the floor, below which no
watch can resume, and names the rows that the journal may drop.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fairway.store.embedded.shelves import KindId, Name, Record
from fairway.store.interface import EventType


@dataclass(frozen=True, slots=True)
class Change:
    """One write: the previous record (None: created) and the new one (a tombstone if removed)."""

    kind: KindId
    record: Record
    previous: Record | None
    is_removed: bool

    @property
    def version(self) -> int:
        return self.record.version

    @property
    def type(self) -> EventType:
        if self.is_removed:
            return "DELETED"
        return "ADDED" if self.previous is None else "MODIFIED"


class History:
    """A bounded window of changes, over all kinds."""

    def __init__(self, *, changes_max: int = 50_000, bytes_max: int = 256 << 20) -> None:
        self._by_kind: dict[KindId, list[Change]] = {}
        self._order: deque[Change] = deque()
        self._bytes = 0
        self._changes_max = changes_max
        self._bytes_max = bytes_max
        self.floor = 0

    def add(self, change: Change) -> list[int]:
        """Adds a change; returns versions that can no longer be read."""
        self._order.append(change)
        self._by_kind.setdefault(change.kind, []).append(change)
        self._bytes += len(change.record.raw)
        dropped: list[int] = []
        while len(self._order) > self._changes_max or self._bytes > self._bytes_max:
            dropped.extend(self._forget_oldest())
        return dropped

    def _forget_oldest(self) -> Iterable[int]:
        oldest = self._order.popleft()
        self._bytes -= len(oldest.record.raw)
        self.floor = oldest.version
        changes = self._by_kind[oldest.kind]
        # Amortized: the list is cut once half of it has left the window.
        if len(changes) > 16 and changes[len(changes) // 2].version <= self.floor:
            self._by_kind[oldest.kind] = changes[len(changes) // 2 + 1 :]
        if oldest.previous is not None:
            yield oldest.previous.version
        if oldest.is_removed:
            yield oldest.version

    def since(self, kind: KindId, version: int) -> list[Change]:
        """The changes of a kind after a version, oldest first."""
        changes = self._by_kind.get(kind, [])
        return changes[bisect_right(changes, version, key=lambda change: change.version) :]

    def undo(self, kind: KindId, version: int) -> dict[Name, Record | None]:
        """The record at a version of each object changed since; None: it did not exist."""
        before: dict[Name, Record | None] = {}
        for change in self.since(kind, version):
            before.setdefault(change.record.name, change.previous)
        return before

    def __iter__(self) -> Iterator[Change]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)
