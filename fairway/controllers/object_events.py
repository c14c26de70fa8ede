"""Notes: Kubernetes Events on objects, for what a person must know without asking.

The ordinary life of a workload is in its status and needs no event. A note that repeats within ten
minutes is not written again, and the memory of notes is bounded.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from hashlib import sha256

from fairway.api.errors import ApiError
from fairway.api.meta import JsonObject
from fairway.clock import Clock, timestamp
from fairway.store.interface import Store, Write
from fairway.store.keys import EVENTS

_WRITE = Write(user="system:fairway", manager="fairway-notes")
_REMEMBERED_MOST = 4_096
_SILENT_SECONDS = 600.0
_MESSAGE_MOST = 1_024

_log = logging.getLogger(__name__)


class Notes:
    """Writes events."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._written: OrderedDict[str, float] = OrderedDict()

    async def warn(self, about: JsonObject, reason: str, message: str) -> None:
        await self._write(about, "Warning", reason, message)

    async def say(self, about: JsonObject, reason: str, message: str) -> None:
        await self._write(about, "Normal", reason, message)

    async def _write(self, about: JsonObject, kind: str, reason: str, message: str) -> None:
        metadata = about["metadata"]
        text = f"{metadata.get('uid')} {reason} {message}"
        digest = sha256(text.encode()).hexdigest()[:16]
        now = self._clock.now()
        if now - self._written.get(digest, float("-inf")) < _SILENT_SECONDS:
            return
        self._written[digest] = now
        self._written.move_to_end(digest)
        while len(self._written) > _REMEMBERED_MOST:
            self._written.popitem(last=False)
        namespace = metadata.get("namespace") or "default"
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name'][:200]}.{digest}-{int(now):x}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": about.get("apiVersion"),
                "kind": about.get("kind"),
                "name": metadata["name"],
                "namespace": metadata.get("namespace", ""),
                "uid": metadata.get("uid", ""),
            },
            "type": kind,
            "reason": reason,
            "message": message[:_MESSAGE_MOST],
            "source": {"component": "fairway"},
            "firstTimestamp": timestamp(now),
            "lastTimestamp": timestamp(now),
            "count": 1,
        }
        try:
            await self._store.create(EVENTS, body, namespace=namespace, write=_WRITE)
        except (ApiError, OSError) as fault:
            _log.debug("a note on %s was not written: %s", metadata["name"], fault)
