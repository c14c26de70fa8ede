"""The nodes of the quota tree, and their cells: one for each flavor and resource.

Everything but usage is worked out once, when the tree is made, so that charging and asking walk
up a path and add. `quota` says what the numbers mean, and is where others should ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairway.core.model import FlavorResource, Queue, Quota

# What is available of a resource that the queue does not limit.
UNLIMITED: Final = 2**63 - 1
_NO_QUOTA: Final = Quota()


class Cell:
    """One flavor and resource at one queue. Only `usage` ever changes."""

    __slots__ = (
        "is_limited",
        "kept",
        "lent",
        "limit",
        "node",
        "parent",
        "potential",
        "resource",
        "subtree",
        "usage",
    )

    def __init__(self, node: Node, pair: FlavorResource, parent: Cell | None) -> None:
        quota = node.queue.quotas.get(pair, _NO_QUOTA)
        self.node = node
        self.parent = parent
        self.resource = pair[1]
        self.is_limited = not node.is_usable or self.resource in node.covered
        self.usage = 0
        self.subtree = node.subtree.get(pair, 0)
        self.kept = kept_of(self.subtree, quota)
        self.lent = self.subtree - self.kept
        self.limit = quota.borrowing_limit
        if parent is None:
            self.potential = self.subtree
        else:
            self.potential = self.kept + parent.potential
            if self.limit is not None:
                self.potential = min(self.potential, self.subtree + self.limit)

    def charge(self, amount: int) -> None:
        """Adds usage here, and to the ancestors what is beyond that which each keeps."""
        cell = self
        while True:
            before = cell.usage
            after = cell.usage = before + amount
            subtree = cell.subtree
            if before > subtree or after > subtree:
                over, resource = cell.node.over, cell.resource
                more = (after if after > subtree else subtree) - (
                    before if before > subtree else subtree
                )
                over[resource] = over.get(resource, 0) + more
            parent = cell.parent
            if parent is None:
                return
            kept = cell.kept
            amount = (after - kept if after > kept else 0) - (before - kept if before > kept else 0)
            if not amount:
                return
            cell = parent

    def available(self) -> int:
        """What may be added; negative where an ancestor has more in use than quota.

        This is the formula above, unrolled: the least over the path of the limit at each node,
        with what is free and kept on the way to it.
        """
        least = UNLIMITED
        free = 0
        cell = self
        while (parent := cell.parent) is not None:
            rest = cell.kept - cell.usage
            if cell.limit is not None:
                # Whatever part of the usage is kept, kept + lent is all that the node has.
                bound = free + rest + cell.lent + cell.limit
                least = bound if bound < least else least
            if rest > 0:
                free += rest
            cell = parent
        bound = free + cell.subtree - cell.usage
        return bound if bound < least else least

    def level(self, amount: int) -> int:
        """Height of the lowest subtree whose own quota holds this amount as well."""
        cell = self
        if cell.usage + amount <= cell.subtree or cell.parent is None or not cell.is_limited:
            return 0
        while (parent := cell.parent) is not None:
            rest = cell.kept - cell.usage
            if rest > 0:
                amount -= rest
            cell = parent
            if cell.usage + amount <= cell.subtree:
                break
        return cell.node.height


class Node:
    """A queue in its tree."""

    __slots__ = (
        "cells",
        "children",
        "covered",
        "depth",
        "height",
        "is_usable",
        "lendable",
        "name",
        "over",
        "parent",
        "queue",
        "subtree",
    )

    def __init__(self, queue: Queue, parent: Node | None, *, is_usable: bool = True) -> None:
        self.queue = queue
        self.name = queue.name
        self.parent = parent
        self.is_usable = is_usable
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.height = 0
        self.children: list[Node] = []
        self.covered: frozenset[str] = frozenset(
            [name for group in queue.groups for name in group.resources]
            + [resource for _, resource in queue.quotas]
        )
        if parent is not None:
            parent.children.append(self)
            self.covered |= parent.covered
        self.subtree: dict[FlavorResource, int] = {}
        # Potential of all flavors of each resource: what its children's shares are measured by.
        self.lendable: dict[str, int] = {}
        self.cells: dict[FlavorResource, Cell] = {}
        self.over: dict[str, int] = {}  # usage beyond the subtree's quota, over all flavors

    def cell(self, pair: FlavorResource) -> Cell:
        """The cell of a flavor and resource; made when first asked for, up to the root."""
        found = self.cells.get(pair)
        if found is None:
            above = None if self.parent is None else self.parent.cell(pair)
            found = self.cells[pair] = Cell(self, pair, above)
        return found

    def path(self) -> Iterator[Node]:
        """The node itself, then its ancestors up to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent


def kept_of(subtree: int, quota: Quota) -> int:
    """What a queue keeps to itself of the quota of its subtree."""
    return 0 if quota.lending_limit is None else max(0, subtree - quota.lending_limit)


def sum_up(nodes: list[Node]) -> None:
    """Fills in what does not change: heights, quota of subtrees, what can be lent."""
    for node in reversed(nodes):
        for pair, quota in node.queue.quotas.items() if node.is_usable else ():
            node.subtree[pair] = node.subtree.get(pair, 0) + quota.nominal
        parent = node.parent
        if parent is None:
            continue
        parent.height = max(parent.height, node.height + 1)
        for pair, amount in node.subtree.items():
            lent = amount - kept_of(amount, node.queue.quotas.get(pair, _NO_QUOTA))
            # An entry even where nothing is lent: the root knows every pair of its tree.
            parent.subtree[pair] = parent.subtree.get(pair, 0) + lent
    known: dict[str, list[FlavorResource]] = {}
    for node in nodes:
        known[node.name] = sorted(node.subtree) if node.parent is None else known[node.parent.name]
        for pair in known[node.name] if node.children else ():
            potential = node.cell(pair).potential
            node.lendable[pair[1]] = node.lendable.get(pair[1], 0) + potential
