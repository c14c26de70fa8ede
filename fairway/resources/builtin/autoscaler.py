"""HorizontalPodAutoscaler: its defaults, its checks, and the targets in its table.

The hub honours one as a FleetAutoscaler; what a FleetAutoscaler cannot do is refused when it is
written, with the path of the field.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache

from fairway.api.autoscaler import FleetAutoscaler
from fairway.api.errors import FieldError, invalid
from fairway.api.horizontal_autoscaler import fleet_spec, horizontal_path
from fairway.api.schemas import schema_of
from fairway.resources.builtin.parts import fill, make_object, number, objects, read, text
from fairway.resources.builtin.quantities import canonical
from fairway.resources.custom import root_node
from fairway.schema.cel.rules import check_rules
from fairway.schema.node import JsonObject, Node
from fairway.schema.validation import Findings, conform

_SHOWN_MOST = 2  # metrics in a table
_UNKNOWN = "<unknown>"
_LEAST = "must be greater than or equal to 1"
_PERCENT = {"type": "Percent", "value": 100, "periodSeconds": 15}
_RULES: dict[str, JsonObject] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _PERCENT],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [_PERCENT]},
}


def prepare(obj: JsonObject, old: JsonObject | None) -> None:
    """Sets the defaults of Kubernetes: one replica at least, and CPU use at 80%."""
    spec = make_object(obj, "spec")
    fill(spec, {"minReplicas": 1})
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if isinstance(spec.get("behavior"), dict):
        for direction, rules in _RULES.items():
            own = make_object(spec["behavior"], direction)
            fill(own, deepcopy(rules))
            _make_canonical(own, "tolerance")
    for metric in objects(spec, "metrics"):
        _make_canonical(read(metric, _part(metric), "target"), "averageValue", "value")
    for metric in objects(read(obj, "status"), "currentMetrics"):
        _make_canonical(read(metric, _part(metric), "current"), "averageValue", "value")
    fill(make_object(obj, "status"), {"desiredReplicas": 0})


def _part(metric: JsonObject) -> str:
    """The field with the details of a metric, named after its type."""
    kind = text(metric, "type")
    return kind[:1].lower() + kind[1:]


def _make_canonical(parent: JsonObject, *names: str) -> None:
    for name in names:
        if name in parent:
            parent[name] = canonical(parent[name])


def check(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    faults: list[FieldError] = []
    least = read(obj, "spec").get("minReplicas")
    if isinstance(least, int) and least < 1:
        faults.append(invalid("spec.minReplicas", least, _LEAST))
    body = {
        "apiVersion": "serving.fairway.dev/v1alpha1",
        "kind": "FleetAutoscaler",
        "metadata": {"name": text(obj, "metadata", "name")},
        "spec": deepcopy(fleet_spec(obj)),
    }
    findings = Findings(checks_duplicates=True)
    conform(body, _fleet_autoscaler(), findings)
    own = findings.faults or check_rules(body, None, _fleet_autoscaler(), is_update=False)
    named = [replace(fault, path=horizontal_path(fault.path)) for fault in own]
    return [
        *faults,
        *(fault for fault in named if fault.path not in {item.path for item in faults}),
    ]


@cache
def _fleet_autoscaler() -> Node:
    return root_node(schema_of(FleetAutoscaler))


def metric_targets(obj: JsonObject) -> str:
    """What `kubectl get hpa` shows of metrics: `cpu: 45%/80%`."""
    metrics = objects(read(obj, "spec"), "metrics")
    currents = objects(read(obj, "status"), "currentMetrics")
    shown = [
        _target(metric, currents[position] if position < len(currents) else {})
        for position, metric in enumerate(metrics)
    ]
    if not shown:
        return "<none>"
    listed = ", ".join(shown[:_SHOWN_MOST])
    more = len(shown) - _SHOWN_MOST
    return f"{listed} + {more} more..." if more > 0 else listed


def _target(metric: JsonObject, current: JsonObject) -> str:
    kind, part = text(metric, "type"), _part(metric)
    wanted, seen = read(metric, part, "target"), read(current, part, "current")
    named = f"{text(metric, part, 'name')}: " if kind.endswith("Resource") else ""
    if "averageUtilization" in wanted:
        now = f"{number(seen, 'averageUtilization')}%" if "averageUtilization" in seen else _UNKNOWN
        return f"{named}{now}/{number(wanted, 'averageUtilization')}%"
    field = "averageValue" if "averageValue" in wanted else "value"
    average = " (avg)" if field == "averageValue" and kind in ("External", "Object") else ""
    return f"{named}{seen.get(field, _UNKNOWN)}/{wanted.get(field, '')}{average}"
