"""Which idle nodes are given back, and when.

A node goes in two steps. Once it was idle for as long as its pool says, nothing new is placed on
it; and only when it is still idle at a later look, with all that was claimed meanwhile in its place
elsewhere, it may go. So nothing that is claimed ever loses its node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fairway.api.cluster import Cluster, pools_of
from fairway.api.pools import LeavingNode
from fairway.core.provisioning.idle_nodes import Idle

AT_ONCE_MOST = 32  # nodes of the fleet that leave at a time; the others wait for their turn
_SETTLES_SECONDS = 10.0  # until a node that gets nothing new may go
_GIVEN_UP_SECONDS = 900.0  # after which a node that did not go is used again

Node = tuple[str, str]  # cluster and name


@dataclass(slots=True)
class Idling:
    """Since when nodes are idle, as far as this hub has seen."""

    since: dict[Node, float] = field(default_factory=dict)

    def look(self, idle: Sequence[Idle], now: float) -> None:
        there = {(one.cluster, one.node) for one in idle}
        self.since = {one: at for one, at in self.since.items() if one in there}
        for one in there:
            self.since.setdefault(one, now)


def leaving(
    clusters: Mapping[str, Cluster], idle: Sequence[Idle], idling: Idling, now: float
) -> dict[str, tuple[LeavingNode, ...]]:
    """The nodes that leave each cluster from now on; those that change nothing are left out."""
    by_node = {(one.cluster, one.node): one for one in idle}
    kept = {name: list(_kept(one, by_node, now)) for name, one in clusters.items()}
    room = AT_ONCE_MOST - sum(len(some) for some in kept.values())
    for one in _due(clusters, idle, idling, now)[: max(0, room)]:
        mine = kept[one.cluster]
        if all(other.name != one.node for other in mine):
            mine.append(LeavingNode(name=one.node, pool=one.pool, since=_moment(now)))
    found = {name: tuple(sorted(some, key=lambda one: one.name)) for name, some in kept.items()}
    return {
        name: some for name, some in found.items() if some != clusters[name].status.leaving_nodes
    }


def _kept(cluster: Cluster, idle: Mapping[Node, Idle], now: float) -> Iterator[LeavingNode]:
    """Those that were leaving and still do; who was claimed after all, or does not go, stays."""
    for one in cluster.status.leaving_nodes:
        found = idle.get((cluster.metadata.name, one.name))
        age = now - one.since.timestamp()
        if found is None or not found.is_settled or age > _GIVEN_UP_SECONDS:
            continue
        may_go = one.may_go or age >= _SETTLES_SECONDS
        yield LeavingNode(name=one.name, pool=one.pool, since=one.since, may_go=may_go)


def _due(
    clusters: Mapping[str, Cluster], idle: Sequence[Idle], idling: Idling, now: float
) -> list[Idle]:
    """Nodes whose time has come, whole units only, but for those that their pools keep."""
    found: list[Idle] = []
    for name, cluster in clusters.items():
        for pool in pools_of(cluster):
            seen = {one.name: one for one in cluster.status.elastic_pools}.get(pool.name)
            gone = {one.name for one in cluster.status.leaving_nodes if one.pool == pool.name}
            most = (seen.nodes if seen else 0) - pool.count_min - len(gone)
            mine = [
                one
                for one in idle
                if (one.cluster, one.pool) == (name, pool.name)
                and one.node not in gone
                and one.is_settled
                and idling.since[name, one.node] + pool.idle_seconds <= now
            ]
            found.extend(mine[: max(0, most) // pool.unit * pool.unit])
    order = {(one.cluster, one.node): at for at, one in enumerate(idle)}
    return sorted(found, key=lambda one: order[one.cluster, one.node])


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
