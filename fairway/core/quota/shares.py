"""Fair shares: how much a queue uses beyond its own quota, relative to its weight.

The share of a queue below a parent is Kueue's dominant share: the largest, over resources, of its
usage beyond its own quota, relative to what the parent could lend, divided by its weight:

    over(r)     = sum over flavors of max(0, usage - subtree quota)
    lendable(r) = sum over all flavors of the tree of the parent's potential
    share       = max over r of over(r) / lendable(r) / weight; 0 at a root

With weight 0 any share above 0 is infinite; two infinite shares compare as if the weight were 1.

Where the fleet remembers past usage, over(r) is at least the decayed usage beyond the quota summed
over flavors. So yesterday's heavy user waits, and current usage always counts in full.

Past usage has a half-life: after t seconds the fraction a = 0.5 ** (t / half-life) of it is left,
and current usage makes up the rest (Kueue's alpha is 1 - a). Powers of one half are computed in
whole numbers: floats differ between machines in the last bit, and plans must not differ.

Decisions use no floats. All shares of one tree are scaled by the same power of two, 2**bits, where
bits is more than twice the bit length of the largest denominator. Two different fractions then
differ by more than 1 after scaling, so their whole parts compare exactly as the fractions do, ties
included.
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
    """2**-(1/2), 2**-(1/4), ... in units of 2**-64, rounded down: each the root of the previous."""
    result = [1 << (_BITS - 1)]
    for _ in range(_FRACTION_BITS):
        result.append(isqrt(result[-1] << _BITS))
    return tuple(result[1:])


_ROOTS: Final = _roots_of_half()


def half_to_the(seconds: float, half_life: float) -> int:
    """0.5 ** (seconds / half_life) in units of 2**-64, in whole numbers: the same on any machine.

    Times are rounded to the microsecond. The exponent has 48 fractional bits and each factor is
    rounded down, so the error is less than 2**-47 of the result plus 2**-58.
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
    """Decayed usage after some seconds of `current` usage: a * remembered + (1 - a) * current.

    Here a = 0.5 ** (seconds / half_life); half-life 0 forgets at once. Rounded towards `current`,
    so that small amounts decay to nothing and steady usage is reached exactly. Zeros are left out.
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
    """The fleet's settings for fair sharing."""

    is_enabled: bool = True  # False: order by borrow level instead of share
    remembers: bool = False  # whether decayed past usage counts
    resource_weights: Mapping[str, int] = field(default_factory=dict)
    # nanos: how much a unit counts in decayed usage; 1 where not named


FAIR: Final = Rules()


class Share(NamedTuple):
    """A share, comparable only with shares of the same tree. Less is better."""

    is_infinite: bool
    scaled: int


NO_SHARE: Final = Share(False, 0)

# What a workload would add: cells of one queue, each with its amount.
Added = list[tuple[Cell, int]]


def reaching_parent(added: Added) -> Added:
    """The part of what is added at a queue that reaches its parent; the parent must exist."""
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
    """What a workload would add at the queue that it is charged to; limited resources only."""
    cells = [(node.cell(pair), amount) for pair, amount in usage.items()]
    return [cell for cell in cells if cell[0].is_limited]


class Shares:
    """The shares of the queues of a tree, computed from its usage at the time of each call."""

    __slots__ = ("_measures", "_rules", "bits", "tree")

    def __init__(self, tree: Tree, rules: Rules = FAIR) -> None:
        self.tree = tree
        self._rules = rules
        self.bits = tree.share_bits
        # Cache: queue -> (resource, denominator, decayed usage beyond quota).
        self._measures: dict[str, tuple[tuple[str, int, int], ...]] = {}

    def share(self, queue: str, usage: Usage = _NOTHING_ADDED, *, at: str = "") -> Share:
        """The share of a queue if `usage` were added to it; negative amounts are released.

        With `at`, the share of that ancestor, with the part of `usage` that reaches it added.
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
        """The share of a node if `added` were added there, as a plain pair: the hot path."""
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
        """The current share in thousandths, rounded up, for display; None: infinite."""
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
    """One share. A caller that needs many keeps a `Shares`."""
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
    """The shares that the tests compare.

    None where both are the same queue, one is an ancestor of the other, or the trees differ.
    `incoming` is what is not charged yet: empty where the incoming workload is already charged.
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
    """Whether the preemptor's final share is at most the target's final share."""
    return of.preemptor_with <= of.target_without


def less_than_initial_share(of: Contest) -> bool:
    """Whether the preemptor's final share is less than the target's initial share."""
    return of.preemptor_with < of.target_before


SHARE_TESTS: Final[Mapping[ShareTest, Callable[[Contest], bool]]] = {
    "LessThanOrEqualToFinalShare": less_than_or_equal_to_final_share,
    "LessThanInitialShare": less_than_initial_share,
}
