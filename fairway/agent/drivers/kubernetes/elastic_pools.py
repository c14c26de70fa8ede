"""Elastic pools of a Kubernetes cluster: those listed, and those of its autoscalers."""

from __future__ import annotations

from fairway.agent.drivers.interface import PoolSeen
from fairway.agent.drivers.kubernetes.nodepools import Found
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.agent.drivers.kubernetes.provisioning_requests import Provisioning
from fairway.api.cluster import Cluster
from fairway.api.pools import ElasticPool


class Offering:
    """The elastic pools that a cluster offers."""

    def __init__(self, cluster: Cluster, picture: Picture, provisioning: Provisioning) -> None:
        self._spec = cluster.spec
        self._picture = picture
        self._provisioning = provisioning

    def unlisted_pools(self) -> Found:
        """Pools of autoscalers, which the Cluster does not list."""
        return self._picture.found_pools(self._spec.instance_types)

    def pools(self) -> tuple[ElasticPool, ...]:
        """All pools; a listed pool replaces a found pool of the same name."""
        listed = self._spec.elastic_pools
        names = {pool.name for pool in listed}
        return (*listed, *(pool for pool in self.unlisted_pools().pools if pool.name not in names))

    def listed_pools(self) -> tuple[PoolSeen, ...]:
        """Pools by the labels of their nodes.

        The cluster's own autoscaler provisions nodes, so nodes that are being provisioned are known
        only where requests ask for them.
        """
        return tuple(self._observe(pool) for pool in self.pools())

    def _observe(self, pool: ElasticPool) -> PoolSeen:
        wanted, tally = pool.labels.items(), self._provisioning.tally(pool.name)
        count = sum(wanted <= node.labels.items() for node in self._picture.nodes.values())
        return PoolSeen(
            name=pool.name,
            nodes=count if wanted else 0,
            provisioning=tally.coming,
            stock=pool.stock,
            failures=tally.failures,
            fault=tally.fault,
        )
