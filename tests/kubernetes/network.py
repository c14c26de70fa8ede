"""A network between a hub and one of its members, which a test can cut.

Cut with `Refused`, connections break and no new ones come about, as when a machine is off. Cut with
`Silent`, nobody is told: what is sent is lost, as behind a firewall that forgot its connections;
those of that time stay so, even after the network is whole again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal
from urllib.parse import urlsplit

from fairway.loops import end

Cut = Literal["", "Refused", "Silent"]
_CHUNK = 65536


class Network:
    """All connections to one address, by way of another."""

    def __init__(self, host: str, port: int) -> None:
        self.url = ""
        self._target = (host, port)
        self._cut: Cut = ""
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> asyncio.Server:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    def cut(self, how: Cut) -> None:
        self._cut = how
        for connection in self._connections:
            connection.is_lost = True
            if how == "Refused":
                connection.abort()

    def mend(self) -> None:
        self._cut = ""

    async def close(self) -> None:
        await end(list(self._tasks))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        connection = _Connection(writer)
        connection.is_lost = bool(self._cut)
        if self._cut == "Refused":
            connection.abort()
            return
        self._connections.add(connection)
        try:
            await self._join(connection, reader, writer)
        except asyncio.CancelledError:
            return  # the network is taken down
        finally:
            self._connections.discard(connection)
            connection.abort()

    async def _join(
        self, connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            connection.writers.append(far_writer)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(connection.carry(reader, far_writer))
                tasks.create_task(connection.carry(far_reader, writer))


class _Connection:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.is_lost = False
        self.writers = [writer]

    def abort(self) -> None:
        for writer in self.writers:
            writer.transport.abort()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while part := await reader.read(_CHUNK):
                if not self.is_lost:
                    writer.write(part)
                    await writer.drain()
            if not self.is_lost:
                writer.write_eof()


@asynccontextmanager
async def network_to(url: str) -> AsyncIterator[Network]:
    """A network to a server, for as long as the context lasts."""
    parts = urlsplit(url)
    network = Network(str(parts.hostname), int(parts.port or 443))
    server = await network.open()
    try:
        yield network
    finally:
        server.close()
        await network.close()
