"""Workloads in the middle of their lives, in a line each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fairway.api import codec
from fairway.api.workload import Workload
from fairway.controllers.lifecycle.case import (
    ClusterFacts,
    LifecycleCase,
    PodsSeen,
    Settings,
    WorkObservation,
)

NOW = 1_794_729_600.0  # 2026-11-15 08:00 UTC
DECIDED = NOW - 100
READY = PodsSeen(ready=2)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def text(seconds: float) -> str:
    return moment(seconds).isoformat().replace("+00:00", "Z")


def placement(cluster: str, count: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "podSets": [{"name": "worker", "count": count}],
        "attempt": 1,
        **more,
    }


def replicas(cluster: str, count: int, **more: Any) -> dict[str, Any]:
    return placement(cluster, count, replicas=count, **more)


def tasks(cluster: str, numbers: str, count: int, **more: Any) -> dict[str, Any]:
    return placement(cluster, count, tasks=numbers, **more)


def claim(*placements: dict[str, Any], ready: float | None = None, **more: Any) -> dict[str, Any]:
    found = {
        "attempt": 1,
        "term": 5,
        "decidedAt": text(DECIDED),
        "placements": list(placements),
        **more,
    }
    if ready is not None:
        found["readyAt"] = text(ready)
    return found


def workload(
    status: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **spec: Any
) -> Workload:
    plain: dict[str, Any] = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {
            "name": "train",
            "namespace": "team",
            "uid": "u-1",
            "generation": 1,
            "creationTimestamp": text(NOW - 1000),
            "finalizers": ["fairway.dev/works"],
            **(metadata or {}),
        },
        "spec": {"queue": "research", "podSets": [{"name": "worker", "count": 2}], **spec},
    }
    if status is not None:
        plain["status"] = {"observedGeneration": 1, **status}
    return codec.decode(plain, Workload)


def claimed(
    *placements: dict[str, Any], spec: dict[str, Any] | None = None, **more: Any
) -> Workload:
    held = more.pop("claim", {})
    status = {"phase": "Claimed", "claim": claim(*placements, **held), **more}
    return workload(status, **(spec or {}))


def running(
    *placements: dict[str, Any], spec: dict[str, Any] | None = None, **more: Any
) -> Workload:
    held = {"ready": NOW - 60, **more.pop("claim", {})}
    wanted = sum(placement["podSets"][0]["count"] for placement in placements)
    status = {
        "phase": "Running",
        "pods": {"wanted": wanted},
        "startedAt": text(NOW - 60),
        "claim": claim(*placements, **held),
        **more,
    }
    return workload(status, **(spec or {}))


def seen(
    phase: str, attempt: int = 1, pods: PodsSeen | None = None, **more: Any
) -> WorkObservation:
    return WorkObservation(
        attempt=attempt,
        phase=phase,  # type: ignore[arg-type] - the tables use the words of the API
        pods={"worker": pods} if pods else {},
        **more,
    )


def case(
    found: Workload, works: dict[str, WorkObservation] | None = None, **more: Any
) -> LifecycleCase:
    places = more.pop("places", {name: ClusterFacts() for name in ("a", "b", "c")})
    settings = more.pop("settings", Settings())
    return LifecycleCase(
        workload=found,
        now=more.pop("now", NOW),
        works=works or {},
        places=places,
        settings=settings,
        **more,
    )
