"""Staging, group commit, publication.

A write is decided at once against the newest state, committed or not, and gets its version; then it
waits for the disk. While one batch is being written, the next gathers: many writers share one
fsync. Only what is on disk is shown to readers and watches, in the order of versions.

A batch that fails takes everything staged after it along, since that was decided on top of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from fairway.api.errors import ApiError, InternalError, Unavailable
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
    """What the writer did, for metrics."""

    batches: int = 0
    writes: int = 0
    last_batch_size: int = 0
    last_seconds: float = 0.0
    observers: list[Callable[[int, float], None]] = field(default_factory=list)


class Writer:
    """The one road from a decision to the disk, and from the disk to the readers."""

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
        self._flushing: asyncio.Task[None] | None = None
        self._broken: ApiError | None = None
        self.version = 0  # of the newest decision
        self.published = 0  # of the newest that readers see
        self.figures = CommitFigures()
        self.on_change: Callable[[Change], None] = lambda change: None

    def newest(self, kind: KindId, name: Name) -> Record | None:
        """The newest state of an object, on disk or on its way there."""
        staged = self._newest.get((kind, name))
        if staged is not None:
            return None if staged.is_removed else staged.record
        return self._shelves.get(kind, name)

    def resume(self, version: int) -> None:
        """Goes on from the newest version found on disk."""
        self.version = self.published = version

    @property
    def is_open(self) -> bool:
        return self._broken is None

    def next_version(self) -> int:
        return self.version + 1

    def stage(self, change: Change) -> asyncio.Future[None]:
        """Takes a decided write; the future is done once it is on disk and published."""
        if self._broken is not None:
            raise self._broken
        self.version = change.version
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._staged.append(_Staged(change, done))
        self._newest[change.kind, change.record.name] = change
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())
        return done

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._staged:
                batch, self._staged = self._staged[:BATCH_MAX], self._staged[BATCH_MAX:]
                dropped, self._dropped = self._dropped, []
                started = loop.time()
                try:
                    await self._journal.append([_row(one.change) for one in batch], dropped)
                except Exception as fault:
                    self._fail(batch, fault)
                    return
                self._observe(len(batch), loop.time() - started)
                for one in batch:
                    self._publish(one.change)
                    if not one.done.done():
                        one.done.set_result(None)
        finally:
            self._flushing = None

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
            # It is on disk; a follower that stumbles must not keep its writers waiting for ever.
            _log.exception("a change could not be followed: %s %s", change.kind, change.record.name)

    def _fail(self, batch: list[_Staged], fault: Exception) -> None:
        error = InternalError(f"the write could not be made durable: {fault}")
        failed, self._staged = [*batch, *self._staged], []
        self._newest.clear()
        for one in failed:
            if not one.done.done():
                one.done.set_exception(error)

    def _observe(self, count: int, seconds: float) -> None:
        figures = self.figures
        figures.batches += 1
        figures.writes += count
        figures.last_batch_size, figures.last_seconds = count, seconds
        for observer in figures.observers:
            observer(count, seconds)

    async def close(self) -> None:
        """Refuses new writes and waits for those under way."""
        self._broken = Unavailable("the hub is shutting down")
        while self._flushing is not None:
            await asyncio.wait([self._flushing])


def _row(change: Change) -> Row:
    group, plural = change.kind
    namespace, name = change.record.name
    return Row(change.version, group, plural, namespace, name, change.is_removed, change.record.raw)
