"""The same client without `await`.

One event loop runs in a thread of its own; every call runs there while the caller waits. The
methods wrap the asynchronous ones and keep their types, so there is one implementation. An
interrupt while waiting (Ctrl-C) cancels the call.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from fairway.api.meta import Object as Typed
from fairway.client.access import Access
from fairway.client.asynchronous import AsyncClient
from fairway.client.catalogue import Catalogue, Served
from fairway.client.kubeconfig import load_access
from fairway.client.typed import SyncTypedCalls
from fairway.client.wire import Object

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Typed)


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="fairway-client", daemon=True
        )
        self._thread.start()

    def run(self, call: Coroutine[Any, Any, R]) -> R:
        """Runs a coroutine in the loop's thread and waits for it in the caller's."""
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except (KeyboardInterrupt, CancelledError):
            future.cancel()
            raise

    def iterate(self, items: AsyncGenerator[R, None]) -> Iterator[R]:
        """Iterates over an asynchronous generator; closes it when the iteration ends."""
        steps: set[asyncio.Task[Any]] = set()
        try:
            while True:
                try:
                    yield self.run(_next(items, steps))
                except StopAsyncIteration:
                    return
        finally:
            self.run(_close(items, steps))

    def stop(self) -> None:
        if not self._loop.is_closed():
            self.run(self._loop.shutdown_asyncgens())
            self.run(self._loop.shutdown_default_executor())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _next(items: AsyncGenerator[R, None], steps: set[asyncio.Task[Any]]) -> R:
    task = asyncio.current_task()
    assert task is not None, "it runs in a loop"
    steps.add(task)
    try:
        return await anext(items)
    finally:
        steps.discard(task)


async def _close(items: AsyncGenerator[R, None], steps: set[asyncio.Task[Any]]) -> None:
    """Ends an iteration. An interrupt may have left its last step running, cancelled or not."""
    for task in steps:
        if not task.cancelling():
            task.cancel()
    if steps:
        await asyncio.wait(steps)
    await items.aclose()


def _blocking(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Client, P], R]:
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.loop.run(method(self.asynchronous, *args, **kwargs))

    call.__doc__, call.__name__ = method.__doc__, method.__name__
    return call


def _iterating(
    method: Callable[Concatenate[AsyncClient, P], AsyncGenerator[R, None]],
) -> Callable[Concatenate[Client, P], Iterator[R]]:
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        return self.loop.iterate(method(self.asynchronous, *args, **kwargs))

    call.__doc__, call.__name__ = method.__doc__, method.__name__
    return call


class Client:
    """A client of one server, with one identity. Close it, or use it in `with`."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.loop = LoopThread()
        self.asynchronous = self.loop.run(_make(access))

    @classmethod
    def connect(cls, kubeconfig: str | None = None, *, context: str = "") -> Self:
        """A client for the server that the user's kubeconfig names."""
        return cls(load_access(kubeconfig, context=context))

    get = _blocking(AsyncClient.get)
    ask = _blocking(AsyncClient.ask)
    log = _iterating(AsyncClient.log)
    list = _blocking(AsyncClient.list)
    list_page = _blocking(AsyncClient.list_page)
    table = _blocking(AsyncClient.table)
    watch = _iterating(AsyncClient.watch)
    create = _blocking(AsyncClient.create)
    replace = _blocking(AsyncClient.replace)
    patch = _blocking(AsyncClient.patch)
    apply = _blocking(AsyncClient.apply)
    scale = _blocking(AsyncClient.scale)
    delete = _blocking(AsyncClient.delete)
    fetch = _blocking(AsyncClient.fetch)
    back_up = _iterating(AsyncClient.back_up)
    rotate_key = _blocking(AsyncClient.rotate_key)

    def kind(self, struct: type[T]) -> SyncTypedCalls[T]:
        """The same calls for one typed kind."""
        return SyncTypedCalls(self.asynchronous.kind(struct), self.loop)

    def catalogue(self) -> Catalogue:
        """Everything the server serves."""
        return self.loop.run(self.asynchronous.discovery.catalogue())

    def resolve(self, word: str) -> Served:
        """The kind that a word means."""
        return self.loop.run(self.asynchronous.discovery.resolve(word))

    def kind_of(self, obj: Object) -> Served:
        """The kind that an object declares."""
        return self.loop.run(self.asynchronous.discovery.of(obj))

    def close(self) -> None:
        self.loop.run(self.asynchronous.close())
        self.loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


async def _make(access: Access) -> AsyncClient:
    return AsyncClient(access)
