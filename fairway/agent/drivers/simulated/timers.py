"""Timers: one heap for a whole cluster, however many pods it has."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Action = Callable[[float], None]


class Timers:
    """Actions in order of time; those of one moment in the order in which they were added."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action]] = []
        self._count = 0
        self.on_earlier: Callable[[], None] = lambda: None  # called when `next_at` is earlier

    @property
    def next_at(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def at(self, moment: float, action: Action) -> None:
        self._count += 1
        is_earlier = not self._heap or moment < self._heap[0][0]
        heapq.heappush(self._heap, (moment, self._count, action))
        if is_earlier:
            self.on_earlier()

    def run(self, now: float, after: Action) -> None:
        """Runs all due actions, each at its own moment, and `after` at the end of each moment."""
        while self._heap and self._heap[0][0] <= now:
            moment, _, action = heapq.heappop(self._heap)
            action(moment)
            if not self._heap or self._heap[0][0] > moment:
                after(moment)
