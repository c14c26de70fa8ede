"""Trees that say least and most instead of nominal quota and limits (ElasticQuotaTree).

`least` is guaranteed, usage beyond it is borrowed, and nothing goes beyond `most`. Such a tree is
one of ours:

    nominal(leaf)    = least
    nominal(parent)  = least - sum of the children's least: what it has besides theirs
    borrowing limit  = most - least
    nominal(root)    = most - sum of the children's least: a root borrows from nobody, so what it
                       may use is what it has; where it says no most, its least
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairway.core.model import FlavorResource, Queue, Quota, ResourceGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class MinMax:
    """One node of such a tree."""

    name: str
    parent: str = ""
    least: Mapping[FlavorResource, int] = field(default_factory=dict)
    most: Mapping[FlavorResource, int] = field(default_factory=dict)  # not named: no limit
    groups: tuple[ResourceGroup, ...] = ()


def from_min_max(nodes: Iterable[MinMax]) -> tuple[Queue, ...]:
    """The same tree as queues, in order of name.

    A parent that guarantees less than its children do guarantees what they do.
    """
    by_name = {one.name: one for one in sorted(nodes, key=lambda one: one.name)}
    children: dict[str, list[MinMax]] = {}
    for one in by_name.values():
        children.setdefault(one.parent, []).append(one)
    queues = []
    for one in by_name.values():
        below = children.get(one.name, [])
        pairs = set(one.least) | set(one.most)
        queues.append(
            Queue(
                name=one.name,
                parent=one.parent,
                groups=one.groups,
                quotas={pair: _quota(one, below, pair) for pair in sorted(pairs)},
            )
        )
    return tuple(queues)


def _quota(node: MinMax, below: Iterable[MinMax], pair: FlavorResource) -> Quota:
    theirs = sum(child.least.get(pair, 0) for child in below)
    least = max(node.least.get(pair, 0), theirs)
    most = node.most.get(pair)
    if most is not None:
        most = max(most, least)
    if not node.parent:
        return Quota(nominal=(least if most is None else most) - theirs)
    return Quota(nominal=least - theirs, borrowing_limit=None if most is None else most - least)
