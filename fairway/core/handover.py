"""Handover: quota and nodes of victims go to heirs, which wait until the victims are gone.

A victim uses its nodes and its quota until it is confirmed gone. Every workload that takes some of
them in the same plan is its heir and waits for that: the preemptor, and later workloads that take
what the preemptor leaves. If a victim was itself waiting for earlier victims, its heir waits for
these as well.

What is being released already, by earlier victims or for any other reason, has heirs too: before a
workload preempts, all that is on its way out counts as gone, less what other heirs take of it. Not
so replicas of a service that run until others do: nobody can say when they stop.

A victim and its heir never run at the same time, so a queue that both are charged to is charged for
the larger of the two, not for the sum. Otherwise the next preemptor would look for more victims
than it needs. An heir that runs already, or may have started, is charged in full beside its
victims: which part of its usage is new is not known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from fairway.core.allowances import AllowanceKey
from fairway.core.leaving_allowances import holders, leavers, whose_allowance, will_go
from fairway.core.model import FlavorResource, Request, Usage, Workload, usage_of
from fairway.core.nodes import Packing
from fairway.core.quota.tree import ANYWHERE, Tree

if TYPE_CHECKING:
    from fairway.core.ledger import Ledger
    from fairway.core.snapshot import Snapshot


Charges = dict[str, dict[FlavorResource, int]]  # by queue
Charge = tuple[str, Usage]  # to a queue


@dataclass(frozen=True, slots=True)
class Inherited:
    """An amount that a victim still holds and an heir waits for."""

    victim: str  # queue of the victim
    heir: str  # queue of the heir
    heir_key: str
    pair: FlavorResource
    amount: int


class Rebates:
    """Quota charged for both a victim and its heir, subtracted from the tree of a snapshot.

    It is updated as workloads come and go.
    """

    def __init__(self) -> None:
        self._heirs: dict[str, dict[str, None]] = {}  # victim -> its heirs
        self._given: Charges = {}
        self.leavers: dict[str, None] = {}  # workloads of which something is being released

    def add(self, workload: Workload) -> None:
        """Adds a workload that is new or has changed."""
        for key, _ in _victims(workload):
            self._heirs.setdefault(key, {})[workload.key] = None
        if workload.stopping:
            self.leavers[workload.key] = None

    def drop(self, workload: Workload) -> None:
        """Drops a workload that is gone or is about to change."""
        for key, _ in _victims(workload):
            heirs = self._heirs.get(key, {})
            heirs.pop(workload.key, None)
            if not heirs:
                self._heirs.pop(key, None)
        self.leavers.pop(workload.key, None)

    def take_back(self, tree: Tree) -> None:
        """Charges the rebates again, before any charge changes: they depend on all charges."""
        for queue, usage in self._given.items():
            tree.charge(queue, usage)
        self._given = {}

    def give(self, tree: Tree, workloads: Mapping[str, Workload]) -> None:
        """Subtracts the rebates from the tree, once everything is charged."""
        self._given = self._of(tree, workloads)
        for queue, usage in self._given.items():
            tree.charge(queue, _negative(usage))

    def _of(self, tree: Tree, workloads: Mapping[str, Workload]) -> Charges:
        """The rebates, with everything charged in full."""
        leaving = (
            heirs
            for victim, heirs in self._heirs.items()
            if (workload := workloads.get(victim)) is not None and workload.stopping
        )
        heirs = {key: workloads[key] for some in leaving for key in some}
        waiting = sorted(filter(_is_to_come, heirs.values()), key=_turn)
        return overlap(tree, sorted(inheritances(waiting, workloads), key=_by_heir))

    def after(
        self,
        ledger: Ledger,
        gone: Iterable[Charge],
        changed: Mapping[str, Workload],
        workloads: Mapping[str, Workload],
    ) -> Charges:
        """The rebates once some of what leaves is gone; `changed` has those that release it."""
        heirs = {key for some in self._heirs.values() for key in some}
        left = {
            key: changed.get(key) or workloads[key]
            for key in (*self._heirs, *heirs)
            if key in workloads
        }
        with ledger.trial():
            for queue, usage in (*gone, *self._given.items()):
                ledger.charge(queue, usage)
            return self._of(ledger.tree, left)

    @property
    def given(self) -> Charges:
        """What is subtracted from the tree, by queue."""
        return self._given


def inheritances(
    heirs: Sequence[Workload], workloads: Mapping[str, Workload]
) -> Iterator[Inherited]:
    """The amounts that heirs wait for, of each of their victims that is still there.

    Heirs take from victims of their own queue first. Attempts of a victim that are later than the
    one that an heir waits for are ignored.
    """
    left = {
        key: [(placement.attempt, usage_of(placement)) for placement in workloads[key].stopping]
        for heir in heirs
        for key, _ in _victims(heir)
        if key in workloads
    }
    needs = {heir.key: usage_of(*(heir.held.placed if heir.held else ())) for heir in heirs}
    for is_own in (True, False):
        for heir in heirs:
            for key, until in _victims(heir):
                if key not in left:
                    continue
                queues = (queue_of(workloads[key]), queue_of(heir))
                if (queues[0] == queues[1]) == is_own:
                    for attempt, usage in left[key]:
                        if attempt <= until:
                            yield from _take(usage, needs[heir.key], queues, heir.key)


def _take(
    left: dict[FlavorResource, int],
    needs: dict[FlavorResource, int],
    queues: tuple[str, str],
    key: str,
) -> Iterator[Inherited]:
    """Takes what is both left and needed, and subtracts it from both."""
    for pair, amount in left.items():
        part = min(amount, needs.get(pair, 0))
        if part > 0:
            left[pair] -= part
            needs[pair] -= part
            yield Inherited(*queues, key, pair, part)


def overlap(tree: Tree, parts: Iterable[Inherited]) -> Charges:
    """What queues are charged too much for heirs and the victims that they wait for, by queue.

    Each queue is charged for the victims or for their heir, whichever is more at that queue: a
    queue with a lending limit passes less usage on to its parent than it is charged itself.
    """
    result: Charges = {}
    for key, of_heir in groupby(parts, key=_by_heir):
        pair, some = key[1], list(of_heir)
        heir = some[0].heir
        for queue in _meeting(tree, heir, [inherited.victim for inherited in some]):
            without_heir = _less(
                tree, queue, pair, [(heir, sum(inherited.amount for inherited in some))]
            )
            without = _less(
                tree, queue, pair, [(inherited.victim, inherited.amount) for inherited in some]
            )
            surplus = tree.usage_of(queue, pair) - max(without_heir, without)
            if surplus > 0:
                tree.charge(queue, {pair: -surplus})
                of_queue = result.setdefault(queue, {})
                of_queue[pair] = of_queue.get(pair, 0) + surplus
    for queue, usage in result.items():
        tree.charge(queue, usage)
    return result


def _meeting(tree: Tree, heir: str, victims: Sequence[str]) -> list[str]:
    """The queues in which an heir and one of its victims are both charged, from the leaf up."""
    paths = {queue: (queue, *tree.ancestors(queue)) for queue in (heir, *victims)}
    shared = {name for victim in victims for name in paths[victim]}
    return [name for name in paths[heir] if name in shared]


def _less(tree: Tree, queue: str, pair: FlavorResource, gone: Sequence[tuple[str, int]]) -> int:
    """What a queue would be charged without these amounts."""
    for name, amount in gone:
        tree.charge(name, {pair: -amount})
    usage = tree.usage_of(queue, pair)
    for name, amount in gone:
        tree.charge(name, {pair: amount})
    return usage


def _by_heir(part: Inherited) -> tuple[str, FlavorResource]:
    return (part.heir_key, part.pair)


def queue_of(workload: Workload) -> str:
    """The queue that a workload is charged to."""
    return (workload.held.queue if workload.held else "") or workload.queue


def _victims(workload: Workload) -> tuple[tuple[str, int], ...]:
    return workload.held.waits_for_victims if workload.held else ()


def _is_to_come(heir: Workload) -> bool:
    """Whether no part of an heir can run yet."""
    held = heir.held
    return held is not None and held.started_at is None and not held.has_begun


def _turn(heir: Workload) -> tuple[int, float, str]:
    """Order of heirs: those with the fewest victims first, since they have fewer to take from."""
    return (len(_victims(heir)), heir.held.decided_at if heir.held else 0.0, heir.key)


class Leaving:
    """What leaves: victims of this plan, and what was being released before it.

    It notes for which of them the current workload must wait.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._nodes: dict[str, dict[int, list[str]]] = {}  # cluster -> position -> victims there
        self._quota: dict[str, Usage] = {}  # by victim
        self._total: Charges = {}  # of all victims
        self._earlier = _of_earlier(snapshot)  # of what was being released before
        self._settling = self._settle(self._earlier)  # the charges by which it is gone
        self._current = ""
        self._reach = ANYWHERE  # for quota, of the current workload
        self._awaited: dict[str, None] = {}  # by the current workload, in order

    def copy(self) -> Leaving:
        twin = copy(self)
        twin._nodes = {
            cluster: {position: list(keys) for position, keys in nodes.items()}
            for cluster, nodes in self._nodes.items()
        }
        twin._quota = dict(self._quota)
        twin._total = {queue: dict(charges) for queue, charges in self._total.items()}
        twin._awaited = dict(self._awaited)
        return twin

    def turn_to(self, workload: Workload) -> None:
        """Makes a workload the current one; it still waits for its earlier victims."""
        self._current = workload.key
        self._reach = ANYWHERE if workload.preemptible else 0
        self._awaited = dict.fromkeys(self._still_here(workload))

    @contextmanager
    def within(self, reach: int) -> Iterator[None]:
        """The current workload waits for what leaves rather than reach further for quota."""
        before, self._reach = self._reach, min(self._reach, reach)
        try:
            yield
        finally:
            self._reach = before

    def add(self, victim: Workload, usage: Usage) -> None:
        """Adds a victim of the current workload."""
        self._awaited[victim.key] = None
        self._quota[victim.key] = usage
        of_queue = self._total.setdefault(queue_of(victim), {})
        for pair, amount in usage.items():
            of_queue[pair] = of_queue.get(pair, 0) + amount
        for placed in victim.held.placed if victim.held else ():
            nodes = self._nodes.setdefault(placed.cluster, {})
            packing, _ = self._snapshot.on_nodes(victim.key, placed.cluster, {})
            for counts in packing.values():
                for position in counts:
                    nodes.setdefault(position, []).append(victim.key)

    @property
    def earlier(self) -> Collection[str]:
        """The workloads of which something was being released before the plan."""
        return self._earlier

    def let_go(self, ledger: Ledger, clusters: Iterable[str]) -> bool:
        """Within a trial, treats what was being released before as gone; whether there is any.

        That is all quota, and the nodes of some clusters.
        """
        if not self._earlier:
            return False
        for queue, usage in self._settling:
            ledger.charge(queue, usage)
        if self._current in self._earlier:
            ledger.charge(self._queue_of(self._current), self._earlier[self._current])
        for cluster in clusters:
            for leaving in self._snapshot.leaving_in(cluster):
                if leaving.key in self._earlier and leaving.key != self._current:
                    ledger.give_back(cluster, leaving.packing, leaving.requests)
            for _, taken in leavers(self._snapshot, self._earlier, self._current, cluster):
                ledger.spend(cluster, taken, -1)
        return True

    def take(
        self,
        ledger: Ledger,
        queue: str,
        usage: Usage,
        cluster: str,
        packing: Packing,
        requests: Mapping[str, Request],
    ) -> None:
        """Notes from what leaves the current workload takes quota or nodes.

        Called before it is charged.
        """
        if not self._quota and not self._earlier:
            return
        nodes = self._nodes.get(cluster, {})
        for counts in packing.values():
            for position in counts:
                self._awaited.update(dict.fromkeys(nodes.get(position, ())))
        needs = {pair: amount for pair, amount in usage.items() if amount > 0}
        self._awaited.update(dict.fromkeys(self._whose_quota(ledger, queue, needs)))
        if self._earlier:
            self._awaited.update(
                dict.fromkeys(self._whose_nodes(ledger, cluster, packing, requests))
            )
            self._awaited.update(dict.fromkeys(self._whose_old_quota(ledger, queue, needs)))

    def take_allowance(
        self, ledger: Ledger, cluster: str, asked: Mapping[AllowanceKey, int]
    ) -> None:
        """Notes whose part of an allowance the current workload takes; before it is charged."""
        if not self._quota and not self._earlier:
            return
        leaving = [*leavers(self._snapshot, self._earlier, self._current, cluster)]
        gone = holders(self._snapshot, self._quota, cluster)
        self._awaited.update(
            dict.fromkeys(whose_allowance(ledger.rooms[cluster], asked, gone, leaving))
        )

    def victims(self) -> tuple[str, ...]:
        """The workloads that the current one must wait for."""
        result = dict(self._awaited)
        for key in self._awaited:
            result.update(dict.fromkeys(self._still_here(self._snapshot.facts.workloads[key])))
        return tuple(result)

    def _settle(self, keys: Collection[str]) -> list[Charge]:
        """The charges after which what some release is gone, and heirs are charged once."""
        if not keys:
            return []
        snapshot, rebates = self._snapshot, self._snapshot.rebates
        gone: list[Charge] = [
            (self._queue_of(key), _negative(usage))
            for key, usage in self._earlier.items()
            if key in keys
        ]
        workloads = snapshot.facts.workloads
        changed = {
            key: replace(
                workloads[key],
                releasing=tuple(
                    part for part in workloads[key].releasing if not will_go(snapshot, part)
                ),
            )
            for key in keys
        }
        rest = rebates.after(snapshot.ledger, gone, changed, workloads)
        less = [(queue, _negative(usage)) for queue, usage in rest.items()]
        return [*gone, *rebates.given.items(), *less]

    def _whose_nodes(
        self, ledger: Ledger, cluster: str, packing: Packing, requests: Mapping[str, Request]
    ) -> Iterator[str]:
        """The workloads on nodes that are not free enough while these are there."""
        leaving = self._snapshot.leaving_in(cluster) if cluster else ()
        if not leaving:
            return
        needed: dict[tuple[str, int], int] = {}
        for name, counts in packing.items():
            for resource, amount in requests[name]:
                for position, count in counts.items():
                    place = (resource, position)
                    needed[place] = needed.get(place, 0) + amount * count
        free = ledger.rooms[cluster].free
        short = {
            position
            for (resource, position), amount in needed.items()
            if (column := free.get(resource)) is not None and amount > column[position]
        }
        for part in leaving:
            if (
                part.key in self._earlier
                and part.key != self._current
                and any(not short.isdisjoint(counts) for counts in part.packing.values())
            ):
                yield part.key

    def _whose_quota(self, ledger: Ledger, queue: str, needs: Usage) -> Iterable[str]:
        """The victims whose quota is needed; those that are awaited already are left out."""
        others = [
            key
            for key, usage in self._quota.items()
            if key not in self._awaited and any(usage.get(pair) for pair in needs)
        ]
        if not others:
            return ()
        with ledger.trial():
            for name, usage in self._total.items():
                ledger.charge(name, usage)
            if not self._short(ledger.tree, queue, needs):
                return ()  # it fits with the quota of all victims still charged
        with ledger.trial():
            for key in others:
                ledger.charge(self._queue_of(key), self._quota[key])
            return others if self._short(ledger.tree, queue, needs) else ()

    def _short(self, tree: Tree, queue: str, needs: Usage) -> Collection[FlavorResource]:
        """What the current workload lacks in quota; what is not preemptible never borrows."""
        short = dict(tree.shortfall(queue, needs))
        if self._reach != ANYWHERE:
            levels = {pair: tree.borrow_level(queue, {pair: needs[pair]}) for pair in sorted(needs)}
            short.update((pair, 0) for pair, level in levels.items() if level > self._reach)
        return short

    def _whose_old_quota(self, ledger: Ledger, queue: str, needs: Usage) -> Iterable[str]:
        """The fewest, in order, of what was being released before; in the ledger it is charged.

        Those of the same queue come first.
        """
        short = self._short(ledger.tree, queue, needs)
        if not short:
            return ()
        root = (queue, *ledger.tree.ancestors(queue))[-1]
        others = [
            key
            for key, usage in self._earlier.items()
            if key not in self._awaited
            and key != self._current
            and any(usage.get(pair) for pair in short)
            and root in (self._queue_of(key), *ledger.tree.ancestors(self._queue_of(key)))
        ]
        others.sort(key=lambda key: (self._queue_of(key) != queue, key))
        known = [key for key in self._earlier if key in self._awaited]

        def is_enough(count: int) -> bool:
            with ledger.trial():
                for name, usage in self._settle([*known, *others[:count]]):
                    ledger.charge(name, usage)
                return not self._short(ledger.tree, queue, needs)

        return others[: bisect_left(range(len(others)), True, key=is_enough)]

    def _queue_of(self, key: str) -> str:
        return queue_of(self._snapshot.facts.workloads[key])

    def _still_here(self, workload: Workload) -> Iterator[str]:
        for key, _ in workload.held.waits_for_victims if workload.held else ():
            known = self._snapshot.facts.workloads.get(key)
            if known is not None and known.stopping:
                yield key


def _negative(usage: Usage) -> Usage:
    return {pair: -amount for pair, amount in usage.items()}


def _of_earlier(snapshot: Snapshot) -> dict[str, Usage]:
    """What is being stopped, by workload, where its end will be heard of."""
    earlier: dict[str, Usage] = {}
    for key in sorted(snapshot.rebates.leavers):
        releasing = snapshot.facts.workloads[key].releasing
        parts = [part for part in releasing if will_go(snapshot, part)]
        if parts:
            earlier[key] = usage_of(*parts)
    return earlier
