"""Looks after what a hub keeps: backs it up, and encrypts it with another key.

A backup is the store at one moment, and the files beside it, read just after: what an agent or a
log has written since is newer, never older, than the store. What agents remember is left out: it
is of the machine that they run on, and agents without memory ask their clusters.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
)
from dataclasses import dataclass
from pathlib import Path

import fairway
from fairway.agent.fleet import Agents
from fairway.agent.memory import FILE as MEMORY
from fairway.agent.memory import Memory
from fairway.api.errors import Conflict
from fairway.clock import Clock, timestamp
from fairway.hub.decision_log import segments
from fairway.hub.encryption_keys import KeySource
from fairway.schema.node import JsonObject
from fairway.sealing import Keyring
from fairway.store.backup_lines import Header, Item, Moment, write_lines

_log = logging.getLogger(__name__)

# What a backup has of the data folder. The kubeconfig is written at each start, and the record of
# decisions and the audit log are for looking back.
FILES = ("tokens.csv", "keys/*", "tls/*", "spans", "decided", "history/*")


@dataclass(slots=True, kw_only=True)
class Keeping:
    """What a hub keeps, where, and with which keys."""

    data: Path
    clock: Clock
    moment: Callable[[], Awaitable[Moment]]
    reseal: Callable[[], Awaitable[int]]  # of the store
    source: KeySource
    keys: Keyring | None
    agents: Agents | None = None

    async def back_up(self) -> AsyncGenerator[bytes, None]:
        moment = await self.moment()
        files = await asyncio.to_thread(read_files, self.data)
        header = Header(
            store=moment.store,
            version=moment.version,
            taken_at=timestamp(self.clock.now()),
            written_by=fairway.__version__,
            key=self.keys.current if self.keys is not None else "",
        )
        return write_lines(header, _both(moment.items, files), self.keys)

    async def rotate_key(self) -> JsonObject:
        """Encrypts everything on disk with the first of the keys as they are now."""
        if self.keys is None:
            raise Conflict(
                "this hub was started without a key: restart it with one, and everything is"
                " encrypted then"
            )
        before = self.keys.current
        self.keys.use(await asyncio.to_thread(self.source.read))
        count = await self.reseal()
        running = await self.agents.reseal() if self.agents is not None else set[str]()
        await asyncio.to_thread(seal_memories, self.data, self.keys, running)
        _log.info("the data is encrypted with the key %s", self.keys.current)
        return {"key": self.keys.current, "before": before, "values": count}


def read_files(data: Path) -> list[Item]:
    """The files beside the store that a backup has."""
    return [
        Item(name=str(path.relative_to(data)), value=path.read_bytes())
        for pattern in FILES
        for path in sorted(data.glob(pattern))
        if path.is_file() and not path.name.startswith(".")
    ]


def drop_old_record(data: Path) -> None:
    """Deletes decisions that were recorded by versions which did not leave Secrets out."""
    mark = data / "decisions" / ".without-secrets"
    if mark.exists():
        return
    for path in segments(mark.parent):
        path.unlink()
    mark.parent.mkdir(mode=0o700, exist_ok=True)
    mark.touch(mode=0o600)


def seal_memories(data: Path, keys: Keyring | None, running: Container[str] = ()) -> None:
    """Encrypts what agents that do not run have left, such as those of deleted clusters.

    Without keys, nothing must be encrypted: raises KeyFault, before an agent finds out.
    """
    for folder in sorted((data / "clusters").glob("*")):
        if folder.name in running or not (folder / MEMORY).exists():
            continue
        memory = Memory(folder, keys=keys)
        memory.check_key()
        if keys is not None:
            memory.open()  # writes it again


async def _both(items: AsyncIterable[Item], files: list[Item]) -> AsyncIterator[Item]:
    async for item in items:
        yield item
    for item in files:
        yield item
