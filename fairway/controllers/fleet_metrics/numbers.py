"""Gauges of the fleet at one moment, from what the plane knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fairway.api.fleet import BreakerStatus
from fairway.api.fleet_metrics import (
    AGENT_AGE,
    BORROWED,
    BREAKER_OPEN,
    CLUSTERS,
    FAIR,
    FLEET_METRICS,
    GPUS,
    NOMINAL,
    OLDEST_WAIT,
    PAUSED,
    PLANNER_OBJECTS,
    RUNNING,
    SHARE,
    USED,
    WAITING,
    Metric,
)
from fairway.controllers.fleet_metrics.turns import Seen
from fairway.core.explain.extent import Extent
from fairway.core.explain.samples import Gauges, QueueGauge

NO_FLAVOR = "-"
_THOUSANDTHS = 1_000  # shares and GPUs are counted in them

Values = dict[tuple[str, ...], float]
Numbers = Mapping[Metric, Values]


class Waiting:
    """Workloads that wait, counted one by one since there may be very many."""

    def __init__(self, seen: Iterable[Seen] = ()) -> None:
        self.counts: dict[tuple[str, ...], float] = {}  # by queue and reason
        self.since: dict[str, float] = {}  # of the oldest, by queue
        for other in seen:
            self.add(other)

    def add(self, seen: Seen) -> None:
        """Counts a workload, if it waits."""
        if seen.waits_for is None:
            return
        pair = (seen.queue, seen.waits_for)
        self.counts[pair] = self.counts.get(pair, 0.0) + 1
        if seen.since is not None:
            self.since[seen.queue] = min(self.since.get(seen.queue, seen.since), seen.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the numbers are made from."""

    now: float
    gauges: Gauges
    extent: Extent
    waiting: Waiting
    phases: Mapping[str, str] = field(default_factory=dict)  # of clusters
    silent_seconds: Mapping[str, float] = field(default_factory=dict)  # of their agents
    breakers: Sequence[BreakerStatus] = ()
    is_paused: bool = False


UNKNOWN: Numbers = {metric: {} for metric in FLEET_METRICS if metric.type == "gauge"}


def numbers(facts: Facts) -> Numbers:
    return {
        **_queues(facts.gauges),
        **_waiting(facts),
        GPUS: _gpus(facts),
        CLUSTERS: {
            (phase or "Pending",): float(count)
            for phase, count in sorted(Counter(facts.phases.values()).items())
        },
        AGENT_AGE: {(cluster,): silent for cluster, silent in facts.silent_seconds.items()},
        BREAKER_OPEN: {
            (breaker.name,): float(breaker.open_since is not None) for breaker in facts.breakers
        },
        PAUSED: {(): float(facts.is_paused)},
        PLANNER_OBJECTS: {
            ("workloads",): facts.extent.workloads,
            ("queues",): facts.extent.queues,
            ("clusters",): facts.extent.clusters,
            ("nodes",): facts.extent.nodes,
        },
    }


def _queues(gauges: Gauges) -> Numbers:
    """Of every queue; roots and large queues come first, since labels are bounded."""
    values: dict[Metric, Values] = {
        metric: {} for metric in (RUNNING, SHARE, FAIR, NOMINAL, USED, BORROWED)
    }
    for name, gauge in sorted(gauges.queues.items(), key=_by_size):
        pair = (name, gauge.parent)
        values[RUNNING][pair] = gauge.running
        values[SHARE][pair] = float("inf") if gauge.share is None else gauge.share / _THOUSANDTHS
        values[FAIR][pair] = gauge.fair
        for holding in gauge.holdings:
            labels = (*pair, holding.flavor or NO_FLAVOR, holding.resource)
            values[NOMINAL][labels] = holding.nominal
            values[USED][labels] = holding.used
            values[BORROWED][labels] = holding.borrowed
    return values


def _by_size(queue: tuple[str, QueueGauge]) -> tuple[bool, float, str]:
    name, gauge = queue
    return bool(gauge.parent), -sum(holding.nominal for holding in gauge.holdings), name


def _waiting(facts: Facts) -> Numbers:
    since = facts.waiting.since
    queues = {**dict.fromkeys(facts.gauges.queues, facts.now), **since}
    return {
        WAITING: facts.waiting.counts,
        OLDEST_WAIT: {(queue,): max(0.0, facts.now - at) for queue, at in queues.items()},
    }


def _gpus(facts: Facts) -> Values:
    """GPUs by cluster, flavor and state; the states add up to all that there are."""
    result: Values = {}
    for (cluster, flavor), place in facts.gauges.places.items():
        here = (cluster, flavor or NO_FLAVOR)
        starting = min(place.starting, place.used)
        if not place.whole:
            continue
        result[*here, "allocated"] = place.used - starting
        result[*here, "starting"] = starting
        is_closed = cluster in facts.extent.closed
        result[*here, "idle"] = 0.0 if is_closed else place.free
        result[*here, "closed"] = place.free if is_closed else 0.0
    for (cluster, flavor), unready in facts.extent.unready.items():
        result[cluster, flavor or NO_FLAVOR, "unready"] = unready / _THOUSANDTHS
    return result
