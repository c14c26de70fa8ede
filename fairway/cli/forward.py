"""`fairway port-forward`: forwards a local port to a port of a pod."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import click

from fairway.api.errors import ApiError
from fairway.cli import pod_streams, workloads
from fairway.cli.commands import Command
from fairway.cli.completion import complete_workloads
from fairway.cli.session import Failure, current, say
from fairway.cli.terminal import write as show
from fairway.client.asynchronous import AsyncClient
from fairway.client.errors import ClientError
from fairway.loops import end
from fairway.streams.requests import Channel

EXAMPLES = """
    fairway port-forward notebook 8888                  the same port here and there
    fairway port-forward notebook 8080:80 9090          8080 here leads to 80 there
    fairway port-forward deployment/llm :8000           any free port here
"""
_READ_BYTES = 32 << 10
_CONNECTIONS_MOST = 64
_PORT_MOST = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A local port and a remote one."""

    here: int  # 0: any free one
    there: int


class Ports(click.ParamType[Way]):
    """`[LOCAL:]REMOTE`."""

    name = "ports"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Way:
        if isinstance(value, Way):
            return value
        here, colon, there = str(value).rpartition(":")
        numbers = [name if name else "0" for name in (here if colon else there, there)]
        if not all(number.isdecimal() and int(number) <= _PORT_MOST for number in numbers):
            self.fail(f"{value!r} is not [LOCAL:]REMOTE, such as 8080:80", param, ctx)
        if not int(numbers[1]):
            self.fail(f"{value!r} names no port of the pod", param, ctx)
        return Way(here=int(numbers[0]), there=int(numbers[1]))


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("word", metavar="WORKLOAD", shell_complete=complete_workloads)
@click.argument("ways", nargs=-1, required=True, metavar="[LOCAL:]REMOTE...", type=Ports())
@click.option("--pod", default="", metavar="NAME", help="Pod; default: the first that runs.")
@click.option("--cluster", default="", metavar="NAME", help="Cluster.")
@click.option(
    "--address",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on.",
)
def forward(*, word: str, ways: tuple[Way, ...], pod: str, cluster: str, address: str) -> int:
    """Forward local ports to a pod of a workload, until you stop it.

    WORKLOAD is a workload, or the native object that it stands for, such as deployment/llm.
    """
    session = current()
    workload = workloads.find(session, word)
    name, namespace = workloads.name_of(workload), workload["metadata"]["namespace"]
    if workloads.phase_of(workload) != "Running":
        raise Failure(f"{name} {workloads.line(workload)}")

    async def run() -> None:
        async with AsyncClient(session.find_access()) as client:
            place = pod_streams.where(pod, "", cluster)
            await _listen([_Door(client, name, namespace, place, way) for way in ways], address)

    asyncio.run(run())
    return 0


async def _listen(doors: list[_Door], address: str) -> None:
    listening = []
    try:
        for door in doors:
            try:
                server = await asyncio.start_server(door.enter, address, door.way.here)
            except OSError as error:
                raise Failure(f"cannot listen on {address}:{door.way.here}: {error}") from error
            listening.append(server)
            port = server.sockets[0].getsockname()[1]
            show([f"Forwarding from {address}:{port} -> {door.way.there}"])
        await asyncio.Event().wait()
    finally:
        for server in listening:
            server.close()
        for door in doors:
            await door.close()


class _Door:
    """One local port, and its connections."""

    def __init__(
        self, client: AsyncClient, name: str, namespace: str, place: dict[str, str], way: Way
    ) -> None:
        self.way = way
        self._client = client
        self._name = name
        self._namespace = namespace
        self._query = {**place, "port": str(way.there)}
        self._passing: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        await end(list(self._passing))

    async def enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handles a local connection."""
        task = asyncio.current_task()
        assert task is not None
        if len(self._passing) >= _CONNECTIONS_MOST:
            say(f"There are {_CONNECTIONS_MOST} connections already; this one is closed.")
            writer.close()
            return
        self._passing.add(task)
        try:
            await self._pass(reader, writer)
        except (ApiError, ClientError, Failure) as error:
            say(f"error: port {self.way.there}: {getattr(error, 'message', error)}")
        except ConnectionError:
            pass  # the local client has disconnected
        except asyncio.CancelledError:
            pass  # everything is being stopped
        finally:
            self._passing.discard(task)
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with pod_streams.open_stream(
            self._client, "portforward", self._name, self._namespace, self._query
        ) as stream:
            sending = asyncio.ensure_future(_send(reader, stream))
            try:
                await _receive(stream, writer)
            finally:
                await end((sending,))


async def _send(reader: asyncio.StreamReader, stream: pod_streams.PodStream) -> None:
    with suppress(ConnectionError):  # the receiving side reports how it ended
        while content := await reader.read(_READ_BYTES):
            await stream.send(Channel.INPUT, content)
        await stream.end(Channel.INPUT)


async def _receive(stream: pod_streams.PodStream, writer: asyncio.StreamWriter) -> None:
    while True:
        channel, content = await stream.receive()
        if channel == Channel.STATUS:
            pod_streams.exit_code(content)
            return
        if channel == Channel.OUTPUT:
            if content:
                writer.write(content)
                await writer.drain()
            elif writer.can_write_eof():
                writer.write_eof()
