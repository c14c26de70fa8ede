"""Staging, group commit, publication.

A write is decided at once against the newest state, committed or not, and gets its version; then it
waits for the disk. While one batch is being written, the next one gathers: many writers share one
fsync (group commit). Reads and watches see only what is on disk, in the order of versions.

When a batch fails, everything staged after it fails too, since it was decided on top of the batch.
Each further write is a new attempt, so that writes succeed again once a full disk has room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from fairway.api.errors import ApiError, InternalError, Unavailable
from fairway.disks import is_full, refusal
from fairway.store.embedded.history import Change, History
from fairway.store.embedded.journal import Journal, Row
from fairway.store.embedded.shelves import KindId, Name, Record, Shelves
from fairway.store.embedded.watches import Watches

_log = logging.getLogger(__name__)

BATCH_MAX = 2_000


@dataclass(slots=True)
class _Staged:
    change: Change
    done: asyncio.Future[None]


@dataclass(slots=True)
class CommitFigures:
    """Counts of batches and writes, for metrics."""

    batches: int = 0
    writes: int = 0
    observers: list[Callable[[int, float], None]] = field(default_factory=list)


class Writer:
    """The only path from a decision to the disk, and from the disk to readers."""

    def __init__(
        self, journal: Journal, shelves: Shelves, history: History, watches: Watches
    ) -> None:
        self._journal = journal
        self._shelves = shelves
        self._history = history
        self._watches = watches
        self._staged: list[_Staged] = []
        self._newest: dict[tuple[KindId, Name], Change] = {}
        self._dropped: list[int] = []
        self._dropping: list[int] = []  # with the batch in flight
        self.full_disk = ""  # why writes fail; empty: the disk is not full
        self._writing: list[_Staged] | None = None  # the batch in flight
        self._began = 0.0
        self._rest: asyncio.Future[None] | None = None  # done once nothing is in flight
        self._broken: ApiError | None = None
        self._start: Change | None = None  # until it is on disk
        self.version = 0  # of the newest decision
        self.published = 0  # of the newest write that readers see
        self.figures = CommitFigures()
        self.on_change: Callable[[Change], None] = lambda change: None

    def newest(self, kind: KindId, name: Name) -> Record | None:
        """The newest state of an object, on disk or staged."""
        staged = self._newest.get((kind, name))
        if staged is not None:
            return None if staged.is_removed else staged.record
        return self._shelves.get(kind, name)

    def resume(self, version: int, start: Change | None = None) -> None:
        """Continues from a version; the mark of this start is written with the first batch."""
        self.version = self.published = version
        self._start = start

    @property
    def is_open(self) -> bool:
        return self._broken is None

    @property
    def has_room(self) -> bool:
        """Whether the disk takes writes: none was refused, and the next one has room."""
        return not self.full_disk and self._journal.has_room()

    def next_version(self) -> int:
        return self.version + 1

    def stage(self, change: Change) -> asyncio.Future[None]:
        """Stages a decided write; the future is done once the write is on disk and published."""
        if self._broken is not None:
            raise self._broken
        self.version = change.version
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._staged.append(_Staged(change, done))
        self._newest[change.kind, change.record.name] = change
        if self._writing is None:
            # Other tasks that are ready to write join: one batch costs less than many small ones.
            self._writing = []
            asyncio.get_running_loop().call_soon(self._begin)
        return done

    def _begin(self) -> None:
        """Hands the staged writes to the journal, at most BATCH_MAX."""
        batch, self._staged = self._staged[:BATCH_MAX], self._staged[BATCH_MAX:]
        self._dropping, self._dropped = self._dropped, []
        self._writing, self._began = batch, asyncio.get_running_loop().time()
        changes = [staged.change for staged in batch]
        if self._start is not None:
            changes.insert(0, self._start)
        written = self._journal.append([row_of(change) for change in changes], self._dropping)
        written.add_done_callback(self._write)

    def _write(self, written: asyncio.Future[None]) -> None:
        """Publishes a batch that is on disk, and starts the next one."""
        batch, self._writing = self._writing or [], None
        fault = written.exception()
        if fault is not None:
            self._fail(batch, fault)
        else:
            self._has_room()
            self._start = None
            self._observe(len(batch), asyncio.get_running_loop().time() - self._began)
            for staged in batch:
                self._publish(staged.change)
                if not staged.done.done():
                    staged.done.set_result(None)
        if self._staged:
            self._begin()
        elif self._rest is not None and not self._rest.done():
            self._rest.set_result(None)

    def _publish(self, change: Change) -> None:
        place = (change.kind, change.record.name)
        if change.is_removed:
            if change.previous is not None:
                self._shelves.remove(change.kind, change.previous)
        else:
            self._shelves.put(change.kind, change.record, change.previous)
        if self._newest.get(place) is change:
            del self._newest[place]
        self._dropped.extend(self._history.add(change))
        self.published = change.version
        self._watches.publish(change)
        try:
            self.on_change(change)
        except Exception:
            # It is on disk; a follower that fails must not keep its writers waiting forever.
            _log.exception("a change could not be followed: %s %s", change.kind, change.record.name)

    def _fail(self, batch: list[_Staged], fault: BaseException) -> None:
        self._dropped = [*self._dropping, *self._dropped]
        error: ApiError = InternalError(f"the write could not be made durable: {fault}")
        if isinstance(fault, OSError) and is_full(fault):
            error = refusal(fault.filename)
            if not self.full_disk:
                _log.error("writes are refused: %s", error)
            self.full_disk = str(error)
        failed, self._staged = [*batch, *self._staged], []
        self._newest.clear()
        for staged in failed:
            if not staged.done.done():
                staged.done.set_exception(error)

    def _has_room(self) -> None:
        if self.full_disk:
            self.full_disk = ""
            _log.warning("the disk has room again, and writes are kept")

    def _observe(self, count: int, seconds: float) -> None:
        figures = self.figures
        figures.batches += 1
        figures.writes += count
        for observer in figures.observers:
            observer(count, seconds)

    async def close(self) -> None:
        """Refuses new writes and waits for those in flight."""
        self._broken = Unavailable("the hub is shutting down")
        if self._writing is not None:
            self._rest = asyncio.get_running_loop().create_future()
            await self._rest


def row_of(change: Change) -> Row:
    """A change as it is in the journal."""
    group, plural = change.kind
    namespace, name = change.record.name
    return Row(change.version, group, plural, namespace, name, change.is_removed, change.record.raw)
