"""Loads the journal into memory: the newest state of every object, and the recent changes."""

from __future__ import annotations

import gc
import logging
from typing import NamedTuple

from fairway.store.embedded.history import STARTS, Change, History, is_restored, make_start
from fairway.store.embedded.journal import Journal
from fairway.store.embedded.shelves import KindId, Name, Record, Shelves

_log = logging.getLogger(__name__)


class Loaded(NamedTuple):
    """Where a store continues: the newest version, and the mark of this start, if any."""

    version: int
    start: Change | None


def load(journal: Journal, shelves: Shelves, history: History, now: float) -> Loaded:
    """Fills the shelves and the history, and begins a new part of it."""
    was_enabled = gc.isenabled()
    # A hundred thousand new objects and no garbage: collection would only cost time.
    gc.disable()
    try:
        last = _load(journal, shelves, history)
    finally:
        if was_enabled:
            gc.enable()
    noted = journal.noted()
    start = make_start(last, now, noted.highest)
    if start is None:
        return Loaded(last, None)
    if noted.kept > last:
        _log.warning(
            "writes are missing: the data ends at version %d, and version %d was written. It was"
            " restored from a backup, or damaged. Versions go on from %d, and clients list again",
            last,
            noted.kept,
            start.version,
        )
    history.begin(start, last)
    journal.give(start.version)
    return Loaded(start.version, start)


def _load(journal: Journal, shelves: Shelves, history: History) -> int:
    """Fills the shelves and the history; returns the newest version."""
    newest: dict[tuple[KindId, Name], Record] = {}
    changes: list[Change] = []
    first = last = 0
    for row in journal.load():
        first = first or row.version
        last = row.version
        kind = (row.group, row.plural)
        record = Record.read(row.value, row.version)
        place = (kind, (row.namespace, row.name))
        changes.append(Change(kind, record, newest.get(place), row.is_removed))
        if row.is_removed:
            newest.pop(place, None)
        else:
            newest[place] = record
    for (kind, _), record in newest.items():
        shelves.put(kind, record, None)
    _remember(changes, history)
    return last


def _follows(change: Change, previous: Change) -> bool:
    """Whether nothing is missing between two rows of the log."""
    if change.kind == STARTS:
        return not is_restored(change)
    return previous.version == change.version - 1


def _remember(changes: list[Change], history: History) -> None:
    """Keeps the part of the log in which no version is missing but those that starts skipped.

    Some rows before a gap were superseded and dropped, so the history there is incomplete. So is
    all of it before a restore.
    """
    first = len(changes)
    while first > 0 and (first == len(changes) or _follows(changes[first], changes[first - 1])):
        first -= 1
    if first < len(changes):
        history.floor = changes[first].version - 1
    for number, change in enumerate(changes[first:], first):
        if change.kind == STARTS:
            history.begin(change, changes[number - 1].version if number else 0)
        else:
            history.add(change)
