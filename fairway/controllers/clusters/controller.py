"""The clusters controller: phases from the heartbeats of agents, and counts of workloads.

Phases are checked every few seconds; counts are for people and are written less often. The status
of the fleet summarizes all clusters and the breakers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace as with_fields

from msgspec.structs import replace

from fairway.api import codec
from fairway.api.cluster import Cluster, pools_of
from fairway.api.errors import ApiError
from fairway.api.flavor import Flavor
from fairway.api.fleet import Fleet, FleetStatus
from fairway.api.names import work_namespace
from fairway.api.queue import Queue
from fairway.controllers.breakers import restore
from fairway.controllers.clusters import health
from fairway.controllers.clusters.health import Observation
from fairway.controllers.clusters.heartbeats import LOOK_SECONDS, Heartbeats
from fairway.controllers.context import Context
from fairway.controllers.statuses import with_status
from fairway.store.interface import Write
from fairway.store.keys import CLUSTERS, FLEETS, LEASES
from fairway.view.prices import node_price

_WRITE = Write(user="system:fairway", manager="fairway-clusters")
_COUNTS_SECONDS = 10.0
_RUNS = ("Pending", "Reserved", "Held", "Running", "Stopping")

_log = logging.getLogger(__name__)


class Clusters:
    """Writes the status of clusters and of the fleet."""

    def __init__(self, context: Context, *, look_seconds: float = LOOK_SECONDS) -> None:
        self._look_seconds = look_seconds
        self._store = context.store
        self._cache = context.cache
        self._states = context.states
        self._clock = context.clock
        self._shared = context.shared
        self._terms = context.terms
        self._roster = context.roster
        self.beats = Heartbeats(context.cache.mirror(LEASES), context.clock)
        self._counted_at: dict[str, float] = {}

    async def run(self) -> None:
        """Checks all clusters every few seconds, until cancelled."""
        self.beats.forget()
        status = self._cache.fleet().status
        self._shared.breakers = restore(status.breakers, self._clock.now())
        due = 0.0
        while True:
            names = [name for _, name in self._cache.names(CLUSTERS)]
            self.beats.look(names)
            if self._clock.monotonic() >= due:
                due = self._clock.monotonic() + self._look_seconds
                await self._look_at_all(names)
            await self._clock.sleep(LOOK_SECONDS)

    async def _look_at_all(self, names: list[str]) -> None:
        for name in names:
            try:
                await self._look_at(name)
            except (ApiError, OSError) as fault:
                _log.debug("the status of cluster %s was not written: %s", name, fault)
        try:
            await self._write_fleet()
        except (ApiError, OSError) as fault:
            _log.debug("the status of the fleet was not written: %s", fault)

    async def _look_at(self, name: str) -> None:
        stored = self._cache.mirror(CLUSTERS).get(("", name))
        if stored is None:
            return
        body = stored.object()
        cluster = codec.decode(body, Cluster)
        fleet, now = self._cache.fleet().spec, self._clock.now()
        is_due = now - self._counted_at.get(name, float("-inf")) >= _COUNTS_SECONDS
        observation = self._observe(cluster) if is_due else self._last_written(cluster)
        if not is_due and health.phase_of(cluster, observation, fleet.health) != (
            cluster.status.phase
        ):
            observation = self._observe(cluster)
        is_sure = self._clock.is_sure()
        status = health.next_status(cluster, observation, fleet.health, now, is_sure=is_sure)
        if is_due:
            self._counted_at[name] = now
        if status is not None:
            changed = with_status(body, status)
            await self._store.update(CLUSTERS, changed, subresource="status", write=_WRITE)

    def _observe(self, cluster: Cluster) -> Observation:
        name = cluster.metadata.name
        return Observation(
            heard=self.beats.of(name),
            workloads=sum(
                (state := self._states.get(name, work)) is None or state.phase in _RUNS
                for work in self._roster.in_cluster(work_namespace(name))
            ),
        )

    def _last_written(self, cluster: Cluster) -> Observation:
        """An observation with the counts last written."""
        return Observation(
            heard=self.beats.of(cluster.metadata.name), workloads=cluster.status.workloads
        )

    async def _write_fleet(self) -> None:
        stored = self._cache.mirror(FLEETS).get(("", "fleet"))
        if stored is None:
            return
        body = stored.object()
        fleet = codec.decode(body, Fleet)
        status = self._fleet_status(fleet)
        if status != fleet.status:
            changed = with_status(body, status)
            await self._store.update(FLEETS, changed, subresource="status", write=_WRITE)

    def _standing_price(self, clusters: Sequence[Cluster]) -> int:
        """The hourly price of all elastic nodes, in nanos, including those being provisioned."""
        total = 0
        for cluster in clusters:
            have = {
                pool.name: pool.nodes + pool.provisioning for pool in cluster.status.elastic_pools
            }
            for pool in pools_of(cluster):
                if have.get(pool.name):
                    price = node_price(cluster, pool, self._cache.all(Flavor)) or 0
                    total += price * have[pool.name]
        return total

    def _fleet_status(self, fleet: Fleet) -> FleetStatus:
        clusters = [cluster for cluster in self._cache.all(Cluster) if cluster.spec.accepted]
        now, limits = self._clock.now(), fleet.spec.breakers
        standing = with_fields(self._shared.breakers, standing=self._standing_price(clusters))
        self._shared.breakers = standing.looked_at(limits, now)
        breakers = self._shared.breakers.status(limits, now)
        is_broken = any(breaker.open_since for breaker in breakers)
        queues = {queue.metadata.name: queue for queue in self._cache.all(Queue)}
        roots = [queue for queue in queues.values() if queue.spec.parent not in queues]
        return replace(
            fleet.status,
            observed_generation=fleet.metadata.generation,
            phase="Paused" if fleet.spec.paused else "Broken" if is_broken else "Running",
            clusters=len(clusters),
            ready_clusters=sum(cluster.status.phase == "Ready" for cluster in clusters),
            leader=self._terms.identity,
            # A queue counts the workloads of all queues below it.
            waiting_workloads=sum(queue.status.waiting_workloads for queue in roots),
            claimed_workloads=sum(queue.status.claimed_workloads for queue in roots),
            breakers=breakers,
        )
