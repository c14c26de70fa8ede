"""The order in which queues start workloads.

The order is a tournament from the leaves of the quota tree to its root. When something changes, as
few matches as possible are played again. `shares` defines shares and the decay of past usage; its
names are exported here too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from fairway.core.model import Usage
from fairway.core.quota.shares import (
    FAIR,
    NO_SHARE,
    SHARE_TESTS,
    Added,
    Contest,
    Rules,
    Share,
    Shares,
    added_at,
    contest,
    decay,
    less_than_initial_share,
    less_than_or_equal_to_final_share,
    reaching_parent,
    share,
)
from fairway.core.quota.tree import Cell, Node, Tree

__all__ = [
    "FAIR", "NO_SHARE", "SHARE_TESTS", "Candidate", "Contest", "Rules", "Share", "Shares",
    "Tournament", "contest", "decay", "less_than_initial_share",
    "less_than_or_equal_to_final_share", "share",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The workload that a leaf would start next, and what it would be charged."""

    key: str
    priority: int = 0
    queued_at: float = 0.0
    usage: Usage = field(default_factory=dict)


# (-queue priority, borrow level or whether it borrows, infinite share, share,
#  -workload priority, queued at, key, position of the leaf): less is better.
OrderKey = tuple[float, int, bool, int, int, float, str, int]
_NOBODY: Final[OrderKey] = (float("inf"), 0, False, 0, 0, 0.0, "", -1)


class _Seat:
    """A queue in the tournament, with the bracket of its children.

    With `size` children, `bracket[size + i]` is the key of child i; `bracket[i]` is the better of
    `bracket[2i]` and `bracket[2i + 1]`.
    """

    __slots__ = (
        "added", "bracket", "candidate", "children", "index", "level", "node", "parent", "position",
        "seen",
    )  # fmt: skip

    def __init__(self, node: Node | None, parent: _Seat | None, index: int) -> None:
        self.node = node
        self.parent = parent
        self.index = index  # among the children of the parent
        self.position = -1  # of a leaf, among the leaves
        self.children: list[_Seat] = []
        self.bracket: list[OrderKey] = []
        self.candidate: Candidate | None = None
        self.added: Added = []
        self.level = 0
        self.seen: dict[Cell, int] = {}  # usage when the levels below were last right

    @property
    def best(self) -> OrderKey:
        return self.bracket[1] if self.bracket else _NOBODY

    def borrow_level(self) -> int:
        """The borrow level of its candidate at the current usage."""
        return max((cell.level(amount) for cell, amount in self.added), default=0)

    def put(self, index: int, place: OrderKey) -> None:
        """Sets the key of a child and replays its matches."""
        bracket = self.bracket
        position = len(self.children) + index
        bracket[position] = place
        while position > 1:
            position >>= 1
            left, right = bracket[2 * position], bracket[2 * position + 1]
            bracket[position] = left if left <= right else right


