"""Runs an agent for each cluster that this process manages.

Agents start and stop with their clusters. An agent whose driver settings changed restarts with a
new driver; an agent that failed restarts after a delay. No restart stops the pods of works.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from fairway.agent.agent import Agent
from fairway.agent.drivers.interface import DriverFault
from fairway.agent.settings import AgentSettings
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.errors import ApiError
from fairway.api.fleet import Fleet
from fairway.clock import Clock
from fairway.loops import Loop
from fairway.store.interface import EVERYTHING, Selection, Store, Stored
from fairway.store.keys import CLUSTERS, FLEETS
from fairway.store.mirrors import Mirror, Name

_log = logging.getLogger(__name__)

_AGAIN_SECONDS = 5.0

# Makes the agent of a cluster; None if the cluster is managed elsewhere.
MakeAgent = Callable[[Cluster, AgentSettings], Agent | None]


@dataclass(slots=True, kw_only=True)
class _Running:
    """A running agent, and the cluster settings it was made from."""

    made_from: object
    agent: Agent
    task: asyncio.Task[None]


class Agents:
    """The agents of one process. `run` them until cancelled."""

    def __init__(
        self,
        store: Store,
        make: MakeAgent,
        *,
        clock: Clock,
        removed: Callable[[str], None] = lambda _: None,
        only: str = "",
    ) -> None:
        """`removed` is called for each deleted cluster, once its agent has ended.

        With `only`, just that cluster is watched, since the agent may read no other.
        """
        self._make = make
        self._removed = removed
        self._clock = clock
        self._settings = AgentSettings()
        self._clusters: dict[str, Cluster] = {}
        self._running: dict[str, _Running] = {}
        self._faults: dict[str, str] = {}  # the last of each cluster
        self._loop: Loop[str] = Loop("agents", self._look_after, clock=clock, width=1)
        named = Selection(fields=f"metadata.name={only}") if only else EVERYTHING
        self._mirrors = (
            Mirror(store, FLEETS, clock=clock, selection=Selection(fields="metadata.name=fleet")),
            Mirror(store, CLUSTERS, clock=clock, selection=named),
        )
        self._mirrors[0].followers.append(self._hear_fleet)
        self._mirrors[1].followers.append(self._hear_cluster)

    def get(self, cluster: str) -> Agent | None:
        """The agent of a cluster, if it runs here."""
        running = self._running.get(cluster)
        return running.agent if running is not None else None

    async def reseal(self) -> set[str]:
        """Lets every agent write what it remembers again, with the key that is now current."""
        running = dict(self._running)
        for each in running.values():
            await each.agent.reseal()
        return set(running)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for mirror in self._mirrors:
                    tasks.create_task(mirror.run())
                tasks.create_task(self._loop.run(list(self._clusters)))
        finally:
            for name in list(self._running):
                await self._end(name)

    def _hear_fleet(self, _name: Name, stored: Stored | None) -> None:
        if stored is not None:
            self._settings = AgentSettings.of(decode(stored.raw, Fleet).spec.health)
            for running in self._running.values():
                running.agent.use(self._settings)

    def _hear_cluster(self, name: Name, stored: Stored | None) -> None:
        own = name[1]
        try:
            cluster = decode(stored.raw, Cluster) if stored is not None else None
        except ApiError as fault:
            _log.warning("the cluster %s cannot be read: %s", own, fault)
            return
        if cluster is None:
            self._clusters.pop(own, None)
        else:
            before = self._clusters.get(own)
            self._clusters[own] = cluster
            if before is not None and _made_from(before) == _made_from(cluster):
                return
        self._loop.mark(own)

    async def _look_after(self, name: str) -> float | None:
        cluster, running = self._clusters.get(name), self._running.get(name)
        if running is not None:
            is_same = cluster is not None and running.made_from == _made_from(cluster)
            if is_same and not running.task.done():
                return None
            await self._end(name)
        if cluster is None:
            self._removed(name)
            return None
        agent = self._make(cluster, self._settings)
        if agent is not None:
            task = asyncio.ensure_future(agent.run())
            task.add_done_callback(lambda _: self._restart(name))
            self._running[name] = _Running(made_from=_made_from(cluster), agent=agent, task=task)
        return None

    def _restart(self, name: str) -> None:
        """Restarts an agent that ended by itself, after a delay."""
        if name in self._running:
            self._loop.mark_at(name, self._clock.now() + _AGAIN_SECONDS)

    def _tell_why(self, name: str, task: asyncio.Task[None]) -> None:
        fault = None if task.cancelled() else task.exception()
        if isinstance(fault, DriverFault):
            # It restarts every few seconds, maybe for days.
            if self._faults.get(name) != str(fault):
                _log.error("the agent of %s failed and restarts: %s", name, fault)
            self._faults[name] = str(fault)
        elif fault is not None:
            _log.error("the agent of %s failed and restarts", name, exc_info=fault)

    async def _end(self, name: str) -> None:
        running = self._running.pop(name)
        running.task.cancel()
        await asyncio.wait((running.task,))  # unlike `await task`, keeps our own cancellation
        self._tell_why(name, running.task)


def _made_from(cluster: Cluster) -> object:
    """The cluster settings that its driver is made from; when they change, the agent restarts."""
    spec = cluster.spec
    return (
        cluster.metadata.uid,
        spec.kubernetes,
        spec.local,
        spec.simulated,
        spec.elastic_pools,
        spec.provider_quotas,
        spec.inventory,
        spec.instance_types,
    )
