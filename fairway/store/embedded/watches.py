"""Open watches and their events.

Each watch has its own bounded queue. A reader that falls behind by more than the bound gets
Expired, and lists again: a slow reader costs neither unbounded memory nor other readers' time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from fairway.api.errors import ApiError, Expired, Unavailable
from fairway.resources.resource import Resource
from fairway.store.embedded.history import Change
from fairway.store.embedded.selection import Selects
from fairway.store.embedded.shelves import KindId
from fairway.store.interface import Stored, WatchEvent

QUEUE_MAX = 10_000


class EmbeddedWatch:
    """One reader's stream of changes."""

    def __init__(
        self,
        kind: KindId,
        *,
        resource: Resource,
        selects: Selects,
        on_close: Callable[[EmbeddedWatch], None],
    ) -> None:
        self.kind = kind
        self._resource = resource
        self._selects = selects
        self._on_close = on_close
        self._queue: deque[WatchEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._error: ApiError | None = None
        self._is_closed = False
        self._room = QUEUE_MAX
        self.wants_bookmarks = False
        self.seen = 0  # the last version this watch has seen

    def make_room(self, count: int) -> None:
        """Exempts initial events from the bound: a reader of a large kind is not behind."""
        self._room = QUEUE_MAX + count

    def offer(self, change: Change) -> None:
        """Queues a change as the selection of this watch sees it."""
        self.seen = change.version
        event = self._event(change)
        if event is not None:
            self.push(event)

    def _event(self, change: Change) -> WatchEvent | None:
        """A change that enters the selection is ADDED, one that leaves it is DELETED.

        The DELETED event of an object that left the selection shows it as it last was inside.
        """
        was = change.previous is not None and self._selects(change.previous)
        now = not change.is_removed and self._selects(change.record)
        version = str(change.version)
        if now:
            stored = change.record.as_stored(self._resource)
            return WatchEvent(type="MODIFIED" if was else "ADDED", stored=stored, version=version)
        if was and change.previous is not None:
            last = change.record if change.is_removed else change.previous.at(change.version)
            stored = Stored(last.as_one_of(self._resource).raw)
            return WatchEvent(type="DELETED", stored=stored, version=version)
        return None

    def push(self, event: WatchEvent) -> None:
        if self._is_closed or self._error is not None:
            return
        if len(self._queue) >= self._room:
            self._queue.clear()
            self.fail(Expired("the watch fell too far behind; list again"))
            return
        self._queue.append(event)
        self._wake()

    def bookmark(self, version: int, *, ends_initial: bool = False) -> None:
        """Queues a bookmark: the reader's version, without an object."""
        self.seen = version
        note = ',"annotations":{"k8s.io/initial-events-end":"true"}' if ends_initial else ""
        raw = (
            f'{{"kind":"{self._resource.kind}","apiVersion":"{self._resource.api_version}",'
            f'"metadata":{{"resourceVersion":"{version}","creationTimestamp":null{note}}}}}'
        )
        self.push(
            WatchEvent(
                type="BOOKMARK",
                stored=Stored(raw.encode()),
                version=str(version),
                ends_initial=ends_initial,
            )
        )

    def fail(self, error: ApiError) -> None:
        """Ends the stream with an error, after the queued events."""
        self._error = error
        self._wake()

    async def batch(self) -> list[WatchEvent]:
        """All queued events, at least one; an empty list once the watch is closed."""
        while not self._queue:
            if self._error is not None:
                raise self._error
            if self._is_closed:
                return []
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        events = list(self._queue)
        self._queue.clear()
        return events

    async def __aiter__(self) -> AsyncIterator[WatchEvent]:
        while events := await self.batch():
            for event in events:
                yield event

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._on_close(self)
            self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class Watches:
    """All open watches, by kind."""

    def __init__(self) -> None:
        # In the order they were opened, so that two runs of one simulation notify in that order.
        self._by_kind: dict[KindId, dict[EmbeddedWatch, None]] = {}
        self._is_closed = False

    def add(self, watch: EmbeddedWatch) -> None:
        if self._is_closed:
            raise Unavailable("the hub is shutting down")
        self._by_kind.setdefault(watch.kind, {})[watch] = None

    def remove(self, watch: EmbeddedWatch) -> None:
        self._by_kind.get(watch.kind, {}).pop(watch, None)

    def publish(self, change: Change) -> None:
        for watch in self._by_kind.get(change.kind, ()):
            watch.offer(change)

    def bookmark(self, version: int) -> None:
        """Sends a bookmark to every watch that asked for bookmarks."""
        for watch in self._all():
            if watch.wants_bookmarks:
                watch.bookmark(version)

    def fail(self, kind: KindId, error: ApiError) -> None:
        for watch in list(self._by_kind.get(kind, ())):
            watch.fail(error)

    async def close(self) -> None:
        self._is_closed = True
        for watch in self._all():
            await watch.close()

    def count(self) -> int:
        return sum(map(len, self._by_kind.values()))

    def _all(self) -> list[EmbeddedWatch]:
        return [watch for watches in self._by_kind.values() for watch in watches]
