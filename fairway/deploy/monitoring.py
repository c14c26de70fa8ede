"""A hub's monitoring with Prometheus and Grafana: scraping, alerts, a dashboard.

`python -m fairway.deploy.monitoring FOLDER` writes the alerts and the dashboard as files; a test
keeps the committed ones equal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from fairway.api.meta import JsonObject
from fairway.deploy.alerts import groups, rules_file
from fairway.deploy.hub_objects import SELECTOR, TOKENS
from fairway.deploy.panels import SECTIONS, Panel
from fairway.deploy.rights import HUB
from fairway.deploy.settings import Settings

_OPERATOR = "monitoring.coreos.com/v1"
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 2
_SOURCE = {"type": "prometheus", "uid": "${source}"}


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
    return {
        "uid": "fairway-hub",
        "title": "Fairway",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": list(_placed()),
    }


def _placed() -> Iterator[JsonObject]:
    """A header for each section, with its panels below it in two columns."""
    top, number = 0, 0
    for section, panels in SECTIONS:
        place = {"x": 0, "y": top, "w": _WIDTH * _COLUMNS, "h": 1}
        number += 1
        yield {"id": number, "type": "row", "title": section, "gridPos": place, "panels": []}
        top += 1
        for at, panel in enumerate(panels):
            x, y = at % _COLUMNS * _WIDTH, top + at // _COLUMNS * _HEIGHT
            number += 1
            place = {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT}
            yield {"id": number, **_chart(panel), "gridPos": place}
        top += -(-len(panels) // _COLUMNS) * _HEIGHT


def _chart(panel: Panel) -> JsonObject:
    return {
        "type": "timeseries",
        "title": panel.title,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": _SOURCE,
                "expr": line.query,
                "legendFormat": line.legend,
            }
            for place, line in enumerate(panel.lines)
        ],
    }


def files() -> dict[str, str]:
    """Rules and dashboard for a Prometheus and a Grafana without an operator, by file name."""
    return {
        "alerts.yaml": rules_file(),
        "dashboard.json": json.dumps(render_dashboard(), indent=1) + "\n",
    }


def _metadata(settings: Settings) -> JsonObject:
    return {"name": HUB, "namespace": settings.namespace, "labels": dict(SELECTOR)}


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
