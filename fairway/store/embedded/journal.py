"""The append-only log on disk.

One table holds every version of every object: a write is an insert at the end, a deletion is an
insert of a tombstone, and the newest row of a key is its state. The same rows are the history for
watches, and a batch of writes of any size is one transaction with one fsync.

Superseded rows that have left the history window are dropped in later batches. The newest row of
all is never dropped, so versions never go back; a note beside the log
outlives even its loss.

With keys, every value is sealed for its row (`fairway/sealing.py`): not only Secrets, since works
and templates carry Secrets too. A file from before is sealed when it is opened, and then rebuilt,
so that nothing of the plain text remains in it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from fairway.api.errors import ApiError, InternalError, Unavailable
from fairway.disks import has_room, is_full, no_room, refusal
from fairway.sealing import HEAD_BYTES, MARK, KeyFault, Keyring, key_id
from fairway.store.embedded.version_note import Noted, VersionNote

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One version of one object. `value` is its JSON text; a tombstone has one too."""

    version: int
    group: str
    plural: str
    namespace: str
    name: str
    is_removed: bool
    value: bytes


class Journal(Protocol):
    """What the store needs of a disk."""

    def load(self) -> Iterator[Row]:
        """All rows, oldest first."""
        ...

    def append(self, rows: Sequence[Row], dropped: Sequence[int]) -> asyncio.Future[None]:
        """Starts to write all rows durably, or none; drops the versions in `dropped`."""
        ...

    async def reseal(self) -> int:
        """Seals all rows with the current key; returns how many were not."""
        ...

    def noted(self) -> Noted:
        """The highest versions, even of rows that are no longer there."""
        ...

    def give(self, version: int) -> None:
        """Notes a version that readers get before any row has it."""
        ...

    def has_room(self) -> bool:
        """Whether the disk can take more."""
        ...

    async def close(self) -> None: ...


_SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
    version    INTEGER PRIMARY KEY,
    api_group  TEXT NOT NULL,
    plural     TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    is_removed INTEGER NOT NULL,
    value      BLOB NOT NULL
) STRICT;
"""
_PLAIN, _SEALED, _HALF_SEALED = 1, 2, 3  # formats
_SEALED_AT_ONCE = 500  # rows in one transaction


class SqliteJournal:
    """The log in a SQLite file, written from one thread.

    `is_inline` writes on the caller's thread instead: tests on virtual time stay in one thread.
    """

    def __init__(
        self, path: Path | str, *, is_inline: bool = False, keys: Keyring | None = None
    ) -> None:
        self._folder = Path(path).absolute().parent
        self._keys = keys
        self._connection = sqlite3.connect(
            str(path),
            isolation_level=None,
            check_same_thread=False,
            cached_statements=32,
            timeout=1.0,
        )
        try:
            self._prepare()
        except BaseException as fault:
            self._connection.close()
            explained = _explain(fault, Path(path))
            if explained is None:
                raise
            raise explained from fault
        self._note = VersionNote(Path(path).with_suffix(".versions"))
        self._thread = None if is_inline else ThreadPoolExecutor(1, "fairway-journal")

    def _prepare(self) -> None:
        run = self._connection.execute
        # One process owns the file: a second hub on the same folder is refused at once.
        run("PRAGMA locking_mode=EXCLUSIVE")
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        run("PRAGMA wal_autocheckpoint=4000")
        (result,) = run("PRAGMA user_version").fetchone()
        if result not in (0, _PLAIN, _SEALED, _HALF_SEALED):
            raise InternalError(f"the data was written by another version (format {result})")
        if not result:
            run("BEGIN IMMEDIATE")
            run(_SCHEMA)
            run(f"PRAGMA user_version={_PLAIN if self._keys is None else _SEALED}")
            run("COMMIT")
        elif self._keys is not None:
            self._check_keys(result)
        elif result != _PLAIN:
            raise KeyFault(
                "it is encrypted, and no key was given; see --encryption-key-file of `fairway up`"
            )
        # With its format as it should be, nothing is written: a hub starts on a full disk.

    def _check_keys(self, form: int) -> None:
        """Sees that all values can be opened, and seals those that are not, or by an old key."""
        assert self._keys is not None
        heads = [head for (head,) in self._connection.execute(_HEADS, (HEAD_BYTES,))]
        self._keys.check(key_id(head) for head in heads if head.startswith(MARK))
        if form != _SEALED:
            self._connection.execute(f"PRAGMA user_version={_HALF_SEALED}")
        if form != _SEALED or any(head != self._keys.head for head in heads):
            last: int | None = 0
            while last is not None:
                _, last = self._seal_some(last, may_be_plain=form != _SEALED)
            self._clean()
            self._connection.execute(f"PRAGMA user_version={_SEALED}")

    def _seal_some(self, after: int, *, may_be_plain: bool = False) -> tuple[int, int | None]:
        """Seals rows after a version with the current key: how many, and the version of the last.

        There is no last version once there are no more.
        """
        keys, run = self._keys, self._connection.execute
        assert keys is not None
        run("BEGIN IMMEDIATE")
        try:
            rows = run(_NOT_SEALED, (after, HEAD_BYTES, keys.head, _SEALED_AT_ONCE)).fetchall()
            for row in map(_row, rows):
                is_plain = may_be_plain and not row.value.startswith(MARK)
                value = row.value if is_plain else keys.open(row.value, *_place(row))
                sealed = keys.seal(value, *_place(row))
                run("UPDATE log SET value = ? WHERE version = ?", (sealed, row.version))
            run("COMMIT")
        except BaseException as fault:
            self._undo(fault)
            raise
        return len(rows), rows[-1][0] if rows else None

    def _clean(self) -> None:
        """Rebuilds the file without what was in it before."""
        try:
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as fault:
            self._undo(fault)
            raise

    async def reseal(self) -> int:
        if self._keys is None:
            return 0
        count, last = 0, 0
        while True:
            some, until = await self._do(partial(self._seal_some, last))
            if until is None:
                break
            count, last = count + some, until
        await self._do(self._clean)
        return count

    async def _do(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def load(self) -> Iterator[Row]:
        for row in map(_row, self._connection.execute(_ALL)):
            if self._keys is None:
                yield row
            else:
                yield replace(row, value=self._keys.open(row.value, *_place(row)))

    def append(self, rows: Sequence[Row], dropped: Sequence[int]) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        if self._thread is not None:
            return loop.run_in_executor(self._thread, self._write, rows, dropped)
        written: asyncio.Future[None] = loop.create_future()
        try:
            self._write(rows, dropped)
        except (sqlite3.Error, OSError) as fault:
            written.set_exception(fault)
        else:
            written.set_result(None)
        return written

    def _write(self, rows: Sequence[Row], dropped: Sequence[int]) -> None:
        connection, keys = self._connection, self._keys
        if keys is not None:
            rows = [replace(row, value=keys.seal(row.value, *_place(row))) for row in rows]
        connection.execute("BEGIN IMMEDIATE")
        try:
            _insert(connection, rows)
            if dropped:
                connection.executemany(
                    "DELETE FROM log WHERE version = ?", [(version,) for version in dropped]
                )
            connection.execute("COMMIT")
        except BaseException as fault:
            self._undo(fault)
            raise
        if rows:
            self._note.write(self._note.noted._replace(kept=rows[-1].version))

    def noted(self) -> Noted:
        return self._note.noted

    def give(self, version: int) -> None:
        self._note.write(self._note.noted._replace(given=version))

    def has_room(self) -> bool:
        return has_room(self._folder)

    def _undo(self, fault: BaseException) -> None:
        """Ends a transaction that failed."""
        # SQLite ends a transaction by itself when the disk is full.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if _is_full(fault):
            raise no_room(self._folder) from fault

    async def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=True)
        self._connection.close()
        self._note.close()


def _explain(fault: BaseException, path: Path) -> ApiError | None:
    """Why a file cannot be opened, for whoever starts a hub."""
    match fault:
        case sqlite3.Error() | OSError() if _is_full(fault) or is_full(fault):
            return refusal(path.absolute().parent)
        case sqlite3.OperationalError() if "locked" in str(fault):
            return Unavailable(f"another hub is using the data in {path}")
        case sqlite3.OperationalError():
            return InternalError(f"the data in {path} cannot be opened: {fault}")
        case sqlite3.DatabaseError():
            return InternalError(f"the data in {path} is not a hub's: {fault}")
        case KeyFault():
            return KeyFault(f"the data in {path} cannot be read: {fault}")
    return None


def _row(columns: tuple[int, str, str, str, str, int, bytes]) -> Row:
    version, group, plural, namespace, name, is_removed, value = columns
    return Row(version, group, plural, namespace, name, bool(is_removed), value)


def _place(row: Row) -> tuple[str, ...]:
    """What a value is sealed for: this version of this object, in the log."""
    removed = "removed" if row.is_removed else ""
    return ("log", row.group, row.plural, row.namespace, row.name, str(row.version), removed)


def highest_version(path: Path) -> int:
    """The highest version in a file; 0 if there is none, or if the file cannot be read.

    Raises Unavailable while a hub uses it.
    """
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path, timeout=1.0)) as connection:
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            (version,) = connection.execute("SELECT max(version) FROM log").fetchone()
        except sqlite3.OperationalError as fault:
            if "locked" in str(fault):
                raise Unavailable(f"another hub is using the data in {path}") from fault
            return 0
        except sqlite3.DatabaseError:
            return 0
    return int(version or 0)


def _is_full(fault: BaseException) -> bool:
    return isinstance(fault, sqlite3.Error) and fault.sqlite_errorcode == sqlite3.SQLITE_FULL


def _insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Inserts many rows with few statements.

    Each statement releases the interpreter's lock and must acquire it again; row by row, this
    thread would mostly wait for the event loop's thread.
    """
    start = 0
    size = _CHUNK_MAX
    while start < len(rows):
        while size > len(rows) - start:
            size //= 2
        values = [
            value
            for row in rows[start : start + size]
            for value in (
                row.version,
                row.group,
                row.plural,
                row.namespace,
                row.name,
                row.is_removed,
                row.value,
            )
        ]
        connection.execute(_INSERTS[size], values)
        start += size


_COLUMNS = "version, api_group, plural, namespace, name, is_removed, value"
_ALL = f"SELECT {_COLUMNS} FROM log ORDER BY version"  # noqa: S608 - columns only
_HEADS = "SELECT DISTINCT substr(value, 1, ?) FROM log"
_NOT_SEALED = (
    f"SELECT {_COLUMNS} FROM log"  # noqa: S608 - columns only
    " WHERE version > ? AND substr(value, 1, ?) != ? ORDER BY version LIMIT ?"
)
_CHUNK_MAX = 128
_ROW = "(?, ?, ?, ?, ?, ?, ?)"
_INSERTS = {
    size: f"INSERT INTO log VALUES {', '.join([_ROW] * size)}"  # noqa: S608 - places only
    for size in (1, 2, 4, 8, 16, 32, 64, _CHUNK_MAX)
}
