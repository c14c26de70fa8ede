"""Shares: how much of what others own a queue uses, by its weight.

The share of a queue below a parent is the largest, over resources, of what it uses beyond its own
quota, measured by what the parent could give, divided by its weight (Kueue's dominant share):

    over(r)     = sum over flavors of max(0, usage - subtree quota)
    lendable(r) = sum over all flavors of the tree of the parent's potential
    share       = max over r of over(r) / lendable(r) / weight; 0 at a root

With weight 0 a share is infinite as soon as it is not 0; two such compare without their weights.

Where the fleet remembers, over(r) is at least what the faded usage has beyond the quota of all
flavors. So memory makes yesterday's heavy user wait, and what runs now always counts in full.

Memory has a half-life: after t seconds a share a = 0.5 ** (t / half-life) is left of it, and the
rest is replaced by what is in use now (Kueue's alpha is 1 - a). Powers of one half are whole
numbers here: floats differ between machines in their last place, and a plan must not.

Decisions know no floats. All shares of one tree are scaled by one power of two, 2**bits, with more
bits than twice the longest denominator has. Two different fractions then differ by more than 1
after scaling, so that the whole parts compare exactly as the fractions do, ties included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isqrt
from typing import Final, NamedTuple

from fairway.api.fleet import ShareTest
from fairway.core.model import Usage
from fairway.core.quota.tree import Cell, Node, Tree

_BITS: Final = 64
_FRACTION_BITS: Final = 48


def _roots_of_half() -> tuple[int, ...]:
    """2**-(1/2), 2**-(1/4), ... in units of 2**-64, rounded down: each the root of the last."""
    result = [1 << (_BITS - 1)]
    for _ in range(_FRACTION_BITS):
        result.append(isqrt(result[-1] << _BITS))
    return tuple(result[1:])


_ROOTS: Final = _roots_of_half()


def half_to_the(seconds: float, half_life: float) -> int:
    """0.5 ** (seconds / half_life) in units of 2**-64, in whole numbers: the same on any machine.

    Times count to the microsecond. The exponent has 48 bits behind the point and each factor is
    rounded down, so the result is off by less than 2**-47 of itself plus 2**-58.
    """
    whole, rest = divmod(max(0, round(seconds * 1e6)), round(half_life * 1e6))
    factor = 1 << _BITS
    places = (rest << _FRACTION_BITS) // round(half_life * 1e6)
    for position, root in enumerate(_ROOTS):
        if places >> (_FRACTION_BITS - 1 - position) & 1:
            factor = factor * root >> _BITS
    return factor >> min(whole, _BITS + 1)


def decay(
    remembered: Mapping[str, int], current: Mapping[str, int], seconds: float, half_life: float
) -> dict[str, int]:
    """Faded usage after `current` was in use for some seconds: a * remembered + (1 - a) * current.

    Here a = 0.5 ** (seconds / half_life); half-life 0 forgets at once. It is rounded towards
    `current`, so that small amounts fade away too, and steady usage is reached exactly. No zeros.
    """
    keeps = half_to_the(seconds, half_life) if half_life >= 1e-6 else 0
    result: dict[str, int] = {}
    for resource in sorted(set(remembered) | set(current)):
        now = current.get(resource, 0)
        beyond = remembered.get(resource, 0) - now
        fades = abs(beyond) * keeps >> _BITS
        amount = now + (fades if beyond > 0 else -fades)
        if amount:
            result[resource] = amount
    return result


_ONE: Final = 1_000_000_000  # weights are in nanos
_NOTHING_ADDED: Final[Usage] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the fleet shares."""

    is_enabled: bool = True  # False: the classical order, by how far away the quota is
    remembers: bool = False  # whether faded usage counts
    resource_weights: Mapping[str, int] = field(default_factory=dict)
    # nanos: how much a unit counts in faded usage; not named: 1


FAIR: Final = Rules()


class Share(NamedTuple):
    """A share, to be compared with others of the same tree. Less is better."""

    is_infinite: bool
    scaled: int


NO_SHARE: Final = Share(False, 0)

# What a workload would add: cells of one queue, each with its amount.
Added = list[tuple[Cell, int]]


def reaching_parent(added: Added) -> Added:
    """What reaches the parent of what is added at a queue; the parent must exist."""
    result: Added = []
    for cell, amount in added:
        before = cell.usage - cell.kept
        after = before + amount
        parent = cell.parent
        assert parent is not None
        more = (after if after > 0 else 0) - (before if before > 0 else 0)
        result.append((parent, more))
    return result


def added_at(node: Node, usage: Usage) -> Added:
    """What a workload would add at the queue that it is charged to."""
    cells = [(node.cell(pair), amount) for pair, amount in usage.items()]
    return [cell for cell in cells if cell[0].is_limited]


