"""Metrics of the fleet as Prometheus reads them: bounded, and gone with what they are about."""

from __future__ import annotations

import math

import pytest

from fairway.api.fleet_metrics import (
    ADMISSION_WAIT,
    EVICTIONS,
    FLEET_METRICS,
    GPUS,
    MEANINGS,
    OLDEST_WAIT,
    OTHER,
    RUNNING,
    SERIES_MOST,
    SHARE,
    USED,
    VALUES_MOST,
    Metric,
)
from fairway.server.metrics import Metrics
from tests.server.test_metrics import series, value


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def test_a_gauge_has_the_series_that_were_given_last(metrics: Metrics) -> None:
    metrics.fleet.set(RUNNING, {("a", ""): 3, ("b", "a"): 2})
    metrics.fleet.set(RUNNING, {("a", ""): 1})
    assert value(metrics, "fairway_workloads_running", queue="a", parent="") == 1
    assert series(metrics, "fairway_workloads_running") == 1


def test_an_infinite_share_can_be_told(metrics: Metrics) -> None:
    metrics.fleet.set(SHARE, {("a", ""): math.inf})
    assert value(metrics, "fairway_queue_share", queue="a", parent="") == math.inf


def test_counters_add_up_and_histograms_count_what_is_below_each_limit(metrics: Metrics) -> None:
    for _ in range(2):
        metrics.fleet.add(EVICTIONS, ("a", "ClusterLost", "Place"))
    labels = {"queue": "a", "cause": "ClusterLost", "blame": "Place"}
    assert value(metrics, "fairway_evictions_total", **labels) == 2
    for seconds in (0.5, 1, 2, 1e9):
        metrics.fleet.observe(ADMISSION_WAIT, ("a",), seconds)
    name = ADMISSION_WAIT.name
    buckets = [value(metrics, f"{name}_bucket", queue="a", le=le) for le in ("1.0", "5.0", "+Inf")]
    assert buckets == [2, 3, 4]
    assert value(metrics, f"{name}_count", queue="a") == 4
    assert value(metrics, f"{name}_sum", queue="a") == 1e9 + 3.5


def test_queues_beyond_the_limit_are_one_that_is_their_sum_or_largest(metrics: Metrics) -> None:
    most = VALUES_MOST["queue"]
    names = [f"q{number}" for number in range(most + 2)]
    metrics.fleet.set(RUNNING, {(name, ""): 2.0 for name in names})
    metrics.fleet.set(OLDEST_WAIT, {(name,): float(at) for at, name in enumerate(names)})
    assert series(metrics, "fairway_workloads_running") == most + 1
    assert value(metrics, "fairway_workloads_running", queue=OTHER, parent="") == 4
    assert value(metrics, "fairway_oldest_wait_seconds", queue=OTHER) == most + 1
    assert value(metrics, "fairway_oldest_wait_seconds", queue="q0") == 0


@pytest.mark.parametrize(
    ("metric", "gives"),
    [
        pytest.param(EVICTIONS, "add", id="a counter"),
        pytest.param(ADMISSION_WAIT, "observe", id="a histogram"),
    ],
)
def test_what_goes_on_for_ever_is_bounded_too(metrics: Metrics, metric: Metric, gives: str) -> None:
    for number in range(3_000):
        labels = tuple(f"{label}-{number}" for label in metric.labels)
        getattr(metrics.fleet, gives)(metric, labels, 1)
    suffix = "total" if gives == "add" else "count"
    assert series(metrics, f"{metric.name}_{suffix}") <= SERIES_MOST
    if gives == "observe":
        assert series(metrics, f"{metric.name}_count") == VALUES_MOST["queue"] + 1


def test_a_metric_has_only_so_many_series_however_its_labels_combine(metrics: Metrics) -> None:
    labels = [
        (f"c{cluster}", f"f{flavor}", "idle") for cluster in range(400) for flavor in range(30)
    ]
    metrics.fleet.set(GPUS, dict.fromkeys(labels, 1.0))
    assert series(metrics, "fairway_gpus") == SERIES_MOST
    other = {"cluster": OTHER, "flavor": OTHER, "state": OTHER}
    assert value(metrics, "fairway_gpus", **other) == 12_000 - (SERIES_MOST - 1)


def test_names_that_are_gone_make_room_and_take_their_series_with_them(metrics: Metrics) -> None:
    most = VALUES_MOST["queue"]
    for number in range(most + 1):
        metrics.fleet.observe(ADMISSION_WAIT, (f"q{number}",), 1)
        metrics.fleet.add(EVICTIONS, (f"q{number}", "ClusterLost", "Place"))
    metrics.fleet.keep("queue", {"q1", "new"})
    metrics.fleet.observe(ADMISSION_WAIT, ("new",), 1)
    names = f"{ADMISSION_WAIT.name}_count"
    assert [value(metrics, names, queue=name) for name in ("q0", "q1", "new", OTHER)] == [
        None, 1, 1, 1,
    ]  # fmt: skip
    assert series(metrics, "fairway_evictions_total") == 2


def test_a_replica_that_leads_no_more_tells_nothing(metrics: Metrics) -> None:
    metrics.fleet.set(USED, {("a", "", "h100", "gpu"): 1})
    metrics.fleet.observe(ADMISSION_WAIT, ("a",), 1)
    metrics.fleet.clear()
    assert not series(metrics, "fairway_queue_used")
    assert not series(metrics, f"{ADMISSION_WAIT.name}_count")


def test_every_label_has_a_meaning_and_none_is_a_workload() -> None:
    labels = {label for metric in FLEET_METRICS for label in metric.labels}
    assert labels == MEANINGS.keys()
    assert VALUES_MOST.keys() <= labels
    assert not labels & {"workload", "namespace", "name", "pod", "user"}


def test_histograms_alone_have_buckets() -> None:
    for metric in FLEET_METRICS:
        assert bool(metric.buckets) == (metric.type == "histogram"), metric.name
        assert list(metric.buckets) == sorted(set(metric.buckets))
