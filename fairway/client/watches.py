"""Watches that outlive their connections.

`resume` watches from a resource version. When the connection ends, it continues from the last
version seen (bookmarks advance it while nothing changes), with a backoff after failures. It raises
`Expired` when the server no longer has that version. `follow` starts from a list; on `Expired` it
lists again and emits what changed in between, deletions too.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing

import msgspec

from fairway.api.errors import ApiError, Expired, from_status
from fairway.client.calls import Calls, refusal
from fairway.client.catalogue import Served
from fairway.client.errors import ConnectionFailed
from fairway.client.wire import JSON, Answer, Event, Listing, Object, Request, Scope
from fairway.clock import Clock

WAIT_SECONDS_MAX = 30.0
# The server ends a watch after about this long; a connection silent for longer is dead.
SERVER_SECONDS = 300
GRACE_SECONDS = 30.0


class _Change(msgspec.Struct):
    type: str
    object: Object


# Reads the whole collection.
ReadAll = Callable[[], Awaitable[Listing]]

_decode = msgspec.json.Decoder(_Change).decode


class Watching:
    """Watches on one server."""

    def __init__(self, calls: Calls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock

    async def resume(
        self, served: Served, version: str, *, scope: Scope, accept: str = JSON
    ) -> AsyncGenerator[Event, None]:
        """Changes after a version, without end."""
        failures = 0
        while True:
            is_quiet, asked = True, 0.0
            try:
                async with aclosing(self._once(served, version, scope, accept)) as events:
                    async for event in events:
                        failures, is_quiet = 0, False
                        version = event.resource_version or version
                        yield event
            except (ConnectionFailed, ApiError) as error:
                if not _may_pass(error):
                    raise
                failures += 1
                asked = _asked_seconds(error)
            # A server that ends watches at once must not cause a tight loop.
            failures = failures or int(is_quiet)
            await self._clock.sleep(max(asked, _wait_seconds(failures)))

    async def patiently(self, read_all: ReadAll) -> Listing:
        """Reads the whole collection; retries for as long as the server is unavailable."""
        failures = 0
        while True:
            try:
                return await read_all()
            except (ConnectionFailed, ApiError) as error:
                if not _may_pass(error):
                    raise
                failures += 1
                asked = _asked_seconds(error)
            await self._clock.sleep(max(asked, _wait_seconds(failures)))

    async def _once(
        self, served: Served, version: str, scope: Scope, accept: str
    ) -> AsyncGenerator[Event, None]:
        """The events of one connection."""
        query = {
            **scope.query(),
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(SERVER_SECONDS),
        }
        request = Request(
            method="GET",
            path=served.path(namespace=scope.namespace),
            query=query,
            accept=accept,
            read_timeout_seconds=SERVER_SECONDS + GRACE_SECONDS,
        )
        async with aclosing(self._calls.transport.stream(request)) as chunks:
            async for line in _lines(chunks):
                try:
                    change = _decode(line)
                except msgspec.MsgspecError as error:
                    server = self._calls.transport.server
                    raise ConnectionFailed(server, f"it sent a broken event ({error})") from error
                if change.type == "ERROR":
                    raise from_status(change.object)
                yield Event(change.type, change.object)


async def follow(
    watching: Watching, served: Served, *, read_all: ReadAll, scope: Scope
) -> AsyncGenerator[Event, None]:
    """Every object as ADDED, a BOOKMARK, then every change, over any number of relists."""
    known: dict[tuple[str, str], Object] = {}
    listing = await read_all()
    while True:
        for event in _difference(known, listing):
            yield event
        yield Event("BOOKMARK", {"metadata": {"resourceVersion": listing.resource_version}})
        version = listing.resource_version
        try:
            async with aclosing(watching.resume(served, version, scope=scope)) as events:
                async for event in events:
                    _remember(known, event)
                    yield event
        except Expired:
            listing = await watching.patiently(read_all)


def _remember(known: dict[tuple[str, str], Object], event: Event) -> None:
    if event.type == "BOOKMARK":
        return
    if event.type == "DELETED":
        known.pop(_key(event.object), None)
    else:
        # Only what a DELETED event needs is kept, so that a watch of many objects stays small.
        known[_key(event.object)] = _stub(event.object)


def _difference(known: dict[tuple[str, str], Object], listing: Listing) -> list[Event]:
    """The events between the known objects and a new list; updates `known`."""
    events: list[Event] = []
    now = {_key(obj): obj for obj in listing.items}
    for key in [key for key in known if key not in now]:
        events.append(Event("DELETED", known.pop(key)))
    for key, obj in now.items():
        before = known.get(key)
        stub = _stub(obj)
        if before is None:
            events.append(Event("ADDED", obj))
        elif before["metadata"]["uid"] != stub["metadata"]["uid"]:
            events += [Event("DELETED", before), Event("ADDED", obj)]
        elif before["metadata"]["resourceVersion"] != stub["metadata"]["resourceVersion"]:
            events.append(Event("MODIFIED", obj))
        known[key] = stub
    return events


def _key(obj: Mapping[str, Object]) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _stub(obj: Object) -> Object:
    metadata = obj["metadata"]
    kept = {"name", "namespace", "uid", "resourceVersion"}
    return {
        "apiVersion": obj.get("apiVersion", ""),
        "kind": obj.get("kind", ""),
        "metadata": {
            "uid": "",
            "resourceVersion": "",
            **{key: value for key, value in metadata.items() if key in kept},
        },
    }


async def _lines(chunks: AsyncIterator[bytes | Answer]) -> AsyncIterator[bytes]:
    """Whole lines from chunks of any size; a refused request raises."""
    parts: list[bytes] = []
    async for chunk in chunks:
        if isinstance(chunk, Answer):
            raise refusal(chunk)
        *ended, rest = chunk.split(b"\n")
        for end in ended:
            parts.append(end)
            line = b"".join(parts)
            parts.clear()
            if line.strip():
                yield line
        if rest:
            parts.append(rest)


def _may_pass(error: ConnectionFailed | ApiError) -> bool:
    """Whether a retry may help: the server did not answer, is busy, or failed."""
    return isinstance(error, ConnectionFailed) or error.code == 429 or error.code >= 500


def _asked_seconds(error: ConnectionFailed | ApiError) -> float:
    """How long the server asks to wait, if it says so."""
    asked = error.details.get("retryAfterSeconds") if isinstance(error, ApiError) else None
    return min(float(asked), WAIT_SECONDS_MAX) if isinstance(asked, int | float) else 0.0


def _wait_seconds(failures: int) -> float:
    """Exponential backoff with jitter, so that many clients do not retry at once."""
    if not failures:
        return 0.0
    longest = min(0.2 * 2.0**failures, WAIT_SECONDS_MAX)
    return longest * (0.5 + random.random() / 2)  # noqa: S311 - spreading, not secrecy
