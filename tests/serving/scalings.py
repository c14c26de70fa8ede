"""Small services in a line each, for the tests of scaling; only what matters is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fairway.serving.scaling.decide import decide
from fairway.serving.scaling.model import (
    AverageValue,
    Limits,
    Measured,
    Memory,
    Metric,
    NotRead,
    OfAll,
    OfPods,
    PodFact,
    Rate,
    Rules,
    ScaleDecision,
    ServiceObservation,
    Target,
    Utilization,
    Value,
)

NOW = 1_800_000_000.0
UP = Rules(
    stabilization_seconds=0,
    rates=(
        Rate(type="Pods", value=4, period_seconds=15),
        Rate(type="Percent", value=100, period_seconds=15),
    ),
)
DOWN = Rules(stabilization_seconds=300, rates=(Rate(type="Percent", value=100, period_seconds=15),))


def limits(least: int = 1, most: int = 100, **more: object) -> Limits:
    return Limits(least=least, most=most, **more)  # type: ignore[arg-type]  # fields by name


def ruled(least: int = 1, most: int = 100, *, up: Rules = UP, down: Rules = DOWN) -> Limits:
    return Limits(least=least, most=most, up=up, down=down)


def pods(count: int, *, cpu: int = 1000, cluster: str = "a", **more: object) -> tuple[PodFact, ...]:
    """Pods of one container that have been ready for long."""
    fields = {"started_at": NOW - 3600, "ready_changed_at": NOW - 3500, **more}
    return tuple(
        PodFact(name=f"{cluster}/p{index}", requests={"main": {"cpu": cpu}}, **fields)  # type: ignore[arg-type]  # fields by name
        for index in range(count)
    )


def of_pods(
    values: Mapping[str, int] | list[int], target: Target, *, resource: str = "", cluster: str = "a"
) -> Metric:
    """What was measured of each pod, in thousandths."""
    if isinstance(values, list):
        values = {f"{cluster}/p{number}": value for number, value in enumerate(values)}
    by_pod = {
        name: Measured(value=value, at=NOW, window_seconds=30) for name, value in values.items()
    }
    return Metric(
        name="pods metric rate",
        failure="FailedGetPodsMetric",
        target=target,
        reading=OfPods(by_pod=by_pod),
        resource=resource,
    )


def cpu(values: list[int], percent: int) -> Metric:
    return of_pods(values, Utilization(percent=percent), resource="cpu")


def of_all(value: int | None, target: Target, *, activation: int | None = 0) -> Metric:
    """What was measured of the whole, in thousandths; None: it cannot be read."""
    return Metric(
        name="external metric queue",
        failure="FailedGetExternalMetric",
        target=target,
        reading=NotRead(why="nobody answers") if value is None else OfAll(value=value),
        activation=activation,
    )


def total(value: int | None, each: int) -> Metric:
    """A total of which each replica takes so much."""
    return of_all(value, AverageValue(value=each))


def level(value: int | None, at: int) -> Metric:
    """A value that is to be kept at a level."""
    return of_all(value, Value(value=at))


def seen(
    wanted: int, *metrics: Metric, facts: tuple[PodFact, ...] | None = None
) -> ServiceObservation:
    return ServiceObservation(
        now=NOW,
        wanted=wanted,
        placed=wanted,
        pods=pods(wanted) if facts is None else facts,
        metrics=metrics,
    )


def played(
    totals: list[int], rules: Limits, *, each: int = 1000, start: int = 1, period: float = 15.0
) -> list[int]:
    """The counts over time, of a service that always has as many replicas as were decided."""
    memory, wanted, counts = Memory(), start, []
    for number, value in enumerate(totals):
        now = NOW + number * period
        at = replace(seen(wanted, total(value, each)), now=now)
        verdict: ScaleDecision = decide(at, rules, memory)
        memory, wanted = verdict.memory, verdict.replicas
        counts.append(wanted)
    return counts
