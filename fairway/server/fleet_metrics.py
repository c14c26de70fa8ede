"""Serves the metrics of the fleet: keeps the numbers that the leader's controllers give.

Numbers are kept as they come and become text only when somebody reads them. Labels are bounded, as
`api/fleet_metrics.py` says: the first values of a label that are given are shown, later ones are
counted as `other`, until names that are gone make room.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from fairway.api.fleet_metrics import FLEET_METRICS, OTHER, SERIES_MOST, VALUES_MOST, Metric

Labels = tuple[str, ...]


@dataclass(slots=True)
class _Counts:
    """How many observations each bucket of a histogram has, and their sum."""

    buckets: list[int]
    total: float = 0.0


@dataclass(slots=True)
class _Kept:
    """What is known of one metric."""

    values: dict[Labels, float] = field(default_factory=dict)
    counts: dict[Labels, _Counts] = field(default_factory=dict)

    def has(self, labels: Labels) -> bool:
        return labels in self.values or labels in self.counts

    def __len__(self) -> int:
        return len(self.values) + len(self.counts)


class FleetMetrics(Collector):
    """The numbers of one fleet, of which only the leader gives any."""

    def __init__(self) -> None:
        self._kept = {metric: _Kept() for metric in FLEET_METRICS}
        self._shown: dict[str, set[str]] = {label: set() for label in VALUES_MOST}

    def set(self, metric: Metric, values: Mapping[Labels, float]) -> None:
        """Sets all series of a gauge; those that are not given disappear."""
        kept = self._kept[metric] = _Kept()
        for given, value in values.items():
            labels = self._bounded(metric, given)
            before = kept.values.get(labels)
            if before is None:
                kept.values[labels] = value
            else:
                kept.values[labels] = (
                    max(before, value) if metric.folds == "max" else before + value
                )

    def add(self, metric: Metric, labels: Labels, amount: float = 1.0) -> None:
        """Adds to a counter."""
        shown = self._bounded(metric, labels)
        values = self._kept[metric].values
        values[shown] = values.get(shown, 0.0) + amount

    def observe(self, metric: Metric, labels: Labels, value: float) -> None:
        """Adds an observation to a histogram."""
        shown = self._bounded(metric, labels)
        counts = self._kept[metric].counts
        if shown not in counts:
            counts[shown] = _Counts([0] * (len(metric.buckets) + 1))
        counts[shown].buckets[bisect_left(metric.buckets, value)] += 1
        counts[shown].total += value

    def keep(self, label: str, names: Collection[str]) -> None:
        """Forgets all names of a label but these, with all their series."""
        gone = self._shown[label].difference(names)
        if not gone:
            return
        self._shown[label] -= gone
        for metric, kept in self._kept.items():
            if label in metric.labels:
                at = metric.labels.index(label)
                for series in (kept.values, kept.counts):
                    for labels in [labels for labels in series if labels[at] in gone]:
                        del series[labels]

    def clear(self) -> None:
        """Forgets everything: another replica leads."""
        self._kept = {metric: _Kept() for metric in FLEET_METRICS}
        for shown in self._shown.values():
            shown.clear()

    def describe(self) -> Iterable[Family]:
        return [_family(metric) for metric in FLEET_METRICS]

    def collect(self) -> Iterable[Family]:
        for metric, kept in self._kept.items():
            family = _family(metric)
            for labels, value in kept.values.items():
                name = f"{metric.name}_total" if metric.type == "counter" else metric.name
                family.add_sample(name, _named(metric, labels), value)
            for labels, counts in kept.counts.items():
                _add_histogram(family, metric, _named(metric, labels), counts)
            yield family

    def _bounded(self, metric: Metric, labels: Labels) -> Labels:
        """The labels under which a series is shown."""
        pairs = zip(metric.labels, labels, strict=True)
        shown = tuple(self._shown_as(label, value) for label, value in pairs)
        kept = self._kept[metric]
        if kept.has(shown) or len(kept) < SERIES_MOST - 1:
            return shown
        return (OTHER,) * len(shown)

    def _shown_as(self, label: str, value: str) -> str:
        most = VALUES_MOST.get(label)
        if most is None or not value:
            return value
        shown = self._shown[label]
        if value not in shown:
            if len(shown) >= most:
                return OTHER
            shown.add(value)
        return value


def _family(metric: Metric) -> Family:
    """A metric without series."""
    match metric.type:
        case "gauge":
            return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
        case "counter":
            return CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
        case "histogram":
            return HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)


def _named(metric: Metric, labels: Labels) -> dict[str, str]:
    return dict(zip(metric.labels, labels, strict=True))


def _add_histogram(
    family: Family, metric: Metric, labels: Mapping[str, str], counts: _Counts
) -> None:
    """Adds buckets as Prometheus has them: each counts all observations up to its limit."""
    limits = (*(str(float(limit)) for limit in metric.buckets), "+Inf")
    for limit, count in zip(limits, accumulate(counts.buckets), strict=True):
        family.add_sample(f"{metric.name}_bucket", {**labels, "le": limit}, count)
    family.add_sample(f"{metric.name}_count", dict(labels), sum(counts.buckets))
    family.add_sample(f"{metric.name}_sum", dict(labels), counts.total)
