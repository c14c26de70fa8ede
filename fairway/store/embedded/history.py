"""The last changes, in order.

A watch that resumes reads them forward; a list that continues at an older version undoes them. The
window is bounded in number and in bytes. A change that leaves it raises the floor, below which no
watch can resume, and names the rows that the journal may drop.

A store that was set back to a backup has lost writes that others have seen. So every start skips
the versions up to one that is derived from the time, or from the note beside the journal if the
time was set back, and marks that in the journal: a version among those skipped is of another
history, and whoever asks for it has to list again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fairway.store.embedded.shelves import KindId, Name, Record, json_text
from fairway.store.interface import EventType

STARTS: KindId = ("", "starts")  # of the store itself, marked in the journal and nowhere else
_RESTORED = "restored"
_VERSIONS_PER_SECOND = 1_000_000  # more than can be written
_UNNOTED_VERSIONS = 60 * _VERSIONS_PER_SECOND  # the note is no further behind after a loss of power


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


def make_start(last: int, now: float, noted: int = 0) -> Change | None:
    """The mark of a start after the version `last`; None if no versions are skipped.

    Its version is above all that earlier starts gave, even if their writes are no longer there.
    """
    version = int(now * _VERSIONS_PER_SECOND)
    if noted > last:
        version = max(version, noted + _UNNOTED_VERSIONS)
    elif not last or version <= last + 1:
        return None
    return start_at(version)


def start_at(version: int, name: str = "start") -> Change:
    """The mark of a start, after which versions begin above this one."""
    head = {"apiVersion": "v1", "metadata": {"name": name, "uid": ""}}
    return Change(STARTS, Record.read(json_text(head), version), None, is_removed=True)


def restored_at(version: int) -> Change:
    """The start of a restored store: of what came before, only the last state is known."""
    return start_at(version, _RESTORED)


def is_restored(change: Change) -> bool:
    return change.kind == STARTS and change.record.name[1] == _RESTORED


class History:
    """A bounded window of changes, over all kinds."""

    def __init__(self, *, changes_max: int = 50_000, bytes_max: int = 256 << 20) -> None:
        self._by_kind: dict[KindId, list[Change]] = {}
        self._order: deque[Change] = deque()
        self._bytes = 0
        self._changes_max = changes_max
        self._bytes_max = bytes_max
        self.floor = 0
        self._skipped: list[range] = []  # versions that no write of this history has

    def has(self, version: int) -> bool:
        """Whether the state at a version, and what changed since, is known."""
        return version >= self.floor and not any(version in skipped for skipped in self._skipped)

    def begin(self, start: Change, last: int) -> None:
        """Adds a start that came after the write of the version `last`."""
        self._skipped.append(range(last + 1, start.version))
        self.add(start)

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
        if oldest.kind == STARTS:
            self._skipped = [skipped for skipped in self._skipped if skipped.stop > self.floor]
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
