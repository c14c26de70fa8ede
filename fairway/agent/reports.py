"""Reports of a cluster, in chunks: whole, or as the difference from the last whole report.

A node keeps its chunk while it exists, so a new node moves no other. Changes are collected as they
are seen, so a report costs what changed. A chunk is reported whole again once the differences since
have cost as much as a whole report: both together then cost at most twice the least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zlib import crc32

from fairway.agent.columns import columns_of
from fairway.agent.drivers.interface import NodeSeen, Observation, PodSeen, WorkSeen
from fairway.api.amounts import Quantity
from fairway.api.meta import ObjectMeta
from fairway.api.names import report_name
from fairway.api.namespaces import NamespaceRules
from fairway.api.report import (
    ClusterReport,
    ClusterReportSpec,
    NodeColumns,
    PodCounts,
    PoolReport,
    WorkPods,
    WorkState,
)
from fairway.api.report_changes import changed_rules, difference

# What one pod of a work's pod set requests, by the cluster's resource names.
Requests = Callable[[str, str], Mapping[str, Quantity]]

_NODES_MOST = 2000
_WORKS_MOST = 4000  # in one chunk
_FAULT_MOST = 1024
_CHEAP = 64  # so few entries of differences never cause a whole report


@dataclass(slots=True, kw_only=True)
class _Chunk:
    """One part of the cluster as it is now, and as last reported whole."""

    nodes: dict[str, NodeSeen] = field(default_factory=dict)
    columns: NodeColumns = field(default_factory=NodeColumns)
    rows: dict[str, int] = field(default_factory=dict)
    works: dict[str, tuple[WorkPods, ...]] = field(default_factory=dict)
    states: dict[str, WorkState] = field(default_factory=dict)
    changed: dict[str, None] = field(default_factory=dict)  # works, since the last whole report
    whole: ClusterReport | None = None
    columns_then: NodeColumns | None = None
    spent: int = 0  # entries reported in differences since
    is_dirty: bool = True

    def size(self) -> int:
        return len(self.nodes) + len(self.works) + len(self.states)


class Reports:
    """The reports of one cluster."""

    def __init__(self, cluster: str, epoch: int) -> None:
        self._cluster = cluster
        self._epoch = epoch
        self._chunks = [_Chunk()]
        self._chunk_by_node: dict[str, int] = {}
        self._nodes: tuple[NodeSeen, ...] | None = None
        self._pools: tuple[PoolReport, ...] = ()
        self._namespaces: tuple[NamespaceRules, ...] = ()
        self._sequence = 0

    @property
    def sequence(self) -> int:
        return self._sequence

    @property
    def chunks(self) -> int:
        return len(self._chunks)

    @property
    def is_dirty(self) -> bool:
        return any(chunk.is_dirty for chunk in self._chunks)

    def take(
        self,
        observation: Observation,
        changed: Iterable[str],
        states: Mapping[str, WorkState],
        requests: Requests,
    ) -> None:
        """Takes an observation; `changed` names the works that have changed."""
        names: Iterable[str] = changed
        if observation.nodes is not self._nodes:
            self._take_nodes(observation.nodes)
            names = dict.fromkeys((*changed, *observation.works))
        if len(states) > _WORKS_MOST * len(self._chunks):
            self._grow(-(-len(states) // _WORKS_MOST))
        for name in names:
            self._take_pods(name, observation.works.get(name), requests)
            self._take_state(name, states.get(name))
        pools = tuple(
            PoolReport(
                name=pool.name,
                nodes=pool.nodes,
                provisioning=pool.provisioning,
                stock=pool.stock,
                awaits_stock=pool.awaits_stock,
                price_per_hour=None if pool.price_nanos is None else Quantity(pool.price_nanos),
                failures=pool.failures,
                fault=pool.fault[:_FAULT_MOST],
            )
            for pool in observation.pools
        )
        if (pools, observation.namespaces) != (self._pools, self._namespaces):
            self._pools, self._namespaces = pools, observation.namespaces
            self._chunks[0].is_dirty = True

    def next(self, now: float) -> ClusterReport | None:
        """The next report to write; None if everything is reported."""
        for number, chunk in enumerate(self._chunks):
            if chunk.is_dirty:
                chunk.is_dirty = False
                self._sequence += 1
                return self._difference(number, chunk, now) or self._whole(number, chunk, now)
        return None

    def confirm(self, report: ClusterReport) -> None:
        """Records that a report is on the hub."""
        if report.spec.since_sequence is None and report.spec.chunks == len(self._chunks):
            self._chunks[report.spec.chunk].whole = report

    def mark_unsure(self, report: ClusterReport) -> None:
        """Marks a chunk to be reported whole: its report may or may not be on the hub."""
        if report.spec.chunk < len(self._chunks):
            chunk = self._chunks[report.spec.chunk]
            chunk.whole, chunk.is_dirty = None, True

    def tell_all(self) -> None:
        """Marks every chunk to be reported whole: the hub may have lost its reports."""
        for chunk in self._chunks:
            chunk.whole, chunk.is_dirty = None, True

    # Taking observations.

    def _take_nodes(self, nodes: tuple[NodeSeen, ...]) -> None:
        self._nodes = nodes
        present = {node.name: node for node in nodes}
        for name in [name for name in self._chunk_by_node if name not in present]:
            del self._chunks[self._chunk_by_node.pop(name)].nodes[name]
        for name in sorted(present):
            number = self._chunk_by_node.get(name)
            if number is None:
                number = self._room()
                self._chunk_by_node[name] = number
            self._chunks[number].nodes[name] = present[name]
        for chunk in self._chunks:
            columns = columns_of([chunk.nodes[name] for name in sorted(chunk.nodes)])
            if columns != chunk.columns:
                chunk.columns, chunk.is_dirty = columns, True
                chunk.rows = {name: row for row, name in enumerate(columns.names)}

    def _room(self) -> int:
        for number, chunk in enumerate(self._chunks):
            if len(chunk.nodes) < _NODES_MOST:
                return number
        self._grow(len(self._chunks) + 1)
        return len(self._chunks) - 1

    def _grow(self, count: int) -> None:
        """Adds chunks. States move between chunks, so every chunk is reported whole."""
        states = {name: state for chunk in self._chunks for name, state in chunk.states.items()}
        self._chunks.extend(_Chunk() for _ in range(count - len(self._chunks)))
        for chunk in self._chunks:
            chunk.states, chunk.whole, chunk.is_dirty = {}, None, True
        for name, state in states.items():
            self._take_state(name, state)

    def _take_state(self, name: str, state: WorkState | None) -> None:
        chunk = self._chunks[crc32(name.encode()) % len(self._chunks)]
        if chunk.states.get(name) == state:
            return
        if state is None:
            del chunk.states[name]
        else:
            chunk.states[name] = state
        chunk.changed[name] = None
        chunk.is_dirty = True

    def _take_pods(self, name: str, seen: WorkSeen | None, requests: Requests) -> None:
        result = self._pods(name, seen.pods, requests) if seen is not None and seen.pods else {}
        for number, chunk in enumerate(self._chunks):
            now = result.get(number, ())
            if chunk.works.get(name, ()) == now:
                continue
            if now:
                chunk.works[name] = now
            else:
                del chunk.works[name]
            chunk.changed[name] = None
            chunk.is_dirty = True

    def _pods(
        self, name: str, pods: Iterable[PodSeen], requests: Requests
    ) -> dict[int, tuple[WorkPods, ...]]:
        """The pods of a work by chunk."""
        counts: dict[int, dict[tuple[str, int], _Counts]] = {}
        for pod in pods:
            if pod.phase in ("Succeeded", "Failed"):
                continue
            number = self._chunk_by_node.get(pod.node) if pod.node else 0
            if number is None:
                continue  # its node is gone
            result = counts.setdefault(number, {}).setdefault((pod.pod_set, pod.attempt), _Counts())
            if not pod.node:
                result.pending += 1
                continue
            row = self._chunks[number].rows[pod.node]
            column = result.terminating if pod.phase == "Terminating" else result.bound
            column[row] = column.get(row, 0) + 1
        return {
            number: tuple(
                WorkPods(
                    work=name,
                    pod_set=pod_set,
                    attempt=attempt,
                    requests=requests(name, pod_set),
                    bound=_count(counts.bound),
                    terminating=_count(counts.terminating),
                    pending=counts.pending,
                )
                for (pod_set, attempt), counts in sorted(by_set.items())
            )
            for number, by_set in counts.items()
        }

    # Making reports.

    def _difference(self, number: int, chunk: _Chunk, now: float) -> ClusterReport | None:
        """What changed since the last whole report; None if a whole report is due."""
        if chunk.whole is None or chunk.spent > chunk.size() + _CHEAP:
            return None
        if _moment(now) < chunk.whole.spec.seen_at:
            return None  # the clock was set back: the difference would be taken for an older one
        if chunk.columns is chunk.columns_then:
            report: ClusterReport | None = self._changes(number, chunk, chunk.whole, now)
        else:
            report = difference(chunk.whole, self._report(number, chunk, now))
        if report is None:
            return None
        spec = report.spec
        chunk.spent += len(spec.nodes.names) + len(spec.works) + len(spec.states) + 1
        name = report_name(self._cluster, number, is_difference=True)
        return _name(spec, name)

    def _changes(
        self, number: int, chunk: _Chunk, whole: ClusterReport, now: float
    ) -> ClusterReport | None:
        """The difference if no node has changed."""
        spec = whole.spec
        if number == 0 and self._has_lost(spec):
            return None
        names = sorted(chunk.changed)
        return ClusterReport(
            spec=ClusterReportSpec(
                cluster=self._cluster,
                agent_epoch=self._epoch,
                sequence=self._sequence,
                since_sequence=spec.sequence,
                chunk=number,
                chunks=len(self._chunks),
                seen_at=_moment(now),
                works=tuple(pods for name in names for pods in chunk.works.get(name, ())),
                states=tuple(chunk.states[name] for name in names if name in chunk.states),
                # A work that lost its pods or its state is reported as removed, with what is left.
                removed_works=tuple(
                    name for name in names if name not in chunk.works or name not in chunk.states
                ),
                pools=tuple(pool for pool in self._pools if pool not in spec.pools)
                if number == 0
                else (),
                namespaces=changed_rules(spec.namespaces, self._namespaces) if number == 0 else (),
            )
        )

    def _has_lost(self, spec: ClusterReportSpec) -> bool:
        """Whether a pool, or the rules of a namespace, of a whole report are gone."""
        return bool(
            {pool.name for pool in spec.pools} - {pool.name for pool in self._pools}
            or {rules.name for rules in spec.namespaces}
            - {rules.name for rules in self._namespaces}
        )

    def _whole(self, number: int, chunk: _Chunk, now: float) -> ClusterReport:
        chunk.changed.clear()
        chunk.spent = 0
        chunk.whole = None  # until the report is written
        chunk.columns_then = chunk.columns
        return self._report(number, chunk, now)

    def _report(self, number: int, chunk: _Chunk, now: float) -> ClusterReport:
        spec = ClusterReportSpec(
            cluster=self._cluster,
            agent_epoch=self._epoch,
            sequence=self._sequence,
            chunk=number,
            chunks=len(self._chunks),
            seen_at=_moment(now),
            nodes=chunk.columns,
            works=tuple(pods for name in sorted(chunk.works) for pods in chunk.works[name]),
            states=tuple(chunk.states[name] for name in sorted(chunk.states)),
            pools=self._pools if number == 0 else (),
            namespaces=self._namespaces if number == 0 else (),
        )
        return _name(spec, report_name(self._cluster, number))


@dataclass(slots=True)
class _Counts:
    bound: dict[int, int] = field(default_factory=dict)
    terminating: dict[int, int] = field(default_factory=dict)
    pending: int = 0


def _count(column: Mapping[int, int]) -> PodCounts | None:
    if not column:
        return None
    rows = sorted(column)
    return PodCounts(nodes=tuple(rows), counts=tuple(column[row] for row in rows))


def _name(spec: ClusterReportSpec, name: str) -> ClusterReport:
    return ClusterReport(metadata=ObjectMeta(name=name), spec=spec)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
