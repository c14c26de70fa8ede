"""Selectors of clusters, resolved to the names they choose.

The core sees names only: expressions are evaluated here, once per selector and set of clusters. An
expression that cannot be evaluated for a cluster does not choose it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.api.meta import ClusterSelector
from fairway.core.model import Clusters
from fairway.governance.cluster_selectors import Budgets, ClusterFacts, chosen, facts_of

__all__ = ["Budgets", "ClusterFacts", "both", "choose", "facts_of"]


def choose(
    selector: ClusterSelector | None,
    clusters: Mapping[str, ClusterFacts],
    budgets: Budgets | None = None,
) -> Clusters:
    """The clusters that a selector chooses; None for a selector that chooses all."""
    if selector is None or selector == ClusterSelector():
        return None
    return chosen(selector, clusters, budgets)


def both(item: Clusters, other: Clusters) -> Clusters:
    """The clusters that both selectors choose."""
    if item is None:
        return other
    return item if other is None else item & other
