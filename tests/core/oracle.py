"""Brute force: may a gang start at all? Every cluster, every flavor, every way to place its pods.

It knows the rules as stated and none of the code that plans: quota of one queue that stands alone,
labels of flavors, what nodes have, pods that must be in one rack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Pods of one set: what each needs, how many, and whether one rack must hold them all."""

    needs: tuple[tuple[str, int], ...]
    count: int
    in_one_rack: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node: its rack, the kinds that its labels name, and what it has."""

    rack: str
    kinds: frozenset[str]
    has: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One gang, the flavors that each group of resources may come from, quota and clusters."""

    pods: tuple[Pods, ...]
    groups: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]  # (resources, flavors)
    quota: tuple[tuple[tuple[str, str], int], ...]  # ((flavor, resource), amount)
    clusters: tuple[tuple[Machine, ...], ...]


def can_start(case: Case) -> bool:
    """Whether some cluster and choice of flavors hold the gang, within quota."""
    for flavors in product(*(names for _, names in case.groups)):
        if _within_quota(case, flavors):
            for cluster in case.clusters:
                nodes = [node for node in cluster if all(one in node.kinds for one in flavors)]
                if _packs(case.pods, nodes, [dict(node.has) for node in nodes]):
                    return True
    return False


def _within_quota(case: Case, flavors: Sequence[str]) -> bool:
    quota = dict(case.quota)
    for (resources, _), flavor in zip(case.groups, flavors, strict=True):
        for resource in resources:
            needed = sum(dict(one.needs).get(resource, 0) * one.count for one in case.pods)
            if needed > quota.get((flavor, resource), 0):
                return False
    return True


def _packs(pods: Sequence[Pods], nodes: Sequence[Machine], free: list[dict[str, int]]) -> bool:
    if not pods:
        return True
    first, rest = pods[0], pods[1:]
    for counts in _ways(first.count, len(nodes)):
        racks = {nodes[at].rack for at, count in enumerate(counts) if count}
        if first.in_one_rack and len(racks) > 1:
            continue
        left = [
            {name: has - dict(first.needs).get(name, 0) * count for name, has in one.items()}
            for one, count in zip(free, counts, strict=True)
        ]
        if all(has >= 0 for one in left for has in one.values()) and _packs(rest, nodes, left):
            return True
    return False


def _ways(count: int, nodes: int) -> Iterator[tuple[int, ...]]:
    """All ways to put so many equal pods on so many nodes."""
    if nodes == 0:
        if count == 0:
            yield ()
        return
    for here in range(count + 1):
        for rest in _ways(count - here, nodes - 1):
            yield (here, *rest)
