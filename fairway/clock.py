"""Clocks, injected.

Everything that waits or takes a time uses a Clock, so that a whole hub can run on virtual time in
one thread. Production uses `SteadyClock` over `SystemClock`; tests use `VirtualClock`, simulations
`fairway.virtual`.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import threading
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

_log = logging.getLogger(__name__)

_FAR_SECONDS = 60.0  # smaller corrections of a machine's time are followed at once
_LASTING_SECONDS = 600.0  # after which a far jump is no accident
_LOOK_SECONDS = 30.0
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

    def is_sure(self) -> bool:
        """Whether the time has kept its course for so long that it is taken to be right.

        What no return of the time could mend waits for that.
        """
        ...


class SystemClock:
    """The machine's time."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        # Where there is one, the clock that also counts the time in which the machine slept.
        boot = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boot is None else time.clock_gettime(boot)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def is_sure(self) -> bool:
        return True


class SteadyClock:
    """A machine's time without its far jumps, as one process sees it.

    A time that jumps is noticed by a clock that cannot be set. Small corrections are followed. Far
    from its old course, the machine's time is not: this clock continues on that course, so that a
    jump and its return expire nothing and delay nothing. A jump that lasts is meant; then `lasting`
    returns, and the process starts over, because what it keeps in memory was timed by the old time.
    """

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        self._began_at = machine.monotonic()
        self._offset = machine.now() - self._began_at
        self._jumped_at: float | None = None  # by the monotonic clock

    def now(self) -> float:
        monotonic = self._machine.monotonic()
        offset = self._machine.now() - monotonic
        if abs(offset - self._offset) < _FAR_SECONDS:
            if self._jumped_at is not None:
                _log.warning("the machine's time is back")
            self._offset, self._jumped_at = offset, None
        elif self._jumped_at is None:
            self._jumped_at = monotonic
            _log.warning(
                "the machine's time has jumped by %.0f seconds; that is not followed unless it"
                " lasts for %.0f minutes",
                offset - self._offset,
                _LASTING_SECONDS / 60,
            )
        return monotonic + self._offset

    def monotonic(self) -> float:
        return self._machine.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._machine.sleep(seconds)

    def is_sure(self) -> bool:
        self.now()
        return self._jumped_at is None and self.monotonic() - self._began_at >= _LASTING_SECONDS

    async def lasting(self) -> None:
        """Returns once the machine's time has jumped far, and has not come back for long."""
        while self._jumped_at is None or self.monotonic() - self._jumped_at < _LASTING_SECONDS:
            await self.sleep(_LOOK_SECONDS)
            self.now()
        _log.warning("the jump of the machine's time lasts: everything starts over by that time")


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

    def is_sure(self) -> bool:
        return True

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
