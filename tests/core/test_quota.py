"""The quota tree, against tables of small trees and a naive recursive twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairway.core.model import NO_FLAVOR, FlavorResource, Queue, Quota, ResourceGroup
from fairway.core.quota.tree import UNLIMITED, Tree

CPU = ("default", "cpu")
GPU = ("h100", "gpu")
SPOT = ("spot", "gpu")
PAIRS = (CPU, GPU, SPOT)


def queue(
    name: str,
    parent: str = "",
    nominal: int | None = None,
    *,
    borrow: int | None = None,
    lend: int | None = None,
) -> Queue:
    quota = Quota(nominal=nominal or 0, borrowing_limit=borrow, lending_limit=lend)
    return Queue(name=name, parent=parent, quotas={} if nominal is None else {CPU: quota})


# The formulas as they are written, by recursion, with no state but what was charged where.


@dataclass
class Naive:
    queues: Mapping[str, Queue]
    charged: dict[tuple[str, FlavorResource], int]

    def children(self, name: str) -> list[str]:
        return [queue.name for queue in self.queues.values() if queue.parent == name]

    def quota(self, name: str, pair: FlavorResource) -> Quota:
        return self.queues[name].quotas.get(pair, Quota())

    def subtree(self, name: str, pair: FlavorResource) -> int:
        return self.quota(name, pair).nominal + sum(
            self.subtree(child, pair) - self.local(child, pair) for child in self.children(name)
        )

    def local(self, name: str, pair: FlavorResource) -> int:
        limit = self.quota(name, pair).lending_limit
        return 0 if limit is None else max(0, self.subtree(name, pair) - limit)

    def usage(self, name: str, pair: FlavorResource) -> int:
        return self.charged.get((name, pair), 0) + sum(
            max(0, self.usage(child, pair) - self.local(child, pair))
            for child in self.children(name)
        )

    def raw_available(self, name: str, pair: FlavorResource) -> int:
        subtree, local = self.subtree(name, pair), self.local(name, pair)
        usage, parent = self.usage(name, pair), self.queues[name].parent
        if not parent:
            return subtree - usage
        above = self.raw_available(parent, pair)
        limit = self.quota(name, pair).borrowing_limit
        if limit is not None:
            above = min(above, (subtree - local) - max(0, usage - local) + limit)
        return max(0, local - usage) + above

    def covers(self, name: str, resource: str) -> bool:
        one = self.queues[name]
        own = any(resource in group.resources for group in one.groups)
        own = own or any(resource == pair[1] for pair in one.quotas)
        return own or (bool(one.parent) and self.covers(one.parent, resource))

    def available(self, name: str, pair: FlavorResource) -> int:
        if not self.covers(name, pair[1]):
            return UNLIMITED
        found = self.raw_available(name, pair)
        return found if self.children(name) else max(0, found)

    def potential(self, name: str, pair: FlavorResource) -> int:
        subtree, parent = self.subtree(name, pair), self.queues[name].parent
        if not parent:
            return subtree
        found = self.local(name, pair) + self.potential(parent, pair)
        limit = self.quota(name, pair).borrowing_limit
        return found if limit is None else min(found, subtree + limit)

    def height(self, name: str) -> int:
        return max((1 + self.height(child) for child in self.children(name)), default=0)

    def level(self, name: str, pair: FlavorResource, amount: int) -> int:
        if not self.covers(name, pair[1]):
            return 0
        start = name
        while self.usage(name, pair) + amount > self.subtree(name, pair):
            if not self.queues[name].parent:
                break
            amount -= max(0, self.local(name, pair) - self.usage(name, pair))
            name = self.queues[name].parent
        return 0 if name == start else self.height(name)


# Tables.

TEAMS = (
    queue("fleet", nominal=10),
    queue("research", "fleet", 0, borrow=12),
    queue("vision", "research", 20, lend=5),
    queue("speech", "research", 10, borrow=8),
    queue("product", "fleet", 30, lend=0),
    queue("search", "product", 40),
    queue("guest", "fleet"),
)

# Worked by hand. research lends 5 + 10 = 15 of its children; product lends nothing of its 70.
QUOTAS = {
    "vision keeps fifteen and can borrow all that research may use": ("vision", 20, 15 + 25),
    "speech borrows at most eight beyond its ten": ("speech", 10, 18),
    "research holds what its children lend": ("research", 15, 25),
    "product keeps everything and borrows from the fleet": ("product", 70, 70 + 25),
    "search reaches all of product and the fleet": ("search", 40, 95),
    "a queue without quota of its own borrows from its ancestors": ("guest", 0, 25),
    "the fleet has its own and what research lends": ("fleet", 25, 25),
}


@pytest.mark.parametrize(("name", "subtree", "potential"), QUOTAS.values(), ids=QUOTAS.keys())
def test_quota_and_potential(name: str, subtree: int, potential: int) -> None:
    tree = Tree.of(TEAMS)
    assert (tree.subtree_quota(name, CPU), tree.potential_available(name, CPU)) == (
        subtree,
        potential,
    )
    assert tree.available(name, CPU) == potential, "with nothing in use, all of it is available"


# (charged, stored, available afterwards)
USAGES: dict[str, tuple[dict[str, int], dict[str, int], dict[str, int]]] = {
    "usage within what is kept stays at the leaf": (
        {"vision": 15},
        {"vision": 15, "research": 0, "fleet": 0},
        {"vision": 25, "speech": 18, "guest": 25},
    ),
    "usage beyond what is kept is stored at each ancestor": (
        {"vision": 18},
        {"vision": 18, "research": 3, "fleet": 3},
        {"vision": 22, "speech": 18, "guest": 22},
    ),
    "a borrower takes from those who lend": (
        {"guest": 20},
        {"guest": 20, "fleet": 20},
        {"guest": 5, "speech": 5, "vision": 20, "search": 75},
    ),
    "the limit of an ancestor binds its children together": (
        {"vision": 30, "speech": 10},
        {"research": 25, "fleet": 25},
        {"vision": 0, "speech": 0, "search": 70, "guest": 0},
    ),
    "a leaf shows nothing below zero and an inner queue does": (
        {"speech": 30, "guest": 5},
        {"fleet": 35},
        {"speech": 0, "fleet": -10, "research": -10, "search": 60, "vision": 5},
    ),
}


@pytest.mark.parametrize(
    ("charged", "stored", "available"), USAGES.values(), ids=list(USAGES.keys())
)
def test_usage(charged: dict[str, int], stored: dict[str, int], available: dict[str, int]) -> None:
    tree = Tree.of(TEAMS)
    for name, amount in charged.items():
        tree.charge(name, {CPU: amount})
    assert {name: tree.usage(name).get(CPU, 0) for name in stored} == stored
    assert {name: tree.available(name, CPU) for name in available} == available


LEVELS = {
    "within the own quota": ("speech", 10, 0),
    "from what siblings lend": ("speech", 15, 1),
    "from the fleet": ("speech", 16, 2),
    "more than there is counts as the root": ("speech", 99, 2),
    "what the queue keeps is taken off on the way up": ("vision", 30, 1),
    "a queue without quota is a level away from the start": ("guest", 1, 2),
    "nothing is near": ("guest", 0, 0),
    "a root has nowhere to go": ("fleet", 99, 0),
}


@pytest.mark.parametrize(("name", "amount", "level"), LEVELS.values(), ids=LEVELS.keys())
def test_borrow_level(name: str, amount: int, level: int) -> None:
    assert Tree.of(TEAMS).borrow_level(name, {CPU: amount}) == level


def test_borrowed_and_nominal_are_measured_by_the_subtrees_quota() -> None:
    tree = Tree.of(TEAMS)
    tree.charge("speech", {CPU: 16})
    assert (tree.amount_borrowed("speech", CPU), tree.amount_borrowed("research", CPU)) == (6, 1)
    assert tree.borrows("research", CPU)
    assert not tree.borrows("fleet", CPU)
    assert tree.within_nominal("speech", {CPU: 10})
    assert not tree.within_nominal("speech", {CPU: 11})
    assert not tree.within_nominal("speech", {("unknown", "cpu"): 1})
    assert tree.within_nominal("speech", {("any", "gpu"): 1}), "nobody limits it"


def test_a_shortfall_names_what_is_missing_and_nothing_else() -> None:
    tree = Tree.of(TEAMS)
    wanted = {("other", "cpu"): 2, CPU: 20, (NO_FLAVOR, "gpu"): 10**12}
    assert tree.shortfall("speech", wanted) == {CPU: 2, ("other", "cpu"): 2}
    assert not tree.fits("speech", wanted)
    assert tree.fits("speech", {CPU: 18, (NO_FLAVOR, "gpu"): 10**12})


def test_a_resource_that_no_group_of_the_path_covers_is_neither_limited_nor_charged() -> None:
    group = ResourceGroup(resources=("cpu", "gpu"), flavors=("default",))
    tree = Tree.of([Queue(name="top"), Queue(name="low", parent="top", groups=(group,))])
    tree.charge("top", {CPU: 5})
    tree.charge("low", {("default", "memory"): 5})
    assert (tree.usage("top"), tree.usage("low")) == ({}, {})
    assert tree.available("top", CPU) == tree.potential_available("top", CPU) == UNLIMITED
    assert tree.covers("low", "gpu")
    assert not tree.covers("top", "gpu")
    assert tree.available("low", ("default", "gpu")) == 0, "covered, and nobody owns any"


def test_missing_parents_and_cycles_are_told_and_members_of_a_cycle_have_nothing() -> None:
    tree = Tree.of(
        [
            queue("alone", "gone", 5, borrow=3, lend=1),
            queue("b", "c", 5),
            queue("c", "b", 5),
            queue("below", "c", 5),
            queue("a", "a", 5),
            queue("fine", "", 5),
        ]
    )
    assert tree.problems == (
        "queues a: each is an ancestor of itself",
        "queue alone: its parent gone does not exist",
        "queues b, c: each is an ancestor of itself",
        "queue below: it is below a cycle of queues",
    )
    assert tree.leaves == ("alone", "fine")
    assert tree.available("alone", CPU) == 5, "it stands alone, as a root"
    for name in ("a", "b", "c", "below", "nobody"):
        tree.charge(name, {CPU: 1})
        assert not tree.is_usable(name)
        assert not tree.fits(name, {})
        assert tree.available(name, CPU) == tree.potential_available(name, CPU) == 0
    assert (tree.usage("below"), tree.usage("nobody")) == ({CPU: 1}, {})


def test_the_shape_of_the_tree() -> None:
    tree = Tree.of(TEAMS)
    assert tree.ancestors("vision") == ("research", "fleet")
    assert tree.children("fleet") == ("guest", "product", "research")
    assert tree.leaves == ("guest", "search", "speech", "vision")
    assert tree.lowest_common_ancestor("vision", "speech") == "research"
    assert tree.lowest_common_ancestor("vision", "search") == "fleet"
    assert tree.lowest_common_ancestor("vision", "research") == "research"
    assert Tree.of([queue("a"), queue("b")]).lowest_common_ancestor("a", "b") is None


# Properties.


@st.composite
def trees(draw: st.DrawFn) -> tuple[Queue, ...]:
    amounts = st.integers(0, 20)
    limits = st.none() | amounts
    quotas = st.builds(Quota, nominal=amounts, borrowing_limit=limits, lending_limit=limits)
    queues: list[Queue] = []
    for index in range(draw(st.integers(1, 8))):
        parent = draw(st.sampled_from(["", *(queue.name for queue in queues)])) if index else ""
        own = draw(st.dictionaries(st.sampled_from(PAIRS), quotas, max_size=3))
        queues.append(Queue(name=f"q{index}", parent=parent, quotas=own))
    return tuple(draw(st.permutations(queues)))


charges = st.lists(
    st.tuples(st.integers(0, 7), st.dictionaries(st.sampled_from(PAIRS), st.integers(0, 25))),
    max_size=8,
)
Charges = Sequence[tuple[int, Mapping[FlavorResource, int]]]


def charged(queues: Sequence[Queue], amounts: Charges) -> tuple[Tree, Naive]:
    tree, naive = Tree.of(queues), Naive({queue.name: queue for queue in queues}, {})
    names = sorted(naive.queues)
    for index, usage in amounts:
        name = names[index % len(names)]
        tree.charge(name, usage)
        for pair, amount in usage.items():
            if naive.covers(name, pair[1]):
                naive.charged[name, pair] = naive.charged.get((name, pair), 0) + amount
    return tree, naive


@settings(max_examples=150, deadline=None)
@given(trees(), charges, st.dictionaries(st.sampled_from(PAIRS), st.integers(0, 25)))
def test_every_number_equals_the_naive_one(
    queues: Sequence[Queue], amounts: Charges, wanted: Mapping[FlavorResource, int]
) -> None:
    tree, naive = charged(queues, amounts)
    for name in naive.queues:
        for pair in PAIRS:
            assert tree.subtree_quota(name, pair) == naive.subtree(name, pair)
            assert tree.usage(name).get(pair, 0) == naive.usage(name, pair)
            assert tree.available(name, pair) == naive.available(name, pair)
            borrowed = max(0, naive.usage(name, pair) - naive.subtree(name, pair))
            assert tree.amount_borrowed(name, pair) == borrowed
            event("borrows" if borrowed else "does not borrow")
            if naive.covers(name, pair[1]):
                assert tree.potential_available(name, pair) == naive.potential(name, pair)
        missing = {p: n - naive.available(name, p) for p, n in wanted.items()}
        assert tree.fits(name, wanted) == all(amount <= 0 for amount in missing.values())
        assert tree.shortfall(name, wanted) == {p: n for p, n in missing.items() if n > 0}
        levels = [naive.level(name, pair, amount) for pair, amount in wanted.items()]
        assert tree.borrow_level(name, wanted) == max(levels, default=0)


@settings(max_examples=100, deadline=None)
@given(trees(), charges)
def test_what_is_available_lies_between_nothing_and_the_potential(
    queues: Sequence[Queue], amounts: Charges
) -> None:
    tree, _ = charged(queues, amounts)
    for name in tree.leaves:
        for pair in PAIRS:
            assert 0 <= tree.available(name, pair) <= tree.potential_available(name, pair)


@settings(max_examples=100, deadline=None)
@given(trees(), charges)
def test_giving_back_restores_and_order_does_not_matter(
    queues: Sequence[Queue], amounts: Charges
) -> None:
    tree, naive = charged(queues, amounts)
    other, _ = charged(list(reversed(queues)), list(reversed(amounts)))
    names = sorted(naive.queues)
    stored = {name: dict(tree.usage(name)) for name in names}
    assert stored == {name: other.usage(name) for name in names}
    twin = tree.copy()
    for index, usage in amounts:
        name = names[index % len(names)]
        tree.charge(name, {pair: -amount for pair, amount in usage.items()})
    assert all(not tree.usage(name) for name in names)
    assert all(not any(node.over.values()) for node in tree.nodes)
    assert stored == {name: twin.usage(name) for name in names}, "a copy changes alone"
    for name in names:
        node, same = twin.node(name), other.node(name)
        assert node is not None
        assert same is not None
        assert {r: n for r, n in node.over.items() if n} == {
            r: n for r, n in same.over.items() if n
        }


@settings(max_examples=100, deadline=None)
@given(trees(), charges, st.sampled_from(PAIRS))
def test_exactly_what_is_available_can_be_charged(
    queues: Sequence[Queue], amounts: Charges, pair: FlavorResource
) -> None:
    tree, _ = charged(queues, amounts)
    for name in tree.leaves:
        free = tree.available(name, pair)
        if free == UNLIMITED:
            continue
        twin = tree.copy()
        assert twin.fits(name, {pair: free})
        assert not twin.fits(name, {pair: free + 1})
        twin.charge(name, {pair: free})
        assert twin.available(name, pair) == 0
