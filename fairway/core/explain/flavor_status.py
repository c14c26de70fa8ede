"""What the fleet has of each flavor: nodes, clusters, and what pods may use of these nodes.

For users and for the status of flavors; decisions do not use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.core.model import unit_nanos
from fairway.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorNodes:
    """The nodes of one flavor."""

    flavor: str
    nodes: int = 0
    clusters: tuple[str, ...] = ()
    allocatable: Mapping[str, int] = field(default_factory=dict)  # in nanos, whoever uses it


def flavor_nodes(snapshot: Snapshot) -> list[FlavorNodes]:
    """The nodes of every flavor, ready or not."""
    return [_nodes_of(snapshot, name) for name in sorted(snapshot.facts.flavors)]


def _nodes_of(snapshot: Snapshot, name: str) -> FlavorNodes:
    flavor, count = snapshot.facts.flavors[name], 0
    clusters: list[str] = []
    allocatable: dict[str, int] = {}
    for cluster in snapshot.facts.clusters.values():
        mask = cluster.flavor_nodes(flavor)
        if not mask.any():
            continue
        count += int(mask.sum())
        clusters.append(cluster.name)
        for resource, column in {**cluster.nodes.capacity, **cluster.nodes.whole}.items():
            amount = int(column[mask].sum()) * unit_nanos(resource)
            allocatable[resource] = allocatable.get(resource, 0) + amount
    return FlavorNodes(
        flavor=name,
        nodes=count,
        clusters=tuple(sorted(clusters)),
        allocatable={name: allocatable[name] for name in sorted(allocatable) if allocatable[name]},
    )
