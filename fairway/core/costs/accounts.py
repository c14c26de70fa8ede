"""Accounts: what each owner held, and for how long, in whole numbers.

Each owner has a meter, which runs from one change of its holdings to the next. Time is in
milliseconds, GPUs in thousandths, rates in billionths per hour. Their products are whole numbers,
and sums are never rounded. So it does not matter how often meters are read, nor how sums are
grouped: parts add up to the whole.

Capacity of a flavor in a cluster that is not held is idle. It has a meter of its own, which changes
with every holder there. Used and idle together are the total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fairway.api.amounts import is_accelerator
from fairway.api.costs import Use
from fairway.core.snapshot import Snapshot

DAY = 86_400_000  # milliseconds
HOUR = 3_600_000

ClusterFlavor = tuple[str, str]  # cluster and flavor


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Key:
    """What a sum is grouped by: use, owner and capacity."""

    use: Use
    namespace: str = ""
    team: str = ""
    queue: str = ""
    workload: str = ""
    cluster: str = ""
    flavor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """GPU time in thousandths x milliseconds, and money in billionths / 3,600,000."""

    gpu_time: int = 0
    money: int = 0

    def plus(self, other: Sum) -> Sum:
        return Sum(gpu_time=self.gpu_time + other.gpu_time, money=self.money + other.money)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What an owner holds of one kind of capacity."""

    key: Key
    gpus: int  # in thousandths
    rate: int = 0  # price per hour of all of it, in billionths

    def over(self, milliseconds: int) -> Sum:
        return Sum(gpu_time=self.gpus * milliseconds, money=self.rate * milliseconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """What a cluster has of a flavor."""

    gpus: int  # in thousandths
    rate: int = 0  # price of one GPU per hour, in billionths


Sums = dict[tuple[int, Key], Sum]  # by day since the epoch, and key


@dataclass(slots=True)
class Accounts:
    """All meters, and the sums that they have shown."""

    sums: Sums = field(default_factory=dict)
    _held: dict[str, tuple[int, tuple[Holding, ...]]] = field(default_factory=dict)
    _used: dict[ClusterFlavor, int] = field(default_factory=dict)  # GPUs that are held
    _supply: dict[ClusterFlavor, Supply] = field(default_factory=dict)
    _idle: dict[ClusterFlavor, tuple[int, Holding]] = field(default_factory=dict)

    def hold(self, owner: str, holdings: tuple[Holding, ...], at: int) -> None:
        """Sets all that an owner holds from a moment on."""
        since, before = self._held.pop(owner, (at, ()))
        at = max(at, since)
        if before == holdings:
            self._held[owner] = (since, before)
            return
        self._add(before, since, at)
        if holdings:
            self._held[owner] = (at, holdings)
        places = self._count(before, -1) | self._count(holdings, +1)
        for place in sorted(places):
            self._rest(place, at)

    def supply(self, supplies: Mapping[ClusterFlavor, Supply], at: int) -> None:
        """Sets what clusters have of each flavor from a moment on."""
        places = {
            pair
            for pair in {*self._supply, *supplies}
            if self._supply.get(pair) != supplies.get(pair)
        }
        self._supply = dict(supplies)
        for place in sorted(places):
            self._rest(place, at)

    def lose(self, holdings: Iterable[Holding], milliseconds: int, at: int) -> None:
        """Adds work of some duration on these holdings that was lost at a moment."""
        for holding in holdings:
            lost = replace(holding, key=replace(holding.key, use="Lost"))
            self._put(at // DAY, lost.key, lost.over(milliseconds))

    def read(self, at: int) -> None:
        """Reads all meters at a moment."""
        for owner, (since, holdings) in list(self._held.items()):
            if since < at:
                self._add(holdings, since, at)
                self._held[owner] = (at, holdings)
        for place, (since, holding) in list(self._idle.items()):
            if since < at:
                self._add((holding,), since, at)
                self._idle[place] = (at, holding)

    def owners(self) -> frozenset[str]:
        return frozenset(self._held)

    def _count(self, holdings: tuple[Holding, ...], sign: int) -> set[ClusterFlavor]:
        places = set()
        for holding in holdings:
            if holding.key.use == "Used":
                place = (holding.key.cluster, holding.key.flavor)
                self._used[place] = self._used.get(place, 0) + sign * holding.gpus
                places.add(place)
        return places

    def _rest(self, place: ClusterFlavor, at: int) -> None:
        """Restarts the meter of what is idle in a place, from a moment on."""
        since, before = self._idle.pop(place, (at, None))
        at = max(at, since)
        if before is not None:
            self._add((before,), since, at)
        supply = self._supply.get(place)
        gpus = max(0, supply.gpus - self._used.get(place, 0)) if supply is not None else 0
        if supply is not None and gpus:
            key = Key(use="Idle", cluster=place[0], flavor=place[1])
            self._idle[place] = (at, Holding(key=key, gpus=gpus, rate=supply.rate * gpus // 1000))

    def _add(self, holdings: Iterable[Holding], since: int, until: int) -> None:
        for day, milliseconds in days_of(since, until):
            for holding in holdings:
                self._put(day, holding.key, holding.over(milliseconds))

    def _put(self, day: int, key: Key, more: Sum) -> None:
        if more != Sum():
            self.sums[day, key] = self.sums.get((day, key), Sum()).plus(more)


def days_of(since: int, until: int) -> Iterator[tuple[int, int]]:
    """The days between two moments, with the milliseconds of each."""
    while since < until:
        day = since // DAY
        end = min(until, (day + 1) * DAY)
        yield day, end - since
        since = end


def fold(sums: Mapping[Key, Sum], most: int) -> dict[Key, Sum]:
    """Folds sums into at most `most` rows: the smallest are merged if only workloads differ.

    Only names are lost, no amounts. If there are still too many rows, namespaces, queues and places
    are dropped as well, one after the other.
    """
    for shorten in _SHORTER:
        if len(sums) <= most:
            break
        ranked = sorted(sums, key=lambda total: (-sums[total].money, -sums[total].gpu_time, total))
        kept = {key: sums[key] for key in ranked[: most // 2]}
        for key in ranked[most // 2 :]:
            short = shorten(key)
            kept[short] = kept.get(short, Sum()).plus(sums[key])
        sums = kept
    return dict(sums)


_SHORTER: tuple[Callable[[Key], Key], ...] = (
    lambda key: replace(key, workload=""),
    lambda key: replace(key, workload="", namespace="", team=""),
    lambda key: replace(key, workload="", namespace="", team="", queue=""),
    lambda key: Key(use=key.use),
)


def supplies(snapshot: Snapshot, *, is_ready: bool = True) -> dict[ClusterFlavor, int]:
    """Accelerators on nodes that are ready, or are not, in thousandths, by cluster and flavor.

    A node with several flavors counts for the first by name; a node without one, for the empty
    name.
    """
    result: dict[ClusterFlavor, int] = {}
    for name, cluster in snapshot.facts.clusters.items():
        counted = [other for other in cluster.nodes.capacity if is_accelerator(other)]
        if not counted:
            continue
        left = cluster.nodes.ready.copy() if is_ready else ~cluster.nodes.ready
        total = np.sum([cluster.nodes.capacity[other] for other in counted], axis=0)
        for flavor in (*sorted(snapshot.facts.flavors), ""):
            mine = left.copy()
            if flavor:
                mine &= cluster.flavor_nodes(snapshot.facts.flavors[flavor])
            gpus = int(total[mine].sum())
            if gpus:
                result[name, flavor] = gpus
            left = left & ~mine
    return result
