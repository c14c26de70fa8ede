"""Time in a simulation: one virtual clock for all, and participants with inaccurate clocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairway.virtual import START, Stuck, Time, run

__all__ = ["START", "Gate", "OwnClock", "Stuck", "Time", "run"]


class Gate:
    """Where a paused process waits."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        self.is_shut = False

    async def wait(self) -> None:
        while self.is_shut:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def shut(self) -> None:
        self.is_shut = True

    def open(self) -> None:
        self.is_shut = False
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


class OwnClock:
    """The clock of one participant, offset by `skew`, and too fast or too slow by `drift`.

    `ahead` says by how much its machine's time was set wrong for now. A paused participant does not
    wake until it is resumed.
    """

    def __init__(
        self,
        time: Time,
        *,
        skew: float = 0.0,
        drift: float = 0.0,
        gate: Gate | None = None,
        ahead: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._time = time
        self._gate = gate or Gate()
        self._ahead = ahead
        self.skew = skew
        self.drift = drift

    def now(self) -> float:
        now = self._time.now()
        return now + self.skew + (now - START) * self.drift + self._ahead()

    def monotonic(self) -> float:
        return self._time.now()

    def is_sure(self) -> bool:
        return True

    async def sleep(self, seconds: float) -> None:
        await self._time.sleep(seconds / (1 + self.drift))
        await self._gate.wait()
