"""Clusters as the core sees them: nodes in columns, by the fleet's names.

Capacity comes from the cluster's reports; a simulated cluster without reports has the nodes that
its pools describe, so that a plan can be made from files alone. The cluster's profile is undone
here: resources and labels get the fleet's names before anything is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

import numpy as np

from fairway.api.amounts import Quantity
from fairway.api.cluster import Cluster, Profile, SimulatedPool, domains_of, pools_of, quotas_of
from fairway.api.meta import Taint
from fairway.api.pools import ElasticPool, PoolBelief, ProviderQuota
from fairway.api.report import ClusterReport, PoolReport
from fairway.api.taint_times import taints_of
from fairway.core import model, nodes
from fairway.view.admission import ClusterRules, allowances_of, lasting_rules, rules_in
from fairway.view.devices import NO_CLASSES, Classes, with_shape
from fairway.view.queues import request_of
from fairway.view.reports import (
    HOSTNAME,
    Rows,
    SeenWorks,
    fleet_names,
    label_names,
    newest,
    nodes_of,
    seen_of,
)

SHADOWED = "what would run there is only noted"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """A cluster as it was read, and what it was read from."""

    cluster: nodes.Cluster
    seen: SeenWorks  # our pods, by work
    reports: tuple[ClusterReport, ...]
    away: frozenset[str]  # nodes that are set aside or given back
    doubts: tuple[tuple[str, bool, bool], ...]  # pools that may be out of stock; see `doubts`
    source: tuple[object, ...]  # what else its nodes were made from
    is_heard: bool  # whether its reports are current, and it is ours to change
    rules: Mapping[str, ClusterRules]  # for pods, by namespace


def read(
    cluster: Cluster,
    reports: Sequence[ClusterReport],
    now: float,
    before: Reading | None = None,
    classes: Classes = NO_CLASSES,
) -> Reading:
    """A cluster with its nodes and our pods on them.

    What has not changed since `before` is the same object: a report every few seconds does not
    rebuild nodes, or what depends on them. `classes` are the device classes of the fleet.
    """
    spec = cluster.spec
    reports = newest(reports)
    away = avoided_nodes(cluster, now)
    source = (spec.profile, spec.simulated.node_pools if spec.simulated else (), classes)
    columns = [report.spec.nodes for report in reports]
    if (
        before is None
        or (before.source, before.away) != (source, away)
        or columns != [report.spec.nodes for report in before.reports]
    ):
        rows = Rows(columns)
        table = _nodes(cluster, rows, away, classes)
        seen: SeenWorks = seen_of(reports, rows, spec.profile, classes)
    else:
        table, seen = before.cluster.nodes, before.seen
        if [report.spec.works for report in reports] != [
            report.spec.works for report in before.reports
        ]:
            seen = seen_of(reports, Rows(columns), spec.profile, classes)
    made = _cluster(cluster, reports, table, now, classes)
    if before is not None and _is_alike(before.cluster, made):
        made = before.cluster
    return Reading(
        cluster=made,
        seen=seen,
        reports=reports,
        away=away,
        doubts=doubts(cluster, now),
        source=source,
        is_heard=spec.mode == "Manage" and cluster.status.phase not in ("Lost", "Unready"),
        rules=lasting_rules(rules_in(cluster, reports), spec.profile),
    )


def avoided_nodes(cluster: Cluster, now: float) -> frozenset[str]:
    """Nodes that are set aside for now, or are being given back."""
    leaving = (node.name for node in cluster.status.leaving_nodes)
    aside = (
        node.name
        for node in cluster.status.avoided_nodes
        if node.until is None or node.until.timestamp() > now
    )
    return frozenset((*leaving, *aside))


def doubts(cluster: Cluster, now: float) -> tuple[tuple[str, bool, bool], ...]:
    """Pools that were out of stock: whether a pool is not tried, and whether it is doubtful.

    A doubtful pool is used only as a last resort.
    """
    return tuple(
        (belief.name, _is_before(now, belief.try_at), _is_before(now, belief.out_until))
        for belief in cluster.status.stock
        if belief.out_since is not None
    )


def _still(now: float, moment: datetime | None) -> float:
    """The timestamp of a moment in the future; else 0."""
    return 0.0 if moment is None or moment.timestamp() <= now else moment.timestamp()


def _is_before(now: float, moment: datetime | None) -> bool:
    return moment is not None and now < moment.timestamp()


def _cluster(
    cluster: Cluster,
    reports: Sequence[ClusterReport],
    table: nodes.Nodes,
    now: float,
    classes: Classes,
) -> nodes.Cluster:
    spec = cluster.spec
    kinds = cluster.status.kinds or (spec.simulated.kinds if spec.simulated else ())
    closed = _closed_because(cluster)
    return nodes.Cluster(
        name=cluster.metadata.name,
        nodes=table,
        labels=dict(cluster.metadata.labels),
        taints=taints_of(cluster),
        is_open=not closed,
        closed_because=closed,
        is_member=_is_member(cluster),
        answers=cluster.status.phase not in ("Lost", "Unready"),
        has_reported=bool(reports) or spec.simulated is not None,
        kinds=frozenset(kinds) if kinds else None,
        runs_pods_alone=spec.simulated is not None,
        levels=tuple((level.name, level.node_label) for level in spec.topology),
        pools=_pools(cluster, reports, now, classes),
        price_factor_nanos=spec.price_factor.nanos,
        allowances=allowances_of(rules_in(cluster, reports)),
    )


def _is_alike(cluster: nodes.Cluster, other: nodes.Cluster) -> bool:
    """Whether two clusters are equal, with the same nodes object."""
    return cluster.nodes is other.nodes and all(
        getattr(cluster, each.name) == getattr(other, each.name)
        for each in fields(cluster)
        if each.name != "nodes"
    )


def _is_member(cluster: Cluster) -> bool:
    """Whether a cluster is to run workloads, though it may be closed for now."""
    spec = cluster.spec
    is_leaving = cluster.metadata.deletion_timestamp is not None
    return spec.accepted and spec.mode == "Manage" and not is_leaving


def _closed_because(cluster: Cluster) -> str:
    spec = cluster.spec
    if cluster.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    if not spec.accepted:
        return "it is not accepted yet"
    if spec.mode == "Observe":
        return "it is only observed"
    if spec.hold != "None":
        return "it is held"
    if cluster.status.phase in ("Lost", "Unready"):
        return f"it is {cluster.status.phase.lower()}"
    return SHADOWED if spec.mode == "Shadow" else ""


def _nodes(cluster: Cluster, rows: Rows, away: frozenset[str], classes: Classes) -> nodes.Nodes:
    if rows.chunks:
        return nodes_of(rows, cluster.spec.profile, away, classes)
    if cluster.spec.simulated is not None:
        return _from_pools(cluster.spec.simulated.node_pools, cluster.spec.profile, classes)
    return _table([], [], [], {}, [])


class _Gathered:
    """Collects nodes one by one, then sorts them by name and turns them into columns."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ready: list[bool] = []
        self.labels: list[Mapping[str, str]] = []
        self.amounts: list[Mapping[str, int]] = []
        self.taints: list[tuple[Taint, ...]] = []

    def add(
        self,
        name: str,
        *,
        ready: bool,
        labels: Mapping[str, str],
        amounts: Mapping[str, int],
        taints: tuple[Taint, ...],
    ) -> None:
        self.names.append(name)
        self.ready.append(ready)
        self.labels.append({HOSTNAME: name, **labels})
        self.amounts.append(amounts)
        self.taints.append(taints)

    def table(self) -> nodes.Nodes:
        order = sorted(range(len(self.names)), key=lambda position: self.names[position])
        resources = sorted({resource for amount in self.amounts for resource in amount})
        columns = {
            resource: np.array(
                [
                    self.amounts[at].get(resource, nodes.UNLIMITED if resource == model.PODS else 0)
                    for at in order
                ],
                dtype=np.int64,
            )
            for resource in resources
        }
        return _table(
            [self.names[at] for at in order],
            [self.ready[at] for at in order],
            [self.labels[at] for at in order],
            columns,
            [self.taints[at] for at in order],
        )


