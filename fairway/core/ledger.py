"""Trial usage over a snapshot, with automatic undo.

A plan tries many things that do not come to pass: this flavor, those victims, that cluster. The
ledger holds what the fleet would look like: quota used by each queue, room on the nodes, nodes left
in elastic pools. Everything done inside a trial is undone when the trial ends, unless it is kept:

    with ledger.trial() as trial:
        ledger.charge(queue, usage)
        ledger.take(cluster, packing)
        if good:
            trial.keep()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from fairway.core.model import FlavorResource, Pool, Request, Usage
from fairway.core.nodes import Cluster, Packing, Room
from fairway.core.packing import devices
from fairway.core.quota.tree import Tree

Undo = Callable[[], None]


class Trial:
    """Something that is being tried."""

    __slots__ = ("is_kept",)

    def __init__(self) -> None:
        self.is_kept = False

    def keep(self) -> None:
        """Lets what was done stand, when the trial around it is kept as well."""
        self.is_kept = True


class Ledger:
    """What the fleet would look like."""

    def __init__(self, tree: Tree, clusters: Mapping[str, Cluster]) -> None:
        self.tree = tree
        self.rooms: dict[str, Room] = {}
        self._pools: dict[tuple[str, str], int] = {}
        self._limited: dict[str, list[Pool]] = {}  # by cluster: those that hang on more than that
        for name in sorted(clusters):
            self.rooms[name] = Room(clusters[name])
            self._stock(clusters[name])
        self._undo: list[Undo] = []
        self.freed = 0  # rises whenever some room may have got back something
        self._settled = object()

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """Undoes everything done inside, unless it is kept."""
        mark = len(self._undo)
        trial = Trial()
        try:
            yield trial
        finally:
            if not trial.is_kept:
                self._back_to(mark)

    def _back_to(self, mark: int) -> None:
        if len(self._undo) > mark:
            self.freed += 1
        while len(self._undo) > mark:
            self._undo.pop()()

    def settle(self) -> None:
        """Forgets how to undo: what was kept so far is decided."""
        self._undo.clear()
        self._settled = object()

    def mark(self) -> object:
        """Something that is the same object as long as the ledger says the same.

        Whoever compares marks holds on to them; undoing what was done since brings one back.
        """
        return self._undo[-1] if self._undo else self._settled

    # Quota.

    def charge(self, queue: str, usage: Usage) -> None:
        """Adds usage to a queue and its ancestors; negative amounts give back."""
        charged = dict(usage)
        self.tree.charge(queue, charged)
        self._undo.append(
            lambda: self.tree.charge(queue, {key: -amount for key, amount in charged.items()})
        )

    def release(self, queue: str, usage: Usage) -> None:
        self.charge(queue, {key: -amount for key, amount in usage.items()})

    def used(self, queue: str) -> Mapping[FlavorResource, int]:
        return self.tree.usage(queue)

    # Nodes.

    def take(self, cluster: str, packing: Packing, requests: Mapping[str, Request]) -> None:
        """Puts pods on nodes; `requests` says what one pod of each set needs."""
        self._undo.append(devices.take(self.rooms[cluster], packing, requests))

    def give_back(self, cluster: str, packing: Packing, requests: Mapping[str, Request]) -> None:
        """Takes pods off nodes."""
        self.freed += 1
        self._undo.append(devices.give_back(self.rooms[cluster], packing, requests))

    # Clusters: changes that last, outside of all trials.

    def put_cluster(self, cluster: Cluster) -> Room:
        """A cluster has come, or changed; its room is empty unless the nodes are the same."""
        room = self.rooms.get(cluster.name)
        if room is None:
            room = Room(cluster)
            self.rooms = dict(sorted([*self.rooms.items(), (cluster.name, room)]))
        elif is_same_ground(room.cluster, cluster):
            room.cluster = cluster
        else:
            room.become(cluster)
        self._stock(cluster)
        self.freed += 1
        return room

    def remove_cluster(self, cluster: str) -> None:
        self._unstock(cluster)
        del self.rooms[cluster]

    def renew(self, cluster: str) -> None:
        """Whatever was worked out from a room is worked out anew."""
        self.rooms[cluster].renew()
        self.freed += 1

    def _stock(self, cluster: Cluster) -> None:
        self._unstock(cluster.name)
        for pool in cluster.pools:
            self._pools[cluster.name, pool.name] = pool.left
        self._limited[cluster.name] = [
            pool for pool in cluster.pools if pool.quota or pool.is_unsure
        ]

    def _unstock(self, cluster: str) -> None:
        for key in [key for key in self._pools if key[0] == cluster]:
            del self._pools[key]
        self._limited.pop(cluster, None)

    # Elastic pools.

    def left_in_pool(self, cluster: str, pool: str) -> int:
        return self._pools[cluster, pool]

    def provision(self, cluster: str, pool: str, count: int) -> None:
        self._lessen(cluster, pool, count)
        asked = next((other for other in self._limited[cluster] if other.name == pool), None)
        if asked is None:
            return
        for other in self._limited[cluster]:
            if other is not asked and asked.quota and other.quota == asked.quota:
                self._lessen(cluster, other.name, as_many(asked, other, count))
        if asked.is_unsure:
            self._lessen(cluster, pool, self._pools[cluster, pool])

    def _lessen(self, cluster: str, pool: str, count: int) -> None:
        self._pools[cluster, pool] -= count
        self._undo.append(lambda: self._restock(cluster, pool, count))

    def _restock(self, cluster: str, pool: str, count: int) -> None:
        self._pools[cluster, pool] += count


def as_many(pool: Pool, other: Pool, count: int) -> int:
    """How many nodes of another pool so many of one take away from, where a quota limits both."""
    shape, others = dict(pool.shape), dict(other.shape)
    return max(
        (
            -(-count * shape.get(name, 0) // others[name])
            for name in pool.limited
            if others.get(name)
        ),
        default=0,
    )


def is_same_ground(cluster: Cluster, other: Cluster) -> bool:
    """Whether pods are on the same nodes, by the same rules, in both."""
    return (
        cluster.nodes is other.nodes
        and cluster.labels == other.labels
        and cluster.levels == other.levels
    )
