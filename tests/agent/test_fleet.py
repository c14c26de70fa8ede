"""The agents of one process come and go with their clusters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from fairway.agent.agent import Agent
from fairway.agent.fleet import Agents
from fairway.agent.memory import Memory
from fairway.agent.settings import AgentSettings
from fairway.api.cluster import Cluster
from fairway.kinds.registry import built_in
from fairway.store.interface import Patch
from fairway.store.keys import CLUSTERS, FLEETS
from tests.agent.faulty_driver import FaultyDriver
from tests.agent.stage import HUB, Stage, cluster
from tests.contracts.drivers import LONG, work


class Fleet:
    """Agents of simulated clusters, all in one process."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage = stage
        self.folder = folder
        self.made: list[str] = []
        self.drivers: list[FaultyDriver] = []
        self.removed: list[str] = []
        self.agents = Agents(
            stage.store, self._make, clock=stage.clock, removed=self.removed.append
        )

    def _make(self, described: Cluster, settings: AgentSettings) -> Agent | None:
        if described.spec.simulated is None:
            return None
        name = described.metadata.name
        self.made.append(name)
        self.drivers.append(FaultyDriver(self.stage.worlds.driver(described), self.stage.clock))
        return Agent(
            name,
            store=self.stage.store,
            driver=self.drivers[-1],
            memory=Memory(self.folder / name, is_inline=True),
            find_kind=built_in().of,
            clock=self.stage.clock,
            settings=settings,
        )


@pytest.fixture
async def fleet(stage: Stage, tmp_path: Path) -> AsyncIterator[Fleet]:
    await stage.crash()
    found = Fleet(stage, tmp_path / "agents")
    running = asyncio.ensure_future(found.agents.run())
    await stage.passes(1)
    yield found
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


def named(name: str, **spec: object) -> dict:
    described = cluster()
    described["metadata"]["name"] = name
    described["spec"].update(spec)
    return described


async def test_each_cluster_has_its_agent(stage: Stage, fleet: Fleet) -> None:
    await stage.store.create(CLUSTERS, named("there"), write=HUB)
    await stage.passes(1)
    assert fleet.made == ["here", "there"]
    one = work("one")
    await stage.put(one)
    await stage.until("Running", one)
    assert fleet.agents.get("there") is not None


async def test_clusters_that_are_looked_after_elsewhere_have_none_here(
    stage: Stage, fleet: Fleet
) -> None:
    described = named("far", kubernetes={"connection": "Pull"})
    del described["spec"]["simulated"]
    await stage.store.create(CLUSTERS, described, write=HUB)
    await stage.passes(1)
    assert fleet.agents.get("far") is None


async def test_an_agent_ends_with_its_cluster(stage: Stage, fleet: Fleet) -> None:
    await stage.store.delete(CLUSTERS, "here", write=HUB)
    await stage.passes(1)
    assert fleet.agents.get("here") is None
    assert fleet.removed == ["here"]


async def test_changed_nodes_come_without_a_loss(stage: Stage, fleet: Fleet) -> None:
    one = work("one")
    await stage.put(one)
    before = await stage.until("Running", one)
    pools = cluster()["spec"]["simulated"]["nodePools"]
    pools.append({"name": "more", "count": 2, "shape": {"cpu": "4", "pods": 110}})
    patch = Patch(type="merge", body={"spec": {"simulated": {"nodePools": pools}}})
    await stage.store.patch(CLUSTERS, "here", patch, write=HUB)
    await stage.passes(10)
    assert fleet.made == ["here", "here"]
    assert (await stage.cluster()).status.nodes == 5
    assert (await stage.until("Running", one)).started_at == before.started_at


async def test_settings_of_the_fleet_reach_the_agents(stage: Stage, fleet: Fleet) -> None:
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Fleet",
        "metadata": {"name": "fleet"},
        "spec": {"health": {"heartbeatSeconds": 3}},
    }
    await stage.store.create(FLEETS, body, write=HUB)
    await stage.passes(30)
    assert (await stage.lease())["spec"]["leaseDurationSeconds"] == 12


async def test_agents_stop_works_at_the_rate_of_the_fleet(stage: Stage, fleet: Fleet) -> None:
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Fleet",
        "metadata": {"name": "fleet"},
        "spec": {"health": {"deletionsPerSecond": 2}},
    }
    await stage.store.create(FLEETS, body, write=HUB)
    works = [work(f"w{number}", seconds=LONG) for number in range(8)]
    for item in works:
        await stage.put(item)
    for item in works:
        await stage.until("Running", item)
    for item in works:
        await stage.bury(item)
    await stage.passes(0.95)
    assert fleet.drivers[0].calls.count("stop") == 3  # two at once and two a second
    await stage.passes(1)
    assert fleet.drivers[0].calls.count("stop") == 5


async def test_an_agent_that_breaks_begins_anew(stage: Stage, fleet: Fleet) -> None:
    first, second = work("first"), work("second")
    await stage.put(first)
    await stage.until("Running", first)
    fleet.drivers[0].broken.add("observe")
    await stage.put(second)
    await stage.passes(1)
    assert (await stage.state(second)) is None
    await stage.passes(10)
    assert fleet.made == ["here", "here"]
    await stage.until("Running", second)
