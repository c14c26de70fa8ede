"""A virtual clock, and an event loop that advances it when nothing is left to do.

An event loop asks its selector to wait only when no task is ready. Here that is the moment when the
next sleeper is woken: no wait is longer or shorter than needed, and waiting makes no system call.
"""

from __future__ import annotations

import asyncio
import heapq
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

START = 1_800_000_000.0
_ROUNDS_MOST = 100_000  # of an event loop, without time moving
_LEAST_SECONDS = 1e-6  # less would be lost in the float precision of the clock

T = TypeVar("T")


class Stuck(Exception):
    """Every task waits for something that never comes, or a task is busy forever."""


class Time:
    """The clock of all tasks on such a loop."""

    def __init__(self, start: float = START) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._sequence = 0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sequence += 1
        moment = self._now + max(seconds, _LEAST_SECONDS)
        heapq.heappush(self._sleepers, (moment, self._sequence, waiter))
        await waiter

    def is_sure(self) -> bool:
        return True

    def wake_next(self) -> None:
        """Advances to the moment of the next sleeper, and wakes it."""
        while self._sleepers:
            moment, _, waiter = heapq.heappop(self._sleepers)
            if not waiter.done():
                self._now = max(self._now, moment)
                waiter.set_result(None)
                return
        raise Stuck("nobody sleeps and nobody is ready")


class _Idle(selectors.SelectSelector):
    """A selector that advances time when asked to wait, since then every task waits."""

    def __init__(self, time: Time) -> None:
        super().__init__()
        self._time = time
        self._rounds = 0  # since time moved

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._rounds += 1
        if timeout is None or timeout > 0:
            self._time.wake_next()
            self._rounds = 0
        elif self._rounds > _ROUNDS_MOST:
            self._rounds = 0  # for the tasks that are cancelled now
            raise Stuck("somebody is busy for ever, and time stands still")
        return []


def run(time: Time, work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine, and all that it starts, on virtual time."""
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(_Idle(time))) as runner:
        return runner.run(work)
