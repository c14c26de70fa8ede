"""Elastic pools of a Kubernetes cluster: those that are listed, and those of its autoscalers."""

from __future__ import annotations

from fairway.agent.drivers.interface import PoolSeen
from fairway.agent.drivers.kubernetes.nodepools import Found
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.agent.drivers.kubernetes.provisioning_requests import Provisioning
from fairway.api.cluster import Cluster
from fairway.api.pools import ElasticPool


class Offering:
    """What a cluster offers, by what is seen of it."""

    def __init__(self, cluster: Cluster, picture: Picture, provisioning: Provisioning) -> None:
        self._spec = cluster.spec
        self._picture = picture
        self._provisioning = provisioning

    def found(self) -> Found:
        """Pools that nobody listed."""
        return self._picture.found_pools(self._spec.instance_types)

    def pools(self) -> tuple[ElasticPool, ...]:
        """All pools; what is listed goes before what was found by the same name."""
        listed = self._spec.elastic_pools
        names = {pool.name for pool in listed}
        return (*listed, *(pool for pool in self.found().pools if pool.name not in names))

    def seen(self) -> tuple[PoolSeen, ...]:
        """Pools by the labels of their nodes. Who makes nodes come is the cluster's own autoscaler:
        what is on its way is known where it is asked by requests, and else not."""
        return tuple(self._seen(pool) for pool in self.pools())

    def _seen(self, pool: ElasticPool) -> PoolSeen:
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
