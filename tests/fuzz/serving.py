"""A hub on a free port of loopback, serving from a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairway.app import Hub, HubOptions, open_hub

_START_SECONDS = 30


@contextmanager
def serving(folder: Path) -> Iterator[Hub]:
    """The hub, for as long as the context lasts."""
    opened: list[Hub] = []
    begun = threading.Event()
    loop = asyncio.new_event_loop()
    ends = asyncio.Event()

    async def serve() -> None:
        async with open_hub(HubOptions(data=folder, port=0, has_controllers=False)) as hub:
            opened.append(hub)
            begun.set()
            await ends.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            begun.set()
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert begun.wait(_START_SECONDS)
        assert opened, "the hub did not start"
        yield opened[0]
    finally:
        loop.call_soon_threadsafe(ends.set)
        thread.join()
