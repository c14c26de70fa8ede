"""Notes: Kubernetes Events on objects, for what a person must know without asking.

A note that repeats within ten minutes is not written again, and the memory of notes is bounded.

The turns of workloads (`workload_events`) are written in the background, after the status that they
tell of: a decision never waits for its event. They are written at a limited rate, and a limited
number may wait; past it further ones are dropped, as Kubernetes' own components do. The status
itself says where a workload is.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from fairway.api.errors import ApiError
from fairway.api.meta import JsonObject
from fairway.api.workload import Workload, WorkloadStatus
from fairway.clock import Clock, timestamp
from fairway.controllers.workload_events import Happening, happening
from fairway.store.interface import Store, Write
from fairway.store.keys import EVENTS

_WRITE = Write(user="system:fairway", manager="fairway-notes")
_REMEMBERED_MOST = 4_096
_SILENT_SECONDS = 600.0
_MESSAGE_MOST = 1_024
_WAITING_MOST = 1_000
_PER_SECOND = 10.0
_AT_ONCE = 100.0  # after a quiet time

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """An event to be written."""

    about: JsonObject
    happening: Happening
    at: float


class Notes:
    """Writes events."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._written: OrderedDict[str, float] = OrderedDict()
        self._waiting: asyncio.Queue[_Note] = asyncio.Queue(_WAITING_MOST)
        self._dropped = 0

    def tell(self, workload: Workload, after: WorkloadStatus) -> None:
        """Notes what a written status means for a workload; returns at once."""
        event = happening(workload, after)
        if event is None:
            return
        metadata = workload.metadata
        about: JsonObject = {
            "apiVersion": workload.api_version,
            "kind": workload.kind,
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
            },
        }
        try:
            self._waiting.put_nowait(_Note(about=about, happening=event, at=self._clock.now()))
        except asyncio.QueueFull:
            self._dropped += 1

    async def run(self) -> None:
        """Writes what was told, until cancelled."""
        allowance, counted_at = _AT_ONCE, self._clock.monotonic()
        while True:
            note = await self._waiting.get()
            await self._create(note)
            if self._dropped and self._waiting.empty():
                _log.warning("%d events on workloads were too many, and dropped", self._dropped)
                self._dropped = 0
            now = self._clock.monotonic()
            allowance = min(_AT_ONCE, allowance + (now - counted_at) * _PER_SECOND) - 1
            counted_at = now
            if allowance < 0:
                await self._clock.sleep(-allowance / _PER_SECOND)

    async def warn(self, about: JsonObject, reason: str, message: str) -> None:
        await self._write(about, "Warning", reason, message)

    async def say(self, about: JsonObject, reason: str, message: str) -> None:
        await self._write(about, "Normal", reason, message)

    async def _write(
        self, about: JsonObject, kind: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        event = Happening(reason=reason, message=message, type=kind)
        note = _Note(about=about, happening=event, at=self._clock.now())
        digest, now = _digest(note), note.at
        if now - self._written.get(digest, float("-inf")) < _SILENT_SECONDS:
            return
        self._written[digest] = now
        self._written.move_to_end(digest)
        while len(self._written) > _REMEMBERED_MOST:
            self._written.popitem(last=False)
        await self._create(note)

    async def _create(self, note: _Note) -> None:
        metadata, event = note.about["metadata"], note.happening
        namespace = metadata.get("namespace") or "default"
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name'][:200]}.{_digest(note)}-{int(note.at):x}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": note.about.get("apiVersion"),
                "kind": note.about.get("kind"),
                "name": metadata["name"],
                "namespace": metadata.get("namespace", ""),
                "uid": metadata.get("uid", ""),
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message[:_MESSAGE_MOST],
            "source": {"component": "fairway"},
            "firstTimestamp": timestamp(note.at),
            "lastTimestamp": timestamp(note.at),
            "count": 1,
        }
        try:
            await self._store.create(EVENTS, body, namespace=namespace, write=_WRITE)
        except (ApiError, OSError) as fault:
            _log.debug("a note on %s was not written: %s", metadata["name"], fault)


def _digest(note: _Note) -> str:
    event = note.happening
    text = f"{note.about['metadata'].get('uid')} {event.reason} {event.message}"
    return sha256(text.encode()).hexdigest()[:16]
