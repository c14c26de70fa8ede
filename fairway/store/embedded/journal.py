"""The append-only log on disk.

One table holds every version of every object: a write is an insert at the end, a deletion is an
insert of a tombstone, and the newest row of a key is its state. The same rows are the history for
watches, and a batch of writes of any size is one transaction with one fsync.

Superseded rows that have left the history window are dropped in later batches. The newest row of
all is never dropped, so versions never go back.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fairway.api.errors import InternalError, Unavailable
from fairway.disks import no_room, refusal


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
_FORMAT = 1


class SqliteJournal:
    """The log in a SQLite file, written from one thread.

    `is_inline` writes on the caller's thread instead: tests on virtual time stay in one thread.
    """

    def __init__(self, path: Path | str, *, is_inline: bool = False) -> None:
        self._folder = Path(path).absolute().parent
        self._connection = sqlite3.connect(
            str(path),
            isolation_level=None,
            check_same_thread=False,
            cached_statements=32,
            timeout=1.0,
        )
        try:
            self._prepare()
        except sqlite3.OperationalError as fault:
            self._connection.close()
            if _is_full(fault):
                raise refusal(self._folder) from fault
            if "locked" in str(fault):
                raise Unavailable(f"another hub is using the data in {path}") from fault
            raise InternalError(f"the data in {path} cannot be opened: {fault}") from fault
        except sqlite3.DatabaseError as fault:
            self._connection.close()
            raise InternalError(f"the data in {path} is not a hub's: {fault}") from fault
        self._thread = None if is_inline else ThreadPoolExecutor(1, "fairway-journal")

    def _prepare(self) -> None:
        run = self._connection.execute
        # One process owns the file: a second hub on the same folder is refused at once.
        run("PRAGMA locking_mode=EXCLUSIVE")
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        run("PRAGMA wal_autocheckpoint=4000")
        (result,) = run("PRAGMA user_version").fetchone()
        if result not in (0, _FORMAT):
            raise InternalError(f"the data was written by another version (format {result})")
        if result == _FORMAT:
            return  # writes nothing, so that a hub starts and serves reads on a full disk
        run("BEGIN IMMEDIATE")
        run(_SCHEMA)
        run(f"PRAGMA user_version={_FORMAT}")
        run("COMMIT")

    def load(self) -> Iterator[Row]:
        cursor = self._connection.execute(
            "SELECT version, api_group, plural, namespace, name, is_removed, value"
            " FROM log ORDER BY version"
        )
        for version, group, plural, namespace, name, is_removed, value in cursor:
            yield Row(version, group, plural, namespace, name, bool(is_removed), value)

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
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            _insert(connection, rows)
            if dropped:
                connection.executemany(
                    "DELETE FROM log WHERE version = ?", [(version,) for version in dropped]
                )
            connection.execute("COMMIT")
        except BaseException as fault:
            # SQLite ends a transaction by itself when the disk is full.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if _is_full(fault):
                raise no_room(self._folder) from fault
            raise

    async def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=True)
        self._connection.close()


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


_CHUNK_MAX = 128
_ROW = "(?, ?, ?, ?, ?, ?, ?)"
_INSERTS = {
    size: f"INSERT INTO log VALUES {', '.join([_ROW] * size)}"  # noqa: S608 - places only
    for size in (1, 2, 4, 8, 16, 32, 64, _CHUNK_MAX)
}
