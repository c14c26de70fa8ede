"""How many replicas of a service may be unavailable while the hub moves some.

The workload's own setting comes first, then a PodDisruptionBudget in its template. Percentages are
rounded up, as Kubernetes does; with `minAvailable`, the remaining replicas may be unavailable.
"""

from __future__ import annotations

from typing import Any

from fairway.api.workload import Workload

_BUDGET = "PodDisruptionBudget"


def budget_of(workload: Workload) -> int | None:
    """The maximum number of unavailable replicas; None if not set."""
    spec = workload.spec
    if spec.disruption is not None:
        return spec.disruption.max_unavailable
    replicas = 1 if spec.replicas is None else spec.replicas
    for manifest in spec.template.manifests if spec.template else ():
        if manifest.get("kind") == _BUDGET:
            return _allowed(manifest.get("spec"), replicas)
    return None


def _allowed(spec: Any, replicas: int) -> int | None:
    if not isinstance(spec, dict):
        return None
    most = _count(spec.get("maxUnavailable"), replicas)
    if most is not None:
        return most
    least = _count(spec.get("minAvailable"), replicas)
    return None if least is None else max(0, replicas - least)


def _count(value: Any, replicas: int) -> int | None:
    """A number, or a percentage of the replicas; anything else is for the cluster to refuse."""
    text = str(value)
    if text.endswith("%") and text[:-1].isdecimal():
        return -(-int(text[:-1]) * replicas // 100)
    return int(text) if text.isdecimal() else None
