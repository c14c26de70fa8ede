"""Idle nodes of elastic pools, in the order in which they should be given back.

A node is idle while it has no pods: neither pods of a claim, reported or assumed there, nor pods
without a claim. Nodes of the clusters that policies use last go first, and among those the most
expensive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.api.names import POOL_LABEL
from fairway.core.model import Workload
from fairway.core.nodes import Cluster
from fairway.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A node of an elastic pool without pods."""

    cluster: str
    pool: str
    node: str
    is_settled: bool  # whether every claim in the cluster has its nodes without this one


def idle_nodes(snapshot: Snapshot) -> tuple[Idle, ...]:
    """Idle nodes of elastic pools, in the order in which to give them back."""
    groups = _groups(snapshot)
    result: list[tuple[tuple[int, int, str, str, str], Idle]] = []
    for name, cluster in snapshot.facts.clusters.items():
        bought = cluster.nodes.bought
        if bought is None:
            continue
        column = cluster.nodes.labels[POOL_LABEL]
        used = _used(snapshot, cluster)
        is_settled = _is_settled(snapshot, name)
        prices = {pool.name: pool.price_nanos or 0 for pool in cluster.pools}
        for position in np.flatnonzero(bought & ~used):
            pool, node = column.value(int(position)) or "", cluster.nodes.names[int(position)]
            key = (-groups.get(name, 0), -prices.get(pool, 0), name, pool, node)
            idle = Idle(cluster=name, pool=pool, node=node, is_settled=is_settled)
            result.append((key, idle))
    return tuple(idle for _, idle in sorted(result, key=lambda pair: pair[0]))


def _groups(snapshot: Snapshot) -> dict[str, int]:
    """The position of each cluster in the groups of policies; the first, if it has several."""
    groups: dict[str, int] = {}
    for policy in snapshot.facts.policies.values():
        for place, group in enumerate(policy.groups):
            for name in group.clusters if group.clusters is not None else snapshot.facts.clusters:
                groups[name] = min(place, groups.get(name, place))
    return groups


def _used(snapshot: Snapshot, cluster: Cluster) -> np.typing.NDArray[np.bool_]:
    used = np.zeros(len(cluster.nodes), dtype=np.bool_)
    for key in snapshot.holders.get(cluster.name, ()):
        for counts in (snapshot.packings.get((key, cluster.name)) or {}).values():
            used[[position for position, count in counts.items() if count]] = True
    for stray in snapshot.facts.strays.get(cluster.name, ()):
        used[[position for position, count in stray.pods.items() if count]] = True
    return used


def _is_settled(snapshot: Snapshot, cluster: str) -> bool:
    """Whether no claim and no reservation in the cluster may need another node."""
    for key in snapshot.holders.get(cluster, ()):
        workload = snapshot.facts.workloads[key]
        packing = snapshot.packings.get((key, cluster)) or {}
        if _claim(workload, cluster) > sum(sum(entry.values()) for entry in packing.values()):
            return False
    held = (snapshot.facts.workloads[key].reservation for key in snapshot.reserving)
    return all(pair is None or pair[0] != cluster for pair in held)


def _claim(workload: Workload, cluster: str) -> int:
    placed = workload.held.placed if workload.held else ()
    return sum(
        pods.count
        for placement in placed
        if placement.cluster == cluster
        for pods in placement.pods
    )
