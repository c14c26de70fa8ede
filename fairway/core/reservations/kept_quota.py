"""Quota kept for its owner: what is free of it waits for the head of the queue that owns it.

A workload at the head of its queue may need more than is free now to start, though its queue owns
enough, or a queue above that: others have borrowed it, and cannot be made to give it back at once.
If they could also borrow the rest, bit by bit, the owner might never start. So what is free of the
owner's quota is charged to the head while others decide. Workloads of queues below the same owner
decide without that: which of them goes first is settled among them.

What counts is the smallest size and the forms that are due: of a service a replica, of a sweep a
task. Only heads that lack quota count. Nodes are kept by reservations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
        self._of_owner: dict[str, dict[str, None]] = {}  # owner -> queues with heads

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
        """Keeps quota for a workload that waits for it, if it is the first of its queue to do."""
        if workload.held is not None or workload.queue in self._heads:
            return False
        owned = self._owned(workload)
        if owned is None:
            return False
        self._heads[workload.queue] = workload
        self._of_owner.setdefault(owned[0], {})[workload.queue] = None
        self._charge(workload.queue)
        return True

    def turn_to(self, workload: Workload) -> None:
        """Before a workload is decided: owners that it is below keep nothing from it."""
        for queue in self._beside(workload.queue):
            self._lift(queue)

    def settle(self, workload: Workload, *, is_started: bool) -> None:
        """After a workload was decided: nothing is kept any longer for one that started."""
        head = self._heads.get(workload.queue)
        if is_started and head is not None and head.key == workload.key:
            del self._heads[workload.queue]
            for queues in self._of_owner.values():
                queues.pop(workload.queue, None)
        for queue in self._beside(workload.queue):
            if queue not in self._charged:
                self._charge(queue)

    def _beside(self, queue: str) -> list[str]:
        """The queues with heads whose owner a queue is below, or is itself."""
        if not self._heads:
            return []
        path = (queue, *self._planning.ledger.tree.ancestors(queue))
        return [other for name in path for other in self._of_owner.get(name, ())]

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
        owned = self._owned(self._heads[queue])
        if owned is not None and owned[1]:
            self._planning.ledger.charge(queue, owned[1])
            self._charged[queue] = owned[1]

    def _lift(self, queue: str) -> None:
        kept = self._charged.pop(queue, None)
        if kept:
            self._planning.ledger.release(queue, kept)

    def _owned(self, workload: Workload) -> tuple[str, dict[FlavorResource, int]] | None:
        """The lowest queue that owns enough for a workload, and what is free of it; None: none."""
        node = self._planning.ledger.tree.node(workload.queue)
        if node is None or not node.is_usable:
            return None
        wanted = list(self._wanted(workload))
        while node.parent is not None:  # nobody borrows from a root
            for usage in wanted:
                if all(cell.usage + more <= cell.subtree for cell, more in added_at(node, usage)):
                    return node.name, {
                        pair: min(amount, max(0, _own_free(node, pair)))
                        for pair, amount in usage.items()
                        if node.cell(pair).is_limited
                    }
            node = node.parent
        return None

    def _wanted(self, workload: Workload) -> Iterator[Usage]:
        """What a workload needs to start: full size first, then the smallest, in each form due."""
        planning = self._planning
        waited = planning.now - workload.queued_at
        for form in workload.forms:
            if form.after_seconds > waited:
                continue
            options = planning.assignments(workload, form)
            yield from (option.full_usage(form) for option in options)
            if form.is_elastic:
                smallest = form.smallest
                yield from (option.full_usage(smallest) for option in options)


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
