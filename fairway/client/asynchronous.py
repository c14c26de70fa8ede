"""The client: every call that a Kubernetes-style server answers.

Kinds are named by the words people use (`"workloads"`, `"wl"`, `"deployments.apps"`) or by a
`Served`. Objects are plain JSON; `kind(Workload)` gives the same calls with typed objects. Every
error response raises a `fairway.api.errors.ApiError`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from fairway.api.meta import Object as Typed
from fairway.client.access import Access
from fairway.client.calls import Calls, refusal
from fairway.client.catalogue import Served
from fairway.client.discovery import Discovery
from fairway.client.errors import UpgradeRefused
from fairway.client.kubeconfig import load_access
from fairway.client.transport import Transport
from fairway.client.typed import TypedCalls
from fairway.client.watches import Watching, follow
from fairway.client.wire import (
    JSON,
    TABLE,
    Answer,
    Event,
    Listing,
    Object,
    PatchType,
    Query,
    Request,
    Scope,
)
from fairway.clock import Clock, SystemClock
from fairway.sockets import WebSocket

T = TypeVar("T", bound=Typed)

PAGE_SIZE = 500
_ROTATE_SECONDS = 3600.0
MANAGER = "fairway"
WORKLOADS = "workloads.fairway.dev"
EVERYTHING = Scope()


class AsyncClient:
    """A client of one server, with one identity. Close it, or use it in `async with`."""

    def __init__(self, access: Access, *, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        self.access = access
        self._transport = Transport(access, clock)
        self._calls = Calls(self._transport, clock)
        self._watching = Watching(self._calls, clock)
        self.discovery = Discovery(self._calls)

    @classmethod
    def connect(cls, kubeconfig: str | None = None, *, context: str = "") -> Self:
        """A client for the server that the user's kubeconfig names."""
        return cls(load_access(kubeconfig, context=context))

    def tell_warnings(self, tell: Callable[[str], None]) -> None:
        """Calls `tell` with each warning the server sends with a response."""
        self._calls.on_warning = tell

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def kind(self, struct: type[T]) -> TypedCalls[T]:
        """The same calls for one typed kind."""
        return TypedCalls(self, struct)

    async def fetch(self, path: str, *, accept: str = JSON) -> Object:
        """Any JSON document of the server, such as `/version`."""
        return await self._calls.json(Request(method="GET", path=path, accept=accept))

    async def get(
        self,
        kind: str | Served,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str = "",
        as_table: bool = False,
    ) -> Object:
        """One object, or a table with one row for it."""
        served = await self._serve(kind)
        path = served.path(
            name, namespace=self._namespace(served, namespace), subresource=subresource
        )
        accept = TABLE if as_table else JSON
        return await self._calls.json(Request(method="GET", path=path, accept=accept))

    async def ask(
        self,
        kind: str | Served,
        name: str,
        question: str,
        *,
        namespace: str | None = None,
        query: Query | None = None,
        body: Object | None = None,
    ) -> Object:
        """The answer to a question about an object; one with a body, such as `score`, is a POST."""
        request = await self._question(kind, name, question, namespace, query)
        if body is not None:
            request = replace(request, method="POST", body=msgspec.json.encode(body))
        return await self._calls.json(request)

    async def log(
        self, name: str, *, namespace: str | None = None, query: Query | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The log of a workload's pod, in chunks as they arrive; `query` says which pod and how."""
        request = await self._question(WORKLOADS, name, "log", namespace, query)
        chunks = self._calls.transport.stream(replace(request, accept="*/*"))
        try:
            async for chunk in chunks:
                if isinstance(chunk, Answer):
                    raise refusal(chunk)
                yield chunk
        finally:
            await chunks.aclose()

    async def back_up(self) -> AsyncGenerator[bytes, None]:
        """The hub at one moment, as lines; in chunks as they arrive."""
        chunks = self._calls.transport.stream(
            Request(method="POST", path="/upkeep/backup", accept="*/*")
        )
        try:
            async for chunk in chunks:
                if isinstance(chunk, Answer):
                    raise refusal(chunk)
                yield chunk
        finally:
            await chunks.aclose()

    async def rotate_key(self) -> Object:
        """Lets the hub read its keys again, and encrypt everything with the first one."""
        request = Request(
            method="POST", path="/upkeep/rotate-key", read_timeout_seconds=_ROTATE_SECONDS
        )
        return await self._calls.json(request)

    @asynccontextmanager
    async def converse(
        self,
        name: str,
        what: str,
        *,
        namespace: str | None = None,
        query: Query | None = None,
        protocols: tuple[str, ...] = (),
    ) -> AsyncIterator[WebSocket]:
        """A two-way stream to a pod of a workload: `exec` or `portforward`."""
        request = await self._question(WORKLOADS, name, what, namespace, query)
        try:
            async with self._calls.transport.websocket(request, protocols=protocols) as socket:
                yield socket
        except UpgradeRefused as error:
            raise refusal(error.answer) from error

    async def list(
        self, kind: str | Served, *, scope: Scope = EVERYTHING, page_size: int = PAGE_SIZE
    ) -> Listing:
        """All objects in a scope, read page by page at one resource version."""
        served = await self._serve(kind)
        items: list[Object] = []
        token = ""
        while True:
            page = await self.list_page(served, scope=scope, limit=page_size, token=token)
            items += page.items
            token = page.continue_token
            if not token:
                return Listing(items=items, resource_version=page.resource_version)

    async def list_page(
        self, kind: str | Served, *, scope: Scope = EVERYTHING, limit: int = 0, token: str = ""
    ) -> Listing:
        """One page of a list; pass its `continue_token` to get the next page."""
        served = await self._serve(kind)
        answer = await self._calls.json(_list_request(served, scope, limit, token, JSON))
        metadata = answer.get("metadata") or {}
        items: list[Object] = answer.get("items") or []
        for item in items:
            # Items of a list may omit apiVersion and kind; a single object needs both.
            item.setdefault("apiVersion", served.api_version)
            item.setdefault("kind", served.kind)
        return Listing(
            items=items,
            resource_version=str(metadata.get("resourceVersion", "")),
            continue_token=str(metadata.get("continue") or ""),
        )

    async def table(
        self,
        kind: str | Served,
        *,
        scope: Scope = EVERYTHING,
        page_size: int = PAGE_SIZE,
        with_objects: bool = False,
    ) -> Object:
        """A list as the server would print it: a `Table` with columns and rows.

        Each row carries the metadata of its object, or with `with_objects` the whole object.
        """
        served = await self._serve(kind)
        token, rows = "", list[Object]()
        while True:
            request = _list_request(served, scope, page_size, token, TABLE)
            if with_objects:
                request = replace(request, query={**request.query, "includeObject": "Object"})
            table = await self._calls.json(request)
            rows += table.get("rows") or []
            metadata = table.get("metadata") or {}
            token = str(metadata.get("continue") or "")
            if not token:
                return {**table, "rows": rows}

    async def watch(
        self,
        kind: str | Served,
        *,
        scope: Scope = EVERYTHING,
        resource_version: str = "",
        as_table: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Watches without end.

        Without a version: every object as ADDED, a BOOKMARK, then changes; it relists by itself
        when needed. With a version: changes after it; raises `Expired` when the server no longer
        has that version.
        """
        served = await self._serve(kind)
        if resource_version:
            accept = TABLE if as_table else JSON
            events = self._watching.resume(served, resource_version, scope=scope, accept=accept)
        else:
            events = follow(
                self._watching, served, read_all=lambda: self.list(served, scope=scope), scope=scope
            )
        try:
            async for event in events:
                yield event
        finally:
            await events.aclose()

    async def create(
        self, obj: Object, *, dry_run: bool = False, manager: str = MANAGER, strict: bool = True
    ) -> Object:
        """Creates an object."""
        served = await self.discovery.of(obj)
        return await self._write("POST", served, obj, _options(dry_run, manager, strict))

    async def replace(
        self,
        obj: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
        manager: str = MANAGER,
        strict: bool = True,
    ) -> Object:
        """Replaces an object, if it has not changed since its resourceVersion."""
        served = await self.discovery.of(obj)
        options = _options(dry_run, manager, strict)
        return await self._write("PUT", served, obj, options, subresource=subresource)

    async def patch(
        self,
        kind: str | Served,
        name: str,
        patch: object,
        *,
        type: PatchType = PatchType.MERGE,
        namespace: str | None = None,
        subresource: str = "",
        dry_run: bool = False,
        manager: str = MANAGER,
    ) -> Object:
        """Changes some fields of an object."""
        served = await self._serve(kind)
        path = served.path(
            name, namespace=self._namespace(served, namespace), subresource=subresource
        )
        return await self._calls.json(
            Request(
                method="PATCH",
                path=path,
                query=_options(dry_run, manager, strict=True),
                body=msgspec.json.encode(patch),
                content_type=type.value,
            )
        )

    async def apply(
        self,
        obj: Object,
        *,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
        manager: str = MANAGER,
    ) -> Object:
        """Server-side apply: we own the fields given; those applied before and now left out go."""
        served = await self.discovery.of(obj)
        path = self._path_of(served, obj, subresource)
        query = _options(dry_run, manager, strict=True)
        if force:
            query["force"] = "true"
        return await self._calls.json(
            Request(
                method="PATCH",
                path=path,
                query=query,
                body=msgspec.json.encode(obj),
                content_type=PatchType.APPLY.value,
            )
        )

    async def scale(
        self, kind: str | Served, name: str, replicas: int, *, namespace: str | None = None
    ) -> Object:
        """Sets the number of replicas; returns the `Scale`."""
        patch = {"spec": {"replicas": replicas}}
        return await self.patch(kind, name, patch, namespace=namespace, subresource="scale")

    async def delete(
        self,
        kind: str | Served,
        name: str,
        *,
        namespace: str | None = None,
        options: Object | None = None,
    ) -> Object:
        """Deletes an object; `options` are Kubernetes `DeleteOptions`."""
        served = await self._serve(kind)
        path = served.path(name, namespace=self._namespace(served, namespace))
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **(options or {})}
        return await self._calls.json(
            Request(method="DELETE", path=path, body=msgspec.json.encode(body))
        )

    async def _question(
        self,
        kind: str | Served,
        name: str,
        question: str,
        namespace: str | None,
        query: Query | None,
    ) -> Request:
        served = await self._serve(kind)
        home = self._namespace(served, namespace)
        path = served.path(name, namespace=home, subresource=question)
        return Request(method="GET", path=path, query=query or {})

    async def _serve(self, kind: str | Served) -> Served:
        return kind if isinstance(kind, Served) else await self.discovery.resolve(kind)

    def _namespace(self, served: Served, namespace: str | None) -> str | None:
        """The namespace of one object; the default for a namespaced kind is the context's."""
        return (namespace or self.access.namespace) if served.namespaced else None

    def _path_of(self, served: Served, obj: Object, subresource: str = "") -> str:
        metadata = obj.get("metadata") or {}
        namespace = self._namespace(served, metadata.get("namespace"))
        name = str(metadata.get("name", ""))
        return served.path(name, namespace=namespace, subresource=subresource)

    async def _write(
        self,
        method: str,
        served: Served,
        obj: Object,
        query: dict[str, str],
        *,
        subresource: str = "",
    ) -> Object:
        namespace = self._namespace(served, (obj.get("metadata") or {}).get("namespace"))
        path = served.path(namespace=namespace)
        if method == "PUT":
            path = self._path_of(served, obj, subresource)
        return await self._calls.json(
            Request(method=method, path=path, query=query, body=msgspec.json.encode(obj))
        )


def _list_request(served: Served, scope: Scope, limit: int, token: str, accept: str) -> Request:
    query: dict[str, Any] = scope.query()
    if limit:
        query["limit"] = str(limit)
    if token:
        query["continue"] = token
    path = served.path(namespace=scope.namespace)
    return Request(method="GET", path=path, query=query, accept=accept)


def _options(dry_run: bool, manager: str, strict: bool) -> dict[str, str]:
    query = {"fieldManager": manager}
    if strict:
        query["fieldValidation"] = "Strict"
    if dry_run:
        query["dryRun"] = "All"
    return query
