"""Rate limit by source: a burst, then a steady rate."""

from __future__ import annotations

from fairway.api.errors import TooManyRequests
from fairway.clock import Clock

_AT_ONCE = 100  # a whole company may share the address of a proxy
_PER_SECOND = 5.0
_SOURCES_MOST = 4_096


class Turnstile:
    """A token bucket for each source; the source seen longest ago is forgotten first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # tokens left, and when that was

    def enter(self, source: str) -> None:
        """Raises TooManyRequests for a source over its limit."""
        now = self._clock.monotonic()
        left, since = self._left.pop(source, (float(_AT_ONCE), now))
        left = min(_AT_ONCE, left + (now - since) * _PER_SECOND)
        is_welcome = left >= 1
        if len(self._left) >= _SOURCES_MOST:
            del self._left[next(iter(self._left))]
        self._left[source] = (left - 1 if is_welcome else left, now)
        if not is_welcome:
            raise TooManyRequests(
                "there were too many sign-ins from your address, try again in a moment",
                details={"retryAfterSeconds": 1},
            )
