"""Loads the journal into memory: the newest state of every object, and the recent changes."""

from __future__ import annotations

import gc

from fairway.store.embedded.history import Change, History
from fairway.store.embedded.journal import Journal
from fairway.store.embedded.shelves import KindId, Name, Record, Shelves


def load(journal: Journal, shelves: Shelves, history: History) -> int:
    """Fills the shelves and the history; returns the newest version."""
    was_enabled = gc.isenabled()
    # A hundred thousand new objects and no garbage: collection would only cost time.
    gc.disable()
    try:
        return _load(journal, shelves, history)
    finally:
        if was_enabled:
            gc.enable()


def _load(journal: Journal, shelves: Shelves, history: History) -> int:
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


def _remember(changes: list[Change], history: History) -> None:
    """Keeps the part of the log in which no version is missing.

    Some rows before a gap were superseded and dropped, so the history there is incomplete.
    """
    start = len(changes)
    while start > 0 and (
        start == len(changes) or changes[start - 1].version == changes[start].version - 1
    ):
        start -= 1
    if start < len(changes):
        history.floor = changes[start].version - 1
    for change in changes[start:]:
        history.add(change)
