"""The quota tree: what a queue owns, lends, borrows, and may still use. Exact whole numbers.

Every queue has nominal quota per (flavor, resource). It lends this quota to its parent, for every
queue below that parent, except what it keeps by a lending limit. Usage is stored at the queue that
is charged; only usage beyond what the queue keeps reaches the parent:

    subtree(n)   = nominal(n) + sum of lent(child),  lent(n) = subtree(n) - kept(n)
    kept(n)      = max(0, subtree(n) - lending limit), or 0 without one
    available(n) = max(0, kept - usage) + min(available(parent),
                                              lent - max(0, usage - kept) + borrowing limit)
    potential(n) = min(subtree + borrowing limit, kept + potential(parent)), as if nothing were used
    at a root      available = subtree - usage, potential = subtree: a root cannot borrow

A resource is limited for a queue when a group or quota of the queue or of an ancestor names it. A
queue may refuse all other resources; otherwise these are not counted. A limited resource of a
flavor without quota cannot be used. A queue without quota of its own borrows from its ancestors.

A queue whose parent does not exist is a root. Queues in a cycle, and queues below one, cannot be
used. `Tree.problems` reports both. A queue that is not in the tree has no quota and is charged
nothing: its workloads outlived their queue.

All but usage is computed once, when the tree is made. Charging and reading walk up one path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from fairway.core.model import PODS, FlavorResource, Queue, Quota, Usage
from fairway.core.quota.tree_problems import problems_of

# What is available of a resource that the queue does not limit.
UNLIMITED: Final = 2**63 - 1
ANYWHERE: Final = 2**31 - 1  # higher than any tree
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
        self.is_limited = node.limits(self.resource)
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
        """Adds usage here; each ancestor gets the part beyond what the queue below it keeps."""
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
        """What may still be charged; negative where an ancestor uses more than its quota.

        This is the module's formula, unrolled: the minimum over the path of the bound at each
        node, plus the unused kept quota on the way to it.
        """
        least = UNLIMITED
        free = 0
        cell = self
        while (parent := cell.parent) is not None:
            rest = cell.kept - cell.usage
            if cell.limit is not None:
                # max(0, kept - usage) - max(0, usage - kept) = kept - usage: no case split.
                bound = free + rest + cell.lent + cell.limit
                least = bound if bound < least else least
            if rest > 0:
                free += rest
            cell = parent
        bound = free + cell.subtree - cell.usage
        return bound if bound < least else least

    def level(self, amount: int) -> int:
        """Height of the lowest subtree whose own quota covers this amount beside its usage."""
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

    def left_within(self, height: int) -> int:
        """The largest amount whose level is at most this high, limits ignored."""
        cell, rest = self, 0
        most = cell.subtree - cell.usage
        while (parent := cell.parent) is not None and parent.node.height <= height:
            rest += max(0, cell.kept - cell.usage)
            cell = parent
            most = max(most, cell.subtree - cell.usage + rest)
        return most if cell.parent is not None and self.is_limited else UNLIMITED


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
        # Potential per resource, summed over flavors: the denominator of its children's shares.
        self.lendable: dict[str, int] = {}
        self.cells: dict[FlavorResource, Cell] = {}
        self.over: dict[str, int] = {}  # usage beyond the subtree's quota, over all flavors

    def limits(self, resource: str) -> bool:
        """Whether a resource is counted: it is named, or what is not named is not available."""
        return (
            not self.is_usable
            or resource in self.covered
            or (self.queue.refuses_uncovered and resource != PODS)
        )

    def cell(self, pair: FlavorResource) -> Cell:
        """The cell of a flavor and resource; created on first use, up to the root."""
        known = self.cells.get(pair)
        if known is None:
            above = None if self.parent is None else self.parent.cell(pair)
            known = self.cells[pair] = Cell(self, pair, above)
        return known

    def path(self) -> Iterator[Node]:
        """The node itself, then its ancestors up to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent


def kept_of(subtree: int, quota: Quota) -> int:
    """The part of its subtree's quota that a queue does not lend."""
    return 0 if quota.lending_limit is None else max(0, subtree - quota.lending_limit)


def sum_up(nodes: list[Node]) -> None:
    """Computes what does not change: heights, quota of subtrees, what can be lent."""
    for node in reversed(nodes):
        for pair, quota in node.queue.quotas.items() if node.is_usable else ():
            node.subtree[pair] = node.subtree.get(pair, 0) + quota.nominal
        parent = node.parent
        if parent is None:
            continue
        parent.height = max(parent.height, node.height + 1)
        for pair, amount in node.subtree.items():
            lent = amount - kept_of(amount, node.queue.quotas.get(pair, _NO_QUOTA))
            # An entry even where nothing is lent, so that the root has every pair of its tree.
            parent.subtree[pair] = parent.subtree.get(pair, 0) + lent
    known: dict[str, list[FlavorResource]] = {}
    for node in nodes:
        known[node.name] = sorted(node.subtree) if node.parent is None else known[node.parent.name]
        for pair in known[node.name] if node.children else ():
            potential = node.cell(pair).potential
            node.lendable[pair[1]] = node.lendable.get(pair[1], 0) + potential


