"""What the hub counts about itself."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairway.api.fleet_metrics import SERIES_MOST
from fairway.server.metrics import Metrics

ROOT = Path(__file__).parents[2]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    return None


def series(metrics: Metrics, name: str) -> int:
    families = text_string_to_metric_families(metrics.render().decode())
    return sum(sample.name == name for family in families for sample in family.samples)


def test_requests_are_counted_and_timed_by_verb_and_resource(metrics: Metrics) -> None:
    for code in (200, 200, 404):
        metrics.request_answered("get", "workloads.fairway.dev", code, 0.004)
    labels = {"verb": "get", "resource": "workloads.fairway.dev"}
    assert value(metrics, "fairway_requests_total", **labels, code="200") == 2
    assert value(metrics, "fairway_requests_total", **labels, code="404") == 1
    assert value(metrics, "fairway_request_seconds_count", **labels) == 3
    assert value(metrics, "fairway_request_seconds_bucket", **labels, le="0.0025") == 0
    assert value(metrics, "fairway_request_seconds_bucket", **labels, le="0.005") == 3


def test_names_that_clients_make_up_do_not_fill_the_memory(metrics: Metrics) -> None:
    for number in range(1000):
        metrics.request_answered(f"verb{number}", f"made-up{number}", 404, 0.1)
    metrics.request_answered("get", "pods", 200, 0.1)
    assert series(metrics, "fairway_requests_total") == 2
    assert value(metrics, "fairway_requests_total", verb="get", resource="pods", code="200") == 1


def test_even_resources_that_exist_are_counted_apart_only_so_many(metrics: Metrics) -> None:
    for number in range(1000):
        metrics.request_answered(f"verb{number}", f"kind{number}", 1000 + number, 0.1)
    assert series(metrics, "fairway_requests_total") <= 257
    other = {"verb": "other", "resource": "other", "code": "other"}
    assert value(metrics, "fairway_requests_total", **other) == 1000 - 256


def test_plans_that_were_checked_are_counted_with_the_rules_they_broke(metrics: Metrics) -> None:
    for faults in (None, (), ("a gang of 4 has 3 pods", "east has no room")):
        metrics.plan_made(faults)
    assert value(metrics, "fairway_plans_checked_total") == 2
    assert value(metrics, "fairway_plan_faults_total") == 2


def test_calls_to_the_planner_are_timed_with_what_they_decided(metrics: Metrics) -> None:
    metrics.planner_called(0.03, 0)
    metrics.planner_called(0.2, 40)
    metrics.planner_failed()
    assert value(metrics, "fairway_plan_seconds_bucket", le="0.05") == 1
    assert value(metrics, "fairway_plan_seconds_sum") == 0.23
    assert value(metrics, "fairway_plan_steps_bucket", le="0.0") == 1
    assert value(metrics, "fairway_plan_steps_sum") == 40
    assert value(metrics, "fairway_planner_failures_total") == 1


def test_the_process_of_the_planner_is_told_once_there_is_one(metrics: Metrics) -> None:
    pids = [None, os.getpid()]
    metrics.watch_planner(lambda: pids.pop(0))
    name = "fairway_planner_process_resident_memory_bytes"
    assert value(metrics, name) is None
    assert (value(metrics, name) or 0) > 1_000_000


def test_a_replica_tells_whether_it_leads_and_what_is_left_of_its_disk(metrics: Metrics) -> None:
    assert value(metrics, "fairway_leads") == 0
    metrics.report_leading(lambda: True)
    metrics.set_disk(free=10, whole=100)
    assert value(metrics, "fairway_leads") == 1
    assert value(metrics, "fairway_disk_free_bytes") == 10
    assert value(metrics, "fairway_disk_bytes") == 100


def test_workloads_that_break_fleet_policies_are_counted_by_rule(metrics: Metrics) -> None:
    metrics.set_violations({("p", "kinds", "Warn"): 2, ("p", "clusters", "Warn"): 1})
    metrics.set_violations({("p", "kinds", "Enforce"): 3})
    name = "fairway_fleet_policy_violations"
    assert value(metrics, name, policy="p", rule="kinds", enforcement="Enforce") == 3
    assert series(metrics, name) == 1


def test_open_watches_rise_and_fall(metrics: Metrics) -> None:
    metrics.watch_opened("pods")
    metrics.watch_opened("pods")
    metrics.watch_closed("pods")
    metrics.watch_events_sent(3)
    assert value(metrics, "fairway_watches", resource="pods") == 1
    assert value(metrics, "fairway_watch_events_total") == 3


def test_the_store_tells_its_size_version_and_commits(metrics: Metrics) -> None:
    metrics.set_objects({"pods": 5, "jobs.batch": 2})
    metrics.set_objects({"pods": 4})
    metrics.set_version(42)
    metrics.batch_committed(64, 0.002)
    assert value(metrics, "fairway_store_objects", resource="pods") == 4
    assert value(metrics, "fairway_store_objects", resource="jobs.batch") is None
    assert value(metrics, "fairway_store_version") == 42
    assert value(metrics, "fairway_store_commit_writes_sum") == 64
    assert value(metrics, "fairway_store_fsync_seconds_bucket", le="0.0025") == 1


def test_requests_in_flight_and_refusals_are_counted(metrics: Metrics) -> None:
    metrics.request_began()
    metrics.request_began()
    metrics.request_ended()
    metrics.authentication_failed()
    metrics.set_audit_lines_lost(3)
    assert value(metrics, "fairway_requests_in_flight") == 1
    assert value(metrics, "fairway_failed_authentications_total") == 1
    assert value(metrics, "fairway_audit_lines_lost") == 3


def test_two_hubs_in_one_process_do_not_mix(metrics: Metrics) -> None:
    metrics.set_version(1)
    other = Metrics()
    assert value(other, "fairway_store_version") == 0


def test_the_guide_lists_every_metric() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "metrics_table.py"))
    text = (ROOT / "docs" / "guides" / "metrics.md").read_text()
    assert text == tool["page"](text), "run: make generate"
    assert f"at\nmost {SERIES_MOST:,} sets of labels" in text


def test_every_metric_is_defined_once(metrics: Metrics) -> None:
    names = [name for name, *_ in metrics.definitions()]
    assert len(names) == len(set(names))
    shown = {family.name for family in text_string_to_metric_families(metrics.render().decode())}
    ours = {name for name in shown if not name.startswith("process_")}
    assert {name for name in ours if not name.endswith("_created")} == set(names)
