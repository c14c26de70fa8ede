"""Tokens that another server verifies, such as the kube-apiserver that stores a hub's objects.

A result is cached for a minute, so that a token costs about one request a minute and a revoked one
is soon refused. Text that cannot be a service account token is not sent on, and only a few requests
are in flight at a time.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

from fairway.clock import Clock
from fairway.server.access.identity import Identity

# The identity of a token; None for an invalid token.
Vouch = Callable[[str], Awaitable[Identity | None]]

_HOLDS_SECONDS = 60.0
_REMEMBERED_MOST = 4_096
_ASKED_MOST = 8  # at a time
_LENGTH_MOST = 16 << 10
_DOTS = 2  # in a signed token


class Vouching:
    """Verifies tokens at another server, and caches the results."""

    def __init__(self, vouch: Vouch, clock: Clock) -> None:
        self._vouch = vouch
        self._clock = clock
        self._asking = asyncio.Semaphore(_ASKED_MOST)
        self._told: dict[bytes, tuple[float, Identity | None]] = {}

    async def identity(self, token: str) -> Identity | None:
        if token.count(".") != _DOTS or len(token) > _LENGTH_MOST:
            return None
        digest = hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        known = self._told.get(digest)
        if known is not None and known[0] > self._clock.monotonic():
            return known[1]
        async with self._asking:
            result = await self._vouch(token)
        self._told.pop(digest, None)
        if len(self._told) >= _REMEMBERED_MOST:
            del self._told[next(iter(self._told))]
        self._told[digest] = (self._clock.monotonic() + _HOLDS_SECONDS, result)
        return result
