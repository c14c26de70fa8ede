"""A hub in this process, over real HTTP, for tests that are not asynchronous themselves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

from fairway.app import Hub, HubOptions, open_hub
from fairway.client.synchronous import LoopThread


def running_hub(data: Path) -> Iterator[Hub]:
    """A hub on a loop of its own, until the fixture that yields from this ends."""
    loop = LoopThread()
    yield from loop.iterate(_running(data))
    loop.stop()


async def _running(data: Path) -> AsyncGenerator[Hub, None]:
    async with open_hub(HubOptions(data=data, port=0)) as hub:
        yield hub
