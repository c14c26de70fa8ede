"""A whole hub on virtual time: store, control plane, agents and clusters in one thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fairway.agent.drivers.simulated.driver import Worlds
from fairway.agent.fleet import Agents
from fairway.api import codec
from fairway.api.workload import Workload
from fairway.app.agents import make_agents
from fairway.clock import Clock, VirtualClock
from fairway.controllers.plane import ControlPlane, PlaneOptions, run_all
from fairway.controllers.terms import Settings
from fairway.kinds.registry import LiveKinds, built_in
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Write
from fairway.store.keys import CLUSTERS, WORKLOADS

_USER = Write(user="ada", manager="test")
SECRET = b"of the hub"


@dataclass(slots=True, kw_only=True)
class Fleet:
    """A hub that runs, and what a user would do with it."""

    store: EmbeddedStore
    clock: VirtualClock
    plane: ControlPlane
    agents: Agents
    worlds: Worlds

    async def apply(self, text: str) -> None:
        """Objects from YAML, as `fairway apply` would."""
        for body in yaml.safe_load_all(text):
            if body is None:
                continue
            group, _, version = body["apiVersion"].rpartition("/")
            resource = self.store.catalogue.of_kind(group, version, body["kind"])
            assert resource is not None, body["kind"]
            namespace = body["metadata"].get("namespace", "default" if resource.namespaced else "")
            await self.store.patch(
                ResourceKey(group, version, resource.plural),
                body["metadata"]["name"],
                Patch(type="apply", body=body, force=True),
                namespace=namespace,
                write=_USER,
            )

    async def change(self, name: str, patch: dict[str, Any], namespace: str = "default") -> None:
        """Changes a workload, as `fairway patch` would."""
        merge = Patch(type="merge", body=patch)
        await self.store.patch(WORKLOADS, name, merge, namespace=namespace, write=_USER)

    async def change_cluster(self, name: str, patch: dict[str, Any]) -> None:
        await self.store.patch(CLUSTERS, name, Patch(type="merge", body=patch), write=_USER)

    async def pods(self, cluster: str) -> int:
        """Pods that hold a node of a cluster, as its driver sees it."""
        agent = self.agents.get(cluster)
        assert agent is not None, cluster
        seen = await agent._driver.observe()
        return sum(
            pod.phase in ("Bound", "Ready", "Terminating")
            for work in seen.works.values()
            for pod in work.pods
        )

    async def workload(self, name: str, namespace: str = "default") -> Workload:
        stored = await self.store.get(WORKLOADS, name, namespace)
        return codec.decode(stored.raw, Workload)

    async def phase(self, name: str, namespace: str = "default") -> str:
        return str((await self.workload(name, namespace)).status.phase)

    async def until(
        self, name: str, is_so: Callable[[Workload], bool] | str, seconds: float = 600
    ) -> Workload:
        """Lets time pass until a workload is so; fails when that takes too long."""
        wanted = (lambda item: item.status.phase == is_so) if isinstance(is_so, str) else is_so
        end = self.clock.now() + seconds
        while True:
            found = await self.workload(name)
            if wanted(found):
                return found
            assert self.clock.now() < end, f"{name} is {codec.to_yaml(codec.to_plain(found))}"
            await self.clock.advance(0.25)


def summary_of(workload: Workload) -> str:
    """Where a workload is claimed to be."""
    return workload.status.claim.summary if workload.status.claim else ""


@asynccontextmanager
async def running(
    store: EmbeddedStore,
    clock: VirtualClock,
    folder: Path,
    *,
    worlds: Worlds | None = None,
    hub_clock: Clock | None = None,
    **options: Any,
) -> AsyncIterator[Fleet]:
    """Runs a hub on a store for as long as the context lasts; `worlds` may outlive it.

    `hub_clock` is what the hub makes of the clock, if that is something else.
    """
    hub_clock = hub_clock or clock
    kinds = LiveKinds(built_in())
    worlds = worlds or Worlds(kinds.of, clock)
    plane = ControlPlane(
        store=store,
        clock=hub_clock,
        kinds=kinds,
        options=PlaneOptions(
            terms=Settings(identity="hub", takes_over_at_once=True), secret=SECRET, **options
        ),
    )
    agents = make_agents(store, folder, kinds=kinds, clock=hub_clock, worlds=worlds, is_inline=True)
    task = asyncio.ensure_future(run_all([plane.run(), agents.run()]))
    try:
        yield Fleet(store=store, clock=clock, plane=plane, agents=agents, worlds=worlds)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await plane.close()
