"""Alerts and the dashboard: of figures that exist, of rules that Prometheus takes and that fire."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.api.fleet_metrics import FLEET_METRICS
from fairway.deploy import monitoring
from fairway.deploy.alerts import ALERTS, groups
from fairway.deploy.monitoring import dashboard, render_dashboard
from fairway.deploy.panels import PANELS, SECTIONS
from fairway.deploy.settings import Settings
from fairway.server.metrics import Metrics
from tests.kubernetes import binaries
from tests.kubernetes.demand import demand

ROOT = Path(__file__).parents[2]
# Told by Prometheus itself, kube-state-metrics and the kubelet.
OF_OTHERS = {
    "up",
    "kube_pod_container_resource_limits",
    "container_memory_working_set_bytes",
}
_METRIC = re.compile(r"\b(?:fairway|process|kube|container)_[a-z_]+\b|\bup\b")
HUB = '{job="fairway-hub", pod="a"}'
HELD = '{job="fairway-hub", queue="a", flavor="h100", resource="nvidia.com/gpu"}'
OF_ANOTHER_FLAVOR = HELD.replace("h100", "a100")
LIMITED = '{namespace="fairway-system", pod="fairway-hub-a", container="hub"'

# What each alert needs to see for it to fire, by the minute, and when it does.
SEEN: dict[str, tuple[dict[str, str], str]] = {
    "FairwayHubDown": ({f"up{HUB}": "0x30"}, "10m"),
    "FairwayReplicaDown": ({f"up{HUB}": "0x30", 'up{job="fairway-hub", pod="b"}': "1x30"}, "15m"),
    "FairwayNobodyLeads": (
        {f"fairway_leads{HUB}": "0x30", 'fairway_leads{job="fairway-hub", pod="b"}': "0x30"},
        "5m",
    ),
    "FairwayClusterSilent": (
        {'fairway_agent_age_seconds{job="fairway-hub", cluster="a"}': "0+60x30"},
        "10m",
    ),
    "FairwayPlannerSlow": (
        {
            'fairway_plan_seconds_bucket{job="fairway-hub", le="10"}': "0x60",
            'fairway_plan_seconds_bucket{job="fairway-hub", le="30"}': "0+10x60",
            'fairway_plan_seconds_bucket{job="fairway-hub", le="+Inf"}': "0+10x60",
        },
        "40m",
    ),
    "FairwayPlannerFails": (
        {'fairway_planner_failures_total{job="fairway-hub"}': "0 0 1 2 3 4+0x30"},
        "20m",
    ),
    "FairwayPlanFaults": ({f"fairway_plan_faults_total{HUB}": "0 0 1+0x30"}, "20m"),
    "FairwayQueueWaits": (
        {
            'fairway_oldest_wait_seconds{job="fairway-hub", queue="a"}': "14400+60x60",
            f"fairway_queue_used{HELD}": "4x60",
            f"fairway_queue_nominal{HELD}": "8x60",
        },
        "50m",
    ),
    "FairwayBreakerOpen": (
        {'fairway_breaker_open{job="fairway-hub", breaker="Moves"}': "1x30"},
        "10m",
    ),
    "FairwayStoreSlow": (
        {
            'fairway_store_fsync_seconds_bucket{job="fairway-hub", le="0.5"}': "0x30",
            'fairway_store_fsync_seconds_bucket{job="fairway-hub", le="1"}': "0+60x30",
            'fairway_store_fsync_seconds_bucket{job="fairway-hub", le="+Inf"}': "0+60x30",
        },
        "20m",
    ),
    "FairwayDiskFull": (
        {f"fairway_disk_free_bytes{HUB}": "4x30", f"fairway_disk_bytes{HUB}": "100x30"},
        "10m",
    ),
    "FairwayRequestsFail": (
        {
            'fairway_requests_total{job="fairway-hub", code="500"}': "0+60x30",
            'fairway_requests_total{job="fairway-hub", code="200"}': "0+60x30",
        },
        "20m",
    ),
    "FairwayRequestsSlow": (
        {
            'fairway_request_seconds_bucket{job="fairway-hub", verb="get", le="1"}': "0x30",
            'fairway_request_seconds_bucket{job="fairway-hub", verb="get", le="10"}': "0+60x30",
            'fairway_request_seconds_bucket{job="fairway-hub", verb="get", le="+Inf"}': "0+60x30",
        },
        "20m",
    ),
    "FairwayTokensRefused": (
        {'fairway_failed_authentications_total{job="fairway-hub"}': "0+600x30"},
        "20m",
    ),
    "FairwayAuditLinesLost": ({f"fairway_audit_lines_lost{HUB}": "3x30"}, "5m"),
    "FairwayMemoryShort": (
        {
            f"container_memory_working_set_bytes{LIMITED}}}": "95x30",
            f'kube_pod_container_resource_limits{LIMITED}, resource="memory"}}': "100x30",
        },
        "20m",
    ),
    "FairwayHubRestarts": ({f"process_start_time_seconds{HUB}": "0+60x30"}, "20m"),
}
# A hub with which all is well.
WELL = {
    f"up{HUB}": "1x120",
    f"fairway_leads{HUB}": "1x120",
    'fairway_leads{job="fairway-hub", pod="b"}': "0x120",
    'fairway_agent_age_seconds{job="fairway-hub", cluster="a"}': "0 5 0 5 0 5+0x110",
    'fairway_plan_seconds_bucket{job="fairway-hub", le="1"}': "0+60x120",
    'fairway_plan_seconds_bucket{job="fairway-hub", le="+Inf"}': "0+60x120",
    'fairway_planner_failures_total{job="fairway-hub"}': "1x120",
    'fairway_plan_faults_total{job="fairway-hub"}': "0x120",
    # A queue that uses all that it owns may wait for long.
    'fairway_oldest_wait_seconds{job="fairway-hub", queue="a"}': "14400+60x120",
    f"fairway_queue_used{HELD}": "8x120",
    f"fairway_queue_nominal{HELD}": "8x120",
    f"fairway_queue_used{OF_ANOTHER_FLAVOR}": "0x120",
    f"fairway_queue_nominal{OF_ANOTHER_FLAVOR}": "8x120",
    'fairway_breaker_open{job="fairway-hub", breaker="Moves"}': "0x120",
    'fairway_store_fsync_seconds_bucket{job="fairway-hub", le="0.001"}': "0+60x120",
    'fairway_store_fsync_seconds_bucket{job="fairway-hub", le="+Inf"}': "0+60x120",
    f"fairway_disk_free_bytes{HUB}": "50x120",
    f"fairway_disk_bytes{HUB}": "100x120",
    'fairway_requests_total{job="fairway-hub", code="200"}': "0+60x120",
    'fairway_requests_total{job="fairway-hub", code="500"}': "0x120",
    'fairway_request_seconds_bucket{job="fairway-hub", verb="get", le="1"}': "0+60x120",
    'fairway_request_seconds_bucket{job="fairway-hub", verb="get", le="+Inf"}': "0+60x120",
    'fairway_failed_authentications_total{job="fairway-hub"}': "0+1x120",
    f"fairway_audit_lines_lost{HUB}": "0x120",
    f"container_memory_working_set_bytes{LIMITED}}}": "50x120",
    f'kube_pod_container_resource_limits{LIMITED}, resource="memory"}}': "100x120",
    f"process_start_time_seconds{HUB}": "0x120",
}


def told() -> set[str]:
    """The names of all figures that a hub tells, with those that histograms add."""
    metrics = Metrics()
    metrics.watch_planner(os.getpid)
    text = metrics.render().decode()
    found = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    return found | {f"{item}_{part}" for item in found for part in ("bucket", "sum", "count")}


def figures(expression: str) -> set[str]:
    return set(_METRIC.findall(re.sub(r'"[^"]*"', "", expression)))


@pytest.mark.parametrize(
    "expression",
    [
        *(pytest.param(alert.expression, id=alert.name) for alert in ALERTS),
        *(pytest.param(line.query, id=panel.title) for panel in PANELS for line in panel.lines),
    ],
)
def test_every_figure_that_is_asked_for_is_told(expression: str) -> None:
    asked = figures(expression)
    assert asked
    assert asked <= told() | OF_OTHERS


def test_every_figure_of_the_fleet_is_drawn() -> None:
    drawn = {name for panel in PANELS for line in panel.lines for name in figures(line.query)}
    of_type = {"gauge": "", "counter": "_total", "histogram": "_bucket"}
    assert {metric.name + of_type[metric.type] for metric in FLEET_METRICS} <= drawn


def test_the_committed_files_are_what_the_source_says() -> None:
    folder = ROOT / "deploy" / "monitoring"
    for name, text in monitoring.files().items():
        assert (folder / name).read_text() == text, "run: make generate"
    assert {path.name for path in folder.iterdir()} == monitoring.files().keys()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda other: other.name)
def test_every_alert_has_a_runbook(alert: Any) -> None:
    text = (ROOT / alert.runbook).read_text()
    assert text.startswith(f"# {alert.name}\n")
    assert "## What to do" in text


def test_every_runbook_has_an_alert() -> None:
    found = {path.stem for path in (ROOT / "docs" / "runbooks").glob("Fairway*.md")}
    assert found == {alert.name for alert in ALERTS}


def test_the_dashboard_is_json_and_its_panels_do_not_overlap() -> None:
    assert json.loads(dashboard(Settings())["data"]["fairway.json"]) == render_dashboard()
    panels = render_dashboard()["panels"]
    assert [panel["title"] for panel in panels if panel["type"] == "row"] == [
        section for section, _ in SECTIONS
    ]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        xs = range(place["x"], place["x"] + place["w"])
        taken = {(x, y) for x in xs for y in range(place["y"], place["y"] + place["h"])}
        assert not taken & cells, panel["title"]
        assert max(xs) < 24
        cells |= taken


@pytest.mark.real
def test_prometheus_takes_the_rules_and_each_alert_fires(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    promtool = demand(binaries.promtool, request.config)
    assert SEEN.keys() == {alert.name for alert in ALERTS}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups()}))
    check(promtool, tmp_path, "check", "rules", "rules.yaml")
    firing = [
        case(series, f"count(ALERTS{{alertname='{name}',alertstate='firing'}})", when, 1)
        for name, (series, when) in SEEN.items()
    ]
    quiet = case(WELL, "count(ALERTS) or vector(0)", "90m", 0)
    suite = {"rule_files": ["rules.yaml"], "tests": [*firing, quiet]}
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite))
    check(promtool, tmp_path, "test", "rules", "suite.yaml")


def case(series: dict[str, str], expression: str, when: str, value: int) -> dict[str, Any]:
    asked = {"expr": expression, "eval_time": when}
    return {
        "interval": "1m",
        "input_series": [{"series": other, "values": values} for other, values in series.items()],
        "promql_expr_test": [{**asked, "exp_samples": [{"labels": "{}", "value": value}]}],
    }


def check(promtool: Path, folder: Path, *words: str) -> None:
    done = subprocess.run(
        [str(promtool), *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
