"""A hub in this process, asked without a socket, with every promise checked on every answer.

Each call runs the hub's loop until the answer is there and everything that follows from it (the
collection of dependents, say) is done, so that a test sees the hub at rest between two requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fairway.app import Hub, HubOptions, open_hub
from fairway.server.access.fairness import Share, Shares
from fairway.server.wire.exchange import ByteStream, Request, Response
from tests.fuzz import promises

T = TypeVar("T")
JSON = "application/json"
_QUIET_SECONDS = 0.01
_READS = frozenset({"GET", "HEAD"})
_FAST = Share(at_once=16, streams=16, per_second=1e9, burst=10**9, all_at_once=64)
_EVER_SO_FAST = Shares(users=_FAST, strangers=_FAST)


class Complaints(logging.Handler):
    """Keeps what the hub logs: an error in the log is a broken promise, even if no one sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.errors: list[str] = []

    def taken(self) -> list[str]:
        """The errors since the last look."""
        found, self.errors = self.errors, []
        return found

    def emit(self, record: logging.LogRecord) -> None:
        line = logging.Formatter().format(record)
        self.lines.append(line)
        if record.levelno >= logging.ERROR:
            self.errors.append(line)


class Driver:
    """Opens a hub in a folder and talks to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.complaints = Complaints()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._unhandled)
        self._background: set[asyncio.Task[Any]] = set()
        logging.getLogger().addHandler(self.complaints)
        self.start()

    def start(self) -> None:
        self._stack = AsyncExitStack()
        options = HubOptions(data=self.folder, port=0, has_controllers=False, shares=_EVER_SO_FAST)
        context = open_hub(options)
        self.hub: Hub = self._run(self._stack.enter_async_context(context))
        self._background = set()
        self._run(asyncio.sleep(0))
        self._background = asyncio.all_tasks(self._loop)

    def stop(self) -> None:
        self._run(self._stack.aclose())

    def close(self) -> None:
        self.stop()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        logging.getLogger().removeHandler(self.complaints)
        assert not self.complaints.taken()

    def restart(self) -> None:
        """Ends the hub and opens it again from disk."""
        self.stop()
        self.start()

    def send(
        self,
        method: str,
        path: str,
        body: Any = b"",
        *,
        query: Mapping[str, str] | None = None,
        kind: str = JSON,
        headers: tuple[tuple[str, str], ...] | None = None,
        token: str | None = None,
    ) -> Response:
        """The answer to a request, once it kept every promise that an answer gives."""
        if headers is None:
            headers = (("content-type", kind), ("user-agent", "fuzz/1"))
        bearer = self.hub.token if token is None else token
        if bearer and not any(name.lower() == "authorization" for name, _ in headers):
            headers = (*headers, ("authorization", f"Bearer {bearer}"))
        request = Request(
            method=method,
            path=path,
            query=tuple((query or {}).items()),
            headers=headers,
            body=body if isinstance(body, bytes) else msgspec.json.encode(body),
        )
        return self._checked(request)

    def _checked(self, request: Request) -> Response:
        before = self.hub.store.version
        response = self._run(self._answer(request))
        promises.check_answer(request, response, self.complaints.taken())
        is_refused = response.status >= 400 and request.path.count("/") > 2
        if is_refused or request.method in _READS:
            after = self.hub.store.version
            assert after == before, f"{response.status} to {request}, yet something was written"
        return response

    async def _answer(self, request: Request) -> Response:
        response = await self.hub.api.answer(request)
        if response.stream is not None:
            response.body = await _chunks(response.stream)
        if response.seat is not None:
            response.seat.leave()
        await self._rest()
        return response

    async def _rest(self) -> None:
        """Waits until nothing is under way but what always is."""
        here = asyncio.current_task()
        while under_way := asyncio.all_tasks() - self._background - {here}:
            await asyncio.wait(under_way, timeout=10)

    def json(self, method: str, path: str, body: Any = b"", **more: Any) -> Any:
        """The decoded body of an answer that is no refusal."""
        response = self.send(method, path, body, **more)
        assert response.status < 400, response.body
        return msgspec.json.decode(response.body)

    def watch(self, path: str, version: str) -> list[Any]:
        """All events of a kind since a version."""
        response = self.send("GET", path, query={"watch": "1", "resourceVersion": version})
        assert response.status == 200, response.body
        return [msgspec.json.decode(line) for line in response.body.splitlines()]

    def _run(self, work: Awaitable[T]) -> T:
        return self._loop.run_until_complete(work)  # type: ignore[arg-type]

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.complaints.errors.append(f"{context.get('message')}: {context.get('exception')!r}")


async def _chunks(stream: ByteStream) -> bytes:
    """What a stream has to say at once."""
    chunks: list[bytes] = []
    lines = aiter(stream)
    try:
        while True:
            chunks.append(await asyncio.wait_for(anext(lines), _QUIET_SECONDS))
    except (TimeoutError, StopAsyncIteration):
        return b"".join(chunks)
    finally:
        await stream.aclose()
