"""A connection within one process: two ends, with a small buffer in each direction."""

from __future__ import annotations

import asyncio
from collections import deque

_MESSAGES_MOST = 16


class End:
    """One end of a connection."""

    def __init__(self, incoming: _Way, outgoing: _Way) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def send(self, message: bytes) -> None:
        await self._outgoing.put(message)

    async def receive(self) -> bytes | None:
        return await self._incoming.get()

    async def close(self) -> None:
        """Closes both ends; messages in flight are still received."""
        await self._incoming.close()
        await self._outgoing.close()


class _Way:
    """Messages in one direction."""

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self._is_closed = False
        self._news = asyncio.Condition()

    async def put(self, message: bytes) -> None:
        async with self._news:
            await self._news.wait_for(lambda: self._is_closed or self._has_room())
            if self._is_closed:
                raise ConnectionResetError("the connection is closed")
            self._messages.append(message)
            self._news.notify_all()

    async def get(self) -> bytes | None:
        async with self._news:
            await self._news.wait_for(lambda: self._is_closed or bool(self._messages))
            self._news.notify_all()
            return self._messages.popleft() if self._messages else None

    async def close(self) -> None:
        async with self._news:
            self._is_closed = True
            self._news.notify_all()

    def _has_room(self) -> bool:
        return len(self._messages) < _MESSAGES_MOST


def pair() -> tuple[End, End]:
    there, back = _Way(), _Way()
    return End(back, there), End(there, back)
