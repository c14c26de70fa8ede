"""Loops: keys that changed, looked at one by one, and again when they ask to be.

A key is queued once however often it is marked, and never looked at twice at the same time. One
that fails is looked at again after a while that doubles; one that names a moment is looked at then.
The queue is bounded by the number of keys there are: a loop that does not always run forgets what
is marked meanwhile, and is told all keys that there are when it runs.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from typing import Generic, TypeVar

from fairway.api.errors import ApiError, Conflict
from fairway.clock import Clock

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)
# Looks at a key; the moment at which it wants to be looked at again, if any.
Reconcile = Callable[[Key], Awaitable[float | None]]

_log = logging.getLogger(__name__)

_BACK_OFF_SECONDS = 0.05
_BACK_OFF_SECONDS_MAX = 60.0
_SLICE = 500  # items that are walked without a pause
_SPARE_TIMERS = 1_024  # that may be kept though an earlier one took their place


async def in_slices(items: Iterable[T], size: int = _SLICE) -> AsyncIterator[T]:
    """Items one by one, with a pause after each few: who else waits for the loop goes first."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            await asyncio.sleep(0)


class Alarm:
    """Waits for a mark or for a moment, whichever comes first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._marked = asyncio.Event()

    def mark(self) -> None:
        self._marked.set()

    async def wait(self, until: float | None = None) -> None:
        """Returns once marked, which is then forgotten, or once the moment has come."""
        if not self._marked.is_set():
            if until is None:
                await self._marked.wait()
            else:
                await self._first_of(until - self._clock.now())
        self._marked.clear()

    async def _first_of(self, seconds: float) -> None:
        if seconds <= 0:
            return
        slept = asyncio.ensure_future(self._ring_after(seconds))
        try:
            await self._marked.wait()
        finally:
            # Not waited for: a cancellation that came in the meantime would be lost with its.
            slept.cancel()

    async def _ring_after(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._marked.set()


class Loop(Generic[Key]):
    """Looks at keys as they are marked."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[Key],
        *,
        clock: Clock,
        width: int = 16,
        forgets: bool = False,
    ) -> None:
        """`forgets` what is marked while it does not run."""
        self._forgets = forgets
        self._is_running = False
        self._name = name
        self._reconcile = reconcile
        self._clock = clock
        self._width = width
        self._ready: deque[Key] = deque()
        self._queued: set[Key] = set()
        self._busy: set[Key] = set()
        self._again: set[Key] = set()  # marked while they were looked at
        self._timers: list[tuple[float, int, Key]] = []
        self._due: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._sequence = 0
        self._alarm = Alarm(clock)

    def mark(self, key: Key) -> None:
        """Something about a key changed."""
        if self._forgets and not self._is_running:
            return
        if key in self._busy:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.append(key)
            self._alarm.mark()

    def mark_at(self, key: Key, moment: float) -> None:
        """Marks a key when the moment has come, unless an earlier one is set."""
        due = self._due.get(key)
        if due is not None and due <= moment:
            return
        self._due[key] = moment
        self._sequence += 1
        heapq.heappush(self._timers, (moment, self._sequence, key))
        if len(self._timers) > 2 * len(self._due) + _SPARE_TIMERS:
            self._timers = [one for one in self._timers if self._due.get(one[2]) == one[0]]
            heapq.heapify(self._timers)
        self._alarm.mark()

    @property
    def is_idle(self) -> bool:
        return not self._ready and not self._busy

    def __len__(self) -> int:
        return len(self._ready) + len(self._busy)

    async def run(self, first: Iterable[Key] = ()) -> None:
        """Looks at keys until cancelled, beginning with the first."""
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
                    task.add_done_callback(lambda done: self._ended(tasks, done))
                await self._alarm.wait(self._timers[0][0] if self._timers else None)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._is_running = False
            if self._forgets:
                self._forget()

    def _forget(self) -> None:
        for kept in (self._ready, self._queued, self._again, self._timers):
            kept.clear()
        self._due.clear()
        self._failures.clear()

    def _ended(self, tasks: dict[asyncio.Task[None], None], task: asyncio.Task[None]) -> None:
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
        except Conflict:
            self._later(key, "somebody else changed it first", is_quiet=True)
        except (ApiError, OSError) as fault:
            self._later(key, str(fault))
        except Exception:
            _log.exception("%s: looking at %s failed", self._name, key)
            self._later(key, "see above", is_quiet=True)
        finally:
            self._busy.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.mark(key)

    def _later(self, key: Key, why: str, *, is_quiet: bool = False) -> None:
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = min(_BACK_OFF_SECONDS * 2 ** (failures - 1), _BACK_OFF_SECONDS_MAX)
        if not is_quiet:
            _log.warning("%s: %s: %s; again in %.1f s", self._name, key, why, delay)
        self.mark_at(key, self._clock.now() + delay)
