"""The verbs of a Kubernetes API server; see the package for how they are used together."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from fairway.client.access import Access
from fairway.client.calls import Calls
from fairway.client.discovery import Discovery
from fairway.client.errors import ClientError, ConnectionFailed, UpgradeRefused
from fairway.client.transport import Transport
from fairway.client.wire import Answer, PatchType, Query, Request
from fairway.clock import Clock
from fairway.kubeapi import errors, paths
from fairway.kubeapi.parse import Lines, ListPage, Read, SeenEvent, T, read_line, read_page
from fairway.kubeapi.patience import Patience
from fairway.schema.node import JsonObject
from fairway.sockets import WebSocket
from fairway.store.interface import (
    EVERYTHING,
    PLAIN_DELETION,
    WHOLE,
    Deletion,
    Page,
    Patch,
    ResourceKey,
    Selection,
    WatchFrom,
    Write,
)

_MEDIA_TYPES = {
    "json": PatchType.JSON.value,
    "merge": PatchType.MERGE.value,
    "strategic": PatchType.STRATEGIC.value,
    "apply": PatchType.APPLY.value,
}
_PLAIN = Write()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one client of one server."""

    connections: int = 48  # for calls
    streams: int = 4_096  # watches, logs and the like; each holds a connection of its own
    page: int = 500  # objects in one page of a list
    watch_seconds: int = 480  # the timeout of a watch, plus up to a third at random
    silent_seconds: float = 150.0  # a watch without even a bookmark for this long is dead


