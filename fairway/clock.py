"""Clocks, injected.

Everything that waits or takes a time uses a Clock, so that a whole hub can run on virtual time in
one thread. Production uses `SystemClock`; tests use `VirtualClock`, simulations `fairway.virtual`.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

_ROUNDS = 20  # of an event loop, enough for everything that follows from one moment
_POOLS = ("asyncio_", "fairway-", "ThreadPoolExecutor-")  # prefixes of the names of pool threads


class Clock(Protocol):
    """A source of time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; setting the machine's time does not change them."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's time."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualClock:
    """Time that moves only by `advance`; sleepers wake in order, exactly on time."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._now = start
        self._stepped = 0.0  # the sum of all steps
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._sequence = 0

    def now(self) -> float:
        return self._now + self._stepped

    def monotonic(self) -> float:
        return self._now

    def step(self, seconds: float) -> None:
        """Steps the wall clock, as a machine does to correct its time; no sleeper wakes."""
        self._stepped += seconds

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sequence += 1
        heapq.heappush(self._sleepers, (self._now + seconds, self._sequence, waiter))
        await waiter

    async def advance(self, seconds: float) -> None:
        """Moves time forward; wakes each sleeper at its moment and lets it run."""
        end = self._now + seconds
        await _settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now, _, waiter = heapq.heappop(self._sleepers)
            if not waiter.done():
                waiter.set_result(None)
            await _settle()
        self._now = end


async def _settle() -> None:
    """Lets every task that is ready run until it waits again.

    If nothing outside the loop can wake a task (no socket, no pool thread), it returns as soon as
    no task is ready; otherwise an idle hour would cost many empty rounds.
    """
    loop = asyncio.get_running_loop()
    ready = getattr(loop, "_ready", None) if _is_alone(loop) else None
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)
        if ready is not None and not ready and _is_alone(loop):
            return


def _is_alone(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether only tasks of the loop itself can make another task ready."""
    selector = getattr(loop, "_selector", None)
    # The one file that is always there is the pipe by which other threads wake the loop.
    if selector is None or len(selector.get_map()) > 1:
        return False
    return not any(thread.name.startswith(_POOLS) for thread in threading.enumerate())


def timestamp(seconds: float) -> str:
    """A Kubernetes timestamp: UTC, whole seconds."""
    return _whole_seconds(int(seconds))


@lru_cache(maxsize=64)
def _whole_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """A Kubernetes MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_timestamp(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 timestamp."""
    return datetime.fromisoformat(text).timestamp()
