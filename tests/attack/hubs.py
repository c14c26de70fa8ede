"""Small hubs to attack, and connections that speak to them byte by byte."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fairway.app import Hub, HubOptions, open_hub
from fairway.server.access.fairness import Share, Shares
from fairway.server.wire.connections import ConnectionLimits
from fairway.store.interface import Write
from fairway.store.keys import RBAC, resource_of
from tests.waiting import PATIENCE_SECONDS

USERS = ("ada", "eve")
PATH = "/api/v1/namespaces/default/configmaps"


def few(**changed: float) -> Share:
    """A share of three requests at once, three streams, and a rate that does not matter."""
    share: dict[str, Any] = {
        "at_once": 3,
        "streams": 3,
        "per_second": 1_000,
        "burst": 1_000,
        "all_at_once": 100,
    }
    return Share(**{**share, **changed})


@cache
def unverified() -> ssl.SSLContext:
    """TLS of a client that trusts any server."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@dataclass
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Caller:
    """One kept connection, to which anything can be written."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def write(self, content: bytes) -> None:
        self.writer.write(content)

    def send(self, token: str, method: str, path: str, *headers: str) -> None:
        shown = [f"Authorization: Bearer {token}"] if token else []
        lines = [f"{method} {path} HTTP/1.1", "Host: hub", *shown, *headers]
        self.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def head(self) -> Answer:
        async with asyncio.timeout(PATIENCE_SECONDS):
            first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines if line)
        return Answer(int(first.split()[1]), {key.lower(): value for key, value in pairs})

    async def answer(self) -> Answer:
        answer = await self.head()
        length = int(answer.headers.get("content-length", 0))
        answer.body = await self.reader.readexactly(length)
        return answer

    async def call(self, token: str, method: str, path: str, body: Any = None) -> Answer:
        content = b"" if body is None else json.dumps(body).encode()
        self.send(
            token, method, path, "Content-Type: application/json", f"Content-Length: {len(content)}"
        )
        self.write(content)
        return await self.answer()

    async def until_closed(self) -> bytes:
        """What is still sent until the hub closes the connection."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    def leave(self) -> None:
        self.writer.transport.abort()


@dataclass
class Attacked:
    """A hub, and what was opened to it."""

    hub: Hub
    callers: list[Caller] = field(default_factory=list)

    async def caller(self, *, source: str = "127.0.0.1") -> Caller:
        """A new connection, from an address of this machine."""
        where = urlsplit(self.hub.url)
        reader, writer = await asyncio.open_connection(
            where.hostname, where.port, ssl=unverified(), local_addr=(source, 0)
        )
        self.callers.append(Caller(reader, writer))
        return self.callers[-1]


@asynccontextmanager
async def attacked(
    data: Path, *, shares: Shares | None = None, connections: ConnectionLimits | None = None
) -> AsyncIterator[Attacked]:
    """A hub with two users, each of whom may do anything in the default namespace."""
    data.mkdir(exist_ok=True)
    tokens = data / "tokens.csv"
    rows = ["root,admin,admin,system:masters", *(f"{user},{user},{user}" for user in USERS)]
    tokens.touch(mode=0o600)
    tokens.write_text("\n".join(rows))
    options = HubOptions(
        data=data,
        port=0,
        has_controllers=False,
        shares=shares or Shares(),
        connections=connections or ConnectionLimits(),
    )
    async with open_hub(options) as hub:
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "people"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "User", "name": user, "apiGroup": RBAC} for user in USERS],
        }
        key = resource_of(binding["apiVersion"], binding["kind"])
        await hub.store.create(key, binding, write=Write())
        target = Attacked(hub)
        try:
            yield target
        finally:
            for caller in target.callers:
                caller.leave()
