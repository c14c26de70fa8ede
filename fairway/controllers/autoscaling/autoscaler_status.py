"""The status of an autoscaler: what was decided and why, and what the next decision needs.

Rates depend on past changes, and idle time on its beginning; both are in the status, so that
another replica of the hub continues where this one stopped. Recent recommendations are not: a new
leader begins with the present count, which holds the count for the length of the window.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from fairway.api.amounts import Quantity, family_of
from fairway.api.autoscaler import (
    CurrentMetric,
    FleetAutoscaler,
    FleetAutoscalerStatus,
    Metric,
    ScaleChange,
)
from fairway.api.meta import Condition
from fairway.controllers.autoscaling.bounds import Bounds
from fairway.serving.scaling import model
from fairway.serving.scaling.model import (
    Aspect,
    Current,
    Finding,
    Memory,
    ScaleDecision,
    ScaleEvent,
)

_CHANGES_MOST = 64
_MESSAGE_MOST = 1024
_NAME_MOST = 512
_NANOS = 1_000_000
ABLE: Aspect = "AbleToScale"
ZERO: Aspect = "ScaledToZero"


def read_memory(status: FleetAutoscalerStatus) -> Memory:
    """What a status remembers, for a replica that has just begun to lead."""
    return Memory(
        events=tuple(
            ScaleEvent(at=change.at.timestamp(), change=change.change) for change in status.changes
        ),
        idle_since=status.idle_since.timestamp() if status.idle_since else None,
        is_scaled_to_zero=any(
            condition.type == ZERO and condition.status == "True" for condition in status.conditions
        ),
    )


def status_of_decision(
    autoscaler: FleetAutoscaler,
    verdict: ScaleDecision,
    bounds: Bounds,
    *,
    metrics: tuple[tuple[Metric, model.Metric], ...],
    before: int,
    now: float,
) -> FleetAutoscalerStatus:
    """The status after a decision that was carried out."""
    status = autoscaler.status
    is_changed = verdict.replicas != before
    findings = list(verdict.findings)
    if is_changed:
        findings = [finding for finding in findings if finding.type != ABLE]
        message = f"the count was set from {before} to {verdict.replicas}: {verdict.why}"
        findings.append(Finding(type=ABLE, holds=True, reason="SucceededRescale", message=message))
    elif not any(finding.type == ABLE for finding in findings):
        message = "the count of the target was read"
        findings.append(Finding(type=ABLE, holds=True, reason="SucceededGetScale", message=message))
    if verdict.memory.is_scaled_to_zero or any(
        condition.type == ZERO for condition in status.conditions
    ):
        findings.append(_zero(verdict.memory))
    idle_since = verdict.memory.idle_since
    return replace(
        status,
        observed_generation=autoscaler.metadata.generation,
        current_replicas=before,
        desired_replicas=verdict.replicas,
        min_replicas=bounds.least,
        max_replicas=bounds.most,
        schedule=bounds.schedule,
        last_scale_time=_moment(now) if is_changed else status.last_scale_time,
        last_scale_reason=verdict.why if is_changed else status.last_scale_reason,
        idle_since=_moment(idle_since) if idle_since is not None else None,
        changes=tuple(
            ScaleChange(at=_moment(event.at), change=event.change)
            for event in verdict.memory.events[-_CHANGES_MOST:]
        ),
        current_metrics=_currents(metrics, verdict.currents),
        conditions=conditions(autoscaler, findings, now),
    )


def status_of_refusal(
    autoscaler: FleetAutoscaler, reason: str, message: str, now: float
) -> FleetAutoscalerStatus:
    """The status of an autoscaler that could not decide or carry out anything."""
    finding = Finding(type=ABLE, holds=False, reason=reason, message=message)
    return replace(
        autoscaler.status,
        observed_generation=autoscaler.metadata.generation,
        conditions=conditions(autoscaler, [finding], now),
    )


def conditions(
    autoscaler: FleetAutoscaler, findings: list[Finding], now: float
) -> tuple[Condition, ...]:
    """Conditions updated with the findings; conditions without a finding stay as they are."""
    kept = {condition.type: condition for condition in autoscaler.status.conditions}
    for finding in findings:
        old = kept.get(finding.type)
        word: Any = "True" if finding.holds else "False"
        is_same = old is not None and old.status == word
        kept[finding.type] = Condition(
            type=finding.type,
            status=word,
            reason=finding.reason,
            message=finding.message[:_MESSAGE_MOST],
            last_transition_time=old.last_transition_time if old and is_same else _moment(now),
            observed_generation=autoscaler.metadata.generation,
        )
    return tuple(kept[name] for name in sorted(kept))


def _zero(memory: Memory) -> Finding:
    is_so = memory.is_scaled_to_zero
    return Finding(
        type=ZERO,
        holds=is_so,
        reason="ScaledToZero" if is_so else "NotScaledToZero",
        message="scaled to zero, since no metric is active" if is_so else "",
    )


def _currents(
    metrics: tuple[tuple[Metric, model.Metric], ...], currents: tuple[Current, ...]
) -> tuple[CurrentMetric, ...]:
    """The current values of metrics; empty if no metric was asked."""
    return tuple(
        CurrentMetric(
            type=metric.type,
            name=read.name[:_NAME_MOST],
            average_utilization=current.utilization,
            average_value=_amount(current.average, read.resource),
            value=_amount(current.value, read.resource),
        )
        for (metric, read), current in zip(metrics, currents, strict=False)
    )


def _amount(value: int | None, resource: str) -> Quantity | None:
    if value is None:
        return None
    return Quantity(value * _NANOS, family_of(resource) if resource else "decimal")


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(int(at), UTC)