def _table(
    names: list[str],
    ready: list[bool],
    labels: list[Mapping[str, str]],
    columns: Mapping[str, nodes.Amounts],
    taints: list[tuple[Taint, ...]],
) -> nodes.Nodes:
    keys = sorted({key for label in labels for key in label})
    sets = sorted(set(taints), key=repr)
    has_taints = any(sets)
    return nodes.Nodes(
        names=tuple(names),
        capacity=columns,
        ready=np.array(ready, dtype=np.bool_),
        labels={key: nodes.label_column([label.get(key) for label in labels]) for key in keys},
        taint_sets=tuple(sets) if has_taints else (),
        taint_set=np.array([sets.index(taint) for taint in taints], dtype=np.int32)
        if has_taints
        else None,
    )


def _from_pools(pools: Sequence[SimulatedPool], profile: Profile, classes: Classes) -> nodes.Nodes:
    rows = _Gathered()
    for pool in pools:
        shape = _fleet_shape(pool.shape, profile, classes)
        for number in range(pool.count):
            domains = domains_of(pool, number)
            rows.add(
                f"{pool.name}-{number:04d}",
                ready=True,
                labels=_rename({**pool.labels, **domains}, profile),
                amounts=shape,
                taints=pool.taints,
            )
    return rows.table()