class Shares:
    """The shares of the queues of a tree, as its usage stands whenever one is asked for."""

    __slots__ = ("_measures", "_rules", "bits", "tree")

    def __init__(self, tree: Tree, rules: Rules = FAIR) -> None:
        self.tree = tree
        self._rules = rules
        self.bits = tree.share_bits
        # queue -> (resource, denominator, over by memory); filled as they are asked for
        self._measures: dict[str, tuple[tuple[str, int, int], ...]] = {}

    def share(self, queue: str, usage: Usage = _NOTHING_ADDED, *, at: str = "") -> Share:
        """The share of a queue if `usage` were added to it; negative amounts are taken away.

        With `at`, the share of that ancestor, which gets of it what bubbles up to there.
        """
        node = self.tree.node(queue)
        if node is None:
            return NO_SHARE
        added = added_at(node, usage)
        while at and node.name != at and node.parent is not None:
            added = reaching_parent(added)
            node = node.parent
        return Share(*self.of(node, added))

    def of(self, node: Node, added: Added) -> tuple[bool, int]:
        """The share of a node if this were added there, as a plain pair: the hot path."""
        if node.parent is None:
            return False, 0
        over = node.over.copy()
        for cell, amount in added:
            before = cell.usage - cell.subtree
            after = before + amount
            if after > 0 or before > 0:
                resource = cell.resource
                more = (after if after > 0 else 0) - (before if before > 0 else 0)
                over[resource] = over.get(resource, 0) + more
        bits, scaled = self.bits, 0
        for resource, whole, faded in self._measures.get(node.name) or self._measure(node):
            amount = over.get(resource, 0)
            amount = faded if faded > amount else amount
            if amount > 0 and (number := (amount * _ONE << bits) // whole) > scaled:
                scaled = number
        return scaled > 0 and node.queue.weight_nanos == 0, scaled

    def _measure(self, node: Node) -> tuple[tuple[str, int, int], ...]:
        assert node.parent is not None
        owned: dict[str, int] = {}
        for (_, resource), amount in node.subtree.items():
            owned[resource] = owned.get(resource, 0) + amount
        faded: dict[str, int] = {}
        for resource, amount in node.queue.remembered.items() if self._rules.remembers else ():
            counted = amount * self._rules.resource_weights.get(resource, _ONE) // _ONE
            faded[resource] = max(0, counted - owned.get(resource, 0))
        weight = node.queue.weight_nanos or _ONE
        result = self._measures[node.name] = tuple(
            (resource, lendable * weight, faded.get(resource, 0))
            for resource, lendable in sorted(node.parent.lendable.items())
            if lendable > 0
        )
        return result

    def thousandths(self, queue: str) -> int | None:
        """The share now in thousandths, rounded up, for people; None: infinite."""
        share = self.share(queue)
        return None if share.is_infinite else -(-1000 * share.scaled >> self.bits)


def share(
    tree: Tree,
    queue: str,
    extra_usage: Usage = _NOTHING_ADDED,
    *,
    at: str = "",
    rules: Rules = FAIR,
) -> Share:
    """One share. Whoever asks for many keeps a `Shares`."""
    return Shares(tree, rules).share(queue, extra_usage, at=at)


# Preemption by share.


class Contest(NamedTuple):
    """Shares at the two queues just below the lowest common ancestor of preemptor and target."""

    preemptor_with: Share  # with the incoming workload
    target_before: Share
    target_without: Share  # without the victim


def contest(
    shares: Shares, preemptor: str, target: str, *, incoming: Usage, victim: Usage
) -> Contest | None:
    """What the tests compare; None where the two are in one line or in different trees.

    `incoming` is what is not charged yet: empty where the incoming workload was charged before.
    """
    common = shares.tree.lowest_common_ancestor(preemptor, target)
    if common is None or common in (preemptor, target):
        return None
    ours = _below(shares.tree, preemptor, common)
    theirs = _below(shares.tree, target, common)
    taken = {pair: -amount for pair, amount in victim.items()}
    return Contest(
        shares.share(preemptor, incoming, at=ours),
        shares.share(target, at=theirs),
        shares.share(target, taken, at=theirs),
    )


def _below(tree: Tree, queue: str, ancestor: str) -> str:
    path = (queue, *tree.ancestors(queue))
    return path[path.index(ancestor) - 1]


def less_than_or_equal_to_final_share(of: Contest) -> bool:
    """The preemptor ends with no more than the target is left with."""
    return of.preemptor_with <= of.target_without


def less_than_initial_share(of: Contest) -> bool:
    """The preemptor ends with less than the target had."""
    return of.preemptor_with < of.target_before


SHARE_TESTS: Final[Mapping[ShareTest, Callable[[Contest], bool]]] = {
    "LessThanOrEqualToFinalShare": less_than_or_equal_to_final_share,
    "LessThanInitialShare": less_than_initial_share,
}
