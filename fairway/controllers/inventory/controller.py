"""The inventory: looks at all elastic pools every few seconds.

What it learns of their stock, and which of their nodes leave, is written to the status of their
clusters. The view uses that status, and agents give the nodes back.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from fairway.api import codec
from fairway.api.cluster import Cluster, pools_of
from fairway.api.errors import ApiError
from fairway.api.meta import JsonObject
from fairway.api.pools import ElasticPool, PoolBelief, PoolStatus
from fairway.controllers.context import Context
from fairway.controllers.inventory import release, stock
from fairway.controllers.inventory.asks import Asking
from fairway.controllers.inventory.release import Idling
from fairway.controllers.inventory.stock import Look, Question
from fairway.controllers.scheduling.questions import IdleNodes
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.store.interface import Patch, Write
from fairway.store.keys import CLUSTERS, WORKLOADS

_log = logging.getLogger(__name__)

_WRITE = Write(user="system:fairway", manager="fairway-inventory")
_SLOW = "nodes take much longer to come than they usually do"


class Inventory:
    """The controller of elastic pools."""

    def __init__(self, context: Context, *, scheduler: Scheduler, look_seconds: float) -> None:
        self._look_seconds = look_seconds
        self._store = context.store
        self._cache = context.cache
        self._scheduler = scheduler
        self._clock = context.clock
        self._asking = Asking(context.cache.mirror(WORKLOADS))
        self._looks: dict[tuple[str, str], Look] = {}
        self._idling = Idling()

    async def run(self) -> None:
        """Looks at all pools periodically, until cancelled."""
        self._looks.clear()
        while True:
            await self._clock.sleep(self._look_seconds)
            clusters = {
                cluster.metadata.name: cluster
                for cluster in self._cache.all(Cluster)
                if cluster.spec.accepted and cluster.spec.mode == "Manage" and pools_of(cluster)
            }
            if not clusters:
                continue
            for cluster in clusters.values():
                await self._write(cluster, self._learn(cluster))
            await self._release(clusters)

    # Stock.

    def _learn(self, cluster: Cluster) -> JsonObject:
        """The fields of a cluster's status that changed after a look at its pools."""
        seen = {pool.name: pool for pool in cluster.status.elastic_pools}
        known = {belief.name: belief for belief in cluster.status.stock}
        beliefs = [
            after
            for pool in pools_of(cluster)
            if (after := self._look(cluster, pool, seen.get(pool.name), known.get(pool.name)))
        ]
        if tuple(beliefs) == cluster.status.stock:
            return {}
        return {"stock": [codec.to_plain(belief) for belief in beliefs]}

    def _look(
        self,
        cluster: Cluster,
        pool: ElasticPool,
        seen: PoolStatus | None,
        known: PoolBelief | None,
    ) -> PoolBelief | None:
        if seen is None:
            return known
        key = (cluster.metadata.name, pool.name)
        look = Look(
            epoch=cluster.status.agent.epoch,
            nodes=seen.nodes,
            provisioning=seen.provisioning,
            failures=seen.failures,
        )
        before, now = self._looks.get(key), self._clock.now()
        if before is not None:
            has_come = look.nodes > before.nodes
            look = replace(look, came_at=now if has_come else before.came_at)
        self._looks[key] = look
        belief = stock.belief_of(known)
        after = stock.learn(
            Question(
                belief=belief,
                before=before,
                look=look,
                asks=self._asking.of(*key, now),
                promised=float(pool.provision_seconds),
                now=now,
            )
        )
        if after == belief:
            return known
        is_told = before is not None and look.failures > before.failures
        has_failed = after.tries > belief.tries
        fault = (seen.fault if is_told else _SLOW) if has_failed else known.fault if known else ""
        if has_failed:
            _log.info("%s: pool %s is out of stock: %s", *key, fault)
        return stock.stored_as(pool.name, after, fault)

    # Nodes that are not needed.

    async def _release(self, clusters: dict[str, Cluster]) -> None:
        try:
            idle = await self._scheduler.ask(IdleNodes())
        except ApiError as fault:
            _log.info("which nodes are idle is not known: %s", fault)
            return
        now = self._clock.now()
        idle = [idle_node for idle_node in idle if idle_node.cluster in clusters]
        self._idling.look(idle, now)
        for name, nodes in release.nodes_to_release(clusters, idle, self._idling, now).items():
            plain = [codec.to_plain(node) for node in nodes]
            await self._write(clusters[name], {"leavingNodes": plain})

    async def _write(self, cluster: Cluster, status: JsonObject) -> None:
        if not status:
            return
        name = cluster.metadata.name
        patch = Patch(type="merge", body={"status": status})
        try:
            await self._store.patch(CLUSTERS, name, patch, subresource="status", write=_WRITE)
        except (ApiError, OSError) as fault:
            _log.info("the pools of cluster %s were not written: %s", name, fault)
