"""The rigs of the drivers under contract, by name; each opens a small cluster of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from fairway.agent.drivers.interface import Driver, Observation
from fairway.agent.drivers.simulated.driver import SimulatedDriver, Worlds
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.clock import VirtualClock
from fairway.kinds.registry import built_in
from tests.agent.local.machines import machine
from tests.contracts.drivers import Rig

OpenRig = Callable[[Path], AbstractAsyncContextManager[Rig]]

SIMULATED = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "Cluster",
    "metadata": {"name": "here", "uid": "1"},
    "spec": {
        "simulated": {
            "nodePools": [
                {"name": "node", "count": 3, "shape": {"cpu": "4", "memory": "8Gi", "pods": 110}}
            ],
        }
    },
}


class SimulatedRig:
    """A simulated cluster on virtual time."""

    quick_seconds = 5.0

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.worlds = Worlds(built_in().of, self.clock)
        self.cluster = decode(SIMULATED, Cluster)
        self.driver: Driver = self.worlds.driver(self.cluster)

    async def until(self, holds: Callable[[Observation], bool], what: str) -> Observation:
        for _ in range(600):
            observation = await self.driver.observe()
            if holds(observation):
                return observation
            await self.clock.advance(0.1)
        raise AssertionError(f"a minute has passed without {what}")

    async def restart(self) -> None:
        await self.driver.close()
        self.driver = SimulatedDriver(self.worlds.world("here"), self.clock)
        await self.driver.open()


@asynccontextmanager
async def simulated(_folder: Path) -> AsyncIterator[Rig]:
    rig = SimulatedRig()
    await rig.driver.open()
    try:
        yield rig
    finally:
        await rig.driver.close()


RIGS: dict[str, OpenRig] = {"local": machine, "simulated": simulated}
