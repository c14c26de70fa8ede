"""The readings of an autoscaler's metrics, and the queries for them.

A metric by name becomes a query for its series; a model server's signal comes from the table of
presets. Every reading is in whole thousandths, rounded up, as in Kubernetes' own metrics.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from fairway.api.amounts import Quantity
from fairway.api.autoscaler import (
    ContainerResourceMetric,
    FleetAutoscaler,
    Metric,
    MetricTarget,
    ResourceMetric,
    ServingMetric,
)
from fairway.api.meta import LabelSelector
from fairway.controllers.autoscaling.pods import Pods
from fairway.controllers.autoscaling.services import Service
from fairway.controllers.metric_sources import Measuring
from fairway.metrics import presets
from fairway.metrics.interface import MetricsFault, NoSample, Sample, Source, value
from fairway.serving.scaling import model
from fairway.serving.scaling.model import AverageValue, NotRead, OfAll, OfPods, Target, Utilization

_MILLI = 1_000_000  # nanos
_POD, _CLUSTER, _NAMESPACE = "pod", "cluster", "namespace"
# HPA's default metric.
DEFAULT = Metric(
    type="Resource",
    resource=ResourceMetric(
        name="cpu", target=MetricTarget(type="Utilization", average_utilization=80)
    ),
)
_NEEDS_USAGE = ("Resource", "ContainerResource", "Pods")


def metrics_of(autoscaler: FleetAutoscaler) -> tuple[Metric, ...]:
    return autoscaler.spec.metrics or (DEFAULT,)


def needs_usage(metrics: tuple[Metric, ...]) -> bool:
    """Whether pods must be known one by one."""
    return any(metric.type in _NEEDS_USAGE for metric in metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads the metrics of one autoscaler, at one moment."""

    autoscaler: FleetAutoscaler
    service: Service
    pods: Pods
    measuring: Measuring
    now: float

    async def all(self) -> tuple[model.Metric, ...]:
        metrics = metrics_of(self.autoscaler)
        return tuple(await asyncio.gather(*(self._read(metric) for metric in metrics)))

    async def _read(self, metric: Metric) -> model.Metric:
        match metric:
            case Metric(resource=ResourceMetric() as wanted):
                return self._usage(wanted, f"{wanted.name} resource")
            case Metric(container_resource=ContainerResourceMetric() as wanted):
                return self._usage(wanted, f"{wanted.name} of container {wanted.container}")
            case Metric(pods=wanted) if wanted is not None:
                query = wanted.metric.query or (
                    f"{wanted.metric.name}{{{self._of_namespace(wanted.metric.selector)}}}"
                )
                return model.Metric(
                    name=f"pods metric {wanted.metric.name}",
                    failure="FailedGetPodsMetric",
                    target=target_of(wanted.target),
                    reading=await self._of_pods(query),
                )
            case Metric(object=wanted) if wanted is not None:
                about = wanted.described_object
                labels = self._of_namespace(
                    wanted.metric.selector, {about.kind.lower(): about.name}
                )
                query = wanted.metric.query or f"sum({wanted.metric.name}{{{labels}}})"
                return model.Metric(
                    name=f"{about.kind} metric {wanted.metric.name}",
                    failure="FailedGetObjectMetric",
                    target=target_of(wanted.target),
                    reading=await self._of_all(query),
                    activation=millis(wanted.activation_value),
                )
            case Metric(external=wanted) if wanted is not None:
                labels = ",".join(_matchers(wanted.metric.selector))
                query = wanted.metric.query or f"sum({wanted.metric.name}{{{labels}}})"
                return model.Metric(
                    name=f"external metric {wanted.metric.name}",
                    failure="FailedGetExternalMetric",
                    target=target_of(wanted.target),
                    reading=await self._of_all(query),
                    activation=millis(wanted.activation_value),
                )
            case Metric(serving=wanted) if wanted is not None:
                return await self._of_server(wanted)
        raise AssertionError(metric)  # the schema requires the part that the type names

    def _usage(self, metric: ResourceMetric | ContainerResourceMetric, name: str) -> model.Metric:
        """What pods use of a resource, as reported by their clusters with the pods."""
        container = metric.container if isinstance(metric, ContainerResourceMetric) else ""
        by_pod: dict[str, model.Measured] = {}
        for pod, seen in self.pods.usage.items():
            names = [container] if container else list(seen.usage)
            if names and all(metric.name in seen.usage.get(other, {}) for other in names):
                by_pod[pod] = model.Measured(
                    value=sum(seen.usage[other][metric.name] for other in names),
                    at=seen.measured_at,
                    window_seconds=seen.window_seconds,
                )
        reading: model.Reading = OfPods(by_pod=by_pod)
        if not by_pod and self.pods.fault:
            reading = NotRead(why=self.pods.fault)
        return model.Metric(
            name=name,
            failure=f"FailedGet{'Container' if container else ''}ResourceMetric",
            target=target_of(metric.target),
            reading=reading,
            resource=metric.name,
            container=container,
        )

    async def _of_server(self, serving_metric: ServingMetric) -> model.Metric:
        server = presets.SERVERS[serving_metric.engine]
        more = (
            {server.model_label: serving_metric.model}
            if serving_metric.model and server.model_label
            else {}
        )
        if serving_metric.selector is None:
            beginning = re.escape(self.service.object_name)
            labels = f"{self._of_namespace(None, more)},{_POD}=~{presets.quote(beginning + '-.*')}"
        else:
            labels = self._of_namespace(serving_metric.selector, more)
        query = presets.query(serving_metric.engine, serving_metric.signal, labels)
        target = millis(serving_metric.target)
        is_total = serving_metric.signal in presets.TOTALS
        return model.Metric(
            name=f"{serving_metric.engine} {serving_metric.signal}",
            failure="FailedGetServingMetric",
            target=AverageValue(value=target) if is_total else model.Value(value=target),
            reading=NotRead(why=f"{serving_metric.engine} does not tell {serving_metric.signal}")
            if query is None
            else await self._of_all(query),
            activation=millis(serving_metric.activation_value),
        )

    async def _of_all(self, query: str) -> model.Reading:
        try:
            return OfAll(
                value=round_to_thousandths(await value(await self._source(), query, self.now))
            )
        except MetricsFault as fault:
            return NotRead(why=str(fault), is_absent=isinstance(fault, NoSample))

    async def _of_pods(self, query: str) -> model.Reading:
        try:
            samples = await (await self._source()).vector(query, self.now)
        except MetricsFault as fault:
            return NotRead(why=str(fault))
        if any(_POD not in sample.labels for sample in samples):
            return NotRead(why=f"samples have no label {_POD}, so they cannot be assigned to pods")
        if not samples:
            return NotRead(why=f"there is no sample for {query}", is_absent=True)
        return OfPods(by_pod=_by_pod(samples, self.pods))

    async def _source(self) -> Source:
        own = self.autoscaler.spec.prometheus
        return await self.measuring.source(own, self.autoscaler.metadata.namespace)

    def _of_namespace(
        self, selector: LabelSelector | None, more: Mapping[str, str] | None = None
    ) -> str:
        own = {_NAMESPACE: self.service.namespace, **(more or {})}
        return ",".join([presets.match_labels(own), *_matchers(selector)])


