"""The store of the fleet, as a database that can be set back to an earlier backup.

Backups are made and restored by the code of `fairway backup` and `fairway restore`. Setting the
database back is what an operator does: the hub is stopped, its data replaced by the backup, and the
hub started again. Agents keep running, and keep what they know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairway import __version__
from fairway.api.errors import Unavailable
from fairway.clock import timestamp
from fairway.store.backup_lines import Header, check, in_turns, read_items, write_lines
from fairway.store.embedded.history import Change
from fairway.store.embedded.journal import Row
from fairway.store.embedded.memory import MemoryJournal
from fairway.store.embedded.restored import rows_of
from fairway.store.embedded.shelves import KindId, Name
from fairway.store.embedded.store import EmbeddedStore


@dataclass(frozen=True, slots=True)
class Copy:
    """The data at one time, as the lines of a backup."""

    lines: tuple[bytes, ...]


class Database:
    """One life of the data after another; `live` gives the store of the present one."""

    def __init__(
        self, rows: Sequence[Row], make_store: Callable[[MemoryJournal], EmbeddedStore]
    ) -> None:
        self._make_store = make_store
        self.followers: list[Callable[[Change], None]] = []  # called after each write on disk
        self._open(MemoryJournal(rows))

    def _open(self, journal: MemoryJournal) -> None:
        self._journal = journal
        self._store: EmbeddedStore | None = self._make_store(self._journal)
        self._store.followers.append(self._follow)
        self._store.start()

    def _follow(self, change: Change) -> None:
        for follower in self.followers:
            follower(change)

    async def copy(self) -> Copy:
        store = self.live()
        version, items = store.moment()
        header = Header(
            store="embedded",
            version=str(version),
            taken_at=timestamp(store.clock.now()),
            written_by=__version__,
        )
        chunks = [chunk async for chunk in write_lines(header, in_turns(items), None)]
        return Copy(tuple(b"".join(chunks).splitlines(keepends=True)))

    async def stop(self) -> None:
        """Closes the store; until another is opened, there is none to call."""
        store, self._store = self.live(), None
        await store.close()

    def restore(self, copy: Copy) -> None:
        """Opens a store that has what the copy has; the highest version stays noted beside it."""
        assert self._store is None, "the store is stopped before its data is replaced"
        header, _ = check(copy.lines)
        above = max(self._journal.rows[-1].version, int(header.version))
        rows = rows_of(read_items(copy.lines, None), above=above)
        self._open(MemoryJournal(rows, self._journal.noted()))

    def has(self, kind: KindId, name: Name) -> bool:
        """Whether an object is there, even if it is not on disk yet."""
        return self._store is not None and self._store.writer.newest(kind, name) is not None

    def live(self) -> EmbeddedStore:
        """The store; calls of a hub that is stopped fail."""
        if self._store is None:
            raise Unavailable("the hub is stopped")
        return self._store
