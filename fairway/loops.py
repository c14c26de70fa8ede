"""Reconcile loops: keys that changed are reconciled, and again when they ask for it.

A key is queued once however often it is marked, and never reconciled twice at the same time. A key
that fails is retried with an exponential backoff; one that names a time is reconciled then. The
queue is bounded by the number of keys: a loop that does not always run drops marks made meanwhile,
and gets all existing keys when it runs.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from fairway.api.errors import AlreadyExists, ApiError, Conflict
from fairway.clock import Clock, SteadyClock

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)
# Reconciles a key; returns the time at which to reconcile it again, if any.
Reconcile = Callable[[Key], Awaitable[float | None]]

_log = logging.getLogger(__name__)

_BACK_OFF_SECONDS = 0.05
_BACK_OFF_SECONDS_MAX = 60.0
_SLICE = 500  # items that are handled without a pause
_SPARE_TIMERS = 1_024  # that may be kept though an earlier one replaced them


async def end(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancels tasks and waits until all are done, even if the caller is cancelled too.

    With `gather`, a second cancellation would reach each task during its own cleanup, and what it
    was about to end would go on unowned.
    """
    ending = list(tasks)
    for task in ending:
        task.cancel()
    is_cancelled = False
    while waiting := [future for future in ending if not future.done()]:
        try:
            await asyncio.wait(waiting)
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError


async def run_steadily(run: Callable[[SteadyClock], Awaitable[None]], machine: Clock) -> None:
    """Runs a process on a steady clock; a jump of the machine's time that lasts starts it over."""
    while True:
        clock = SteadyClock(machine)
        running = asyncio.ensure_future(run(clock))
        jumping = asyncio.ensure_future(clock.lasting())
        try:
            await asyncio.wait((running, jumping), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
        finally:
            await end((running, jumping))


async def in_slices(items: Iterable[T], size: int = _SLICE) -> AsyncIterator[T]:
    """Items one by one, with a pause after each `size`, so that other tasks run."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            await asyncio.sleep(0)


class Alarm:
    """Waits for a mark or for a time, whichever comes first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_marked = False
        self._waiting: dict[asyncio.Future[None], None] = {}

    def mark(self) -> None:
        self._is_marked = True
        for waiter in self._waiting:
            _wake(waiter)

    async def wait(self, until: float | None = None) -> None:
        """Returns once marked or once the time has come, and clears the mark."""
        if not self._is_marked:
            seconds = None if until is None else until - self._clock.now()
            if seconds is None or seconds > 0:
                await self._woken(seconds)
        self._is_marked = False

    async def _woken(self, seconds: float | None) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = None
        slept: asyncio.Future[None] | None = None
        if seconds is not None:
            slept = asyncio.ensure_future(self._clock.sleep(seconds))
            slept.add_done_callback(lambda _: _wake(waiter))
        try:
            await waiter
        finally:
            del self._waiting[waiter]
            if slept is not None:
                # Not awaited: a cancellation that arrives meanwhile would be lost.
                slept.cancel()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Loop(Generic[Key]):
    """Reconciles keys as they are marked."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[Key],
        *,
        clock: Clock,
        width: int = 16,
        forgets: bool = False,
    ) -> None:
        """With `forgets`, marks made while the loop does not run are dropped."""
        self._forgets = forgets
        self._is_running = False
        self._name = name
        self._reconcile = reconcile
        self._clock = clock
        self._width = width
        self._ready: deque[Key] = deque()
        self._queued: set[Key] = set()
        self._busy: set[Key] = set()
        self._again: set[Key] = set()  # marked while they were reconciled
        self._timers: list[tuple[float, int, Key]] = []
        self._due: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._sequence = 0
        self._alarm = Alarm(clock)

    def mark(self, key: Key) -> None:
        """Queues a key that changed."""
        if self._forgets and not self._is_running:
            return
        if key in self._busy:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.append(key)
            self._alarm.mark()

    def mark_at(self, key: Key, moment: float) -> None:
        """Marks a key at a time, unless an earlier time is set."""
        due = self._due.get(key)
        if due is not None and due <= moment:
            return
        self._due[key] = moment
        self._sequence += 1
        heapq.heappush(self._timers, (moment, self._sequence, key))
        if len(self._timers) > 2 * len(self._due) + _SPARE_TIMERS:
            self._timers = [timer for timer in self._timers if self._due.get(timer[2]) == timer[0]]
            heapq.heapify(self._timers)
        self._alarm.mark()

    @property
    def is_idle(self) -> bool:
        return not self._ready and not self._busy

    def __len__(self) -> int:
        return len(self._ready) + len(self._busy)

    async def run(self, first: Iterable[Key] = ()) -> None:
        """Reconciles keys until cancelled, starting with `first`."""
        tasks: dict[asyncio.Task[None], None] = {}
        self._is_running = True
        try:
            for key in first:
                self.mark(key)
            while True:
                self._ring()
                while self._ready and len(tasks) < self._width:
                    key = self._ready.popleft()
                    self._queued.discard(key)
                    self._busy.add(key)
                    task = asyncio.ensure_future(self._look_at(key))
                    tasks[task] = None
                    task.add_done_callback(lambda done: self._end(tasks, done))
                await self._alarm.wait(self._timers[0][0] if self._timers else None)
        finally:
            try:
                await end(tasks)
            finally:
                self._is_running = False
                if self._forgets:
                    self._forget()

    def _forget(self) -> None:
        for kept in (self._ready, self._queued, self._again, self._timers):
            kept.clear()
        self._due.clear()
        self._failures.clear()

    def _end(self, tasks: dict[asyncio.Task[None], None], task: asyncio.Task[None]) -> None:
        del tasks[task]
        self._alarm.mark()

    def _ring(self) -> None:
        now = self._clock.now()
        while self._timers and self._timers[0][0] <= now:
            moment, _, key = heapq.heappop(self._timers)
            if self._due.get(key) == moment:
                del self._due[key]
                self.mark(key)

    async def _look_at(self, key: Key) -> None:
        try:
            again_at = await self._reconcile(key)
            self._failures.pop(key, None)
            if again_at is not None:
                self.mark_at(key, again_at)
        except (AlreadyExists, Conflict):
            # Somebody else was first, or news of an own write is not here yet.
            self._later(key, "another client changed it first", is_quiet=True)
        except (ApiError, OSError) as fault:
            self._later(key, fault)
        except Exception:
            _log.exception("%s: looking at %s failed", self._name, key)
            self._later(key, "see above", is_quiet=True)
        finally:
            self._busy.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.mark(key)

    def _later(self, key: Key, why: object, *, is_quiet: bool = False) -> None:
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        # After very many failures the power would overflow a float.
        delay = min(_BACK_OFF_SECONDS * 2 ** min(failures - 1, 30), _BACK_OFF_SECONDS_MAX)
        if not is_quiet:
            _log.warning("%s: %s: %s; again in %.1f s", self._name, key, why, delay)
        self.mark_at(key, self._clock.now() + delay)
