"""Trial usage over a snapshot, with automatic undo.

A plan tries many alternatives: flavors, victims, clusters. The ledger holds the state that the
fleet would have: quota used by each queue, room on the nodes, what is taken of the allowances of
namespaces, nodes left in elastic pools.
Everything done inside a trial is undone when the trial ends, unless it is kept:

    with ledger.trial() as trial:
        ledger.charge(queue, usage)
        ledger.take(cluster, packing, requests)
        if good:
            trial.keep()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from fairway.core.allowances import AllowanceKey
from fairway.core.model import FlavorResource, Pool, Request, Usage
from fairway.core.nodes import Cluster, Packing, Room
from fairway.core.packing import devices
from fairway.core.quota.tree import Tree

Undo = Callable[[], None]


class Trial:
    """A group of changes that is undone unless it is kept."""

    __slots__ = ("is_kept",)

    def __init__(self) -> None:
        self.is_kept = False

    def keep(self) -> None:
        """Keeps what was done, provided that the enclosing trial is kept too."""
        self.is_kept = True


class Ledger:
    """The state that the fleet would have."""

    def __init__(self, tree: Tree, clusters: Mapping[str, Cluster]) -> None:
        self.tree = tree
        self.rooms: dict[str, Room] = {}
        self._spent: dict[str, dict[AllowanceKey, int]] = {}  # by cluster, known or not
        self._pools: dict[tuple[str, str], int] = {}
        self._limited: dict[str, list[Pool]] = {}  # by cluster: with a quota, or unsure
        for name in sorted(clusters):
            self.rooms[name] = self._room(clusters[name])
            self._stock(clusters[name])
        self._undo: list[Undo] = []
        self.freed = 0  # increases whenever a room may have more free
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
        """Discards the undo log: what was kept so far is final."""
        self._undo.clear()
        self._settled = object()

    def mark(self) -> object:
        """An object that stays the same as long as the ledger's state does.

        A caller that compares marks keeps a reference to them. Undoing the changes since a mark
        restores it.
        """
        return self._undo[-1] if self._undo else self._settled

    # Quota.

    def charge(self, queue: str, usage: Usage) -> None:
        """Adds usage to a queue and its ancestors; negative amounts release it."""
        charged = dict(usage)
        self.tree.charge(queue, charged)
        self._undo.append(
            lambda: self.tree.charge(queue, {key: -amount for key, amount in charged.items()})
        )

    def release(self, queue: str, usage: Usage) -> None:
        self.charge(queue, {key: -amount for key, amount in usage.items()})

    def usage(self, queue: str) -> Mapping[FlavorResource, int]:
        return self.tree.usage(queue)

    # Nodes.

    def take(self, cluster: str, packing: Packing, requests: Mapping[str, Request]) -> None:
        """Puts pods on nodes; `requests` says what one pod of each set needs."""
        self._undo.append(devices.take(self.rooms[cluster], packing, requests))

    def give_back(self, cluster: str, packing: Packing, requests: Mapping[str, Request]) -> None:
        """Takes pods off nodes."""
        self.freed += 1
        self._undo.append(devices.give_back(self.rooms[cluster], packing, requests))

    # Allowances.

    def spend(self, cluster: str, amounts: Mapping[AllowanceKey, int], sign: int = 1) -> None:
        """Takes some of the allowances of a cluster; with sign -1, gives it back."""
        if not amounts:
            return
        if sign < 0:
            self.freed += 1
        self._move(cluster, amounts, sign)
        self._undo.append(lambda: self._move(cluster, amounts, -sign))

    def _move(self, cluster: str, amounts: Mapping[AllowanceKey, int], sign: int) -> None:
        spent = self._spent.setdefault(cluster, {})
        for key, amount in amounts.items():
            spent[key] = spent.get(key, 0) + sign * amount
            if not spent[key]:
                del spent[key]

    def _room(self, cluster: Cluster) -> Room:
        room = Room(cluster)
        room.spent = self._spent.setdefault(cluster.name, {})
        return room

    # Clusters: permanent changes, outside of all trials.

    def put_cluster(self, cluster: Cluster) -> Room:
        """Adds or replaces a cluster; its room is emptied unless nodes, labels and levels match."""
        room = self.rooms.get(cluster.name)
        if room is None:
            room = self._room(cluster)
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
        """Invalidates what was derived from a room."""
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
    """How many nodes of `other` are lost if `count` of `pool` are provisioned from one quota."""
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
    """Whether both have the same nodes, labels and topology levels, so that packings hold."""
    return (
        cluster.nodes is other.nodes
        and cluster.labels == other.labels
        and cluster.levels == other.levels
    )
