"""How large a fleet is, and which of its GPUs take no pods now.

For metrics; decisions do not use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairway.core.costs.accounts import ClusterFlavor, supplies
from fairway.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The size of what is planned."""

    workloads: int
    queues: int
    clusters: int
    nodes: int
    closed: frozenset[str]  # clusters that get no new pods
    unready: Mapping[ClusterFlavor, int]  # thousandths of GPUs on nodes that take no pods


def extent(snapshot: Snapshot) -> Extent:
    facts = snapshot.facts
    clusters = facts.clusters.values()
    return Extent(
        workloads=len(facts.workloads),
        queues=len(facts.queues),
        clusters=len(facts.clusters),
        nodes=sum(len(cluster.nodes) for cluster in clusters),
        closed=frozenset(cluster.name for cluster in clusters if not cluster.is_open),
        unready=supplies(snapshot, is_ready=False),
    )
