"""Limits and rules of an autoscaler, as the core takes them; schedules in their time zones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fairway.api.autoscaler import FleetAutoscalerSpec, ScalingRules, Schedule
from fairway.serving.scaling import cron
from fairway.serving.scaling.model import Limits, Rate, Rules

_UP = (
    Rate(type="Pods", value=4, period_seconds=15),
    Rate(type="Percent", value=100, period_seconds=15),
)
_DOWN = (Rate(type="Percent", value=100, period_seconds=15),)
_UP_SECONDS = 0
_DOWN_SECONDS = 300
_TOLERANCE = 0.1
_NANOS = 1_000_000_000


class BadSchedule(ValueError):
    """An invalid schedule, with the path of its field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits in force, the schedule that set them, and until when they hold at the longest."""

    least: int
    most: int
    schedule: str = ""
    until: float | None = None


def bounds_of(spec: FleetAutoscalerSpec, now: float) -> Bounds:
    """The limits of the schedule that was last due; before that, the autoscaler's own limits."""
    latest: tuple[float, int] | None = None
    until: float | None = None
    for position, schedule in enumerate(spec.schedules):
        last, following = _due(schedule, position, now)
        if last is not None and (latest is None or (last, position) > latest):
            latest = (last, position)
        if following is not None:
            until = following if until is None else min(until, following)
    if latest is None:
        return Bounds(least=spec.min_replicas, most=spec.max_replicas, until=until)
    holds = spec.schedules[latest[1]]
    return Bounds(
        least=holds.min_replicas, most=holds.max_replicas, schedule=holds.name, until=until
    )


def _due(schedule: Schedule, position: int, now: float) -> tuple[float | None, float | None]:
    """When a schedule was last due, and when it will be next."""
    path = f"spec.schedules[{position}]"
    try:
        zone = ZoneInfo(schedule.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as fault:
        raise BadSchedule(f"{path}.timeZone: there is no {schedule.time_zone}") from fault
    try:
        due = cron.parse(schedule.cron)
    except cron.CronFault as fault:
        raise BadSchedule(f"{path}.cron: {fault}") from fault
    # In the schedule's time zone. An hour that clocks skip has passed by the one that follows;
    # of an hour that they repeat, the first counts.
    local = datetime.fromtimestamp(now, UTC).astimezone(zone).replace(tzinfo=None)
    last, following = due.last(local), due.next(local)
    return (
        None if last is None else min(now, last.replace(tzinfo=zone).timestamp()),
        None if following is None else following.replace(tzinfo=zone).timestamp(),
    )


def limits_of(spec: FleetAutoscalerSpec, bounds: Bounds, *, pods_per_replica: int) -> Limits:
    behavior = spec.behavior
    return Limits(
        least=bounds.least,
        most=bounds.most,
        up=None if behavior is None else _rules(behavior.scale_up, _UP, _UP_SECONDS),
        down=None if behavior is None else _rules(behavior.scale_down, _DOWN, _DOWN_SECONDS),
        down_stabilization_seconds=_DOWN_SECONDS,
        tolerance=_TOLERANCE,
        idle_seconds=spec.scale_to_zero.idle_seconds,
        pods_per_replica=pods_per_replica,
    )


def _rules(rules: ScalingRules, rates: tuple[Rate, ...], seconds: int) -> Rules:
    window = rules.stabilization_window_seconds
    own = tuple(
        Rate(type=policy.type, value=policy.value, period_seconds=policy.period_seconds)
        for policy in rules.policies
    )
    tolerance = rules.tolerance
    return Rules(
        stabilization_seconds=seconds if window is None else window,
        rates=own or rates,
        select=rules.select_policy,
        tolerance=_TOLERANCE if tolerance is None else tolerance.nanos / _NANOS,
    )
