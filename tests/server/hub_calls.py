"""Plain HTTPS calls of a hub, as any client makes them, and what came back."""

from __future__ import annotations

import asyncio
import base64
import io
import itertools
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.waiting import PATIENCE_SECONDS

Json = dict[str, Any]
_numbers = itertools.count()
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}


def fresh(prefix: str = "one") -> str:
    """A name that no other test uses."""
    return f"{prefix}-{next(_numbers)}"


def config_map(name: str, **data: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data or {"a": "1"},
    }


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    warnings: list[str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def version(self) -> int:
        return int(self.json["metadata"]["resourceVersion"])


class Stream:
    """The lines of a watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def event(self) -> Json | None:
        """The next event; None at the end of the stream."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await self.response.content.readline()
        return json.loads(line) if line else None

    async def events(self, count: int) -> list[Json]:
        found = [await self.event() for _ in range(count)]
        assert None not in found, "the stream ended too early"
        return [item for item in found if item is not None]

    async def rest(self) -> list[Json]:
        """All events until the end of the stream."""
        found = []
        while (event := await self.event()) is not None:
            found.append(event)
        return found


class Caller:
    """One identity that calls a hub."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str) -> None:
        self._session = session
        self.url = url
        self.token = token

    def using(self, token: str) -> Caller:
        return Caller(self._session, self.url, token)

    def _headers(self, extra: Mapping[str, str] | None) -> dict[str, str]:
        headers = {"Content-Type": "application/json", **(extra or {})}
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        return headers

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        if body is not None and not isinstance(body, bytes | AsyncIterator | io.IOBase):
            body = json.dumps(body).encode()
        async with self._session.request(
            method,
            self.url + path,
            params={key: str(value) for key, value in query.items()},
            data=body,
            headers=self._headers(headers),
        ) as response:
            warnings = response.headers.getall("Warning", [])
            return Answer(response.status, response.headers, warnings, await response.read())

    @asynccontextmanager
    async def watch(
        self, path: str, *, headers: Mapping[str, str] | None = None, **query: Any
    ) -> AsyncIterator[Stream]:
        params = {"watch": "true", **{key: str(value) for key, value in query.items()}}
        async with self._session.get(
            self.url + path, params=params, headers=self._headers(headers)
        ) as response:
            assert response.status == 200, await response.text()
            try:
                yield Stream(response)
            finally:
                # Left in the middle, a stream has no goodbye to wait for.
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()


@asynccontextmanager
async def calling(kubeconfig: Path) -> AsyncIterator[Caller]:
    """Calls as the administrator of a kubeconfig, trusting what it says to trust."""
    content = yaml.safe_load(kubeconfig.read_text())
    cluster = content["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    connector = aiohttp.TCPConnector(ssl=context, limit=200)
    timeout = aiohttp.ClientTimeout(total=20)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield Caller(session, cluster["server"], content["users"][0]["user"]["token"])
    for _ in range(3):
        await asyncio.sleep(0)  # lets the closed connections go


async def until(holds: Callable[[], bool]) -> None:
    """Waits for a condition, in turns of the event loop."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            await asyncio.sleep(0.005)
