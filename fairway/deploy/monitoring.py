"""A hub's monitoring with Prometheus and Grafana: scraping, alerts, a dashboard."""

from __future__ import annotations

import json

from fairway.api.meta import JsonObject
from fairway.api.names import AGENT_LEASE
from fairway.controllers import terms
from fairway.deploy.alerts import JOB, groups
from fairway.deploy.hub_objects import SELECTOR, TOKENS
from fairway.deploy.rights import HUB
from fairway.deploy.settings import Settings

_OPERATOR = "monitoring.coreos.com/v1"
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 2

_ANSWERED = f"rate(fairway_request_seconds_bucket{{{JOB}}}[5m])"

# A panel: its title, the unit, and its queries with their legends.
PANELS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("Replicas that answer", "short", ((f"sum(up{{{JOB}}})", "answer"),)),
    (
        "Seconds since the leader renewed its term",
        "s",
        ((f'time() - max(kube_lease_renew_time{{lease="{terms.NAME}"}})', "since"),),
    ),
    (
        "Seconds since agents were heard",
        "s",
        ((f'time() - kube_lease_renew_time{{lease="{AGENT_LEASE}"}}', "{{namespace}}"),),
    ),
    (
        "Requests each second",
        "reqps",
        ((f"sum by (verb) (rate(fairway_requests_total{{{JOB}}}[5m]))", "{{verb}}"),),
    ),
    (
        "Requests that fail each second",
        "reqps",
        (
            (
                f'sum by (code) (rate(fairway_requests_total{{{JOB},code=~"[45].."}}[5m]))',
                "{{code}}",
            ),
        ),
    ),
    (
        "Time to answer",
        "s",
        tuple(
            (
                f"histogram_quantile({share}, sum by (le) ({_ANSWERED}))",
                legend,
            )
            for share, legend in ((0.5, "median"), (0.99, "99 %"))
        ),
    ),
    (
        "Requests under way and open watches",
        "short",
        (
            (f"sum(fairway_requests_in_flight{{{JOB}}})", "requests"),
            (f"sum(fairway_watches{{{JOB}}})", "watches"),
        ),
    ),
    (
        "Events sent to watchers each second",
        "short",
        ((f"sum(rate(fairway_watch_events_total{{{JOB}}}[5m]))", "events"),),
    ),
    (
        "Processor",
        "short",
        ((f"rate(process_cpu_seconds_total{{{JOB}}}[5m])", "{{pod}}"),),
    ),
    (
        "Memory of the hub, without its planner",
        "bytes",
        ((f"process_resident_memory_bytes{{{JOB}}}", "{{pod}}"),),
    ),
)


def service_monitor(settings: Settings) -> JsonObject:
    """What is scraped. The token is one that people put into the Secret; see the guide."""
    return {
        "apiVersion": _OPERATOR,
        "kind": "ServiceMonitor",
        "metadata": _metadata(settings),
        "spec": {
            "selector": {"matchLabels": SELECTOR},
            "endpoints": [
                {
                    "port": "https",
                    "scheme": "https",
                    "path": "/metrics",
                    "interval": "30s",
                    # Replicas make their own certificates; the token identifies the client.
                    "tlsConfig": {"insecureSkipVerify": True},
                    "authorization": {"credentials": {"name": TOKENS, "key": "metrics"}},
                }
            ],
        },
    }


def alert_rules(settings: Settings) -> JsonObject:
    return {
        "apiVersion": _OPERATOR,
        "kind": "PrometheusRule",
        "metadata": _metadata(settings),
        "spec": {"groups": groups()},
    }


def dashboard(settings: Settings) -> JsonObject:
    """A ConfigMap with the label by which Grafana's sidecar finds dashboards."""
    metadata = _metadata(settings)
    metadata["name"] = "fairway-dashboard"
    metadata["labels"]["grafana_dashboard"] = "1"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"fairway.json": json.dumps(render_dashboard(), indent=1)},
    }


def render_dashboard() -> JsonObject:
    """The dashboard as Grafana reads it."""
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "uid": "fairway-hub",
        "title": "Fairway hub",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": [
            {
                "id": number + 1,
                "type": "timeseries",
                "title": title,
                "datasource": source,
                "gridPos": {
                    "x": number % _COLUMNS * _WIDTH,
                    "y": number // _COLUMNS * _HEIGHT,
                    "w": _WIDTH,
                    "h": _HEIGHT,
                },
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "targets": [
                    {
                        "refId": chr(ord("A") + place),
                        "datasource": source,
                        "expr": expression,
                        "legendFormat": legend,
                    }
                    for place, (expression, legend) in enumerate(drawn_lines)
                ],
            }
            for number, (title, unit, drawn_lines) in enumerate(PANELS)
        ],
    }


def _metadata(settings: Settings) -> JsonObject:
    return {"name": HUB, "namespace": settings.namespace, "labels": dict(SELECTOR)}
