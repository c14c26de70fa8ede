"""The first expected starts of each queue, and the workloads that hold a reservation.

The planner computes them, and decides nothing meanwhile. They are the starts that an explanation
gives, from the same forecast.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.api.amounts import MILLI, is_accelerator
from fairway.controllers.glance import flavor_of
from fairway.core.forecast.starts import first_starts
from fairway.core.model import PlacedPods, Workload, unit_nanos
from fairway.core.snapshot import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """An expected start in one cluster, of one flavor."""

    workload: str
    queue: str
    cluster: str
    flavor: str
    gpus: int  # thousandths
    start: float | None  # None: it holds a reservation, and its start is not known
    until: float | None = None
    is_reserved: bool = False


def ahead(facts: Facts) -> list[Ahead]:
    """Expected starts in order, then reservations whose start is not known."""
    waiting = [workload for workload in facts.workloads.values() if workload.is_waiting]
    if not waiting:
        return []
    starts = first_starts(facts)
    result = [
        Ahead(
            workload=key,
            queue=facts.workloads[key].queue,
            cluster=placed.cluster,
            flavor=flavor,
            gpus=gpus,
            start=start.at,
            until=None if start.until == float("inf") else start.until,
            is_reserved=facts.workloads[key].reservation is not None,
        )
        for key, start in starts.items()
        for placed in start.placed
        for flavor, gpus in _gpus_by_flavor(placed.pods).items()
    ]
    result.sort(
        key=lambda expected: (
            expected.start or 0.0,
            expected.workload,
            expected.cluster,
            expected.flavor,
        )
    )
    kept = (
        workload
        for workload in waiting
        if workload.reservation is not None and workload.key not in starts
    )
    return [
        *result,
        *(_reserve(workload) for workload in sorted(kept, key=lambda other: other.key)),
    ]


def _reserve(workload: Workload) -> Ahead:
    assert workload.reservation is not None, "asked only for those"
    cluster, flavors = workload.reservation
    gpus = sum(
        amount * pod_set.count * unit_nanos(resource)
        for pod_set in workload.forms[0].pod_sets
        for resource, amount in pod_set.shape.requests
        if is_accelerator(resource)
    )
    return Ahead(
        workload=workload.key,
        queue=workload.queue,
        cluster=cluster,
        flavor=flavors[0] if flavors else "",
        gpus=gpus // MILLI,
        start=None,
        is_reserved=True,
    )


def _gpus_by_flavor(pods: tuple[PlacedPods, ...]) -> dict[str, int]:
    """Thousandths of accelerators, by flavor."""
    result: dict[str, int] = {}
    for pod in pods:
        flavor = flavor_of(pod.flavors)
        nanos = sum(
            amount * unit_nanos(resource)
            for resource, amount in pod.shape.requests
            if is_accelerator(resource)
        )
        result[flavor] = result.get(flavor, 0) + nanos * pod.count // MILLI
    return result