class Tree:
    """All queues, with what each uses."""

    def __init__(self, nodes: dict[str, Node], problems: tuple[str, ...]) -> None:
        self._nodes = nodes  # parents before their children
        self.problems = problems
        self._ancestors: dict[str, tuple[str, ...]] = {}  # cache
        self._share_bits = 0

    @classmethod
    def of(cls, queues: Iterable[Queue]) -> Tree:
        """The tree of these queues, with nothing in use; their order does not matter."""
        by_name = {queue.name: queue for queue in sorted(queues, key=lambda queue: queue.name)}
        names_by_parent: dict[str, list[str]] = {}
        for name, queue in by_name.items():
            parent = queue.parent if queue.parent in by_name else ""
            names_by_parent.setdefault(parent, []).append(name)
        nodes: dict[str, Node] = {}
        ready = names_by_parent.get("", [])
        for name in ready:  # grows during the iteration: children come after their parent
            nodes[name] = Node(by_name[name], nodes.get(by_name[name].parent))
            ready.extend(names_by_parent.get(name, ()))
        problems = problems_of(by_name, nodes)
        for name, queue in by_name.items():
            if name not in nodes:
                nodes[name] = Node(queue, None, is_usable=False)
        sum_up(list(nodes.values()))
        return cls(nodes, problems)

    def copy(self) -> Tree:
        """An independent tree of the same queues with the same usage."""
        twins: dict[str, Node] = {}
        for name, node in self._nodes.items():
            parent = None if node.parent is None else twins[node.parent.name]
            twin = twins[name] = Node(node.queue, parent, is_usable=node.is_usable)
            twin.height, twin.subtree, twin.lendable = node.height, node.subtree, node.lendable
            twin.over = dict(node.over)
            for pair, cell in node.cells.items():
                twin.cell(pair).usage = cell.usage
        return Tree(twins, self.problems)

    # The shape of the tree.

    def __contains__(self, queue: object) -> bool:
        return queue in self._nodes

    def node(self, queue: str) -> Node | None:
        return self._nodes.get(queue)

    @property
    def nodes(self) -> Iterable[Node]:
        """All nodes, parents before their children."""
        return self._nodes.values()

    @property
    def leaves(self) -> tuple[str, ...]:
        """Usable queues without children, sorted by name: the queues that take workloads."""
        return tuple(
            sorted(node.name for node in self.nodes if node.is_usable and not node.children)
        )

    @property
    def share_bits(self) -> int:
        """Bits by which all shares of this tree are scaled; see `shares`."""
        if not self._share_bits:
            lendable = max((n for node in self.nodes for n in node.lendable.values()), default=1)
            weight = max((node.queue.weight_nanos for node in self.nodes), default=1)
            # Ten bits more than the order needs, so that thousandths round as the fraction would.
            self._share_bits = 2 * (max(1, lendable) * max(1, weight)).bit_length() + 11
        return self._share_bits

    def is_usable(self, queue: str) -> bool:
        """Whether the queue is in the tree, and neither in a cycle nor below one."""
        node = self._nodes.get(queue)
        return node is not None and node.is_usable

    def ancestors(self, queue: str) -> tuple[str, ...]:
        """The queues above, nearest first; the queue itself is not among them."""
        known = self._ancestors.get(queue)
        if known is None:
            node = self._nodes.get(queue)
            known = () if node is None else tuple(other.name for other in node.path())[1:]
            self._ancestors[queue] = known
        return known

    def children(self, queue: str) -> tuple[str, ...]:
        """The queues directly below, by name."""
        node = self._nodes.get(queue)
        return () if node is None else tuple(child.name for child in node.children)

    def lowest_common_ancestor(self, item: str, other: str) -> str | None:
        """The lowest queue that is above both, or is one of them and above the other.

        None where they are in different trees: they can neither lend to each other nor reclaim.
        """
        path = (item, *self.ancestors(item))
        return next((name for name in (other, *self.ancestors(other)) if name in path), None)

    # Quota, independent of usage.

    def covers(self, queue: str, resource: str) -> bool:
        """Whether a resource is limited for a queue.

        Other resources are never charged, and always available.
        """
        node = self._nodes.get(queue)
        return node is not None and node.limits(resource)

    def uncovered(self, queue: str, usage: Usage) -> list[str]:
        """The resources in some usage that no group names, in a queue that refuses these."""
        node = self._nodes.get(queue)
        if node is None or not node.is_usable or not node.queue.refuses_uncovered:
            return []
        resources = {resource for (_, resource), amount in usage.items() if amount}
        return sorted(resources - node.covered - {PODS})

    def subtree_quota(self, queue: str, pair: FlavorResource) -> int:
        """The nominal quota of the queue plus what the queues below lend to it.

        For a leaf this is its nominal quota.
        """
        node = self._nodes.get(queue)
        return 0 if node is None else node.subtree.get(pair, 0)

    def left_of_own(self, queue: str, pair: FlavorResource) -> int:
        """What is left of the quota of the queue's subtree; below 0: it borrows."""
        return self.subtree_quota(queue, pair) - self.usage_of(queue, pair)

    def left_within(self, queue: str, pair: FlavorResource, height: int) -> int:
        """What can be used of quota in the subtree of this height around the queue; 0: its own.

        Limits are ignored, as `borrow_level` does.
        """
        node = self._nodes.get(queue)
        return 0 if node is None else node.cell(pair).left_within(height)

    def heights(self, queue: str) -> tuple[int, ...]:
        """The heights of the subtrees around a queue, its own first."""
        return (0, *(self._nodes[name].height for name in self.ancestors(queue)))

    def owner(self, queue: str, pair: FlavorResource) -> str:
        """The lowest queue, from this one up and without a root above it, that owns some quota.

        The queue itself if none does. What it uses of that quota only queues below the owner can
        reclaim.
        """
        below_root = self.ancestors(queue)[:-1]
        owners = (name for name in (queue, *below_root) if self.subtree_quota(name, pair) > 0)
        return next(owners, queue)

    def potential_available(self, queue: str, pair: FlavorResource) -> int:
        """What the queue could use if nothing were in use, borrowing within limits included.

        A larger request can never start here.
        """
        node = self._nodes.get(queue)
        if node is None:
            return 0
        cell = node.cell(pair)
        return cell.potential if cell.is_limited else UNLIMITED

    # Usage.

    def charge(self, queue: str, usage: Usage) -> None:
        """Adds usage at a queue; negative amounts release it.

        Usage beyond what the queue keeps reaches the parent, and so on up. The outcome depends on
        the sums only, not on the order of charges. Resources that are not covered are ignored.
        """
        node = self._nodes.get(queue)
        if node is None:
            return
        cells = node.cells
        for pair, amount in usage.items():
            cell = cells.get(pair) or node.cell(pair)
            if cell.is_limited:
                cell.charge(amount)

    def usage(self, queue: str) -> Mapping[FlavorResource, int]:
        """Usage as stored at the queue: for a leaf, all that was charged to it.

        For an inner queue, what its children use beyond what each keeps. Zeros are left out.
        """
        node = self._nodes.get(queue)
        if node is None:
            return {}
        return {pair: cell.usage for pair, cell in sorted(node.cells.items()) if cell.usage}

    def usage_of(self, queue: str, pair: FlavorResource) -> int:
        """Usage of one flavor and resource, as stored at the queue."""
        node = self._nodes.get(queue)
        return 0 if node is None else node.cell(pair).usage

    def available(self, queue: str, pair: FlavorResource) -> int:
        """What may still be charged, borrowing included; never below 0 at a leaf.

        At an inner queue it is negative when usage exceeds quota, as after quota was reduced.
        """
        node = self._nodes.get(queue)
        if node is None or not node.is_usable:
            return 0
        cell = node.cells.get(pair) or node.cell(pair)
        if not cell.is_limited:
            return UNLIMITED
        number = cell.available()
        return 0 if number < 0 and not node.children else number

    def fits(self, queue: str, usage: Usage) -> bool:
        """Whether all of it may be charged now, borrowing included.

        False for a queue that cannot be used, even for empty usage.
        """
        available = self.available
        for pair, amount in usage.items():
            if amount > available(queue, pair):
                return False
        return self.is_usable(queue)

    def shortfall(self, queue: str, usage: Usage) -> dict[FlavorResource, int]:
        """How much is missing of each flavor and resource; empty where everything fits.

        Sorted by flavor and resource, so that reasons are the same each time.
        """
        missing = {
            pair: amount - self.available(queue, pair) for pair, amount in sorted(usage.items())
        }
        return {pair: amount for pair, amount in missing.items() if amount > 0}

    def amount_borrowed(self, queue: str, pair: FlavorResource) -> int:
        """Usage at the queue beyond the quota of its subtree.

        At a root this is usage that remained when quota was reduced.
        """
        node = self._nodes.get(queue)
        cell = None if node is None else node.cells.get(pair)
        return 0 if cell is None else max(0, cell.usage - cell.subtree)

    def borrows(self, queue: str, pair: FlavorResource) -> bool:
        """Whether usage at the queue exceeds the quota of its subtree.

        The queues that own this quota can reclaim it.
        """
        return self.amount_borrowed(queue, pair) > 0

    def within_nominal(self, queue: str, usage_after: Usage) -> bool:
        """Whether these totals, as they would be stored at the queue, are within its own quota.

        `usage_after` is the total usage afterwards, not the amount added. Pairs that it does not
        name are ignored.
        """
        node = self._nodes.get(queue)
        return node is not None and all(
            amount <= node.subtree.get(pair, 0)
            for pair, amount in usage_after.items()
            if self.covers(queue, pair[1])
        )

    def borrow_level(self, queue: str, usage: Usage) -> int:
        """Height of the lowest subtree whose own quota covers this usage too; 0: the queue's.

        The maximum over all pairs; the height of the root where even the root's quota is too
        small. Limits are ignored: this says how far away the quota is, not whether the usage fits.
        """
        node = self._nodes.get(queue)
        if node is None:
            return 0
        return max((node.cell(pair).level(amount) for pair, amount in usage.items()), default=0)
