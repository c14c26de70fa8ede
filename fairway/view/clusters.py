"""Clusters as the core sees them: nodes in columns, by the fleet's names.

Capacity comes from the cluster's reports; a simulated cluster without one has the nodes that its
pools describe, so that a plan can be made of files alone. The cluster's profile is undone here:
resources and labels get the fleet's names, before anything is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairway.api.cluster import Cluster, ElasticPool, Profile, SimulatedPool
from fairway.api.meta import Taint
from fairway.api.report import ClusterReport, NodeColumns
from fairway.core import model, nodes
from fairway.view.queues import request_of
from fairway.view.selecting import ClusterFacts

HOSTNAME = "kubernetes.io/hostname"


def facts_of(cluster: Cluster) -> ClusterFacts:
    return ClusterFacts(
        name=cluster.metadata.name,
        labels=cluster.metadata.labels,
        claims={**cluster.status.claims, **cluster.spec.claims},
    )


def cluster_of(cluster: Cluster, reports: Sequence[ClusterReport], now: float) -> nodes.Cluster:
    """A cluster with its nodes, from its reports or from its simulated pools."""
    spec = cluster.spec
    kinds = cluster.status.kinds or (spec.simulated.kinds if spec.simulated else ())
    closed = _closed_because(cluster)
    avoided = {
        one.name
        for one in cluster.status.avoided_nodes
        if one.until is None or one.until.timestamp() > now
    }
    return nodes.Cluster(
        name=cluster.metadata.name,
        nodes=_nodes(cluster, reports, avoided),
        labels=dict(cluster.metadata.labels),
        taints=spec.taints,
        is_open=not closed,
        closed_because=closed,
        kinds=frozenset(kinds) if kinds else None,
        levels=tuple((one.name, one.node_label) for one in spec.topology),
        pools=tuple(_pool(one, cluster, reports) for one in spec.elastic_pools),
        price_factor_nanos=spec.price_factor.nanos,
    )


def _closed_because(cluster: Cluster) -> str:
    spec = cluster.spec
    if not spec.accepted:
        return "it is not accepted yet"
    if spec.mode == "Observe":
        return "it is only observed"
    if spec.hold != "None":
        return "it is held"
    if cluster.status.phase in ("Lost", "Unready"):
        return f"it is {cluster.status.phase.lower()}"
    return ""


def _nodes(cluster: Cluster, reports: Sequence[ClusterReport], avoided: set[str]) -> nodes.Nodes:
    if reports:
        return _from_reports(cluster.spec.profile, reports, avoided)
    if cluster.spec.simulated is not None:
        return _from_pools(cluster.spec.simulated.node_pools, cluster.spec.profile)
    return _table([], [], [], {}, [])


class _Rows:
    """Nodes gathered one by one, then sorted by name and turned into columns."""

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
        resources = sorted({resource for one in self.amounts for resource in one})
        columns = {
            resource: np.array([self.amounts[at].get(resource, 0) for at in order], dtype=np.int64)
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
    keys = sorted({key for one in labels for key in one})
    sets = sorted(set(taints), key=repr)
    has_taints = any(sets)
    return nodes.Nodes(
        names=tuple(names),
        capacity=columns,
        ready=np.array(ready, dtype=np.bool_),
        labels={key: nodes.label_column([one.get(key) for one in labels]) for key in keys},
        taint_sets=tuple(sets) if has_taints else (),
        taint_set=np.array([sets.index(one) for one in taints], dtype=np.int32)
        if has_taints
        else None,
    )


def _from_pools(pools: Sequence[SimulatedPool], profile: Profile) -> nodes.Nodes:
    rows = _Rows()
    back = _fleet_names(profile)
    for pool in pools:
        shape = dict(request_of(pool.shape, up=False))
        for number in range(pool.count):
            domains = {
                one.label: f"{pool.name}-{one.label.rpartition('/')[2]}-{number // one.nodes}"
                for one in pool.domains
            }
            rows.add(
                f"{pool.name}-{number:04d}",
                ready=True,
                labels=_renamed({**pool.labels, **domains}, profile),
                amounts={
                    back.get(resource, resource): amount for resource, amount in shape.items()
                },
                taints=pool.taints,
            )
    return rows.table()


def _from_reports(
    profile: Profile, reports: Sequence[ClusterReport], avoided: set[str]
) -> nodes.Nodes:
    rows = _Rows()
    back = _fleet_names(profile)
    for report in sorted(reports, key=lambda one: one.spec.chunk):
        _add_chunk(rows, report.spec.nodes, back, profile, avoided)
    return rows.table()


def _add_chunk(
    rows: _Rows,
    chunk: NodeColumns,
    back: Mapping[str, str],
    profile: Profile,
    avoided: set[str],
) -> None:
    unready = set(chunk.unready)
    for at, name in enumerate(chunk.names):
        amounts: dict[str, int] = {}
        for column in chunk.amounts:
            resource = back.get(column.resource, column.resource)
            left = column.allocatable[at] - (column.others[at] if column.others else 0)
            amounts[resource] = left * column.unit.nanos // model.unit_nanos(resource)
        taints = chunk.taint_sets[chunk.taint_set[at]].taints if chunk.taint_set else ()
        labels = {one.key: one.values[at] for one in chunk.labels if one.values[at]}
        rows.add(
            name,
            ready=at not in unready and name not in avoided,
            labels=_renamed(labels, profile),
            amounts=amounts,
            taints=taints,
        )


def _fleet_names(profile: Profile) -> dict[str, str]:
    """The fleet's name of a resource, by the cluster's own."""
    return {own: fleet for fleet, own in profile.resources.items()}


def _renamed(labels: Mapping[str, str], profile: Profile) -> dict[str, str]:
    back = {own: fleet for fleet, own in profile.node_labels.items()}
    return {back.get(key, key): value for key, value in labels.items()}


def _pool(pool: ElasticPool, cluster: Cluster, reports: Sequence[ClusterReport]) -> model.Pool:
    seen = {one.name: one for report in reports for one in report.spec.pools}.get(pool.name)
    have = seen.nodes + seen.provisioning if seen else 0
    stock = seen.stock if seen and seen.stock is not None else pool.stock
    left = pool.count_max - have
    if stock is not None:
        left = min(left, stock)
    back = _fleet_names(cluster.spec.profile)
    shape = request_of(pool.shape, up=False)
    return model.Pool(
        name=pool.name,
        shape=tuple(sorted((back.get(resource, resource), amount) for resource, amount in shape)),
        labels=tuple(sorted(_renamed(pool.labels, cluster.spec.profile).items())),
        taints=pool.taints,
        left=max(0, left),
        unit=pool.unit,
        price_nanos=pool.price_per_hour.nanos if pool.price_per_hour else None,
        provision_seconds=float(pool.provision_seconds),
    )
