"""The capacity of clusters, by flavor, from their agents' reports only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fairway.api.amounts import Quantity, family_of, is_accelerator
from fairway.api.cluster import Cluster, pools_of
from fairway.api.flavor import Flavor
from fairway.api.report import ClusterReport, NodeColumns, PodCounts, WorkPods
from fairway.api.report_changes import apply_changes

CPU = "cpu"


@dataclass(slots=True, kw_only=True)
class Room:
    """One resource on the nodes of one flavor in one cluster, in nanos."""

    cluster: str
    flavor: str  # empty: nodes without a flavor
    resource: str
    nodes: int = 0
    total: int = 0
    used: int = 0
    to_come: int = 0  # on nodes that elastic pools may add

    @property
    def free(self) -> int:
        return max(0, self.total - self.used)

    def show(self, nanos: int) -> str:
        return str(Quantity(nanos, family_of(self.resource)))


def rooms(
    clusters: Iterable[Cluster], reports: Iterable[ClusterReport], flavors: Iterable[Flavor]
) -> list[Room]:
    """Every cluster's rooms: of accelerators, else of CPUs; in order of cluster names."""
    known = list(flavors)
    by_cluster: dict[str, list[ClusterReport]] = {}
    for report in whole_reports(reports):
        by_cluster.setdefault(report.spec.cluster, []).append(report)
    result: list[Room] = []
    for cluster in sorted(clusters, key=lambda cluster: cluster.metadata.name):
        rows = _Counting(cluster, known)
        for report in by_cluster.get(cluster.metadata.name, ()):
            rows.add(report)
        rows.add_pools()
        result += rows.rooms()
    return result


def whole_reports(reports: Iterable[ClusterReport]) -> Iterator[ClusterReport]:
    """The report chunks of all clusters, each with its changes applied."""
    wholes, changes = [], {}
    for report in reports:
        if report.spec.since_sequence is None:
            wholes.append(report)
        else:
            changes[(report.spec.cluster, report.spec.chunk)] = report
    for whole in wholes:
        yield apply_changes(whole, changes.get((whole.spec.cluster, whole.spec.chunk)))


class _Counting:
    """Counts the capacity of one cluster."""

    def __init__(self, cluster: Cluster, flavors: list[Flavor]) -> None:
        self._cluster = cluster
        self._flavors = flavors
        profile = cluster.spec.profile
        self._resource_names = {own: name for name, own in profile.resources.items()}
        self._label_keys = {own: key for key, own in profile.node_labels.items()}
        self._found: dict[tuple[str, str], Room] = {}

    def add(self, report: ClusterReport) -> None:
        nodes = report.spec.nodes
        flavor_of = [self._flavor(labels) for labels in _labels(nodes, self._label_keys)]
        unready = set(nodes.unready)
        for column in nodes.amounts:
            resource = self._resource_names.get(column.resource, column.resource)
            unit = column.unit.nanos
            for at, amount in enumerate(column.allocatable):
                if amount:
                    room = self._room(flavor_of[at], resource)
                    room.nodes += 1
                    room.total += 0 if at in unready else amount * unit
                    room.used += column.others[at] * unit if column.others else 0
        for work in report.spec.works:
            self._use(work, flavor_of)

    def add_pools(self) -> None:
        """Adds the nodes that elastic pools could still add."""
        seen = {pool.name: pool for pool in self._cluster.status.elastic_pools}
        for pool in pools_of(self._cluster):
            status = seen.get(pool.name)
            left = pool.count_max - (status.nodes + status.provisioning if status else 0)
            stock = status.stock if status and status.stock is not None else pool.stock
            stock = 0 if status and status.awaits_stock else stock
            count = max(0, left if stock is None else min(left, stock))
            for resource, amount in pool.shape.items():
                room = self._room(self._flavor(pool.labels), resource)
                room.to_come += count * amount.nanos

    def rooms(self) -> list[Room]:
        result = sorted(self._found.values(), key=lambda room: (room.flavor, room.resource))
        accelerators = [room for room in result if is_accelerator(room.resource)]
        return accelerators or [room for room in result if room.resource == CPU]

    def _use(self, work: WorkPods, flavor_of: list[str]) -> None:
        for pods in (work.bound, work.terminating):
            for at, count in _counts(pods):
                for name, amount in work.requests.items():
                    resource = self._resource_names.get(name, name)
                    self._room(flavor_of[at], resource).used += count * amount.nanos

    def _room(self, flavor: str, resource: str) -> Room:
        key = (flavor, resource)
        if key not in self._found:
            name = self._cluster.metadata.name
            self._found[key] = Room(cluster=name, flavor=flavor, resource=resource)
        return self._found[key]

    def _flavor(self, labels: Mapping[str, str]) -> str:
        """The most specific flavor of a node."""
        suiting = [
            flavor
            for flavor in self._flavors
            if all(labels.get(key) == value for key, value in flavor.spec.node_labels.items())
        ]
        best = min(
            suiting,
            key=lambda flavor: (-len(flavor.spec.node_labels), flavor.metadata.name),
            default=None,
        )
        return best.metadata.name if best else ""


def _counts(pods: PodCounts | None) -> Iterator[tuple[int, int]]:
    if pods is not None:
        yield from zip(pods.nodes, pods.counts, strict=True)


def _labels(nodes: NodeColumns, keys: Mapping[str, str]) -> list[dict[str, str]]:
    """The labels of each node, by the fleet's keys."""
    labels: list[dict[str, str]] = [{} for _ in nodes.names]
    for column in nodes.labels:
        key = keys.get(column.key, column.key)
        for at, value in enumerate(column.values):
            if value:
                labels[at][key] = value
    return labels
