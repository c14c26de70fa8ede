"""Watches as streams of JSON lines.

Events that wait together are sent together. A stream ends at its time limit, when the store ends
the watch (with an ERROR event that says why), when the hub stops, or when the client disconnects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace

import msgspec

from fairway.api.errors import ApiError
from fairway.clock import Clock
from fairway.resources.resource import Resource
from fairway.server.metrics import Metrics
from fairway.server.wire import options, rendering, rows
from fairway.server.wire.exchange import ByteStream, Request
from fairway.store.interface import ResourceKey, Selection, Store, Stored, Watch, WatchEvent

_SECONDS_DEFAULT = 3600
_SECONDS_MAX = 24 * 3600
_EVENTS_AT_ONCE_MAX = 500

# Gives an object as the caller may see it.
Show = Callable[[Stored], Stored]


class Streams:
    """Opens watches as streams of lines."""

    def __init__(self, store: Store, clock: Clock, metrics: Metrics) -> None:
        self._store = store
        self._clock = clock
        self._metrics = metrics

    async def open(
        self,
        key: ResourceKey,
        resource: Resource,
        chosen: Selection,
        *,
        request: Request,
        show: Show | None = None,
    ) -> ByteStream:
        form = rendering.form_of(request)
        seconds = options.timeout_seconds(request) or _SECONDS_DEFAULT
        try:
            watch = await self._store.watch(key, chosen, options.watch_from(request))
        except ApiError as error:
            if error.code not in (410, 504):
                raise
            return _only(_error_line(error))
        lines = self._lines(watch, resource, form, min(seconds, _SECONDS_MAX), show)
        return _WatchStream(watch, lines)

    async def _lines(
        self,
        watch: Watch,
        resource: Resource,
        form: rendering.Form,
        seconds: float,
        show: Show | None,
    ) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self._metrics.watch_opened(resource.qualified)
        try:
            while loop.time() < end:
                try:
                    async with asyncio.timeout_at(end):
                        events = await watch.batch()
                except TimeoutError:
                    return
                except ApiError as error:
                    yield _error_line(error)
                    return
                if not events:
                    return
                self._metrics.watch_events_sent(len(events))
                now = self._clock.now()
                # Many events are sent in parts, so that other requests run in between.
                for start in range(0, len(events), _EVENTS_AT_ONCE_MAX):
                    part = events[start : start + _EVENTS_AT_ONCE_MAX]
                    if show is not None:
                        part = [replace(event, stored=show(event.stored)) for event in part]
                    yield b"".join(_line(event, resource, form, now) for event in part)
        finally:
            self._metrics.watch_closed(resource.qualified)


class _WatchStream:
    """The lines of a watch; closing it ends the watch, even before the first line is read."""

    def __init__(self, watch: Watch, lines: AsyncGenerator[bytes, None]) -> None:
        self._watch = watch
        self._lines = lines

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._lines

    async def aclose(self) -> None:
        await self._lines.aclose()
        await self._watch.close()


def _line(event: WatchEvent, resource: Resource, form: rendering.Form, now: float) -> bytes:
    body = event.stored.raw
    if form.kind == "table" and event.type == "BOOKMARK":
        body = _table_bookmark(event, form)
    elif form.kind == "rows":
        body = rows.one(event) if rows.has_rows(resource) else body
    elif form.kind != "object":
        body = rendering.one(event.stored, resource, form, now)
    return b'{"type":"%s","object":%s}\n' % (event.type.encode(), body)


def _table_bookmark(event: WatchEvent, form: rendering.Form) -> bytes:
    metadata = event.stored.object()["metadata"]
    return msgspec.json.encode(
        {
            "kind": "Table",
            "apiVersion": form.version,
            "metadata": {"resourceVersion": event.version},
            "columnDefinitions": None,
            "rows": [
                {
                    "cells": [],
                    "object": {
                        "kind": "PartialObjectMetadata",
                        "apiVersion": form.version,
                        "metadata": metadata,
                    },
                }
            ],
        }
    )


def _error_line(error: ApiError) -> bytes:
    return b'{"type":"ERROR","object":%s}\n' % msgspec.json.encode(error.status())


async def _only(line: bytes) -> AsyncGenerator[bytes, None]:
    yield line
