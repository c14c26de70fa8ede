"""What somebody does with a stream to a pod: says something, and hears all of the answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairway.client import AsyncClient
from fairway.streams.requests import Channel

END_OF = 255


@dataclass(kw_only=True)
class Heard:
    """What came back, by channel, and how it ended."""

    by_channel: dict[int, bytes] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)

    @property
    def output(self) -> str:
        return self.by_channel.get(Channel.OUTPUT, b"").decode()

    @property
    def exit_code(self) -> int:
        if self.status.get("status") == "Success":
            return 0
        return int(self.status["details"]["causes"][0]["message"])


async def told(
    client: AsyncClient,
    what: str,
    name: str,
    *said: bytes,
    namespace: str = "team",
    **query: str | tuple[str, ...],
) -> Heard:
    """Says some messages, and hears the answer to its end."""
    heard = Heard()
    opened = client.converse(
        name, what, namespace=namespace, query=query, protocols=("v5.channel.k8s.io",)
    )
    async with asyncio.timeout(30), opened as socket:
        for item in said:
            await socket.send(item)
        while (message := await socket.receive()) is not None:
            if message[0] == Channel.STATUS:
                heard.status = msgspec.json.decode(message[1:])
            elif message[0] != END_OF:
                before = heard.by_channel.get(message[0], b"")
                heard.by_channel[message[0]] = before + message[1:]
    return heard


async def run(
    client: AsyncClient, name: str, *command: str, given: bytes = b"", namespace: str = "team"
) -> Heard:
    """Runs a command in a pod of a workload, with an input if there is any."""
    query: dict[str, str | tuple[str, ...]] = {"command": command}
    said = [bytes((Channel.INPUT,)) + given, bytes((END_OF, Channel.INPUT))] if given else []
    if given:
        query["stdin"] = "true"
    return await told(client, "exec", name, *said, namespace=namespace, **query)
