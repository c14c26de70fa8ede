"""One decision on the count of a service: observation and memory in, a count and why out.

The order is HPA's: a service that another client set to zero is left alone; one outside its limits
is brought back within them, whatever metrics say. Otherwise every metric is asked, the highest
count wins, and a metric that cannot be read keeps the count from falling.

Zero is a special count. With a minimum of zero, metrics that measure something other than the pods
say whether the service is active. From zero the count rises as soon as one is above its activation
threshold; to zero it falls once none has been for the idle time. Between, it is at least one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairway.serving.scaling.limits import record, restrain
from fairway.serving.scaling.model import (
    Current,
    Finding,
    Limits,
    Memory,
    Metric,
    NotRead,
    OfAll,
    Recommendation,
    ScaleDecision,
    ServiceObservation,
)
from fairway.serving.scaling.proposals import NoProposal, propose

_VALID, _NO_METRIC = "ValidMetricFound", "NoMetric"
_SILENT = (_VALID, _NO_METRIC)  # not reported while the service is idle
_DISABLED = Finding(
    type="ScalingActive",
    holds=False,
    reason="ScalingDisabled",
    message="the count was set to zero by hand, and stays zero until it is set again",
)


def decide(seen: ServiceObservation, limits: Limits, memory: Memory) -> ScaleDecision:
    """How many replicas there should be now."""
    memory = _begin(memory, seen)
    if seen.wanted == 0 and limits.least > 0 and not memory.is_scaled_to_zero:
        return ScaleDecision(replicas=0, findings=(_DISABLED,), currents=(), memory=memory)
    if seen.wanted > limits.most:
        why = "there are more replicas than are allowed"
        return _make(seen, limits, memory, limits.most, why=why)
    if seen.wanted < limits.least:
        why = "there are fewer replicas than there must be"
        return _make(seen, limits, memory, limits.least, why=why)
    asked = _ask(seen, limits)
    idle_since = _idle_since(seen, limits, memory)
    memory = replace(memory, idle_since=idle_since)
    if seen.wanted == 0:
        return _from_zero(seen, limits, memory, asked)
    if asked.replicas is None:
        return ScaleDecision(
            replicas=seen.wanted, findings=(asked.finding,), currents=asked.currents, memory=memory
        )
    desired = asked.replicas
    if limits.least == 0:
        is_idle = idle_since is not None and seen.now - idle_since >= limits.idle_seconds
        desired = 0 if is_idle else max(desired, min(1, limits.most))
    count = restrain(seen.wanted, desired, limits, memory, now=seen.now)
    return _make(
        seen,
        limits,
        count.memory,
        count.replicas,
        findings=(asked.finding, *count.findings),
        currents=asked.currents,
        why=_why(seen, asked, count.replicas),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What all metrics together ask for; no count if none can be derived from them."""

    replicas: int | None
    metric: str
    finding: Finding
    currents: tuple[Current, ...]


def _begin(memory: Memory, seen: ServiceObservation) -> Memory:
    """At the first decision, the present count is taken as the last recommendation."""
    if memory.recommendations:
        return memory
    first = Recommendation(at=seen.now, replicas=seen.wanted)
    return replace(memory, recommendations=(first,))


def _ask(seen: ServiceObservation, limits: Limits) -> _Asked:
    """The highest count that a metric asks for; at zero, metrics of absent pods are skipped."""
    highest, name = 0, ""
    currents: list[Current] = []
    failed: list[tuple[Metric, NoProposal]] = []
    asked = 0
    for metric in seen.metrics:
        if not seen.wanted and not _tells_at_zero(metric):
            currents.append(Current())
            continue
        asked += 1
        result = propose(metric, seen, limits)
        if isinstance(result, NoProposal):
            failed.append((metric, result))
            currents.append(Current())
            continue
        currents.append(result.current)
        if not name or result.replicas > highest:
            highest, name = result.replicas, metric.name
    replicas: int | None = highest
    if len(failed) == asked or (failed and highest < seen.wanted):
        replicas = None
    return _Asked(
        replicas=replicas,
        metric=name,
        finding=_activity(replicas, name, failed, asked),
        currents=tuple(currents),
    )


