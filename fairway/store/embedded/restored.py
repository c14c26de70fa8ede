"""The journal of a store that is restored from a backup.

It has one row for each object, and a start above every version that the hub may have handed out:
whoever has seen later writes than the backup lists again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from fairway.store.backup_lines import BackupFault, Item
from fairway.store.embedded.history import STARTS, restored_at
from fairway.store.embedded.journal import Journal, Row
from fairway.store.embedded.writes import row_of

_ROWS_AT_ONCE = 500


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Versioned(msgspec.Struct):
    metadata: _Metadata


_decode = msgspec.json.Decoder(_Versioned).decode


@dataclass(frozen=True, slots=True)
class Contents:
    """How many objects there are, and a digest of all of them."""

    count: int
    digest: str


def rows_of(items: Iterable[Item], *, above: int = 0) -> Iterator[Row]:
    """The rows of a journal with these objects, whose next version is above one."""
    last = 0
    for item in items:
        if item.is_file:
            continue
        version = _version_of(item)
        if version <= last:
            raise BackupFault(f"its objects are not in order: {item.kind} {item.name}")
        last = version
        yield Row(version, item.group, item.plural, item.namespace, item.name, False, item.value)
    if last:
        yield row_of(restored_at(max(above, last) + 1))


async def fill(journal: Journal, rows: Iterable[Row]) -> Contents:
    """Writes rows to an empty journal; returns what was written."""
    tally, batch = _Tally(), list[Row]()
    for row in rows:
        tally.add(row)
        batch.append(row)
        if len(batch) == _ROWS_AT_ONCE:
            await journal.append(batch, ())
            batch = []
    if batch:
        await journal.append(batch, ())
    return tally.contents()


def contents_of(journal: Journal) -> Contents:
    """What a journal has, as it is on disk."""
    tally = _Tally()
    for row in journal.load():
        tally.add(row)
    return tally.contents()


class _Tally:
    def __init__(self) -> None:
        self._count = 0
        self._digest = hashlib.sha256()

    def add(self, row: Row) -> None:
        if (row.group, row.plural) == STARTS:
            return
        self._count += 1
        place = (row.version, row.group, row.plural, row.namespace, row.name, row.is_removed)
        self._digest.update(msgspec.json.encode(place) + row.value)

    def contents(self) -> Contents:
        return Contents(self._count, self._digest.hexdigest())


def _version_of(item: Item) -> int:
    try:
        return int(_decode(item.value).metadata.resource_version)
    except (msgspec.MsgspecError, ValueError) as fault:
        raise BackupFault(f"it has an object without a version: {item.kind} {item.name}") from fault
