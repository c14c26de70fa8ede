"""Quota kept for its owner: what is free of it waits for the head of the queue that owns it.

A gang at the head of its queue may need more than is free now, though its queue owns enough: others
have borrowed it, and cannot be made to give it back at once. If they could also borrow the rest,
bit by bit, the owner might never start. So what is free of the queue's own quota is charged to it
while other queues decide. Workloads of the same queue decide without that: which of them goes first
is the queue's own strategy.

Only heads that lack quota count. Nodes are kept by reservations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairway.core.model import FlavorResource, Usage, Workload
from fairway.core.quota.shares import added_at
from fairway.core.quota.tree import Node

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound


class KeptQuota:
    """The quota that is kept while one plan is made."""

    def __init__(self, planning: PlanningRound) -> None:
        self._planning = planning
        self._heads: dict[str, Workload] = {}  # by queue
        self._charged: dict[str, Usage] = {}  # by queue

    @property
    def heads(self) -> Mapping[str, str]:
        """The heads for which quota is kept, by queue."""
        return {queue: workload.key for queue, workload in self._heads.items()}

    def remember(self, heads: Mapping[str, str]) -> None:
        """Keeps quota for the heads of an earlier part, or of an earlier plan."""
        facts = self._planning.snapshot.facts
        for queue, key in heads.items():
            workload = facts.workloads.get(key)
            if workload is not None and workload.is_waiting and workload.queue == queue:
                self.keep(workload)

    def keep(self, workload: Workload) -> bool:
        """Keeps quota for a gang that waits for it, if it is the first of its queue to do so."""
        if workload.mode != "Gang" or workload.held is not None or workload.queue in self._heads:
            return False
        if self._owned(workload) is None:
            return False
        self._heads[workload.queue] = workload
        self._charge(workload.queue)
        return True

    def turn_to(self, workload: Workload) -> None:
        """Before a workload is decided: its own queue keeps nothing from it."""
        self._lift(workload.queue)

    def settle(self, workload: Workload, *, is_started: bool) -> None:
        """After a workload was decided: nothing is kept any longer for one that started."""
        head = self._heads.get(workload.queue)
        if head is None:
            return
        if is_started and head.key == workload.key:
            del self._heads[workload.queue]
        else:
            self._charge(workload.queue)

    def keeper(self, queue: str, usage: Usage) -> Workload | None:
        """The head of another queue but for which some usage would fit; None if it would not."""
        if not self._charged:
            return None
        ledger = self._planning.ledger
        with ledger.trial():
            for other, kept in self._charged.items():
                ledger.release(other, kept)
                if ledger.tree.fits(queue, usage):
                    return self._heads[other]
        return None

    def _charge(self, queue: str) -> None:
        kept = self._owned(self._heads[queue])
        if kept:
            self._planning.ledger.charge(queue, kept)
            self._charged[queue] = kept

    def _lift(self, queue: str) -> None:
        kept = self._charged.pop(queue, None)
        if kept:
            self._planning.ledger.release(queue, kept)

    def _owned(self, workload: Workload) -> dict[FlavorResource, int] | None:
        """What is free of all that a workload needs; None if its queue does not own enough."""
        planning, form = self._planning, workload.forms[0]
        node = planning.ledger.tree.node(workload.queue)
        if node is None or not node.is_usable or node.parent is None:
            return None  # nobody borrows from a root
        for option in planning.assignments(workload, form):
            usage = option.full_usage(form)
            if all(cell.usage + more <= cell.subtree for cell, more in added_at(node, usage)):
                return {
                    pair: min(amount, max(0, _own_free(node, pair)))
                    for pair, amount in usage.items()
                    if node.cell(pair).is_limited
                }
        return None


def _own_free(node: Node, pair: FlavorResource) -> int:
    """What is free of a queue's own quota: what is free, less what others own and do not use."""
    free = node.cell(pair).available()
    while node.parent is not None:
        others = sum(
            max(0, cell.lent - max(0, cell.usage - cell.kept))
            for other in node.parent.children
            if other is not node and (cell := other.cell(pair)).is_limited
        )
        free = min(free, node.parent.cell(pair).available() - others)
        node = node.parent
    return free
