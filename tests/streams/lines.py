"""Two ends of a line within this process, and an exchange that only listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fairway.clock import Clock, VirtualClock
from fairway.streams import memory
from fairway.streams.line import Limits, Line, Serve


@asynccontextmanager
async def connected(
    serve: Serve, *, limits: Limits | None = None, clock: Clock | None = None
) -> AsyncIterator[tuple[Line, Line]]:
    """The end that asks, and the end that serves, for as long as the context lasts."""
    limits, clock = limits or Limits(), clock or VirtualClock()
    ours, theirs = memory.pair()
    asking = Line(ours, clock, limits=limits)
    serving = Line(theirs, clock, serve=serve, limits=limits)
    running = [asyncio.ensure_future(item.run()) for item in (asking, serving)]
    try:
        yield asking, serving
    finally:
        await asking.close()
        await asyncio.wait(running)


@dataclass(kw_only=True)
class Listener:
    """An exchange that keeps what it is told."""

    told: list[tuple[int, bytes]] = field(default_factory=list)
    given: asyncio.Queue[tuple[int, bytes] | None] = field(default_factory=asyncio.Queue)
    has_begun: bool = False

    async def begin(self) -> None:
        self.has_begun = True

    async def send(self, channel: int, content: bytes) -> None:
        self.told.append((channel, content))

    async def end(self, channel: int) -> None:
        self.told.append((channel, b""))

    async def receive(self) -> tuple[int, bytes] | None:
        return await self.given.get()

    def of(self, channel: int) -> bytes:
        return b"".join(content for value, content in self.told if value == channel)
