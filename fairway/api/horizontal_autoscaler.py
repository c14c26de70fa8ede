"""Kubernetes' HorizontalPodAutoscaler (autoscaling/v2), as a FleetAutoscaler, and its status back.

The fields of a FleetAutoscaler are those of an HPA, so that almost all of it is copied; only the
target has another name. Plain JSON in, plain JSON out.
"""

from __future__ import annotations

from typing import Any

from fairway.api.autoscaler import FleetAutoscalerStatus
from fairway.api.codec import to_plain
from fairway.api.meta import JsonObject

GROUP, VERSION, KIND = "autoscaling", "v2", "HorizontalPodAutoscaler"
TARGET, FLEET_TARGET = "scaleTargetRef", "target"
_COPIED = ("minReplicas", "maxReplicas", "metrics", "behavior")
_CONDITIONS = ("AbleToScale", "ScalingActive", "ScalingLimited")
_CONDITION_FIELDS = ("type", "status", "lastTransitionTime", "reason", "message")
_CURRENT = ("averageUtilization", "averageValue", "value")


def fleet_spec(horizontal: JsonObject) -> JsonObject:
    """The spec of the FleetAutoscaler that does what an HPA says."""
    spec = horizontal.get("spec")
    if not isinstance(spec, dict):
        return {FLEET_TARGET: {}}
    copied = {name: spec[name] for name in _COPIED if spec.get(name) is not None}
    return {FLEET_TARGET: spec.get(TARGET) or {}, **copied}


def horizontal_path(path: str) -> str:
    """The path of a field of a FleetAutoscaler, in the HPA that it was copied from."""
    prefix = f"spec.{FLEET_TARGET}"
    if path == prefix or path.startswith(f"{prefix}."):
        return f"spec.{TARGET}{path.removeprefix(prefix)}"
    return path


def horizontal_status(horizontal: JsonObject, status: FleetAutoscalerStatus) -> JsonObject:
    """The status of an HPA, from that of its FleetAutoscaler."""
    plain = to_plain(status)
    conditions = [
        {name: condition[name] for name in _CONDITION_FIELDS if condition.get(name)}
        for condition in plain.get("conditions") or ()
        if condition["type"] in _CONDITIONS
    ]
    made: JsonObject = {
        "currentReplicas": status.current_replicas,
        "desiredReplicas": status.desired_replicas,
    }
    if status.last_scale_time is not None:
        made["lastScaleTime"] = plain["lastScaleTime"]
    if conditions:
        made["conditions"] = conditions
    metrics = (horizontal.get("spec") or {}).get("metrics") or ()
    currents = plain.get("currentMetrics") or ()
    if currents and len(currents) == len(metrics):
        made["currentMetrics"] = [
            _current(metric, current) for metric, current in zip(metrics, currents, strict=True)
        ]
    return made


def _current(metric: JsonObject, current: JsonObject) -> JsonObject:
    """The last reading of a metric, beside what identifies the metric."""
    kind = str(metric["type"])
    part = kind[0].lower() + kind[1:]
    identity: dict[str, Any] = {
        name: value for name, value in metric[part].items() if name != "target"
    }
    reading = {name: current[name] for name in _CURRENT if current.get(name) is not None}
    return {"type": kind, part: {**identity, "current": reading}}