def _fleet_shape(
    shape: Mapping[str, Quantity], profile: Profile, classes: Classes
) -> dict[str, int]:
    """What a node of a pool has, by the fleet's names."""
    back = fleet_names(profile)
    own = request_of(shape, up=False)
    return with_shape({back.get(resource, resource): amount for resource, amount in own}, classes)


def _rename(labels: Mapping[str, str], profile: Profile) -> dict[str, str]:
    back = label_names(profile)
    return {back.get(key, key): value for key, value in labels.items()}


def _pools(
    cluster: Cluster, reports: Sequence[ClusterReport], now: float, classes: Classes
) -> tuple[model.Pool, ...]:
    """Its elastic pools, with how many nodes each has left."""
    seen = {pool.name: pool for report in reports for pool in report.spec.pools}
    beliefs = {
        belief.name: belief for belief in cluster.status.stock if belief.out_since is not None
    }
    pools, used = pools_of(cluster), _used(pools_of(cluster), seen)
    result = []
    for pool in pools:
        pool_report = seen.get(pool.name)
        quota = quotas_of(cluster).get(pool.quota)
        by_quota = {} if quota is None else _by_quota(pool, quota, used[pool.quota])
        awaits_stock = _awaits_stock(cluster, pool_report)
        left = max(0, min((_left(pool, pool_report), *by_quota.values())))
        left = 0 if awaits_stock else left
        shape = tuple(sorted(_fleet_shape(pool.shape, cluster.spec.profile, classes).items()))
        made = _pool(pool, cluster, pool_report, shape=shape, left=left, limited=tuple(by_quota))
        made = replace(made, awaits_stock=awaits_stock) if awaits_stock else made
        result.append(_believe(made, beliefs.get(pool.name), now))
    return tuple(result)


def _used(
    pools: Sequence[ElasticPool], seen: Mapping[str, PoolReport]
) -> dict[str, dict[str, int]]:
    """What the nodes of all pools use of each provider quota, by resource."""
    used: dict[str, dict[str, int]] = {}
    for pool in pools:
        mine = used.setdefault(pool.quota, {})
        for resource, amount in request_of(pool.shape, up=False):
            mine[resource] = mine.get(resource, 0) + amount * _have(seen.get(pool.name))
    return used


def _by_quota(pool: ElasticPool, quota: ProviderQuota, used: Mapping[str, int]) -> dict[str, int]:
    """How many more nodes of a pool its provider quota allows, by resource."""
    shape = dict(request_of(pool.shape, up=False))
    return {
        resource: (most - used.get(resource, 0)) // shape[resource]
        for resource, most in request_of(quota.limits, up=False)
        if shape.get(resource)
    }


def _have(seen: PoolReport | None) -> int:
    return seen.nodes + seen.provisioning if seen else 0


def _left(pool: ElasticPool, seen: PoolReport | None) -> int:
    stock = seen.stock if seen and seen.stock is not None else pool.stock
    left = pool.count_max - _have(seen)
    return max(0, left if stock is None else min(left, stock))


def _awaits_stock(cluster: Cluster, seen: PoolReport | None) -> bool:
    """Whether the source of a pool's stock has not answered yet, as far as is reported."""
    if seen is not None:
        return seen.awaits_stock
    return cluster.spec.inventory is not None and cluster.spec.inventory.http is not None


def _pool(
    pool: ElasticPool,
    cluster: Cluster,
    seen: PoolReport | None,
    *,
    shape: model.Request,
    left: int,
    limited: tuple[str, ...],
) -> model.Pool:
    back = fleet_names(cluster.spec.profile)
    price = seen.price_per_hour if seen and seen.price_per_hour else pool.price_per_hour
    return model.Pool(
        name=pool.name,
        shape=shape,
        labels=tuple(sorted(_rename(pool.labels, cluster.spec.profile).items())),
        taints=pool.taints,
        left=left,
        unit=pool.unit,
        price_nanos=price.nanos if price else None,
        provision_seconds=float(pool.provision_seconds),
        is_interruptible=pool.interruptible,
        quota=pool.quota if limited else "",
        limited=tuple(sorted(back.get(name, name) for name in limited)),
    )


def _believe(pool: model.Pool, belief: PoolBelief | None, now: float) -> model.Pool:
    """A pool, limited by what is believed of its stock."""
    if belief is None:
        return pool
    return replace(
        pool,
        left=0 if _is_before(now, belief.try_at) else pool.left,
        is_doubtful=_is_before(now, belief.out_until),
        is_unsure=True,
        out_until=_still(now, belief.out_until),
    )
