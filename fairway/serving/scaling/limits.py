"""Stabilisation windows, rates and limits: what becomes of the count that metrics ask for.

Without rules of its own a service follows HPA's default: never fewer than was asked for in the past
five minutes, at most twice as many at once, or four. With rules, each direction has a window and
rates, which depend on the changes made within their periods.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from fairway.serving.scaling.model import (
    Finding,
    Limits,
    Memory,
    Rate,
    Recommendation,
    Rules,
    ScaleEvent,
)

_FACTOR_MOST = 2
_COUNT_LEAST = 4
_REMEMBERED_MOST = 4_096  # recommendations; the oldest are forgotten first

Reason = Literal[
    "DesiredWithinRange", "ScaleUpLimit", "TooManyReplicas", "ScaleDownLimit", "TooFewReplicas"
]
_SENTENCES: dict[Reason, str] = {
    "DesiredWithinRange": "the count is within the limits",
    "ScaleUpLimit": "the count rises as fast as it may",
    "TooManyReplicas": "the count is held at the most that is allowed",
    "ScaleDownLimit": "the count falls as fast as it may",
    "TooFewReplicas": "the count is held at the least that is allowed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrained:
    """A count that may be written, what limited it, and the memory after it."""

    replicas: int
    findings: tuple[Finding, ...]
    memory: Memory


def restrain(
    current: int, desired: int, limits: Limits, memory: Memory, *, now: float
) -> Restrained:
    """The count, stabilised and within the rates and limits in force."""
    if limits.up is None or limits.down is None:
        stable = _highest_recent(desired, limits, memory, now)
        count, reason = _plainly_limited(current, stable, limits)
    else:
        stable = _stabilise(current, desired, limits.up, limits.down, memory, now)
        count, reason = _limit(current, stable, limits, memory, now)
    return Restrained(
        replicas=count,
        findings=(
            _stability(current, desired, stable, has_rules=limits.up is not None),
            Finding(
                type="ScalingLimited",
                holds=count != stable,
                reason=reason,
                message=_SENTENCES[reason],
            ),
        ),
        memory=remember(memory, desired, limits, now=now),
    )


def remember(memory: Memory, desired: int, limits: Limits, *, now: float) -> Memory:
    """Adds a recommendation, and drops those older than every window."""
    since = now - _longest_window(limits)
    kept = [
        recommendation for recommendation in memory.recommendations if recommendation.at >= since
    ]
    kept.append(Recommendation(at=now, replicas=desired))
    return replace(memory, recommendations=tuple(kept[-_REMEMBERED_MOST:]))


def record(memory: Memory, change: int, limits: Limits, *, now: float) -> Memory:
    """Adds a change that was made, and drops those older than every rate's period."""
    if limits.up is None or limits.down is None:
        return replace(memory, events=())
    periods = [rate.period_seconds for rate in (*limits.up.rates, *limits.down.rates)]
    since = now - max(periods, default=0)
    kept = [event for event in memory.events if event.at >= since]
    return replace(memory, events=(*kept, ScaleEvent(at=now, change=change)))


def _longest_window(limits: Limits) -> int:
    if limits.up is None or limits.down is None:
        return limits.down_stabilization_seconds
    return max(limits.up.stabilization_seconds, limits.down.stabilization_seconds)


def _highest_recent(desired: int, limits: Limits, memory: Memory, now: float) -> int:
    since = now - limits.down_stabilization_seconds
    recent = (
        recommendation.replicas
        for recommendation in memory.recommendations
        if recommendation.at >= since
    )
    return max((desired, *recent))


def _stabilise(
    current: int, desired: int, up: Rules, down: Rules, memory: Memory, now: float
) -> int:
    """The count nearest to the present one within what was asked for in both windows."""

    def recent(seconds: int) -> Iterable[int]:
        return (
            recommendation.replicas
            for recommendation in memory.recommendations
            if recommendation.at > now - seconds
        )

    lowest = min((desired, *recent(up.stabilization_seconds)))
    highest = max((desired, *recent(down.stabilization_seconds)))
    return min(max(current, lowest), highest)


def _stability(current: int, desired: int, stable: int, *, has_rules: bool) -> Finding:
    if stable == desired:
        reason, message = "ReadyForNewScale", "what is asked for is what was asked for lately"
    elif has_rules and desired >= current:
        reason = "ScaleUpStabilized"
        message = "fewer were asked for lately, and the fewest of them hold"
    else:
        reason = "ScaleDownStabilized"
        message = "more were asked for lately, and the most of them hold"
    return Finding(type="AbleToScale", holds=True, reason=reason, message=message)


def _plainly_limited(current: int, desired: int, limits: Limits) -> tuple[int, Reason]:
    fastest = max(_FACTOR_MOST * current, _COUNT_LEAST)
    if desired < limits.least:
        return limits.least, "TooFewReplicas"
    if limits.most > fastest:
        if desired > fastest:
            return fastest, "ScaleUpLimit"
    elif desired > limits.most:
        return limits.most, "TooManyReplicas"
    return desired, "DesiredWithinRange"


def _limit(
    current: int, desired: int, limits: Limits, memory: Memory, now: float
) -> tuple[int, Reason]:
    assert limits.up is not None
    assert limits.down is not None
    if desired > current:
        fastest = max(_fastest_up(current, limits.up, memory, now), current)
        allowed = min(limits.most, fastest)
        if desired > allowed:
            return allowed, "ScaleUpLimit" if limits.most > fastest else "TooManyReplicas"
    elif desired < current:
        fastest = min(_fastest_down(current, limits.down, memory, now), current)
        allowed = max(limits.least, fastest)
        if desired < allowed:
            return allowed, "ScaleDownLimit" if limits.least < fastest else "TooFewReplicas"
    return desired, "DesiredWithinRange"


def _fastest_up(current: int, rules: Rules, memory: Memory, now: float) -> int:
    if rules.select == "Disabled" or not rules.rates:
        return current
    reached = []
    for rate in rules.rates:
        start = _at_start(current, rate, memory, now)
        # Rounded up, since a percentage of few replicas might otherwise never be one.
        percent = ceil(start * (1 + rate.value / 100))
        reached.append(start + rate.value if rate.type == "Pods" else percent)
    return min(reached) if rules.select == "Min" else max(reached)


def _fastest_down(current: int, rules: Rules, memory: Memory, now: float) -> int:
    if rules.select == "Disabled" or not rules.rates:
        return current
    reached = []
    for rate in rules.rates:
        start = _at_start(current, rate, memory, now)
        percent = int(start * (1 - rate.value / 100))
        reached.append(start - rate.value if rate.type == "Pods" else percent)
    return max(reached) if rules.select == "Min" else min(reached)


def _at_start(current: int, rate: Rate, memory: Memory, now: float) -> int:
    """The count when the period began, by the changes made since."""
    since = now - rate.period_seconds
    return current - sum(event.change for event in memory.events if event.at > since)
