"""Loads the journal into memory: the newest state of every object, and the recent changes."""

from __future__ import annotations

import gc
from typing import NamedTuple

from fairway.store.embedded.history import STARTS, Change, History, make_start
from fairway.store.embedded.journal import Journal
from fairway.store.embedded.shelves import KindId, Name, Record, Shelves


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
    start = make_start(last, now)
    if start is not None:
        history.begin(start, last)
    return Loaded(start.version if start is not None else last, start)


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


def _remember(changes: list[Change], history: History) -> None:
    """Keeps the part of the log in which no version is missing but those that starts skipped.

    Some rows before a gap were superseded and dropped, so the history there is incomplete.
    """
    first = len(changes)
    while first > 0 and (
        first == len(changes)
        or changes[first].kind == STARTS
        or changes[first - 1].version == changes[first].version - 1
    ):
        first -= 1
    if first < len(changes):
        history.floor = changes[first].version - 1
    for number, change in enumerate(changes[first:], first):
        if change.kind == STARTS:
            history.begin(change, changes[number - 1].version if number else 0)
        else:
            history.add(change)
