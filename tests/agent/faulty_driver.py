"""A driver that fails or is slow when it is told to; all else goes to a real one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from math import inf

from fairway.agent.drivers.interface import (
    CommandQuery,
    Driver,
    DriverFault,
    LogQuery,
    Observation,
    PortQuery,
)
from fairway.api.work import Stop, Work
from fairway.clock import Clock
from fairway.metrics.interface import PodUsage
from fairway.streams.requests import Exchange


class FaultyDriver:
    """`failing` names operations that fail, `slow` those that take so many seconds, `broken` those
    that have a bug."""

    def __init__(self, driver: Driver, clock: Clock) -> None:
        self._driver = driver
        self._clock = clock
        self.failing: set[str] = set()
        self.slow: dict[str, float] = {}
        self.broken: set[str] = set()
        self.calls: list[str] = []
        self.is_cut_off = False  # nothing that is asked of the cluster is answered

    async def open(self) -> None:
        await self._meet("open")
        await self._driver.open()

    async def close(self) -> None:
        await self._driver.close()

    def silent_seconds(self) -> float:
        return inf if self.is_cut_off else self._driver.silent_seconds()

    async def observe(self) -> Observation:
        await self._meet("observe")
        return await self._driver.observe()

    async def wait_for_change(self) -> None:
        await self._driver.wait_for_change()

    async def apply(self, work: Work) -> None:
        await self._meet("apply")
        await self._driver.apply(work)

    async def stop(self, name: str, how: Stop) -> None:
        await self._meet("stop")
        await self._driver.stop(name, how)

    async def remove(self, name: str) -> None:
        await self._meet("remove")
        await self._driver.remove(name)

    async def release(self, nodes: Sequence[str]) -> None:
        await self._meet("release")
        await self._driver.release(nodes)

    def logs(self, query: LogQuery) -> AsyncIterator[bytes]:
        return self._driver.logs(query)

    async def execute(self, query: CommandQuery, exchange: Exchange) -> int:
        return await self._driver.execute(query, exchange)

    async def usage(self, work: str) -> tuple[PodUsage, ...]:
        return await self._driver.usage(work)

    async def forward(self, query: PortQuery, exchange: Exchange) -> None:
        await self._driver.forward(query, exchange)

    async def _meet(self, operation: str) -> None:
        self.calls.append(operation)
        if operation in self.slow:
            await self._clock.sleep(self.slow[operation])
        if operation in self.broken:
            raise RuntimeError(f"{operation} has a bug")
        if operation in self.failing or self.is_cut_off:
            raise DriverFault(f"{operation} fails")
