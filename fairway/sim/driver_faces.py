"""A cluster as its agent sees it: sometimes slow, sometimes failing, and logged."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence

from fairway.agent.drivers.interface import (
    CommandQuery,
    Driver,
    DriverFault,
    LogQuery,
    Observation,
    PortQuery,
)
from fairway.api.work import Stop, Work
from fairway.metrics.interface import PodUsage
from fairway.sim.log import Log
from fairway.sim.time import Gate, Time
from fairway.streams.requests import Exchange


class DriverFace:
    """A driver whose calls can be made slow or failing."""

    def __init__(
        self,
        driver: Driver,
        *,
        cluster: str,
        time: Time,
        gate: Gate,
        log: Log,
        chance: random.Random,
    ) -> None:
        self._driver = driver
        self._cluster = cluster
        self._time = time
        self._gate = gate
        self._log = log
        self._chance = chance
        self.slow_seconds = 0.0
        self.failing = 0.0  # probability that a call fails
        self.on_act: Callable[[str, str, Work | None], None] = lambda *_: None

    async def open(self) -> None:
        await self._driver.open()

    async def close(self) -> None:
        await self._driver.close()

    def silent_seconds(self) -> float:
        return self._driver.silent_seconds()

    async def observe(self) -> Observation:
        await self._meet("observe", "", None)
        return await self._driver.observe()

    async def wait_for_change(self) -> None:
        await self._driver.wait_for_change()
        await self._gate.wait()

    async def apply(self, work: Work) -> None:
        await self._meet("apply", work.metadata.name, work)
        await self._driver.apply(work)

    async def stop(self, name: str, how: Stop) -> None:
        await self._meet("stop", name, None)
        await self._driver.stop(name, how)

    async def remove(self, name: str) -> None:
        await self._meet("remove", name, None)
        await self._driver.remove(name)

    async def release(self, nodes: Sequence[str]) -> None:
        await self._meet("release", ",".join(nodes), None)
        await self._driver.release(nodes)

    def logs(self, query: LogQuery) -> AsyncIterator[bytes]:
        return self._driver.logs(query)

    async def execute(self, query: CommandQuery, exchange: Exchange) -> int:
        return await self._driver.execute(query, exchange)

    async def forward(self, query: PortQuery, exchange: Exchange) -> None:
        await self._driver.forward(query, exchange)

    async def usage(self, work: str) -> tuple[PodUsage, ...]:
        return await self._driver.usage(work)

    async def _meet(self, what: str, name: str, work: Work | None) -> None:
        await self._gate.wait()
        if self.slow_seconds:
            await self._time.sleep(self._chance.random() * self.slow_seconds)
            await self._gate.wait()
        if self._chance.random() < self.failing:
            self._log.fault("a driver fails", f"{self._cluster}: {what} {name}")
            raise DriverFault(f"{what} fails")
        if what != "observe":
            attempt = f" attempt {work.spec.attempt} term {work.spec.term}" if work else ""
            self._log.step("driver", f"{self._cluster}: {what} {name}{attempt}")
            self.on_act(what, name, work)