class KubeApi:
    """One API server, as one identity."""

    def __init__(
        self,
        access: Access,
        clock: Clock,
        *,
        limits: Limits | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.counts: Counter[str] = Counter()  # requests by HTTP method; retries as "again"
        self.clock = clock
        self._patience = patience or Patience()
        self._transport = Transport(access, clock, connections_most=self.limits.connections)
        # Separate, so that long-lived watches cannot take the connections of calls.
        self._streams = Transport(access, clock, connections_most=self.limits.streams)
        self._headers: tuple[tuple[str, str], ...] = ()
        self.discovery = Discovery(Calls(self._transport, clock))

    @property
    def server(self) -> str:
        return self._transport.server

    def acting_as(self, user: str, groups: tuple[str, ...] = ()) -> KubeApi:
        """A client on the same connections that impersonates `user`, if the server permits it."""
        other = object.__new__(KubeApi)
        other.__dict__.update(self.__dict__)
        listed = (("Impersonate-Group", group) for group in groups)
        other._headers = (("Impersonate-User", user), *listed)
        return other

    def show(self, token: str) -> None:
        """Uses another token for the same identity from now on; requests in flight continue."""
        self._transport.show(token)
        self._streams.show(token)

    async def close(self) -> None:
        await self._transport.close()
        await self._streams.close()

    async def reconnect(self) -> None:
        """Breaks off all connections, since they may be dead without having been closed.

        Watches fail and resume where they stopped; calls fail, and idempotent calls are sent again
        on new connections.
        """
        await self._transport.break_off()
        await self._streams.break_off()

    async def answers(self, within_seconds: float) -> None:
        """Checks once whether the server answers; raises the error if not."""
        request = Request(
            method="GET",
            path="/version",
            headers=self._headers,
            read_timeout_seconds=within_seconds,
        )
        self.counts["GET"] += 1
        try:
            answer = await self._transport.send(request)
        except ClientError as error:
            raise errors.of_client(error) from error
        if answer.status >= 400:
            raise errors.of_answer(answer)

    async def get(
        self, kind: ResourceKey, name: str, namespace: str = "", subresource: str = ""
    ) -> bytes:
        """An object's JSON text."""
        return await self.read(paths.path_of(kind, name, namespace, subresource))

    async def read(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """The body that the server returns for a path."""
        return (await self.request("GET", path, query)).body

    async def page(
        self,
        kind: ResourceKey,
        selection: Selection = EVERYTHING,
        page: Page = WHOLE,
        *,
        read: Read[T],
    ) -> ListPage[T]:
        """One page of a list."""
        path = paths.path_of(kind, namespace=selection.namespace)
        answer = await self.request("GET", path, paths.list_query(selection, page))
        return read_page(answer.body, read)

    async def pages(
        self,
        kind: ResourceKey,
        selection: Selection = EVERYTHING,
        start: Page = WHOLE,
        *,
        read: Read[T],
    ) -> AsyncIterator[ListPage[T]]:
        """A list, page by page; Expired if it took so long that its version is gone."""
        first = Page(limit=self.limits.page, version=start.version, match=start.match)
        list_page = await self.page(kind, selection, first, read=read)
        yield list_page
        while list_page.continue_from:
            following = Page(limit=self.limits.page, continue_from=list_page.continue_from)
            list_page = await self.page(kind, selection, following, read=read)
            yield list_page

    async def watch(
        self,
        kind: ResourceKey,
        selection: Selection = EVERYTHING,
        start: WatchFrom = WatchFrom(),  # noqa: B008 - frozen
        *,
        read: Read[T],
    ) -> AsyncGenerator[list[SeenEvent[T]], None]:
        """Changes as they arrive, until the server ends this watch; Expired if `start` is too old.

        The first batch is empty: it signals that the watch is open.
        """
        seconds = int(self.limits.watch_seconds * (1 + random.random() / 3))  # noqa: S311 - spread
        query = paths.watch_query(selection, start, seconds)
        path = paths.path_of(kind, namespace=selection.namespace)
        silent = self.limits.silent_seconds if start.bookmarks else seconds + 30.0
        lines = Lines()
        async with aclosing(self.stream(path, query, silent_seconds=silent)) as chunks:
            async for chunk in chunks:
                whole = lines.feed(chunk)
                if whole or not chunk:
                    yield [read_line(line, read) for line in whole]

    async def create(
        self,
        kind: ResourceKey,
        body: JsonObject,
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
        write: Write = _PLAIN,
    ) -> bytes:
        """Creates an object; with name and subresource, posts to that (`eviction`, `token`)."""
        path = paths.path_of(kind, name, namespace, subresource)
        answer = await self.request("POST", path, paths.write_query(write), body, write=write)
        return answer.body

    async def replace(
        self,
        kind: ResourceKey,
        body: JsonObject,
        *,
        namespace: str = "",
        subresource: str = "",
        write: Write = _PLAIN,
    ) -> bytes:
        """Replaces an object or a subresource; a resourceVersion in `body` makes it conditional."""
        path = paths.path_of(kind, str(body["metadata"]["name"]), namespace, subresource)
        answer = await self.request("PUT", path, paths.write_query(write), body, write=write)
        return answer.body

    async def patch(
        self,
        kind: ResourceKey,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        write: Write = _PLAIN,
    ) -> tuple[bytes, bool]:
        """Patches an object; the flag is true if an apply created it."""
        answer = await self.request(
            "PATCH",
            paths.path_of(kind, name, namespace, subresource),
            paths.patch_query(patch, write),
            patch.body,
            content_type=_MEDIA_TYPES[patch.type],
            write=write,
        )
        return answer.body, answer.status == 201

    async def delete(
        self,
        kind: ResourceKey,
        name: str,
        *,
        namespace: str = "",
        how: Deletion = PLAIN_DELETION,
        write: Write = _PLAIN,
    ) -> tuple[bytes, bool]:
        """Deletes an object; false while finalizers, a grace period or dependents keep it.

        The body is the object while it is kept; otherwise it is up to the server.
        """
        path = paths.path_of(kind, name, namespace)
        answer = await self.request("DELETE", path, body=_deletion(how, write), write=write)
        return answer.body, _is_gone(answer.body)

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        content_type: str = "application/json",
        write: Write | None = None,
    ) -> Answer:
        """Any request with a single response, with retries; raises on an error status."""
        request = Request(
            method=method,
            path=path,
            query=query or {},
            body=None if body is None else msgspec.json.encode(body),
            content_type=content_type,
            headers=self._headers,
        )
        answer = await self._patiently(request)
        if write is not None and answer.warnings:
            write.warn(answer.warnings)
        return answer

    async def stream(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        silent_seconds: float | None = None,
        tells_opening: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """Chunks as they arrive, such as a pod's log.

        With `silent_seconds`, a stream that is silent for longer fails. With `silent_seconds` or
        `tells_opening`, the first chunk is empty, once the server answers.
        """
        request = Request(
            method="GET",
            path=path,
            query=query or {},
            accept="*/*" if silent_seconds is None else "application/json",
            headers=self._headers,
            read_timeout_seconds=silent_seconds,
        )
        tries = 0
        while True:
            tries += 1
            self.counts["WATCH" if silent_seconds else "GET"] += 1
            refusal: Answer | None = None
            tells = tells_opening or silent_seconds is not None
            opened = self._streams.stream(request, tells_opening=tells)
            try:
                async with aclosing(opened) as chunks:
                    async for chunk in chunks:
                        if isinstance(chunk, Answer):
                            refusal = chunk
                        else:
                            yield chunk
            except ClientError as error:
                raise errors.of_client(error) from error
            if refusal is None:
                return
            wait = self._patience.after_answer(request, refusal, tries)
            if wait is None:
                raise errors.of_answer(refusal)
            self.counts["again"] += 1
            await self.clock.sleep(wait)

    def websocket(
        self,
        path: str,
        query: Query | None = None,
        *,
        protocols: tuple[str, ...] = (),
        beat_seconds: float | None = None,
    ) -> AbstractAsyncContextManager[WebSocket]:
        """A stream in both directions (exec, attach, port-forward)."""
        request = Request(method="GET", path=path, query=query or {}, headers=self._headers)
        return self._websocket(request, protocols, beat_seconds)

    @asynccontextmanager
    async def _websocket(
        self, request: Request, protocols: tuple[str, ...], beat_seconds: float | None
    ) -> AsyncIterator[WebSocket]:
        self.counts["GET"] += 1
        try:
            async with self._streams.websocket(
                request, protocols=protocols, beat_seconds=beat_seconds
            ) as socket:
                yield socket
        except UpgradeRefused as error:
            raise errors.of_answer(error.answer) from error
        except ClientError as error:
            raise errors.of_client(error) from error

    async def _patiently(self, request: Request) -> Answer:
        tries = 0
        while True:
            tries += 1
            self.counts[request.method] += 1
            try:
                answer = await self._transport.send(request)
            except ClientError as error:
                is_refused = isinstance(error, ConnectionFailed) and error.is_refused
                wait = None
                if isinstance(error, ConnectionFailed):
                    wait = self._patience.after_failure(request, tries, is_refused=is_refused)
                if wait is None:
                    raise errors.of_client(error) from error
            else:
                if answer.status < 400:
                    return answer
                wait = self._patience.after_answer(request, answer, tries)
                if wait is None:
                    raise errors.of_answer(answer)
            self.counts["again"] += 1
            await self.clock.sleep(wait)


class _Metadata(msgspec.Struct, rename="camel"):
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int = 0
    finalizers: list[str] = []


class _Spec(msgspec.Struct):
    finalizers: list[str] | None = None  # namespaces have theirs here


class _Deleted(msgspec.Struct):
    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec | None = None


_decode_deleted = msgspec.json.Decoder(_Deleted).decode


def _is_gone(body: bytes) -> bool:
    """Whether the response to a deletion means that the object is gone."""
    try:
        deleted = _decode_deleted(body)
    except msgspec.MsgspecError:
        return False
    metadata = deleted.metadata
    if deleted.kind == "Status" or not metadata.deletion_timestamp:
        return True
    held = metadata.finalizers or (deleted.spec is not None and deleted.spec.finalizers)
    return not held and not metadata.deletion_grace_period_seconds


def _deletion(how: Deletion, write: Write) -> JsonObject:
    body: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if how.propagation:
        body["propagationPolicy"] = how.propagation
    if how.grace_seconds is not None:
        body["gracePeriodSeconds"] = how.grace_seconds
    conditions = {"uid": how.uid, "resourceVersion": how.version}
    if conditions := {key: value for key, value in conditions.items() if value}:
        body["preconditions"] = conditions
    if write.dry_run:
        body["dryRun"] = ["All"]
    return body
