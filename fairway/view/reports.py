"""Reports of a cluster: the newest state of its chunks, its nodes in columns, our pods on them.

Nodes have one order over all chunks, by name; pods refer to positions in it. Reading goes column
by column, since a large cluster has thousands of nodes and reports often.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import TypeVar

import msgspec
import numpy as np

from fairway.api.cluster import Profile
from fairway.api.meta import Taint
from fairway.api.report import AmountColumn, ClusterReport, NodeColumns, PodCounts
from fairway.api.report_changes import apply_changes, fits
from fairway.core import model, nodes
from fairway.view.devices import Classes, with_columns, with_resources
from fairway.view.queues import request_of

T = TypeVar("T")
HOSTNAME = "kubernetes.io/hostname"
_MOST = 2**62  # maximum amount on one node


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPods:
    """Pods of one set and attempt of a work, by positions of nodes."""

    pod_set: str
    attempt: int
    requests: model.Request
    bound: Mapping[int, int] = field(default_factory=dict)
    terminating: Mapping[int, int] = field(default_factory=dict)


SeenWorks = Mapping[str, tuple[SeenPods, ...]]  # by name of the work


def newest(reports: Iterable[ClusterReport]) -> tuple[ClusterReport, ...]:
    """The present chunks of a cluster, by number.

    A chunk is a whole report with the newest difference applied; chunks beyond the number in the
    newest report are left over from when there were more.
    """
    wholes: dict[int, ClusterReport] = {}
    differences: dict[int, list[ClusterReport]] = {}
    for report in reports:
        if report.spec.since_sequence is not None:
            differences.setdefault(report.spec.chunk, []).append(report)
        elif report.spec.chunk not in wholes or _age(wholes[report.spec.chunk]) < _age(report):
            wholes[report.spec.chunk] = report
    if not wholes:
        return ()
    chunks = max(wholes.values(), key=_age).spec.chunks
    result = []
    for chunk in sorted(wholes):
        if chunk < chunks:
            whole = wholes[chunk]
            later = [
                difference for difference in differences.get(chunk, ()) if fits(whole, difference)
            ]
            result.append(apply_changes(whole, max(later, key=_age)) if later else whole)
    return tuple(result)


def _age(report: ClusterReport) -> tuple[int, int, int]:
    return (report.spec.agent_epoch, report.spec.sequence, -report.spec.chunk)


class Rows:
    """The positions of the nodes of all chunks in the one order by name."""

    def __init__(self, chunks: Sequence[NodeColumns]) -> None:
        self.chunks = chunks
        flat = [name for chunk in chunks for name in chunk.names]
        rows = {name: row for row, name in enumerate(flat)}  # in two chunks: the later one counts
        self.names = tuple(sorted(rows))
        self.order = [rows[name] for name in self.names]
        position = {name: at for at, name in enumerate(self.names)}
        self.positions = [[position[name] for name in chunk.names] for chunk in chunks]

    def column(self, parts: Sequence[Sequence[T]]) -> list[T]:
        """One column, from its part in each chunk."""
        flat = [value for part in parts for value in part]
        return [flat[row] for row in self.order]


def nodes_of(
    rows: Rows, profile: Profile, avoided: Collection[str], classes: Classes
) -> nodes.Nodes:
    """The nodes of a cluster, with the fleet's names of resources and labels."""
    chunks = rows.chunks
    unready = [set(chunk.unready) for chunk in chunks]
    ready = rows.column(
        [
            [row not in unready[number] for row in range(len(chunk.names))]
            for number, chunk in enumerate(chunks)
        ]
    )
    if avoided:
        ready = [
            value and name not in avoided for value, name in zip(ready, rows.names, strict=True)
        ]
    taint_sets, taint_set = _taints(rows)
    back = fleet_names(profile)
    capacity = _columns(rows, back, classes, _left)
    return nodes.Nodes(
        names=rows.names,
        capacity=capacity,
        whole=_whole(rows, back, classes, capacity),
        ready=np.array(ready, dtype=np.bool_),
        labels=_labels(rows, label_names(profile)),
        taint_sets=taint_sets,
        taint_set=taint_set,
    )


def _whole(
    rows: Rows, back: Mapping[str, str], classes: Classes, capacity: Mapping[str, nodes.Amounts]
) -> dict[str, nodes.Amounts]:
    """What nodes have of resources of which pods of others use some, whoever uses it."""
    used = frozenset(
        amount.resource for chunk in rows.chunks for amount in chunk.amounts if any(amount.others)
    )
    whole = _columns(rows, back, classes, _allocatable, only=used) if used else {}
    return {
        name: column for name, column in whole.items() if not np.array_equal(column, capacity[name])
    }


