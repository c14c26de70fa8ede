"""Quota that victims still have and others hold already: it is charged once.

A victim is charged for what it leaves until it is gone, and whoever waits for it is charged from
the moment in which it was decided. They never run at the same time, so both at once are one too
many, and the next who preempts would look for more victims than it needs. What both are charged at
the lowest queue that they share is given back there. One that runs already, or may have begun to,
and gets more is charged beside its victims all the same: what of it is new can't be told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairway.core.model import FlavorResource, Workload, usage_of
from fairway.core.turns.quota import Tree

if TYPE_CHECKING:
    from fairway.core.ledger import Ledger

Charges = dict[str, dict[FlavorResource, int]]  # by queue


@dataclass(frozen=True, slots=True)
class Inherited:
    """An amount that a victim still has and an heir waits for."""

    victim: str  # the queue of each
    heir: str
    pair: FlavorResource
    amount: int


class Rebates:
    """What is given back in a snapshot, kept up as workloads come and go."""

    def __init__(self) -> None:
        self._heirs: dict[str, dict[str, None]] = {}  # victim -> who waits or waited for it
        self._given: Charges = {}
        self._leaving: Charges = {}  # all that is about to be given back

    def add(self, workload: Workload) -> None:
        """A workload has come, or changed."""
        for key, _ in _victims(workload):
            self._heirs.setdefault(key, {})[workload.key] = None
        self._count(workload, 1)

    def drop(self, workload: Workload) -> None:
        """A workload is gone, or about to change."""
        for key, _ in _victims(workload):
            heirs = self._heirs.get(key, {})
            heirs.pop(workload.key, None)
            if not heirs:
                self._heirs.pop(key, None)
        self._count(workload, -1)

    def _count(self, workload: Workload, sign: int) -> None:
        if not workload.releasing:
            return
        queue = queue_of(workload)
        of_queue = self._leaving.setdefault(queue, {})
        for pair, amount in usage_of(*workload.releasing).items():
            of_queue[pair] = of_queue.get(pair, 0) + sign * amount
            if not of_queue[pair]:
                del of_queue[pair]
        if not of_queue:
            del self._leaving[queue]

    def take_back(self, tree: Tree) -> None:
        """Before charges change: what is given back hangs on all of them."""
        for queue, usage in self._given.items():
            tree.charge(queue, usage)
        self._given = {}

    def give(self, tree: Tree, workloads: Mapping[str, Workload]) -> None:
        """Once everything is charged."""
        if not self._heirs:
            return
        leaving = (
            heirs
            for victim, heirs in self._heirs.items()
            if (found := workloads.get(victim)) is not None and found.releasing
        )
        heirs = {key: workloads[key] for some in leaving for key in some}
        waiting = sorted(filter(_is_to_come, heirs.values()), key=_turn)
        if waiting:
            self._given = overlap(tree, list(inherited(waiting, workloads)))
            for queue, usage in self._given.items():
                tree.charge(queue, {pair: -amount for pair, amount in usage.items()})

    def let_go(self, ledger: Ledger) -> None:
        """Within a trial: everything that leaves is gone."""
        for queue, usage in self._leaving.items():
            ledger.release(queue, usage)
        for queue, usage in self._given.items():
            ledger.charge(queue, usage)


def inherited(heirs: Sequence[Workload], workloads: Mapping[str, Workload]) -> Iterator[Inherited]:
    """What heirs wait for, of each of their victims that is still there.

    All take from victims of their own queue first. What a victim got later, and leaves as well, is
    no concern of theirs.
    """
    left = {
        key: [(one.attempt, usage_of(one)) for one in workloads[key].releasing]
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
                            yield from take(usage, needs[heir.key], *queues)


def take(
    left: dict[FlavorResource, int], needs: dict[FlavorResource, int], victim: str, heir: str
) -> Iterator[Inherited]:
    """What is needed and there; both become less by it."""
    for pair, amount in left.items():
        part = min(amount, needs.get(pair, 0))
        if part > 0:
            left[pair] -= part
            needs[pair] -= part
            yield Inherited(victim, heir, pair, part)


def overlap(tree: Tree, parts: Iterable[Inherited]) -> Charges:
    """What victims and heirs are both charged, at the lowest queue that they share.

    A queue that keeps quota to itself may charge less to the queues above than what it is charged
    itself, so one after the other is taken away, and it is seen what that changes.
    """
    found: Charges = {}
    done = []
    for part in parts:
        shared = tree.lowest_common_ancestor(part.victim, part.heir)
        if shared is None:
            continue
        done.append(part)
        drops = []
        for queue in (part.victim, part.heir):
            before = tree.usage_of(shared, part.pair)
            tree.charge(queue, {part.pair: -part.amount})
            drops.append(before - tree.usage_of(shared, part.pair))
        of_queue = found.setdefault(shared, {})
        of_queue[part.pair] = of_queue.get(part.pair, 0) + min(drops)
    for part in done:
        tree.charge(part.victim, {part.pair: part.amount})
        tree.charge(part.heir, {part.pair: part.amount})
    return found


def queue_of(workload: Workload) -> str:
    """The queue that a workload is charged to."""
    return (workload.held.queue if workload.held else "") or workload.queue


def _victims(workload: Workload) -> tuple[tuple[str, int], ...]:
    return workload.held.waits_for_victims if workload.held else ()


def _is_to_come(heir: Workload) -> bool:
    """Whether nothing of it can run yet."""
    held = heir.held
    return held is not None and held.started_at is None and not held.has_begun


def _turn(heir: Workload) -> tuple[int, float, str]:
    """Those with the fewest victims first: they have no others to inherit from."""
    return (len(_victims(heir)), heir.held.decided_at if heir.held else 0.0, heir.key)
