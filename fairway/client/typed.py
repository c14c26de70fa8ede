"""The same calls with typed objects.

    workloads = client.kind(Workload)
    workload = await workloads.get("train", namespace="team-a")

Reading is lenient: fields that this version does not know are ignored.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from fairway.api.codec import decode, to_plain
from fairway.api.meta import VERSION
from fairway.api.meta import Object as Typed
from fairway.client.catalogue import Served
from fairway.client.wire import Event, Object, Scope

if TYPE_CHECKING:
    from fairway.client.asynchronous import AsyncClient

T = TypeVar("T", bound=Typed)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TypedEvent(Generic[T]):
    """One change seen by a watch; a BOOKMARK has no object."""

    type: str
    object: T | None


class TypedCalls(Generic[T]):
    """The calls of one typed kind."""

    def __init__(self, client: AsyncClient, struct: type[T]) -> None:
        self._client = client
        self._struct = struct
        self._identity: Object = {
            "apiVersion": f"{struct.api_group}/{VERSION}",
            "kind": struct.__name__,
        }

    async def get(self, name: str, *, namespace: str | None = None) -> T:
        return self._decode(
            await self._client.get(await self._find_kind(), name, namespace=namespace)
        )

    async def list(self, *, scope: Scope = Scope()) -> list[T]:  # noqa: B008 - Scope is frozen
        listing = await self._client.list(await self._find_kind(), scope=scope)
        return [self._decode(item) for item in listing.items]

    async def watch(
        self,
        *,
        scope: Scope = Scope(),  # noqa: B008 - Scope is frozen
    ) -> AsyncGenerator[TypedEvent[T], None]:
        events = self._client.watch(await self._find_kind(), scope=scope)
        try:
            async for event in events:
                yield self._event(event)
        finally:
            await events.aclose()

    async def create(self, obj: T, *, dry_run: bool = False) -> T:
        return self._decode(await self._client.create(self._encode(obj), dry_run=dry_run))

    async def replace(self, obj: T, *, subresource: str = "", dry_run: bool = False) -> T:
        written = await self._client.replace(
            self._encode(obj), subresource=subresource, dry_run=dry_run
        )
        return self._decode(written)

    async def apply(self, obj: T, *, force: bool = False, dry_run: bool = False) -> T:
        written = await self._client.apply(self._encode(obj), force=force, dry_run=dry_run)
        return self._decode(written)

    async def delete(self, name: str, *, namespace: str | None = None) -> None:
        await self._client.delete(await self._find_kind(), name, namespace=namespace)

    async def _find_kind(self) -> Served:
        return await self._client.discovery.of(self._identity)

    def _event(self, event: Event) -> TypedEvent[T]:
        is_bookmark = event.type == "BOOKMARK"
        return TypedEvent(event.type, None if is_bookmark else self._decode(event.object))

    def _decode(self, obj: Object) -> T:
        return decode(obj, self._struct)

    def _encode(self, obj: T) -> Object:
        return {**self._identity, **to_plain(obj)}


class Runs(Protocol):
    """A loop that other threads can hand work to."""

    def run(self, call: Coroutine[Any, Any, R]) -> R: ...

    def iterate(self, items: AsyncGenerator[R, None]) -> Iterator[R]: ...


class SyncTypedCalls(Generic[T]):
    """The calls of one typed kind, without `await`."""

    def __init__(self, calls: TypedCalls[T], loop: Runs) -> None:
        self._calls = calls
        self._loop = loop

    def get(self, name: str, *, namespace: str | None = None) -> T:
        return self._loop.run(self._calls.get(name, namespace=namespace))

    def list(self, *, scope: Scope = Scope()) -> list[T]:  # noqa: B008 - Scope is frozen
        return self._loop.run(self._calls.list(scope=scope))

    def watch(
        self,
        *,
        scope: Scope = Scope(),  # noqa: B008 - Scope is frozen
    ) -> Iterator[TypedEvent[T]]:
        return self._loop.iterate(self._calls.watch(scope=scope))

    def create(self, obj: T, *, dry_run: bool = False) -> T:
        return self._loop.run(self._calls.create(obj, dry_run=dry_run))

    def replace(self, obj: T, *, subresource: str = "", dry_run: bool = False) -> T:
        return self._loop.run(self._calls.replace(obj, subresource=subresource, dry_run=dry_run))

    def apply(self, obj: T, *, force: bool = False, dry_run: bool = False) -> T:
        return self._loop.run(self._calls.apply(obj, force=force, dry_run=dry_run))

    def delete(self, name: str, *, namespace: str | None = None) -> None:
        self._loop.run(self._calls.delete(name, namespace=namespace))
