"""Requests of whoever looks after the hub: a backup, and another key for what is on disk.

    POST /upkeep/backup       the hub at one moment, as lines (`store/backup_lines.py`)
    POST /upkeep/rotate-key   reads the keys again, and encrypts everything with the first one

A backup holds every Secret and the hub's own credentials, so it is a POST: sign-ins that may only
look get none, and only who has the right to post to that path does. Both are audited.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fairway.api.errors import MethodNotAllowed
from fairway.schema.node import JsonObject
from fairway.server.wire.exchange import ByteStream, Request, Response, json_response

PREFIX = "/upkeep/"
BACKUP, ROTATE_KEY = f"{PREFIX}backup", f"{PREFIX}rotate-key"
LINES = "application/jsonl"


@dataclass(slots=True, kw_only=True)
class Upkeep:
    """What answers is given from outside."""

    back_up: Callable[[], Awaitable[ByteStream]]
    rotate_key: Callable[[], Awaitable[JsonObject]]

    async def answer(self, request: Request) -> Response | None:
        path = request.path.rstrip("/")
        if path not in (BACKUP, ROTATE_KEY):
            return None
        if request.method != "POST":
            raise MethodNotAllowed(
                "the server does not allow this method on the requested resource", details={}
            )
        if path == BACKUP:
            return Response(stream=await self.back_up(), content_type=LINES)
        return json_response(await self.rotate_key())
