"""Restores a hub from a backup: its store, and the files beside it that are missing.

Files that are there stay: they are newer than the backup, and so is what agents remember. The store
of a folder is kept aside. A restored store is opened and compared with the backup before it takes
the place of another.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fairway.api import crds
from fairway.clock import Clock, SystemClock
from fairway.hub.on_kubernetes import OnKubernetes, open_kubernetes
from fairway.hub.upkeep import FILES
from fairway.sealing import Keyring
from fairway.server.access.private_files import make_private_directory, write_private
from fairway.store.backup_lines import BackupFault, Header, Item, Summary, check, read_items
from fairway.store.embedded.journal import SqliteJournal, highest_version
from fairway.store.embedded.restored import Contents, contents_of, fill, rows_of
from fairway.store.kubernetes.definitions import define
from fairway.store.kubernetes.restored import Outcome, refuse_running, restore

STORE = "fairway.db"
_SUFFIXES = ("", "-wal", "-shm")

# The lines of a backup, from its beginning each time.
ReadLines = Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A data folder that was restored."""

    header: Header
    summary: Summary
    contents: Contents
    files: int  # that were missing
    aside: Path | None  # where the store is that was there


async def restore_folder(
    lines: ReadLines, data: Path, keys: Keyring | None, *, aside: str = ""
) -> Restored:
    """Restores a hub with an embedded store; a store that is there is moved to `aside`."""
    header, summary = check(lines())
    if header.store != "embedded":
        raise BackupFault("it is of a hub on Kubernetes: restore it with --store kubernetes")
    make_private_directory(data)
    beside = data / f".{STORE}.restoring"
    _remove(beside)
    above = highest_version(data / STORE)  # refuses a running hub
    try:
        contents = await _write(lines, beside, keys, above=max(above, int(header.version)))
        files = restore_files(lines, data, keys)
        moved = _put_aside(data, aside) if aside else None
        for suffix in _SUFFIXES:
            if (part := _part(beside, suffix)).exists():
                part.replace(_part(data / STORE, suffix))
    except BaseException:
        _remove(beside)
        raise
    _make_durable(data)
    return Restored(header=header, summary=summary, contents=contents, files=files, aside=moved)


async def restore_kubernetes(
    lines: ReadLines,
    where: OnKubernetes,
    data: Path,
    keys: Keyring | None,
    *,
    clock: Clock | None = None,
) -> tuple[Outcome, int]:
    """Restores a hub whose objects are on a server: what is missing there, and in its folder."""
    clock = clock or SystemClock()
    header, _ = check(lines())
    if header.store != "kubernetes":
        raise BackupFault("it is of a hub that keeps its objects in a folder: restore it there")
    store = open_kubernetes(where, clock)
    try:
        await refuse_running(store, clock)
        await define(store, crds.for_kubernetes(), clock=clock)
        outcome = await restore(store, read_items(lines(), keys))
    finally:
        await store.close()
    return outcome, restore_files(lines, data, keys)


def restore_files(lines: ReadLines, data: Path, keys: Keyring | None) -> int:
    """Writes the files of a backup that are missing in a folder; returns how many."""
    count = 0
    for item in read_items(lines(), keys):
        if not item.is_file:
            continue
        if not _is_known(PurePosixPath(item.name)):
            raise BackupFault(f"it has a file that is not of a hub: {item.name}")
        path = data / item.name
        if not path.exists():
            write_private(path, item.value)
            count += 1
    return count


def _is_known(path: PurePosixPath) -> bool:
    """Whether a file may be in a backup, and is inside the folder."""
    patterns = map(PurePosixPath, FILES)
    return ".." not in path.parts and any(
        len(path.parts) == len(pattern.parts) and path.match(str(pattern)) for pattern in patterns
    )


async def _write(lines: ReadLines, path: Path, keys: Keyring | None, *, above: int) -> Contents:
    """Writes a store, opens it again, and compares it with what was written."""
    journal = _new_journal(path, keys)
    try:
        written = await fill(journal, rows_of(_objects(lines, keys), above=above))
    finally:
        await journal.close()
    journal = SqliteJournal(path, is_inline=True, keys=keys)
    try:
        there = contents_of(journal)
    finally:
        await journal.close()
    if there != written:
        raise BackupFault("the restored store is not what the backup has; the disk may be faulty")
    return there


def _new_journal(path: Path, keys: Keyring | None) -> SqliteJournal:
    path.touch(mode=0o600)
    return SqliteJournal(path, is_inline=True, keys=keys)


def _objects(lines: ReadLines, keys: Keyring | None) -> Iterator[Item]:
    return (item for item in read_items(lines(), keys) if not item.is_file)


def _put_aside(data: Path, name: str) -> Path | None:
    """Moves the store of a folder into a folder beside it."""
    if not (data / STORE).exists():
        return None
    folder = data / name
    make_private_directory(folder)
    for suffix in _SUFFIXES:
        if (part := _part(data / STORE, suffix)).exists():
            shutil.move(part, folder / part.name)
    return folder


def _part(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _remove(path: Path) -> None:
    for suffix in _SUFFIXES:
        _part(path, suffix).unlink(missing_ok=True)


def _make_durable(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
