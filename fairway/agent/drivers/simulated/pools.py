"""Where a simulated cluster's nodes come from: pools that stand, and elastic ones.

Nodes are named as a plan from files alone names them, so that both speak of the same nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fairway.agent.drivers.interface import PoolSeen
from fairway.agent.drivers.simulated.nodes import HOST_NAME, Node, Nodes
from fairway.agent.drivers.simulated.timers import Timers
from fairway.api.amounts import Amounts
from fairway.api.cluster import ElasticPool, SimulatedPool


def standing_nodes(pools: Iterable[SimulatedPool]) -> list[Node]:
    """The nodes of pools that are always there, with their topology domains as labels."""
    found = []
    for pool in pools:
        shape = Amounts.of(pool.shape)
        for number in range(pool.count):
            name = f"{pool.name}-{number:04d}"
            domains = {
                one.label: f"{pool.name}-{one.label.rpartition('/')[2]}-{number // one.nodes}"
                for one in pool.domains
            }
            labels = {HOST_NAME: name, **pool.labels, **domains}
            found.append(Node(name=name, allocatable=shape, labels=labels, taints=pool.taints))
    return found


@dataclass(slots=True, kw_only=True)
class _Pool:
    spec: ElasticPool
    stock: int | None
    nodes: int = 0
    provisioning: int = 0
    named: int = 0  # nodes that it ever had
    units: int = 0


class ElasticPools:
    """Nodes that come when they are asked for, and go when they have been idle for long."""

    def __init__(
        self,
        pools: Iterable[ElasticPool],
        *,
        nodes: Nodes,
        timers: Timers,
        changed: Callable[[], None],
    ) -> None:
        self._nodes = nodes
        self._timers = timers
        self._changed = changed
        self._pools: dict[str, _Pool] = {}
        self._asked: dict[tuple[str, int, str], int] = {}  # nodes, by work, attempt and pool
        self.use(pools)

    def use(self, pools: Iterable[ElasticPool]) -> None:
        """Takes new settings; nodes that are there stay, and a new stock replaces the old."""
        given = {one.name: one for one in pools}
        for name, spec in given.items():
            pool = self._pools.get(name)
            if pool is None:
                self._pools[name] = _Pool(spec=spec, stock=spec.stock)
            else:
                pool.stock = pool.stock if spec.stock == pool.spec.stock else spec.stock
                pool.spec = spec
        for name in [one for one in self._pools if one not in given]:
            if not self._pools[name].nodes + self._pools[name].provisioning:
                del self._pools[name]

    def seen(self) -> tuple[PoolSeen, ...]:
        return tuple(
            PoolSeen(name=name, nodes=one.nodes, provisioning=one.provisioning, stock=one.stock)
            for name, one in sorted(self._pools.items())
        )

    def ask(self, work: str, attempt: int, *, pool: str, count: int, now: float) -> str:
        """Orders what a work has not asked for yet in its attempt, which is `count` in all; says
        why if not all can come."""
        found = self._pools.get(pool)
        if found is None:
            return f"there is no elastic pool {pool}"
        asked = self._asked.get((work, attempt, pool), 0)
        if count <= asked:
            return ""
        self._asked[work, attempt, pool] = count
        unit = found.spec.unit
        wanted = -(-(count - asked) // unit) * unit
        left = found.spec.count_max - found.nodes - found.provisioning
        if found.stock is not None:
            left = min(left, found.stock)
        ordered = min(wanted, max(0, left) // unit * unit)
        if found.stock is not None:
            found.stock -= ordered
        found.provisioning += ordered
        if ordered:
            self._timers.at(
                now + found.spec.provision_seconds,
                lambda moment: self._arrive(found, ordered, moment),
            )
            self._changed()
        return "" if ordered == wanted else f"{ordered} of {wanted} nodes of {pool} can be had"

    def forget(self, work: str) -> None:
        """A work that is gone may ask anew."""
        for key in [one for one in self._asked if one[0] == work]:
            del self._asked[key]

    def became_idle(self, node: Node, now: float) -> None:
        """Begins to count the idle time of a node that has lost its last pod."""
        pool = self._pools.get(node.pool) if node.pool else None
        if pool is not None:
            node.idle_since = now
            self._timers.at(
                now + pool.spec.idle_seconds,
                lambda moment: self._give_back(pool, node.unit, moment),
            )

    def _arrive(self, pool: _Pool, count: int, now: float) -> None:
        spec = pool.spec
        arrived = []
        for number in range(count):
            pool.units += number % spec.unit == 0
            name = f"{spec.name}-e{pool.named:04d}"
            pool.named += 1
            arrived.append(
                Node(
                    name=name,
                    allocatable=Amounts.of(spec.shape),
                    labels={HOST_NAME: name, **spec.labels},
                    taints=spec.taints,
                    pool=spec.name,
                    unit=pool.units,
                )
            )
        pool.provisioning -= count
        pool.nodes += count
        self._nodes.change(add=arrived)
        for node in arrived:
            self.became_idle(node, now)
        self._changed()

    def _give_back(self, pool: _Pool, unit: int, now: float) -> None:
        members = [
            one
            for one in self._nodes.by_name.values()
            if one.pool == pool.spec.name and one.unit == unit
        ]
        is_idle = all(
            not one.pods and one.idle_since + pool.spec.idle_seconds <= now for one in members
        )
        if not members or not is_idle:
            return
        self._nodes.change(remove=[one.name for one in members])
        pool.nodes -= len(members)
        if pool.stock is not None:
            pool.stock += len(members)
        self._changed()
