"""Tokens that another server verifies, such as the kube-apiserver that stores a hub's objects.

A result is cached for a minute, so that a token costs about one request a minute and a revoked one
is soon refused. Text that cannot be a service account token is not sent on, and only a few requests
are in flight at a time, half of them at most for one address: a stranger with invented tokens must
not keep users waiting.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fairway.clock import Clock
from fairway.server.access.identity import Identity
from fairway.server.wire.addresses import neighbourhood

# The identity of a token; None for an invalid token.
Vouch = Callable[[str], Awaitable[Identity | None]]

_HOLDS_SECONDS = 60.0
_REMEMBERED_MOST = 4_096
_ASKED_MOST = 8  # at a time
_ASKED_FOR_ONE_MOST = 4  # address
_LENGTH_MOST = 16 << 10
_DOTS = 2  # in a signed token


@dataclass(slots=True)
class _Line:
    """The tokens of one address that are being verified, or wait for it."""

    length: int = 0
    asking: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(_ASKED_FOR_ONE_MOST)
    )


class Vouching:
    """Verifies tokens at another server, and caches the results."""

    def __init__(self, vouch: Vouch, clock: Clock) -> None:
        self._vouch = vouch
        self._clock = clock
        self._asking = asyncio.Semaphore(_ASKED_MOST)
        self._lines: dict[str, _Line] = {}  # by address
        self._told: dict[bytes, tuple[float, Identity | None]] = {}

    async def identity(self, token: str, source: str = "") -> Identity | None:
        """The identity of a token that came from an address."""
        if token.count(".") != _DOTS or len(token) > _LENGTH_MOST:
            return None
        digest = hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        known = self._told.get(digest)
        if known is not None and known[0] > self._clock.monotonic():
            return known[1]
        result = await self._ask(token, neighbourhood(source))
        self._told.pop(digest, None)
        if len(self._told) >= _REMEMBERED_MOST:
            del self._told[next(iter(self._told))]
        self._told[digest] = (self._clock.monotonic() + _HOLDS_SECONDS, result)
        return result

    async def _ask(self, token: str, source: str) -> Identity | None:
        line = self._lines.setdefault(source, _Line())
        line.length += 1
        try:
            async with line.asking, self._asking:
                return await self._vouch(token)
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[source]
