"""What `exec` and `port-forward` share: the messages of a stream to a pod, and how it ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from fairway.api.errors import from_status
from fairway.cli.session import Failure
from fairway.client.asynchronous import AsyncClient
from fairway.client.wire import Query
from fairway.sockets import WebSocket

PROTOCOL = "v5.channel.k8s.io"
END_OF = 255  # the channel named next has ended


class PodStream:
    """Bytes to and from a pod."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def send(self, channel: int, content: bytes) -> None:
        await self._socket.send(bytes((channel,)) + content)

    async def end(self, channel: int) -> None:
        await self._socket.send(bytes((END_OF, channel)))

    async def receive(self) -> tuple[int, bytes]:
        """The next bytes and their channel; empty bytes mean the end of the channel.

        The last message is on the channel STATUS.
        """
        while (message := await self._socket.receive()) is not None:
            if len(message) == 2 and message[0] == END_OF:
                return message[1], b""
            if len(message) > 1:
                return message[0], message[1:]
        raise Failure("the stream to the pod was cut")


@asynccontextmanager
async def open_stream(
    client: AsyncClient, what: str, name: str, namespace: str, query: Query
) -> AsyncIterator[PodStream]:
    """A stream to a pod of a workload."""
    async with client.converse(
        name, what, namespace=namespace, query=query, protocols=(PROTOCOL,)
    ) as socket:
        yield PodStream(socket)


def where(pod: str, container: str, cluster: str) -> dict[str, str]:
    """A pod as query parameters."""
    given = {"pod": pod, "container": container, "cluster": cluster}
    return {key: value for key, value in given.items() if value}


def exit_code(content: bytes) -> int:
    """The exit code of the command; a refusal is raised."""
    status: Any = msgspec.json.decode(content)
    if status.get("status") == "Success":
        return 0
    if status.get("reason") == "NonZeroExitCode":
        for cause in (status.get("details") or {}).get("causes") or ():
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
    raise from_status(status)
