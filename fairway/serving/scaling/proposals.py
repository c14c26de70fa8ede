"""How many replicas one metric asks for.

Formulas are those of Kubernetes' replica calculator (v1.36). With ratio = measured / target:
within the tolerance nothing changes, else pods times ratio, rounded up. Pods that are not ready
yet, and pods whose metric is missing, are given the value that dampens the change: zero when there
would be more replicas, the whole target when there would be fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil

from fairway.serving.scaling.model import (
    CPU,
    AverageValue,
    Current,
    Limits,
    Measured,
    Metric,
    Milli,
    NotRead,
    OfAll,
    OfPods,
    PodFact,
    ServiceObservation,
    Utilization,
    Value,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What one metric asks for."""

    replicas: int
    current: Current


@dataclass(frozen=True, slots=True, kw_only=True)
class NoProposal:
    """Why a metric asks for nothing."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups:
    """The pods of a service, by how their metrics are used."""

    ready: int
    unready: tuple[str, ...]
    missing: tuple[str, ...]
    counted: Mapping[str, Milli]  # metrics of pods that count


# The ratio, computed again with other values.
_Again = Callable[[Mapping[str, Milli]], float]

NO_PODS = "there are no pods to measure"
NO_METRICS = "no pod that is ready has been measured"


def propose(metric: Metric, seen: ServiceObservation, limits: Limits) -> Proposal | NoProposal:
    """How many replicas a metric asks for."""
    match metric.reading, metric.target:
        case NotRead(why=why), _:
            return NoProposal(why=why)
        case OfPods(by_pod=by_pod), Utilization(percent=percent):
            return _by_utilization(metric, by_pod, percent, seen, limits)
        case OfPods(by_pod=by_pod), AverageValue(value=target):
            return _by_average_of_pods(metric, by_pod, target, seen, limits)
        case OfAll(value=usage), Value(value=target):
            return _by_value(usage, target, seen, limits)
        case OfAll(value=usage), AverageValue(value=target):
            return _by_average_of_all(usage, target, seen, limits)
        case _:
            return NoProposal(why="its target is of another sort than what is measured")


def is_within(ratio: float, limits: Limits) -> bool:
    """Whether a ratio is so near to one that nothing changes."""
    up = limits.up.tolerance if limits.up else limits.tolerance
    down = limits.down.tolerance if limits.down else limits.tolerance
    return (1.0 - down) <= ratio <= (1.0 + up)


def _by_utilization(
    metric: Metric,
    by_pod: Mapping[str, Measured],
    percent: int,
    seen: ServiceObservation,
    limits: Limits,
) -> Proposal | NoProposal:
    groups = _group(metric, by_pod, seen, limits)
    if isinstance(groups, NoProposal):
        return groups
    requests = _requests(metric, seen.pods)
    if isinstance(requests, NoProposal):
        return requests

    def ratio(values: Mapping[str, Milli]) -> tuple[float, int, Milli] | None:
        known = {name: value for name, value in values.items() if name in requests}
        asked = sum(requests[name] for name in known)
        if not asked:
            return None
        utilization = _divide(sum(known.values()) * 100, asked)
        return utilization / percent, utilization, _divide(sum(known.values()), len(known))

    result = ratio(groups.counted)
    if result is None:
        return NoProposal(why="no metric is of a pod that is known, or pods request nothing")
    first, utilization, average = result
    current = Current(average=average, utilization=utilization)
    fallback = max(100, percent)
    assumed = {name: _divide(requests[name] * fallback, 100) for name in groups.missing}

    def again(values: Mapping[str, Milli]) -> float:
        second = ratio(values)
        return second[0] if second is not None else first

    replicas = _restrain(first, groups, assumed, again, seen, limits)
    return Proposal(replicas=replicas, current=current)


def _by_average_of_pods(
    metric: Metric,
    by_pod: Mapping[str, Measured],
    target: Milli,
    seen: ServiceObservation,
    limits: Limits,
) -> Proposal | NoProposal:
    groups = _group(metric, by_pod, seen, limits)
    if isinstance(groups, NoProposal):
        return groups

    def average(values: Mapping[str, Milli]) -> Milli:
        return _divide(sum(values.values()), len(values))

    usage = average(groups.counted)
    assumed = dict.fromkeys(groups.missing, target)
    replicas = _restrain(
        usage / target, groups, assumed, lambda values: average(values) / target, seen, limits
    )
    return Proposal(replicas=replicas, current=Current(average=usage))


def _restrain(
    ratio: float,
    groups: _Groups,
    assumed: Mapping[str, Milli],  # of pods whose metric is missing, where there would be fewer
    again: _Again,
    seen: ServiceObservation,
    limits: Limits,
) -> int:
    """Replicas by the ratio of measured pods; unknown values count against the change."""
    current = seen.wanted
    grows_with_unready = bool(groups.unready) and ratio > 1.0
    if not grows_with_unready and not groups.missing:
        if is_within(ratio, limits):
            return current
        return _as_replicas(ceil(ratio * groups.ready), limits)
    values = dict(groups.counted)
    if ratio < 1.0:
        values.update(assumed)
    elif ratio > 1.0:
        values.update(dict.fromkeys(groups.missing, 0))
    if grows_with_unready:
        values.update(dict.fromkeys(groups.unready, 0))
    second = again(values)
    turns = (ratio < 1.0 < second) or (second < 1.0 < ratio)
    if is_within(second, limits) or turns:
        return current
    replicas = _as_replicas(ceil(second * len(values)), limits)
    if (second < 1.0 and replicas > current) or (second > 1.0 and replicas < current):
        return current
    return replicas


def _by_value(
    usage: Milli, target: Milli, seen: ServiceObservation, limits: Limits
) -> Proposal | NoProposal:
    ratio = usage / target
    current = Current(value=usage)
    if seen.wanted == 0:
        return Proposal(replicas=ceil(ratio), current=current)
    if is_within(ratio, limits):
        return Proposal(replicas=seen.wanted, current=current)
    if not seen.pods:
        return NoProposal(why=NO_PODS)
    ready = sum(
        pod.phase == "Running" and pod.is_ready is True and pod.is_reached for pod in seen.pods
    )
    replicas = _as_replicas(ceil(ratio * ready), limits)
    return Proposal(replicas=_with_unreached(replicas, seen, limits), current=current)


def _by_average_of_all(
    usage: Milli, target: Milli, seen: ServiceObservation, limits: Limits
) -> Proposal:
    placed = seen.placed
    current = Current(value=usage) if not placed else Current(average=ceil(usage / placed))
    if placed and is_within(usage / (target * placed), limits):
        return Proposal(replicas=placed, current=current)
    replicas = _with_unreached(ceil(usage / target), seen, limits)
    return Proposal(replicas=replicas, current=current)


def _with_unreached(replicas: int, seen: ServiceObservation, limits: Limits) -> int:
    """Does not scale down because of silent clusters.

    Replicas in silent clusters count as meeting the target: they are pods whose metric is missing,
    and no reason for fewer replicas. Nor are they a reason for more.
    """
    unreached = sum(not pod.is_reached and not pod.is_leaving for pod in seen.pods)
    if not unreached:
        return replicas
    kept = _as_replicas(unreached, limits)
    if replicas < seen.wanted:
        return min(seen.wanted, replicas + kept)
    return replicas


def _group(
    metric: Metric, by_pod: Mapping[str, Measured], seen: ServiceObservation, limits: Limits
) -> _Groups | NoProposal:
    if not seen.pods:
        return NoProposal(why=NO_PODS)
    ready = 0
    unready: list[str] = []
    missing: list[str] = []
    dropped: set[str] = set()
    for pod in seen.pods:
        measured = by_pod.get(pod.name)
        if pod.is_leaving or pod.phase == "Failed":
            dropped.add(pod.name)
        elif pod.phase == "Pending" and pod.is_reached:
            unready.append(pod.name)
        elif measured is None or not pod.is_reached:
            missing.append(pod.name)
        elif metric.resource == CPU and _is_starting(pod, measured, seen.now, limits):
            unready.append(pod.name)
        else:
            ready += 1
    dropped.update(unready, missing)
    counted = {name: measured.value for name, measured in by_pod.items() if name not in dropped}
    if not counted:
        return NoProposal(why=NO_METRICS)
    return _Groups(ready=ready, unready=tuple(unready), missing=tuple(missing), counted=counted)


def _is_starting(pod: PodFact, measured: Measured, now: float, limits: Limits) -> bool:
    """Whether a pod's processor use is that of its start, and says nothing about load."""
    if pod.is_ready is None or pod.started_at is None:
        return True
    if pod.started_at + limits.cpu_initialization_seconds > now:
        is_whole = measured.at >= pod.ready_changed_at + measured.window_seconds
        return not pod.is_ready or not is_whole
    was_never_ready = pod.started_at + limits.initial_readiness_seconds > pod.ready_changed_at
    return not pod.is_ready and was_never_ready


def _requests(metric: Metric, pods: tuple[PodFact, ...]) -> Mapping[str, Milli] | NoProposal:
    requests: dict[str, Milli] = {}
    for pod in pods:
        if metric.container and metric.container not in pod.requests:
            return NoProposal(why=f"{pod.name} has no container {metric.container}")
        names = (metric.container,) if metric.container else tuple(pod.requests)
        for name in names:
            if metric.resource not in pod.requests[name]:
                return NoProposal(
                    why=f"container {name} of {pod.name} requests no {metric.resource}"
                )
        requests[pod.name] = sum(pod.requests[name][metric.resource] for name in names)
    return requests


def _as_replicas(pods: int, limits: Limits) -> int:
    """How many replicas have this many pods."""
    return -(-pods // limits.pods_per_replica)


def _divide(total: int, count: int) -> int:
    """Division towards zero, as in Go, in which HPA is written."""
    return total // count if total >= 0 else -(-total // count)
