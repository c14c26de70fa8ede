"""What the pods of a work use, as measured by the cluster's metrics API.

Pods are read on request, with what they request and whether they are ready. Usage of containers
comes from metrics-server, or from whatever serves `metrics.k8s.io`; a pod without a measurement is
listed without one. If the API is not served, there is nothing to report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairway.agent.drivers.interface import Denied, DriverFault, NotPossible
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.agent.drivers.kubernetes.works import Works
from fairway.api.amounts import Quantity
from fairway.api.errors import ApiError, Forbidden, NotFound
from fairway.clock import parse_timestamp
from fairway.kinds.conditions import find_condition as condition
from fairway.kinds.decision import WORK
from fairway.kinds.plain import child, maps_at, text
from fairway.kubeapi import KubeApi, path_of
from fairway.metrics.interface import PodUsage
from fairway.store.interface import ResourceKey, Selection
from fairway.store.keys import PODS

MEASURED = ResourceKey("metrics.k8s.io", "v1beta1", "pods")
_MILLI = 1_000_000
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_decode = msgspec.json.Decoder().decode

Json = dict[str, Any]


class Metering:
    """Reads from one cluster what pods use."""

    def __init__(self, api: KubeApi, works: Works, picture: Picture) -> None:
        self._api = api
        self._works = works
        self._picture = picture

    async def usage(self, work: str) -> tuple[PodUsage, ...]:
        kept = self._works.get(work)
        if kept is None:
            raise DriverFault(f"there is no work {work}")
        ours = self._picture.pods.get(kept.label, {}).values()
        names = {pod.seen.name for pod in ours if not pod.is_placeholder}
        pod_usages: list[PodUsage] = []
        for namespace in sorted({pod.namespace for pod in ours}):
            selection = Selection(namespace=namespace, labels=f"{WORK}={kept.label}")
            try:
                pod_usages.extend(await self._describe(selection, names))
            except Forbidden as fault:
                raise Denied(str(fault)) from fault
            except NotFound as fault:
                raise NotPossible("the cluster has no metrics API (metrics.k8s.io)") from fault
            except ApiError as fault:
                raise DriverFault(f"the metrics API does not answer: {fault}") from fault
        return tuple(pod_usages)

    async def _describe(self, selection: Selection, names: set[str]) -> list[PodUsage]:
        path = path_of(MEASURED, namespace=selection.namespace)
        answer = _decode(await self._api.read(path, {"labelSelector": selection.labels}))
        measured = {text(entry, "metadata", "name"): entry for entry in maps_at(answer, "items")}
        pod_usages = []
        async for page in self._api.pages(PODS, selection, read=_decode):
            for seen in page.items:
                name = text(seen.value, "metadata", "name")
                if name in names:
                    pod_usages.append(pod_usage(seen.value, measured.get(name) or {}))
        return pod_usages


def pod_usage(pod: Json, measured: Json) -> PodUsage:
    """A pod with its measurements."""
    status, spec = child(pod, "status"), child(pod, "spec")
    ready = condition(status, "Ready")
    # Init containers with restart policy Always are sidecars: they run beside the others.
    beside = [
        container
        for container in maps_at(spec, "initContainers")
        if container.get("restartPolicy") == "Always"
    ]
    return PodUsage(
        name=text(pod, "metadata", "name"),
        phase=text(status, "phase", default="Pending"),
        is_leaving=bool(text(pod, "metadata", "deletionTimestamp")),
        is_ready=ready.get("status") == "True" if ready else None,
        started_at=_moment(text(status, "startTime")),
        ready_changed_at=_moment(str(ready.get("lastTransitionTime", ""))) or 0.0,
        requests={
            container["name"]: _millis(child(container, "resources", "requests"))
            for container in (*maps_at(spec, "containers"), *beside)
        },
        usage={
            container["name"]: _millis(child(container, "usage"))
            for container in maps_at(measured, "containers")
        },
        measured_at=_moment(text(measured, "timestamp")) or 0.0,
        window_seconds=seconds(text(measured, "window")),
    )


def _millis(amounts: Mapping[str, Any]) -> dict[str, int]:
    return {name: -(-Quantity.of(amount).nanos // _MILLI) for name, amount in amounts.items()}


def _moment(stamp: str) -> float | None:
    return parse_timestamp(stamp) if stamp else None


def seconds(duration: str) -> float:
    """Parses a Kubernetes duration such as 1m30.5s into seconds."""
    total, number, unit = 0.0, "", ""
    for name in f"{duration} ":
        if unit and not name.isalpha():
            total += float(number) * _UNITS.get(unit, 0.0)
            number, unit = "", ""
        if name.isalpha():
            unit += name
        else:
            number += name.strip()
    return total