class Tournament:
    """Finds the leaf whose head is next.

    Siblings compete below each queue and one winner moves up, from the leaves to the root.
    Siblings are ordered by queue priority; whether the requested resources stay within the
    subtree's own quota; the lower share with the candidate added; workload priority; age; key.
    Without fair sharing: queue priority, borrow level, workload priority, age, key.

    A caller that changes usage calls `refresh` for each queue that was charged. With fair sharing,
    only the path of that queue to the root is compared again, once, at the next `best`. Without
    it, levels that may have dropped are updated at once. The answer equals that of a tournament
    played from scratch. Where the leaves with a head are known, a tournament `among` them costs
    only what these leaves cost.
    """

    def __init__(self, tree: Tree, rules: Rules = FAIR, among: Iterable[str] | None = None) -> None:
        self._is_fair = rules.is_enabled
        self._shares = Shares(tree, rules)
        self._root = _Seat(None, None, 0)
        self._seats: dict[str, _Seat] = {}
        self._leaves: list[_Seat] = []
        self._position: dict[str, int] = {}
        self._unplaced: dict[_Seat, bool] = {}  # changed seats -> whether usage changed
        for node in tree.nodes if among is None else _paths(tree, among):
            if node.is_usable:
                above = self._root if node.parent is None else self._seats[node.parent.name]
                seat = self._seats[node.name] = _Seat(node, above, len(above.children))
                above.children.append(seat)
        self._root.bracket = [_NOBODY] * (2 * len(self._root.children))
        # Sorted by name, so that the last tie is broken the same way in any tree.
        for name, seat in sorted(self._seats.items()):
            seat.bracket = [_NOBODY] * (2 * len(seat.children))
            if seat.node is not None:
                seat.seen = {cell: cell.usage for cell in seat.node.cells.values()}
            if seat.node is not None and not seat.node.children:
                seat.position = self._position[name] = len(self._leaves)
                self._leaves.append(seat)

    def offer(self, leaf: str, candidate: Candidate) -> bool:
        """Sets the head of a leaf; False, without effect, where the queue takes no workloads."""
        position = self._position.get(leaf)
        if position is None:
            return False
        seat = self._leaves[position]
        assert seat.node is not None
        seat.candidate = candidate
        seat.added = added_at(seat.node, candidate.usage)
        if not self._is_fair:
            seat.level = seat.borrow_level()
        self._unplaced.setdefault(seat, False)
        return True

    def withdraw(self, leaf: str) -> None:
        """Removes the head of a leaf."""
        position = self._position.get(leaf)
        if position is not None and self._leaves[position].candidate is not None:
            self._leaves[position].candidate = None
            self._unplaced.setdefault(self._leaves[position], False)

    def refresh(self, queue: str) -> None:
        """Notes that the usage charged to this queue has changed."""
        seat = self._seats.get(queue)
        if seat is None:
            return
        if self._is_fair:
            self._unplaced[seat] = True
        else:
            self._place_all()
            self._lower_levels(seat)

    def best(self) -> str | None:
        """The leaf whose head is next; None where no leaf has a head."""
        self._place_all()
        while True:
            position = self._root.best[-1]
            if position < 0:
                return None
            seat = self._leaves[position]
            assert seat.node is not None
            if self._is_fair:
                return seat.node.name
            # Usage elsewhere may have raised levels since they were noted; `refresh` noted every
            # drop. So a noted level is a lower bound, and a winner with an exact level wins.
            level = seat.borrow_level()
            if level == seat.level:
                return seat.node.name
            seat.level = level
            self._climb(seat, usage_changed=False)

    def pop_best(self) -> str | None:
        """Withdraws the head that is next and returns its leaf."""
        leaf = self.best()
        if leaf is not None:
            self.withdraw(leaf)
        return leaf

    def _place_all(self) -> None:
        """Updates the keys of all queues that have changed."""
        for seat, usage_changed in self._unplaced.items():
            self._climb(seat, usage_changed=usage_changed)
        self._unplaced.clear()

    def _climb(self, seat: _Seat, *, usage_changed: bool) -> None:
        """Updates the key of a queue, and of its ancestors as far as anything changes."""
        changed = seat.position
        last: _Seat | None = None
        added: Added = []
        while (above := seat.parent) is not None and seat.node is not None:
            leaf = self._winner(seat)
            place = _NOBODY
            if leaf is not None:
                if self._is_fair:
                    added = (
                        reaching_parent(added) if leaf is last else self._raised_to(seat.node, leaf)
                    )
                place = self._place(seat.node, leaf, added)
            last = leaf
            before = above.best
            above.put(seat.index, place)
            # The same winner with other requests may rank differently further up.
            if not usage_changed and above.best == before and before[-1] != changed:
                return
            seat = above

    def _winner(self, seat: _Seat) -> _Seat | None:
        """The leaf whose candidate moves up from here."""
        if not seat.children:
            return None if seat.candidate is None else seat
        position = seat.best[-1]
        leaf = None if position < 0 else self._leaves[position]
        # A withdrawn leaf may still be in the bracket; it wins nothing.
        return None if leaf is None or leaf.candidate is None else leaf

    def _raised_to(self, node: Node, leaf: _Seat) -> Added:
        """What the head of a leaf would add at an ancestor."""
        assert leaf.node is not None
        added = leaf.added
        for _ in range(leaf.node.depth - node.depth):
            added = reaching_parent(added)
        return added

    def _place(self, node: Node, leaf: _Seat, added: Added) -> OrderKey:
        head = leaf.candidate
        assert head is not None
        level, infinite, scaled = leaf.level, False, 0
        if self._is_fair and node.parent is not None:
            level = 0
            for cell, more in added:
                if cell.usage + more > cell.subtree:
                    level = 1
                    break
            infinite, scaled = self._shares.of(node, added)
        first = -node.queue.priority
        return (
            first,
            level,
            infinite,
            scaled,
            -head.priority,
            head.queued_at,
            head.key,
            leaf.position,
        )

    def _lower_levels(self, seat: _Seat) -> None:
        """Recomputes levels that may have dropped since usage fell in some queues of the path.

        These are levels of leaves below the highest such queue. A level that is no higher than
        the lowest such queue cannot drop further: its quota is as near as what was released.
        """
        fallen, heights = seat, [0]
        step: _Seat | None = seat
        while step is not None and step.node is not None:
            for cell in step.node.cells.values():
                if cell.usage < step.seen.get(cell, 0):
                    fallen = step
                    heights.append(step.node.height)
                step.seen[cell] = cell.usage
            step = step.parent
        lowest = min((height for height in heights if height), default=0)
        below = [fallen]
        for other in below:
            below.extend(other.children)
            if other.candidate is not None and (other is seat or other.level > lowest):
                level = other.borrow_level()
                if level != other.level or other is seat:
                    other.level = level
                    self._climb(other, usage_changed=False)


def _paths(tree: Tree, queues: Iterable[str]) -> list[Node]:
    """These queues and their ancestors, parents first."""
    paths = {
        node.name: node
        for queue in queues
        if (leaf := tree.node(queue)) is not None
        for node in leaf.path()
    }
    return sorted(paths.values(), key=lambda node: (node.depth, node.name))