def _activity(
    replicas: int | None, name: str, failed: list[tuple[Metric, NoProposal]], count: int
) -> Finding:
    if replicas is not None:
        message = f"the count follows from {name}"
        if failed:
            message += f"; {failed[0][0].name} cannot be read: {failed[0][1].why}"
        return Finding(type="ScalingActive", holds=True, reason=_VALID, message=message)
    if not failed:
        message = "there is no metric to go by"
        return Finding(type="ScalingActive", holds=False, reason=_NO_METRIC, message=message)
    metric, fault = failed[0]
    message = f"{metric.name} cannot be read"
    message += f" ({len(failed)} of {count} metrics cannot): {fault.why}"
    return Finding(type="ScalingActive", holds=False, reason=metric.failure, message=message)


def _tells_at_zero(metric: Metric) -> bool:
    """Whether a metric has a meaning while there are no pods.

    Numbers that the pods themselves would give are just absent; that is no failure then.
    """
    is_gone = isinstance(metric.reading, NotRead) and metric.reading.is_absent
    return metric.activation is not None and not is_gone


def _is_active(metric: Metric) -> bool:
    """Whether a metric shows activity; an unknown value counts as activity."""
    match metric.reading:
        case OfAll(value=value):
            return value > (metric.activation or 0)
        case NotRead(is_absent=is_absent):
            return not is_absent
        case _:
            return True


def _idle_since(seen: ServiceObservation, limits: Limits, memory: Memory) -> float | None:
    """Since when the service is idle; None while it is, or may be, active."""
    telling = [metric for metric in seen.metrics if metric.activation is not None]
    if limits.least > 0 or not telling or any(_is_active(metric) for metric in telling):
        return None
    return seen.now if memory.idle_since is None else memory.idle_since


def _from_zero(
    seen: ServiceObservation, limits: Limits, memory: Memory, asked: _Asked
) -> ScaleDecision:
    active = [
        metric
        for metric in seen.metrics
        if isinstance(metric.reading, OfAll) and _is_active(metric)
    ]
    if asked.replicas is None or not any(metric.activation is not None for metric in active):
        finding = asked.finding if asked.finding.reason not in _SILENT else _idle()
        return ScaleDecision(
            replicas=0, findings=(finding,), currents=asked.currents, memory=memory
        )
    desired = min(max(asked.replicas, 1), limits.most)
    count = restrain(0, desired, limits, memory, now=seen.now)
    return _make(
        seen,
        limits,
        count.memory,
        max(count.replicas, min(1, limits.most)),
        findings=(asked.finding, *count.findings),
        currents=asked.currents,
        why=f"{asked.metric} is above its activation threshold",
    )


def _idle() -> Finding:
    message = "no metric is above its activation threshold"
    return Finding(type="ScalingActive", holds=True, reason="Idle", message=message)


def _why(seen: ServiceObservation, asked: _Asked, replicas: int) -> str:
    if replicas > seen.wanted:
        return f"{asked.metric} is above its target"
    if replicas < seen.wanted:
        return "no metric is active" if replicas == 0 else "all metrics are below their targets"
    return ""


def _make(
    seen: ServiceObservation,
    limits: Limits,
    memory: Memory,
    replicas: int,
    *,
    findings: tuple[Finding, ...] = (),
    currents: tuple[Current, ...] = (),
    why: str = "",
) -> ScaleDecision:
    """A decision, with a change recorded as made; a caller that cannot make it drops it."""
    if replicas != seen.wanted:
        memory = record(memory, replicas - seen.wanted, limits, now=seen.now)
        memory = replace(memory, is_scaled_to_zero=replicas == 0)
    return ScaleDecision(
        replicas=replicas,
        findings=findings,
        currents=currents,
        memory=memory,
        why=why if replicas != seen.wanted else "",
    )
