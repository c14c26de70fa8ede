"""Tokens that another server vouches for, such as the kube-apiserver that keeps a hub's objects.

What was answered holds for a minute, so that a token costs one question a minute and one that was
taken away is soon refused. Nobody is asked about what cannot be a token of an account, nor more
than a few questions at a time.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

from fairway.clock import Clock
from fairway.server.access.identity import Identity

# Who a token stands for; None where it stands for nobody.
Vouch = Callable[[str], Awaitable[Identity | None]]

_HOLDS_SECONDS = 60.0
_REMEMBERED_MOST = 4_096
_ASKED_MOST = 8  # at a time
_LENGTH_MOST = 16 << 10
_DOTS = 2  # in a signed token


class Vouching:
    """Asks about tokens, and remembers for a while."""

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
