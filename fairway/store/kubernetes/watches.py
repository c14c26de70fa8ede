"""An open watch on a kube-apiserver.

Nothing is read ahead of the reader: events wait in the connection. The server cuts off a reader
that is too slow, which then resumes where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress

from fairway.kubeapi import SeenEvent, Unreachable
from fairway.store.interface import Stored, WatchEvent

Batches = AsyncGenerator[list[SeenEvent[Stored]], None]
See = Callable[[SeenEvent[Stored]], None]


class KubernetesWatch:
    """A stream of changes of one kind."""

    def __init__(
        self, batches: Batches, see: See, *, on_close: Callable[[KubernetesWatch], None]
    ) -> None:
        self._batches = batches
        self._on_close = on_close
        self._see = see
        self._reading: asyncio.Future[list[SeenEvent[Stored]]] | None = None
        self._is_closed = False
        self._has_told = False

    async def open(self) -> None:
        """Returns once the response has begun."""
        try:
            await anext(self._batches)
        except BaseException:
            await self.close()
            raise

    async def batch(self) -> list[WatchEvent]:
        """The next events, at least one; an empty list once the watch is closed."""
        while not self.is_closed():
            self._reading = asyncio.ensure_future(self._next())
            try:
                events = await self._reading
            except asyncio.CancelledError:
                if self.is_closed():
                    return []
                raise
            finally:
                self._reading = None
            if events:
                return [self._describe(event) for event in events]
        return []

    def is_closed(self) -> bool:
        """Whether no more events come: closed by its reader, or ended by the server."""
        return self._is_closed

    async def _next(self) -> list[SeenEvent[Stored]]:
        async for events in self._batches:
            self._has_told = self._has_told or bool(events)
            return events
        self._is_closed = True
        if not self._has_told:
            # The reader must wait before it retries: a server that is about to stop accepts
            # watches and drops them.
            raise Unreachable("the server ended a watch at once")
        return []

    def _describe(self, event: SeenEvent[Stored]) -> WatchEvent:
        stored = event.value if event.value is not None else Stored(event.bookmark)
        self._see(event)
        return WatchEvent(
            type=event.type,
            stored=stored,
            version=event.head.resource_version,
            ends_initial=event.ends_initial,
        )

    async def __aiter__(self) -> AsyncIterator[WatchEvent]:
        while events := await self.batch():
            for event in events:
                yield event

    async def close(self) -> None:
        self._is_closed = True
        self._on_close(self)
        reading = self._reading
        if reading is not None:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([reading])
        await self._batches.aclose()
