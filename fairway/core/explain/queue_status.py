"""The state of queues: what each owns, uses, borrows and lends, and which workloads are next.

For users and for the status of queues; decisions do not use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from fairway.api.amounts import Quantity, family_of, is_accelerator
from fairway.core.model import FlavorResource, Workload, unit_nanos
from fairway.core.quota.shares import Shares
from fairway.core.quota.tree import Tree
from fairway.core.snapshot import Snapshot

_HEADS = 20  # how many waiting workloads of a queue are named
_ASKED = 10  # up to how many waiting workloads of a queue their requests are summed
_MILLI = 1_000  # accelerators are counted in thousandths


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One resource of one flavor in a queue and all queues below it, in nanos."""

    flavor: str
    resource: str
    nominal: int
    used: int
    borrowed: int
    lent: int  # the part of what it owns that is in use elsewhere in its tree

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
class Asks:
    """Accelerators that waiting workloads request; infinite if that is not known."""

    total: float = 0.0
    by_flavor: Mapping[str, float] = field(default_factory=dict)  # "": by workloads that take any

    def of(self, flavor: str) -> float:
        """An upper bound on what is requested of one flavor."""
        return self.by_flavor.get(flavor, 0.0) + self.by_flavor.get("", 0.0)

    def plus(self, other: Asks) -> Asks:
        if not other.total:
            return self
        by_flavor = dict(self.by_flavor)
        for flavor, amount in other.by_flavor.items():
            by_flavor[flavor] = by_flavor.get(flavor, 0.0) + amount
        return Asks(total=self.total + other.total, by_flavor=by_flavor)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """One queue, with all queues below it."""

    queue: str
    parent: str
    weight_nanos: int
    waiting: int
    claimed: int
    running: int
    share: int | None  # weighted dominant share in thousandths; None: infinite
    holdings: tuple[Holding, ...]
    heads: tuple[str, ...]  # the first workloads that wait in this queue itself
    asks: Asks = Asks()

    def render(self) -> dict[str, Any]:
        return {
            "queue": self.queue,
            "parent": self.parent,
            "weight": str(Quantity(self.weight_nanos)),
            "waiting": self.waiting,
            "claimed": self.claimed,
            "running": self.running,
            "share": self.share,
            "holdings": [holding.render() for holding in self.holdings],
            "heads": list(self.heads),
        }


def standings(snapshot: Snapshot) -> list[QueueState]:
    """Every queue, parents before their children."""
    tree = snapshot.tree
    settings = snapshot.facts.settings
    rules = settings.share_rules
    shares = Shares(tree, rules)
    waiting = {queue: len(line) for queue, line in snapshot.lines.items()}
    claimed = {queue: len(keys) for queue, keys in snapshot.holding.items()}
    running = {
        queue: sum(_runs(snapshot.facts.workloads.get(key)) for key in keys)
        for queue, keys in snapshot.holding.items()
    }
    asks = {queue: _asks(line) for queue, line in snapshot.lines.items()}
    queues = []
    for node in tree.nodes:
        below = _with_all_below(tree, node.name)
        queues.append(
            QueueState(
                queue=node.name,
                parent=node.parent.name if node.parent else "",
                weight_nanos=node.queue.weight_nanos,
                waiting=sum(waiting.get(name, 0) for name in below),
                claimed=sum(claimed.get(name, 0) for name in below),
                running=sum(running.get(name, 0) for name in below),
                share=shares.thousandths(node.name),
                holdings=_holdings(tree, node.name, below),
                heads=tuple(line.key for line in snapshot.lines.get(node.name, ())[:_HEADS]),
                asks=_sum(asks[name] for name in below if name in asks),
            )
        )
    return queues


def _asks(line: Sequence[Workload]) -> Asks:
    """What the workloads of a line request; of a long line, an infinite amount."""
    if len(line) > _ASKED:
        return _ANYTHING
    ask = Asks()
    for workload in line:
        form = workload.forms[0]
        amount = _count(workload) * sum(
            pods.count * each
            for pods in form.pod_sets
            for resource, each in pods.shape.requests
            if is_accelerator(resource)
        )
        if not amount:
            return _ANYTHING  # it requests something other than accelerators
        by_flavor = dict.fromkeys(form.flavors or ("",), amount / _MILLI)
        ask = ask.plus(Asks(total=amount / _MILLI, by_flavor=by_flavor))
    return ask


def _count(workload: Workload) -> int:
    """How many times the pods of a form are requested; replicas that run are not counted."""
    held = workload.held.placed if workload.held else ()
    match workload.mode:
        case "Divided":
            return max(1, workload.replicas - sum(placement.replicas for placement in held))
        case "Independent":
            return min(workload.concurrency or workload.tasks, workload.tasks)
        case _:
            return 1


def _sum(asks: Iterable[Asks]) -> Asks:
    result = Asks()
    for ask in asks:
        result = result.plus(ask)
    return result


_ANYTHING = Asks(total=inf, by_flavor={"": inf})


def _runs(workload: Workload | None) -> bool:
    held = workload.held if workload else None
    return held is not None and held.started_at is not None


def _with_all_below(tree: Tree, queue: str) -> list[str]:
    result = [queue]
    for name in result:  # grows while it is walked
        result.extend(tree.children(name))
    return result


def _holdings(tree: Tree, queue: str, below: list[str]) -> tuple[Holding, ...]:
    """What is owned or used of each flavor and resource; pairs with neither are left out."""
    node = tree.node(queue)
    assert node is not None, "it was asked for by its own name"
    used: dict[FlavorResource, int] = {}
    for name in below:
        if not tree.children(name):
            for pair, amount in tree.usage(name).items():
                used[pair] = used.get(pair, 0) + amount
    pairs = sorted({pair for pair in (*node.subtree, *used) if pair[0]})
    holdings = []
    for pair in pairs:
        nominal, usage = tree.subtree_quota(queue, pair), used.get(pair, 0)
        if nominal or usage:
            holdings.append(_holding(tree, queue, pair, nominal=nominal, usage=usage))
    return tuple(holdings)


def _holding(tree: Tree, queue: str, pair: FlavorResource, *, nominal: int, usage: int) -> Holding:
    flavor, resource = pair
    unit = unit_nanos(resource)
    # The part of its own unused quota that is not available, since other queues use it.
    missing = max(0, nominal - usage) - max(0, tree.available(queue, pair))
    return Holding(
        flavor=flavor,
        resource=resource,
        nominal=nominal * unit,
        used=usage * unit,
        borrowed=tree.amount_borrowed(queue, pair) * unit,
        lent=max(0, missing) * unit,
    )
