"""Brute force: what becomes of a gang, or of a service, that waits alone in a small fleet?

Every cluster, every flavor, every way to place its pods, every set of victims. It knows the rules
as stated and none of the code that plans: quota of one queue that stands alone, labels of flavors,
what nodes have, pods that must be in one rack, who yields to whom within a queue, Webster's method.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product


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
class Runner:
    """One pod that runs, less urgent than whoever waits."""

    key: str
    priority: int
    ran: int  # seconds, all of them lost if it must go
    cluster: int
    node: int
    flavors: tuple[str, ...]  # one for each group
    needs: tuple[tuple[str, int], ...]

    @property
    def loss(self) -> int:
        """Work lost: run time times what it uses, an accelerator counting as a hundred CPUs."""
        needs = dict(self.needs)
        return self.ran * 1000 * (needs.get("cpu", 0) + 100 * needs.get("nvidia.com/gpu", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One gang, the flavors that each group of resources may come from, quota and clusters."""

    pods: tuple[Pods, ...]
    groups: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]  # (resources, flavors)
    quota: tuple[tuple[tuple[str, str], int], ...]  # ((flavor, resource), amount)
    clusters: tuple[tuple[Machine, ...], ...]
    runs: tuple[Runner, ...] = ()


def can_start(case: Case) -> bool:
    """Whether some cluster and choice of flavors hold the gang, within quota, as things are."""
    return any(
        _within_quota(case, flavors, case.runs) and _holds(case, at, flavors, case.runs)
        for flavors in product(*(names for _, names in case.groups))
        for at in range(len(case.clusters))
    )


def victims(case: Case) -> tuple[int, frozenset[str]] | None:
    """Where a gang that cannot start as things are starts, and who yields to it; none: nowhere.

    Of all choices of flavors, for each priority from the highest: the priority, the least work
    lost, the fewest; then the first cluster. Nobody yields in vain.
    """
    found = [
        (_harm(some), at, some)
        for flavors in product(*(names for _, names in case.groups))
        for at in range(len(case.clusters))
        for some in _enough(case, at, flavors)
    ]
    if not found:
        return None
    _, at, some = min(found, key=lambda item: item[:2])
    return at, frozenset(item.key for item in some)


def _harm(some: Sequence[Runner]) -> list[tuple[int, int, int]]:
    priorities = sorted({item.priority for item in some}, reverse=True)
    return [
        (priority, sum(losses), len(losses))
        for priority in priorities
        if (losses := [item.loss for item in some if item.priority == priority])
    ]


def _enough(case: Case, at: int, flavors: Sequence[str]) -> Iterator[tuple[Runner, ...]]:
    """The sets of runners without whom the gang starts in a cluster, none of them in vain."""
    is_room = _holds(case, at, flavors, case.runs)
    if is_room and _within_quota(case, flavors, case.runs):
        return
    # Where only quota is short they may be anywhere; where room is, they are in the cluster.
    candidates = [item for item in case.runs if is_room or item.cluster == at]
    known: list[frozenset[str]] = []
    for number in range(1, len(candidates) + 1):
        for some in combinations(candidates, number):
            keys = frozenset(item.key for item in some)
            if any(less <= keys for less in known):
                continue
            rest = [item for item in case.runs if item.key not in keys]
            if _within_quota(case, flavors, rest) and _holds(case, at, flavors, rest):
                known.append(keys)
                yield some


def copies(case: Case, at: int, flavors: Sequence[str], most: int) -> int:
    """How many times all the pods fit in a cluster, up to so many; each copy has its own rack."""
    found = 0
    while found < most:
        more: list[Pods] = []
        for pod in case.pods:
            if pod.in_one_rack and pod.count > 1:
                more.extend([pod] * (found + 1))
            else:
                more.append(replace(pod, count=pod.count * (found + 1), in_one_rack=False))
        if not _holds(replace(case, pods=tuple(more)), at, flavors, case.runs):
            break
        found += 1
    return found


def allowed(case: Case, flavors: Sequence[str], most: int) -> int:
    """How many times all the pods are within quota, up to so many."""
    found = 0
    while found < most and _within_quota(
        replace(case, pods=tuple(replace(pod, count=pod.count * (found + 1)) for pod in case.pods)),
        flavors,
        case.runs,
    ):
        found += 1
    return found


def webster(seats: int, weights: Sequence[int], rooms: Sequence[int]) -> list[int]:
    """Seats one by one, to the largest weight by 2 s + 1; of equals to who has fewer, the first."""
    given = [0] * len(weights)
    for _ in range(seats):
        open_ones = [at for at, room in enumerate(rooms) if given[at] < room and weights[at]]
        if not open_ones:
            break
        best = max(
            open_ones, key=lambda at: (Fraction(weights[at], 2 * given[at] + 1), -given[at], -at)
        )
        given[best] += 1
    return given


def _holds(case: Case, at: int, flavors: Sequence[str], runs: Sequence[Runner]) -> bool:
    """Whether a cluster has room for the pods, beside those that run there."""
    free = [dict(node.has) for node in case.clusters[at]]
    for item in runs:
        if item.cluster == at:
            for name, amount in item.needs:
                free[item.node][name] -= amount
    chosen = [
        position
        for position, node in enumerate(case.clusters[at])
        if all(flavor in node.kinds for flavor in flavors)
    ]
    nodes = [case.clusters[at][position] for position in chosen]
    return _packs(case.pods, nodes, [free[position] for position in chosen])


def _within_quota(case: Case, flavors: Sequence[str], runs: Sequence[Runner]) -> bool:
    quota = dict(case.quota)
    for group, ((resources, _), flavor) in enumerate(zip(case.groups, flavors, strict=True)):
        for resource in resources:
            needed = sum(dict(pod.needs).get(resource, 0) * pod.count for pod in case.pods)
            used = sum(
                dict(item.needs).get(resource, 0) for item in runs if item.flavors[group] == flavor
            )
            if needed + used > quota.get((flavor, resource), 0):
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
            {name: has - dict(first.needs).get(name, 0) * count for name, has in value.items()}
            for value, count in zip(free, counts, strict=True)
        ]
        if all(has >= 0 for item in left for has in item.values()) and _packs(rest, nodes, left):
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