def _by_pod(samples: tuple[Sample, ...], pods: Pods) -> dict[str, model.Measured]:
    """Samples by the pod they belong to.

    A sample without a cluster label belongs to the one pod of that name. Where pods are known only
    by number, samples are dealt to as many ready pods.
    """
    places: dict[str, list[str]] = defaultdict(list)
    for fact in pods.facts:
        if pods.is_named:
            places[fact.name.partition("/")[2]].append(fact.name)
        elif fact.is_ready and not fact.is_leaving and fact.phase == "Running":
            places[fact.name.partition("/")[0]].append(fact.name)
            places[""].append(fact.name)
    result: dict[str, model.Measured] = {}
    for sample in sorted(samples, key=lambda sample: sorted(sample.labels.items())):
        cluster, pod = sample.labels.get(_CLUSTER, ""), sample.labels[_POD]
        if pods.is_named:
            free = [place for place in places[pod] if not cluster or place == f"{cluster}/{pod}"]
        else:
            free = places[cluster]
        free = [name for name in free if name not in result]
        name = free[0] if free else f"{cluster}/{pod}"
        result[name] = model.Measured(value=round_to_thousandths(sample.value), at=sample.at)
    return result


def _matchers(selector: LabelSelector | None) -> list[str]:
    """A label selector in PromQL."""
    if selector is None:
        return []
    matchers = [presets.match_labels(selector.match_labels)] if selector.match_labels else []
    for expression in selector.match_expressions:
        any_of = presets.quote("|".join(re.escape(text) for text in expression.values))
        matchers.append(
            {
                "In": f"{expression.key}=~{any_of}",
                "NotIn": f"{expression.key}!~{any_of}",
                "Exists": f'{expression.key}!=""',
                "DoesNotExist": f'{expression.key}=""',
            }[expression.operator]
        )
    return matchers


def target_of(target: MetricTarget) -> Target:
    match target.type:
        case "Utilization":
            return Utilization(percent=target.average_utilization or 1)
        case "AverageValue":
            return AverageValue(value=millis(target.average_value))
        case _:
            return model.Value(value=millis(target.value))


def millis(amount: Quantity | None) -> int:
    """Thousandths, rounded up."""
    return -(-amount.nanos // _MILLI) if amount is not None else 0


def round_to_thousandths(number: float) -> int:
    """Thousandths of a number as written in its shortest text, rounded up."""
    return ceil(Decimal(repr(number)) * 1000)
