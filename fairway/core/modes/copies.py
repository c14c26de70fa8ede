"""Copies of a Duplicated workload in groups of which only so many clusters carry one.

Such a group is a failover group: a cluster that carries a copy keeps it while it can, and another
cluster of the group takes it over once the first has lost it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fairway.core.clusters.candidates import group_of
from fairway.core.model import Policy

if TYPE_CHECKING:
    from fairway.core.modes.division import DivisionTarget


def carriers(places: Sequence[DivisionTarget], policy: Policy) -> list[DivisionTarget]:
    """The places that may carry a copy: those that have one first, then in the order given.

    A cluster that cannot be used now still counts in its group while it has a copy.
    """
    left = {group.name: group.copies for group in policy.groups}
    result = []
    for place in sorted(places, key=lambda target: target.assigned == 0):
        group = group_of(place.cluster, policy) or ""
        most = left.get(group)
        if most is None or most > 0:
            result.append(place)
        if most is not None:
            left[group] = most - 1
    return result


def missing_copies(held: Iterable[str], clusters: Iterable[str], policy: Policy) -> dict[str, int]:
    """How many copies each group lacks, of those that say how many; by name, without zeros."""
    groups = {group.name: group.copies for group in policy.groups if group.copies is not None}
    if not groups:
        return {}
    has = Counter(group_of(name, policy) for name in held)
    sizes = Counter(group_of(name, policy) for name in clusters)
    lacks = {name: min(most, sizes[name]) - has[name] for name, most in groups.items()}
    return {name: count for name, count in lacks.items() if count > 0}
