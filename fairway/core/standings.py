"""How queues stand: what each holds, owns, borrows and lends, and who is next in line.

For people and for the status of queues; no decision looks at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairway.api.amounts import Quantity, family_of
from fairway.core.model import FlavorResource, Workload, unit_nanos
from fairway.core.snapshot import Snapshot
from fairway.core.turns.quota import Tree
from fairway.core.turns.shares import Rules, Shares

_HEADS = 20  # of those who wait in a queue, how many are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One resource of one flavor in a queue and all below it, in nanos."""

    flavor: str
    resource: str
    nominal: int
    used: int
    borrowed: int
    lent: int  # of what it owns, what is in use elsewhere in its tree

    def render(self) -> dict[str, Any]:
        family = family_of(self.resource)
        amounts = {
            "nominal": self.nominal,
            "used": self.used,
            "borrowed": self.borrowed,
            "lent": self.lent,
        }
        return {
            "flavor": self.flavor,
            "resource": self.resource,
            **{name: str(Quantity(nanos, family)) for name, nanos in amounts.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One queue, with all below it."""

    queue: str
    parent: str
    weight_nanos: int
    waiting: int
    claimed: int
    running: int
    share: int | None  # weighted dominant share in thousandths; None: infinite
    holdings: tuple[Holding, ...]
    heads: tuple[str, ...]  # the first who wait in this very queue

    def render(self) -> dict[str, Any]:
        return {
            "queue": self.queue,
            "parent": self.parent,
            "weight": str(Quantity(self.weight_nanos)),
            "waiting": self.waiting,
            "claimed": self.claimed,
            "running": self.running,
            "share": self.share,
            "holdings": [one.render() for one in self.holdings],
            "heads": list(self.heads),
        }


def standings(snapshot: Snapshot) -> list[Standing]:
    """Every queue, parents before their children."""
    tree = snapshot.tree
    settings = snapshot.facts.settings
    rules = Rules(is_enabled=settings.fair_sharing, remembers=settings.half_life_seconds > 0)
    shares = Shares(tree, rules)
    waiting = {queue: len(line) for queue, line in snapshot.lines.items()}
    claimed = {queue: len(keys) for queue, keys in snapshot.holding.items()}
    running = {
        queue: sum(_runs(snapshot.facts.workloads.get(key)) for key in keys)
        for queue, keys in snapshot.holding.items()
    }
    found = []
    for node in tree.nodes:
        below = _with_all_below(tree, node.name)
        found.append(
            Standing(
                queue=node.name,
                parent=node.parent.name if node.parent else "",
                weight_nanos=node.queue.weight_nanos,
                waiting=sum(waiting.get(name, 0) for name in below),
                claimed=sum(claimed.get(name, 0) for name in below),
                running=sum(running.get(name, 0) for name in below),
                share=shares.thousandths(node.name),
                holdings=_holdings(tree, node.name, below),
                heads=tuple(one.key for one in snapshot.lines.get(node.name, ())[:_HEADS]),
            )
        )
    return found


def _runs(workload: Workload | None) -> bool:
    held = workload.held if workload else None
    return held is not None and held.started_at is not None


def _with_all_below(tree: Tree, queue: str) -> list[str]:
    found = [queue]
    for name in found:  # grows while it is walked
        found.extend(tree.children(name))
    return found


def _holdings(tree: Tree, queue: str, below: list[str]) -> tuple[Holding, ...]:
    """What is owned or used; a pair that is neither is left out."""
    node = tree.node(queue)
    assert node is not None, "it was asked for by its own name"
    used: dict[FlavorResource, int] = {}
    for name in below:
        if not tree.children(name):
            for pair, amount in tree.usage(name).items():
                used[pair] = used.get(pair, 0) + amount
    pairs = sorted({pair for pair in (*node.subtree, *used) if pair[0]})
    found = []
    for pair in pairs:
        nominal, usage = tree.subtree_quota(queue, pair), used.get(pair, 0)
        if nominal or usage:
            found.append(_holding(tree, queue, pair, nominal=nominal, usage=usage))
    return tuple(found)


def _holding(tree: Tree, queue: str, pair: FlavorResource, *, nominal: int, usage: int) -> Holding:
    flavor, resource = pair
    unit = unit_nanos(resource)
    # What it could still have of its own, if nobody else had any of it.
    missing = max(0, nominal - usage) - max(0, tree.available(queue, pair))
    return Holding(
        flavor=flavor,
        resource=resource,
        nominal=nominal * unit,
        used=usage * unit,
        borrowed=tree.borrowed(queue, pair) * unit,
        lent=max(0, missing) * unit,
    )