def _columns(
    rows: Rows,
    back: Mapping[str, str],
    classes: Classes,
    read: Callable[[AmountColumn, int], nodes.Amounts],
    only: Collection[str] | None = None,
) -> dict[str, nodes.Amounts]:
    """A column for each resource, in base units; or only for some, and for all of devices."""
    own = sorted({amount.resource for chunk in rows.chunks for amount in chunk.amounts})
    if only is not None:
        of_devices = {*classes, *classes.values()}
        own = [name for name in own if name in only or back.get(name, name) in of_devices]
    result: dict[str, nodes.Amounts] = {}
    has: dict[str, nodes.Amounts] = {}
    for resource in own:
        name = back.get(resource, resource)
        has_classes = name in classes.values()
        parts, wholes = [], []
        for chunk in rows.chunks:
            column = next((amount for amount in chunk.amounts if amount.resource == resource), None)
            unsaid = nodes.UNLIMITED if name == model.PODS else 0
            none = np.full(len(chunk.names), unsaid, np.int64)
            parts.append(none if column is None else read(column, model.unit_nanos(name)))
            if has_classes:
                wholes.append(none if column is None else np.array(column.allocatable, np.int64))
        result[name] = np.concatenate(parts)[rows.order]
        if wholes:
            has[name] = np.concatenate(wholes)[rows.order]
    result = with_columns(result, has, classes)
    return {name: result[name] for name in sorted(result)}


def _allocatable(column: AmountColumn, unit: int) -> nodes.Amounts:
    """What a node has, whoever uses it, in base units."""
    return _left(msgspec.structs.replace(column, others=()), unit)


def _left(column: AmountColumn, unit: int) -> nodes.Amounts:
    """What others leave, in base units; exact up to any realistic amount."""
    common = gcd(column.unit.nanos, unit)
    times, parts = column.unit.nanos // common, unit // common
    most = max(column.allocatable, default=0)
    if most * times >= _MOST or (column.others and max(column.others) * times >= _MOST):
        others = column.others or (0,) * len(column.allocatable)
        exact = [
            max(-_MOST, min((value - other) * times // parts, _MOST))
            for value, other in zip(column.allocatable, others, strict=True)
        ]
        return np.array(exact, dtype=np.int64)
    left = np.array(column.allocatable, dtype=np.int64)
    if column.others:
        left -= np.array(column.others, dtype=np.int64)
    return left * times // parts


def _labels(rows: Rows, back: Mapping[str, str]) -> dict[str, nodes.LabelColumn]:
    labels: dict[str, Sequence[str]] = {HOSTNAME: rows.names}
    for key in sorted({label.key for chunk in rows.chunks for label in chunk.labels}):
        values = rows.column([_values(chunk, key) for chunk in rows.chunks])
        name = back.get(key, key)
        before = labels.get(name)
        if before is not None:
            values = [value or other for value, other in zip(values, before, strict=True)]
        labels[name] = values
    return {key: _label_column(labels[key], rows) for key in sorted(labels) if any(labels[key])}


def _label_column(values: Sequence[str], rows: Rows) -> nodes.LabelColumn:
    if values is rows.names:  # each node its own, in order
        return nodes.LabelColumn(codes=np.arange(len(values), dtype=np.int32), values=rows.names)
    return nodes.label_column(values)


def _values(chunk: NodeColumns, key: str) -> Sequence[str]:
    for label in chunk.labels:
        if label.key == key:
            return label.values
    return ("",) * len(chunk.names)


def _taints(
    rows: Rows,
) -> tuple[tuple[tuple[Taint, ...], ...], nodes.Codes | None]:
    taints = rows.column(
        [
            [chunk.taint_sets[at].taints for at in chunk.taint_set] or [()] * len(chunk.names)
            for chunk in rows.chunks
        ]
    )
    sets = sorted(set(taints), key=repr)
    if not any(sets):
        return (), None
    position = {set_: at for at, set_ in enumerate(sets)}
    return tuple(sets), np.array([position[taint] for taint in taints], dtype=np.int32)


def seen_of(
    reports: Sequence[ClusterReport], rows: Rows, profile: Profile, classes: Classes
) -> dict[str, tuple[SeenPods, ...]]:
    """Our pods in a cluster, by work; parts of one pod set in several chunks are merged."""
    back = fleet_names(profile)
    bound: dict[tuple[str, str, int], dict[int, int]] = {}
    ending: dict[tuple[str, str, int], dict[int, int]] = {}
    requests: dict[tuple[str, str, int], model.Request] = {}
    for report, positions in zip(reports, rows.positions, strict=True):
        for work in report.spec.works:
            key = (work.work, work.pod_set, work.attempt)
            if key not in requests or work.requests:
                own = {back.get(name, name): some for name, some in work.requests.items()}
                requests[key] = request_of(with_resources(own, classes))
            _count(bound.setdefault(key, {}), work.bound, positions)
            _count(ending.setdefault(key, {}), work.terminating, positions)
    result: dict[str, list[SeenPods]] = {}
    for key in sorted(requests):
        if bound[key] or ending[key]:
            result.setdefault(key[0], []).append(
                SeenPods(
                    pod_set=key[1],
                    attempt=key[2],
                    requests=requests[key],
                    bound=bound[key],
                    terminating=ending[key],
                )
            )
    return {work: tuple(some) for work, some in result.items()}


def _count(into: dict[int, int], pods: PodCounts | None, positions: Sequence[int]) -> None:
    if pods is None:
        return
    for row, count in zip(pods.nodes, pods.counts, strict=False):
        if count and row < len(positions):
            into[positions[row]] = into.get(positions[row], 0) + count


def fleet_names(profile: Profile) -> dict[str, str]:
    """The fleet's name of a resource, by the cluster's own."""
    return {own: fleet for fleet, own in profile.resources.items()}


def label_names(profile: Profile) -> dict[str, str]:
    """The fleet's name of a label, by the cluster's own."""
    return {own: fleet for fleet, own in profile.node_labels.items()}
