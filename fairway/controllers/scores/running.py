"""Runs one scorer once: what each cluster's values are, and what failed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairway.api.amounts import NANO, Quantity
from fairway.api.cluster import Cluster
from fairway.api.errors import ApiError
from fairway.api.scores import (
    ConfigMapReference,
    CsvSource,
    HistoryFact,
    HttpScorer,
    ScorerSpec,
    TableRow,
)
from fairway.controllers.context import Context
from fairway.controllers.metric_sources import Measuring
from fairway.controllers.scores.failure_rates import FailureRates
from fairway.controllers.scores.readings import ITEM, Key, Reading, item_of, read
from fairway.controllers.scores.written import Run
from fairway.governance.cluster_selectors import chosen, facts_of
from fairway.metrics.interface import Address, MetricsFault, Refused, Sample, Unreachable
from fairway.metrics.measurements import Asked, Measurement, Measurer, read_values
from fairway.schema.cel.cluster_expressions import CLUSTER_UNITS, cluster_program
from fairway.schema.cel.environment import Budget, CompileError, EvaluationError
from fairway.store.keys import CONFIG_MAPS

_AGENTS_AT_ONCE = 32

Placed = tuple[str, Sample]  # a sample and its cluster


class Runner:
    """Measures by scorers."""

    def __init__(
        self, context: Context, *, measuring: Measuring, measurer: Measurer, rates: FailureRates
    ) -> None:
        self._store = context.store
        self._cache = context.cache
        self._clock = context.clock
        self._measuring = measuring
        self._measurer = measurer
        self._rates = rates
        self._agents = asyncio.Semaphore(_AGENTS_AT_ONCE)

    async def run(self, spec: ScorerSpec, before: Mapping[Key, Reading]) -> Run:
        """Measures; `before` are the last readings. What fails is part of the answer."""
        clusters = {
            cluster.metadata.name: cluster
            for cluster in self._cache.all(Cluster)
            if cluster.spec.accepted
        }
        facts = {name: facts_of(cluster) for name, cluster in clusters.items()}
        wanted = [clusters[name] for name in sorted(chosen(spec.clusters, facts))]
        faults: dict[str, str] = {}
        try:
            samples = await self._samples(spec, wanted, faults)
        except MetricsFault as fault:
            return Run(at=self._clock.now(), readings={}, fault=str(fault))
        now = self._clock.now()
        names = {cluster.metadata.name for cluster in wanted}
        readings = read(spec, samples, clusters=names, before=before, now=now)
        return Run(at=now, readings=readings, faults=faults)

    async def _samples(
        self, spec: ScorerSpec, clusters: Sequence[Cluster], faults: dict[str, str]
    ) -> list[Placed]:
        if spec.expression is not None:
            return list(_by_expression(spec.expression, clusters, faults, self._clock.now()))
        if spec.table is not None:
            stated = list(_stated(spec.table.rows, clusters, self._clock.now()))
            listed = await self._listed(spec, spec.table.csv) if spec.table.csv else []
            return _first_of_each(spec, [*stated, *listed])
        if spec.history is not None:
            return list(self._by_history(spec.history, clusters))
        measurement = await self._measurement(spec)
        if spec.run_by == "Agent":
            return await self._by_agents(measurement, clusters, faults)
        samples = await self._measurer.measure(measurement)
        return self._placed(spec, samples)

    # Servers.

    async def _measurement(self, spec: ScorerSpec) -> Measurement:
        seconds = float(spec.timeout_seconds)
        if spec.prometheus is not None:
            server = await self._measuring.prometheus(spec.prometheus.server)
            return Measurement(seconds=seconds, query=spec.prometheus.query, server=server)
        assert spec.http is not None, "a scorer has a source"
        return await self._of_scorer(spec.http, seconds)

    async def _of_scorer(self, http: HttpScorer, seconds: float) -> Measurement:
        async def at(url: str) -> Address | None:
            if not url:
                return None
            return await self._measuring.address(url, http.token, http.authority)

        named = http.server or self._cache.fleet().spec.metrics.prometheus
        return Measurement(
            seconds=seconds,
            scorer=await at(http.url),
            config=await at(http.config_url),
            series=tuple(
                Asked(
                    query=series.query,
                    range_seconds=series.range_seconds,
                    step_seconds=series.step_seconds,
                )
                for series in http.series
            ),
            server=await self._measuring.prometheus(named) if named is not None else None,
        )

    async def _by_agents(
        self, measurement: Measurement, clusters: Sequence[Cluster], faults: dict[str, str]
    ) -> list[Placed]:
        async def ask(name: str) -> list[Placed]:
            async with self._agents:
                try:
                    samples = await self._measurer.measure(measurement, name)
                except MetricsFault as fault:
                    faults[name] = str(fault)
                    return []
            return [(name, sample) for sample in samples]

        asked = await asyncio.gather(*(ask(cluster.metadata.name) for cluster in clusters))
        return [placed for answer in asked for placed in answer]

    def _placed(self, spec: ScorerSpec, samples: Sequence[Sample]) -> list[Placed]:
        return [(sample.labels.get(spec.cluster_label, ""), sample) for sample in samples]

    # What is known without a server.

    async def _listed(self, spec: ScorerSpec, source: CsvSource) -> list[Placed]:
        seconds = float(spec.timeout_seconds)
        if source.config_map is not None:
            content = await self._config_map(source.config_map)
            return self._placed(spec, list(read_values(content, self._clock.now())))
        file = await self._measuring.address(source.url, source.token)
        measurement = Measurement(seconds=seconds, file=file)
        return self._placed(spec, await self._measurer.measure(measurement))

    async def _config_map(self, where: ConfigMapReference) -> bytes:
        named = f"the ConfigMap {where.namespace}/{where.name}"
        try:
            stored = (await self._store.get(CONFIG_MAPS, where.name, where.namespace)).object()
        except ApiError as fault:
            raise Unreachable(f"{named} cannot be read: {fault}") from fault
        text = (stored.get("data") or {}).get(where.key)
        if text is None:
            raise Refused(f"{named} has no key {where.key}")
        return str(text).encode()

    def _by_history(self, history: HistoryFact, clusters: Sequence[Cluster]) -> Iterator[Placed]:
        now = self._clock.now()
        for cluster in clusters:
            name = cluster.metadata.name
            match history.fact:
                case "FailureRate":
                    value = self._rates.rate(name, half_life=history.half_life_seconds, now=now)
            if value is not None:
                yield name, Sample(value=value, at=now)


def _by_expression(
    text: str, clusters: Sequence[Cluster], faults: dict[str, str], now: float
) -> Iterator[Placed]:
    try:
        program = cluster_program(text)
    except CompileError as fault:
        raise Refused(f"the expression is not valid: {fault}") from fault
    for cluster in clusters:
        name = cluster.metadata.name
        try:
            answer = program.evaluate(_bindings(cluster), Budget(CLUSTER_UNITS))
            yield from ((name, sample) for sample in _numbers(answer, now))
        except EvaluationError as fault:
            faults[name] = str(fault)


def _bindings(cluster: Cluster) -> dict[str, Any]:
    """What an expression sees of a cluster; amounts are in whole units, such as GPUs or bytes."""
    facts, status = facts_of(cluster), cluster.status
    return {
        "cluster": {
            "name": facts.name,
            "labels": dict(facts.labels),
            "claims": dict(facts.claims),
            "nodes": float(status.nodes),
            "readyNodes": float(status.ready_nodes),
            "workloads": float(status.workloads),
            "free": _amounts(status.free),
            "allocatable": _amounts(status.allocatable),
        }
    }


def _amounts(amounts: Mapping[str, Quantity]) -> dict[str, float]:
    return {resource: amount.nanos / NANO for resource, amount in amounts.items()}


def _numbers(answer: object, now: float) -> Iterator[Sample]:
    """A number, or numbers by item."""
    items = answer.items() if isinstance(answer, Mapping) else [("", answer)]
    for item, number in items:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise EvaluationError(f"the expression yields {number!r}, which is not a number")
        if math.isfinite(number):
            yield Sample(value=float(number), at=now, labels={ITEM: str(item)} if item else {})


def _stated(rows: Sequence[TableRow], clusters: Sequence[Cluster], now: float) -> Iterator[Placed]:
    facts = {cluster.metadata.name: facts_of(cluster) for cluster in clusters}
    for row in rows:
        labels = {ITEM: row.item} if row.item else {}
        for name in sorted(chosen(row.clusters, facts)):
            yield name, Sample(value=row.value.nanos / NANO, at=now, labels=labels)


def _first_of_each(spec: ScorerSpec, samples: Sequence[Placed]) -> list[Placed]:
    """Of several values for one cluster and item, the first."""
    first: dict[Key, Placed] = {}
    for placed in samples:
        first.setdefault((placed[0], item_of(spec, placed[1])), placed)
    return list(first.values())
