"""Which idle nodes are given back, and when.

A node leaves in two steps. Once it was idle for as long as its pool says, nothing new is placed on
it. Only if it is still idle at a later look, when everything claimed meanwhile is placed elsewhere,
may it go. So nothing that is claimed ever loses its node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fairway.api.cluster import Cluster, pools_of
from fairway.api.pools import LeavingNode
from fairway.core.provisioning.idle_nodes import Idle

AT_ONCE_MOST = 32  # nodes of the fleet that leave at a time; the others wait
_SETTLES_SECONDS = 10.0  # before a node that gets nothing new may go
_GIVEN_UP_SECONDS = 900.0  # after which a node that did not go is used again

Node = tuple[str, str]  # cluster and name


@dataclass(slots=True)
class Idling:
    """Since when nodes are idle, as far as this hub has seen."""

    since: dict[Node, float] = field(default_factory=dict)

    def look(self, idle: Sequence[Idle], now: float) -> None:
        there = {(idle_node.cluster, idle_node.node) for idle_node in idle}
        self.since = {value: at for value, at in self.since.items() if value in there}
        for pair in there:
            self.since.setdefault(pair, now)


def nodes_to_release(
    clusters: Mapping[str, Cluster], idle: Sequence[Idle], idling: Idling, now: float
) -> dict[str, tuple[LeavingNode, ...]]:
    """The nodes that leave each cluster from now on; clusters without a change are left out."""
    by_node = {(idle_node.cluster, idle_node.node): idle_node for idle_node in idle}
    kept = {name: list(_keep(cluster, by_node, now)) for name, cluster in clusters.items()}
    room = AT_ONCE_MOST - sum(len(some) for some in kept.values())
    for idle_node in _due(clusters, idle, idling, now)[: max(0, room)]:
        mine = kept[idle_node.cluster]
        if all(other.name != idle_node.node for other in mine):
            mine.append(LeavingNode(name=idle_node.node, pool=idle_node.pool, since=_moment(now)))
    result = {name: tuple(sorted(some, key=lambda node: node.name)) for name, some in kept.items()}
    return {
        name: some for name, some in result.items() if some != clusters[name].status.leaving_nodes
    }


def _keep(cluster: Cluster, idle: Mapping[Node, Idle], now: float) -> Iterator[LeavingNode]:
    """Nodes that are still leaving; a node that was claimed after all, or does not go, stays."""
    for node in cluster.status.leaving_nodes:
        idle_node = idle.get((cluster.metadata.name, node.name))
        age = now - node.since.timestamp()
        if idle_node is None or not idle_node.is_settled or age > _GIVEN_UP_SECONDS:
            continue
        may_go = node.may_go or age >= _SETTLES_SECONDS
        yield LeavingNode(name=node.name, pool=node.pool, since=node.since, may_go=may_go)


def _due(
    clusters: Mapping[str, Cluster], idle: Sequence[Idle], idling: Idling, now: float
) -> list[Idle]:
    """Nodes that are idle long enough, in whole units, beyond the minimum that each pool keeps."""
    idle_nodes: list[Idle] = []
    for name, cluster in clusters.items():
        for pool in pools_of(cluster):
            seen = {
                pool_status.name: pool_status for pool_status in cluster.status.elastic_pools
            }.get(pool.name)
            gone = {node.name for node in cluster.status.leaving_nodes if node.pool == pool.name}
            most = (seen.nodes if seen else 0) - pool.count_min - len(gone)
            mine = [
                idle_node
                for idle_node in idle
                if (idle_node.cluster, idle_node.pool) == (name, pool.name)
                and idle_node.node not in gone
                and idle_node.is_settled
                and idling.since[name, idle_node.node] + pool.idle_seconds <= now
            ]
            idle_nodes.extend(mine[: max(0, most) // pool.unit * pool.unit])
    order = {(idle_node.cluster, idle_node.node): at for at, idle_node in enumerate(idle)}
    return sorted(idle_nodes, key=lambda idle_node: order[idle_node.cluster, idle_node.node])


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
