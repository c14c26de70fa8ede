"""Work in order on one thread: what takes time that the hub does not have, such as compression."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

_WAITING_MOST = 64

Task = Callable[[], None]


class Background:
    """A thread that does tasks one after another."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._waiting: deque[Future[None]] = deque()

    def hand_over(self, task: Task) -> None:
        """Hands a task to the thread; if too many wait, waits for the oldest."""
        waiting = self._waiting
        while waiting and (waiting[0].done() or len(waiting) >= _WAITING_MOST):
            waiting.popleft().result()
        waiting.append(self._thread.submit(task))

    def finish(self, task: Task) -> None:
        """Returns once this task is done, and with it all before it."""
        self._thread.submit(task).result()

    def close(self) -> None:
        self._thread.shutdown()
