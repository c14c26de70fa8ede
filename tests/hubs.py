"""A hub in this process, over real HTTP, for tests that are not asynchronous themselves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

from fairway.app import Hub, HubOptions, open_hub
from fairway.client.synchronous import LoopThread


def running_hub(
    data: Path, *, has_controllers: bool = False, folders: tuple[Path, ...] = ()
) -> Iterator[Hub]:
    """A hub on a loop of its own, until the fixture that yields from this ends.

    It keeps objects and decides nothing, unless it is told to. Pods may use `folders`.
    """
    loop = LoopThread()
    yield from loop.iterate(_running(data, has_controllers, folders))
    loop.stop()


async def _running(
    data: Path, has_controllers: bool, folders: tuple[Path, ...]
) -> AsyncGenerator[Hub, None]:
    options = HubOptions(data=data, port=0, has_controllers=has_controllers, local_folders=folders)
    async with open_hub(options) as hub:
        yield hub
