"""Nodes that have two flavors of one resource group, which is an error of whoever labelled them.

A node has at most one flavor for each resource group, else the same capacity would be counted, and
charged, in two ways. A node that has two of them is of neither, for everybody, until labels or
flavors are mended: nothing new is put there, and plans say so. What runs there stays.

Flavors that ask for different values of one label never meet on a node; the others of a group are
rivals. Most fleets have no rivals at all, so that most often there is nothing to look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fairway.core.model import Flavor, ResourceGroup
from fairway.core.nodes import Cluster

# Flavor -> the others that a node might have as well, and must not.
Rivals = Mapping[str, tuple[Flavor, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Nodes of a cluster that have two flavors of one resource group."""

    cluster: str
    first: str
    second: str
    node: str  # the first of them
    count: int


def rivals_of(groups: Iterable[ResourceGroup], flavors: Mapping[str, Flavor]) -> Rivals:
    """The rivals of each flavor that has some, by name."""
    lists = {tuple(sorted(set(group.flavors))) for group in groups}
    pairs = {pair for names in lists for pair in combinations(names, 2)}
    found: dict[str, list[Flavor]] = {}
    for first, second in sorted(pairs):
        one, other = flavors.get(first), flavors.get(second)
        if one is not None and other is not None and _may_meet(one, other):
            found.setdefault(first, []).append(other)
            found.setdefault(second, []).append(one)
    return {name: tuple(others) for name, others in found.items()}


def _may_meet(one: Flavor, other: Flavor) -> bool:
    """Whether a node can have both, as far as their labels say."""
    return _agree(one.node_labels, other.node_labels) and _agree(
        one.cluster_labels, other.cluster_labels
    )


def _agree(some: Iterable[tuple[str, str]], others: Iterable[tuple[str, str]]) -> bool:
    values = dict(others)
    return all(values.get(key, value) == value for key, value in some)


def overlaps(
    clusters: Mapping[str, Cluster], flavors: Mapping[str, Flavor], rivals: Rivals
) -> Iterator[Overlap]:
    """The nodes that are in doubt, by cluster and pair of flavors."""
    for name in sorted(clusters) if rivals else ():
        cluster = clusters[name]
        for first, others in rivals.items():
            mine = cluster.flavor_nodes(flavors[first])
            for other in others:
                both = mine & cluster.flavor_nodes(other)
                if first < other.name and both.any():
                    yield Overlap(
                        cluster=name,
                        first=first,
                        second=other.name,
                        node=cluster.nodes.names[int(both.argmax())],
                        count=int(np.count_nonzero(both)),
                    )
