"""Alerts and the dashboard: of figures that exist, of rules that Prometheus takes and that fire."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.deploy.alerts import ALERTS, groups
from fairway.deploy.monitoring import PANELS, dashboard, render_dashboard
from fairway.deploy.settings import Settings
from fairway.server.metrics import Metrics
from tests.kubernetes import binaries
from tests.kubernetes.demand import demand

ROOT = Path(__file__).parents[2]
# Told by Prometheus itself, kube-state-metrics and the kubelet.
OF_OTHERS = {
    "up",
    "kube_lease_renew_time",
    "kube_pod_container_resource_limits",
    "container_memory_working_set_bytes",
}
_METRIC = re.compile(r"\b(?:fairway|process|kube|container)_[a-z_]+\b|\bup\b")
HUB = '{job="fairway-hub", pod="a"}'
LIMITED = '{namespace="fairway-system", pod="fairway-hub-a", container="hub"'

# What each alert needs to see for it to fire, by the minute, and when it does.
SEEN: dict[str, tuple[dict[str, str], str]] = {
    "FairwayHubDown": ({f"up{HUB}": "0x30"}, "10m"),
    "FairwayReplicaDown": ({f"up{HUB}": "0x30", 'up{job="fairway-hub", pod="b"}': "1x30"}, "15m"),
    "FairwayNobodyLeads": ({'kube_lease_renew_time{lease="fairway-term"}': "0x30"}, "5m"),
    "FairwayClusterSilent": (
        {'kube_lease_renew_time{lease="fairway-agent", namespace="fairway-cluster-a"}': "0x30"},
        "5m",
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
    'kube_lease_renew_time{lease="fairway-term"}': "0+60x120",
    'kube_lease_renew_time{lease="fairway-agent", namespace="fairway-cluster-a"}': "0+60x120",
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
    text = Metrics().render().decode()
    found = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    return found | {f"{item}_bucket" for item in found}


@pytest.mark.parametrize(
    "expression",
    [
        *(pytest.param(alert.expression, id=alert.name) for alert in ALERTS),
        *(pytest.param(line, id=title) for title, _, lines in PANELS for line, _ in lines),
    ],
)
def test_every_figure_that_is_asked_for_is_told(expression: str) -> None:
    asked = set(_METRIC.findall(re.sub(r'"[^"]*"', "", expression)))
    assert asked
    assert asked <= told() | OF_OTHERS


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
    places = [
        (panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in render_dashboard()["panels"]
    ]
    assert len(set(places)) == len(PANELS)


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
