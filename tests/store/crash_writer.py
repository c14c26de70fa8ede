"""A process that writes as fast as it can and says what was acknowledged, until it is killed.

`python -m tests.store.crash_writer FOLDER ROUND`: creates, updates and deletes in eight tasks; one
line on standard output for each acknowledged write: what, name, version.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from fairway.app import open_store
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Write

CONFIG_MAPS = ResourceKey("", "v1", "configmaps")
NAMESPACES = ResourceKey("", "v1", "namespaces")
WRITE = Write(user="writer", manager="writer")


def say(what: str, name: str, version: str) -> None:
    # One write call a line: what the pipe holds when the process dies is whole lines.
    os.write(1, f"{what} {name} {version}\n".encode())


async def write_on(store: EmbeddedStore, task: int, turn: str) -> None:
    for number in range(1_000_000):
        name = f"r{turn}-t{task}-{number}"
        body = {"metadata": {"name": name}, "data": {"step": "created", "pad": "x" * 200}}
        stored = await store.create(CONFIG_MAPS, body, namespace="default", write=WRITE)
        say("created", name, stored.object()["metadata"]["resourceVersion"])
        if number % 3 == 1:
            patch = Patch(type="merge", body={"data": {"step": "changed"}})
            changed, _ = await store.patch(
                CONFIG_MAPS, name, patch, namespace="default", write=WRITE
            )
            say("changed", name, changed.object()["metadata"]["resourceVersion"])
        if number % 3 == 2:
            await store.delete(CONFIG_MAPS, name, namespace="default", write=WRITE)
            say("deleted", name, str(store.writer.published))


async def main() -> None:
    folder, turn = Path(sys.argv[1]), sys.argv[2]
    store = open_store(folder)
    if turn == "0":
        await store.create(NAMESPACES, {"metadata": {"name": "default"}}, write=WRITE)
    await asyncio.gather(*(write_on(store, task, turn) for task in range(8)))


if __name__ == "__main__":
    asyncio.run(main())
