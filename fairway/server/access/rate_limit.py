"""Rate limits: for each caller a burst, then a steady rate."""

from __future__ import annotations

from fairway.clock import Clock

_CALLERS_MOST = 4_096
# What a caller has to wait at most, however much it was charged.
_DEBT_SECONDS_MOST = 10.0


class TokenBuckets:
    """A token bucket for each caller; the caller seen longest ago is forgotten first."""

    def __init__(self, clock: Clock, *, burst: float, per_second: float) -> None:
        self._clock = clock
        self._burst = burst
        self._per_second = per_second
        self._left: dict[str, tuple[float, float]] = {}  # tokens left, and when that was

    def take(self, caller: str, wait_seconds_most: float = 0.0) -> float | None:
        """Takes the next token. Returns the seconds until it is due; None: that is too long."""
        left = self._now_left(caller)
        wait = max(0.0, (1 - left) / self._per_second)
        is_taken = wait <= wait_seconds_most
        self._keep(caller, left - 1 if is_taken else left)
        return wait if is_taken else None

    def wait_seconds(self, caller: str) -> float:
        """How long until there is a token."""
        left = self._now_left(caller)
        self._keep(caller, left)
        return max(0.0, (1 - left) / self._per_second)

    def charge(self, caller: str, tokens: float) -> None:
        """Takes tokens for what was done already; the caller may owe some afterwards."""
        least = 1 - self._per_second * _DEBT_SECONDS_MOST
        self._keep(caller, max(self._now_left(caller) - tokens, least))

    def _now_left(self, caller: str) -> float:
        now = self._clock.monotonic()
        left, since = self._left.pop(caller, (self._burst, now))
        return min(self._burst, left + (now - since) * self._per_second)

    def _keep(self, caller: str, left: float) -> None:
        if len(self._left) >= _CALLERS_MOST:
            del self._left[next(iter(self._left))]
        self._left[caller] = (left, self._clock.monotonic())
