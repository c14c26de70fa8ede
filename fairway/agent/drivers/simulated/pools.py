"""Where a simulated cluster's nodes come from: fixed pools and elastic pools.

Nodes have the names that a plan made from files alone gives them, so that both name the same nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fairway.agent.drivers.interface import PoolSeen
from fairway.agent.drivers.simulated.nodes import HOST_NAME, Node, Nodes
from fairway.agent.drivers.simulated.timers import Timers
from fairway.api.amounts import Amounts
from fairway.api.cluster import ClusterSpec, SimulatedPool, SimulatedStockOut, domains_of
from fairway.api.names import POOL_LABEL
from fairway.api.pools import ElasticPool, ProviderQuota


def standing_nodes(pools: Iterable[SimulatedPool]) -> list[Node]:
    """The nodes of fixed pools, with their topology domains as labels."""
    nodes = []
    for pool in pools:
        shape = Amounts.of(pool.shape)
        for number in range(pool.count):
            name = f"{pool.name}-{number:04d}"
            domains = domains_of(pool, number)
            labels = {HOST_NAME: name, **pool.labels, **domains}
            nodes.append(Node(name=name, allocatable=shape, labels=labels, taints=pool.taints))
    return nodes


@dataclass(slots=True, kw_only=True)
class _Pool:
    spec: ElasticPool
    stock: int | None
    nodes: int = 0
    provisioning: int = 0
    named: int = 0  # nodes that it has ever had
    units: int = 0
    failures: int = 0
    fault: str = ""


class ElasticPools:
    """Nodes that are provisioned on request, as far as there is stock, and released."""

    def __init__(
        self,
        cluster: ClusterSpec,
        *,
        nodes: Nodes,
        timers: Timers,
        changed: Callable[[], None],
        began: float = 0.0,
    ) -> None:
        self._began = began
        self._nodes = nodes
        self._timers = timers
        self._changed = changed
        self._pools: dict[str, _Pool] = {}
        self._asked: dict[tuple[str, int, str], int] = {}  # nodes, by work, attempt and pool
        self._stock_outs: tuple[SimulatedStockOut, ...] = ()
        self._quotas: dict[str, ProviderQuota] = {}
        self.use(cluster)

    def use(self, cluster: ClusterSpec) -> None:
        """Takes new settings; existing nodes stay, and a new stock replaces the old."""
        self._stock_outs = cluster.simulated.stock_outs if cluster.simulated is not None else ()
        self._quotas = {
            provider_quota.name: provider_quota for provider_quota in cluster.provider_quotas
        }
        given = {pool.name: pool for pool in cluster.elastic_pools}
        for name, spec in given.items():
            pool = self._pools.get(name)
            if pool is None:
                self._pools[name] = _Pool(spec=spec, stock=spec.stock)
            else:
                pool.stock = pool.stock if spec.stock == pool.spec.stock else spec.stock
                pool.spec = spec
        for name in [pool for pool in self._pools if pool not in given]:
            if not self._pools[name].nodes + self._pools[name].provisioning:
                del self._pools[name]

    def observe(self) -> tuple[PoolSeen, ...]:
        return tuple(
            PoolSeen(
                name=name,
                nodes=pool.nodes,
                provisioning=pool.provisioning,
                stock=pool.stock,
                failures=pool.failures,
                fault=pool.fault,
            )
            for name, pool in sorted(self._pools.items())
        )

    def ask(self, work: str, attempt: int, *, pool: str, count: int, now: float) -> str:
        """Orders the nodes that an attempt of a work has not ordered yet, of `count` in total.

        Returns why, if not all can be provided.
        """
        known = self._pools.get(pool)
        if known is None:
            return f"there is no elastic pool {pool}"
        asked = self._asked.get((work, attempt, pool), 0)
        if count <= asked:
            return ""
        self._asked[work, attempt, pool] = count
        unit = known.spec.unit
        wanted = -(-(count - asked) // unit) * unit
        left = known.spec.count_max - known.nodes - known.provisioning
        if known.stock is not None:
            left = min(left, known.stock)
        left = min(left, self._left_of_quota(known.spec))
        if self._is_out(pool, now):
            left = 0
        ordered = min(wanted, max(0, left) // unit * unit)
        if ordered:
            self._order(known, ordered, now)
        if ordered == wanted:
            return ""
        known.failures += 1
        known.fault = f"{ordered} of {wanted} nodes of {pool} can be had"
        self._changed()
        return known.fault

    def _order(self, pool: _Pool, count: int, now: float) -> None:
        if pool.stock is not None:
            pool.stock -= count
        pool.provisioning += count
        due = now + pool.spec.provision_seconds
        self._timers.at(due, lambda _: self._arrive(pool, count))
        self._changed()

    def _left_of_quota(self, pool: ElasticPool) -> int:
        """How many more nodes of a pool the provider's quota allows."""
        quota = self._quotas.get(pool.quota)
        rest = [pool.count_max]
        for resource, most in quota.limits.items() if quota is not None else ():
            used = sum(
                (other.nodes + other.provisioning) * other.spec.shape[resource].nanos
                for other in self._pools.values()
                if other.spec.quota == pool.quota and resource in other.spec.shape
            )
            if resource in pool.shape and pool.shape[resource].nanos:
                rest.append((most.nanos - used) // pool.shape[resource].nanos)
        return min(rest)

    def _is_out(self, pool: str, now: float) -> bool:
        """Whether a simulated stock-out holds now, whatever the stock of the pool."""
        for stock_out in self._stock_outs:
            passed = now - self._began - stock_out.after_seconds
            if stock_out.pool == pool and passed >= 0:
                within = passed % stock_out.every_seconds if stock_out.every_seconds else passed
                if within < stock_out.seconds:
                    return True
        return False

    def forget(self, work: str) -> None:
        """Forgets the orders of a work that is gone."""
        for key in [pair for pair in self._asked if pair[0] == work]:
            del self._asked[key]

    def release(self, names: Sequence[str]) -> None:
        """Releases nodes, a unit at a time; a unit stays whole if any of its nodes has a pod."""
        asked = set(names)
        units: dict[tuple[str, int], list[Node]] = {}
        for node in self._nodes.by_name.values():
            if node.pool in self._pools:
                units.setdefault((node.pool, node.unit), []).append(node)
        for (name, _), members in sorted(units.items()):
            if not all(member.name in asked and not member.pods for member in members):
                continue
            pool = self._pools[name]
            self._nodes.change(remove=[member.name for member in members])
            pool.nodes -= len(members)
            if pool.stock is not None:
                pool.stock += len(members)
            self._changed()

    def _arrive(self, pool: _Pool, count: int) -> None:
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
                    labels={HOST_NAME: name, **spec.labels, POOL_LABEL: spec.name},
                    taints=spec.taints,
                    pool=spec.name,
                    unit=pool.units,
                )
            )
        pool.provisioning -= count
        pool.nodes += count
        self._nodes.change(add=arrived)
        self._changed()
