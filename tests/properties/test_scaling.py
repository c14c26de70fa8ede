"""What holds of every decision on a count, whatever was measured."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fairway.serving.scaling.decide import decide
from fairway.serving.scaling.model import (
    AverageValue,
    Limits,
    Memory,
    Metric,
    PodFact,
    Rate,
    Recommendation,
    Rules,
    ScaleEvent,
    ServiceObservation,
    Target,
    Utilization,
    Value,
)
from tests.serving.scalings import NOW, of_all, of_pods, played, pods, total

_COUNTS = st.integers(0, 12)
_MILLIS = st.integers(0, 20_000)


@st.composite
def facts(draw: st.DrawFn) -> tuple[PodFact, ...]:
    return tuple(
        pod
        for number, count in enumerate(draw(st.lists(st.integers(0, 4), max_size=4)))
        for pod in pods(
            count,
            cluster=f"c{number}",
            phase=draw(st.sampled_from(["Running", "Running", "Pending", "Failed"])),
            is_leaving=draw(st.booleans()),
            is_ready=draw(st.sampled_from([True, False, None])),
            is_reached=draw(st.booleans()),
        )
    )


@st.composite
def metrics(draw: st.DrawFn, known: tuple[PodFact, ...]) -> Metric:
    targets: list[Target] = [AverageValue(value=draw(st.integers(1, 5000)))]
    if draw(st.booleans()):
        targets.append(Utilization(percent=draw(st.integers(1, 150))))
        measured = {item.name: draw(_MILLIS) for item in known if draw(st.booleans())}
        resource = draw(st.sampled_from(["cpu", "cpu", "memory"]))
        return of_pods(measured, draw(st.sampled_from(targets)), resource=resource)
    targets.append(Value(value=draw(st.integers(1, 5000))))
    value = draw(st.none() | _MILLIS)
    return of_all(value, draw(st.sampled_from(targets)), activation=draw(st.integers(0, 500)))


def rules() -> st.SearchStrategy[Rules]:
    rate = st.builds(
        Rate,
        type=st.sampled_from(["Pods", "Percent"]),
        value=st.integers(1, 200),
        period_seconds=st.integers(1, 120),
    )
    return st.builds(
        Rules,
        stabilization_seconds=st.integers(0, 600),
        rates=st.lists(rate, min_size=1, max_size=3).map(tuple),
        select=st.sampled_from(["Max", "Min", "Disabled"]),
        tolerance=st.sampled_from([0.0, 0.1, 0.5]),
    )


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    least = draw(st.integers(0, 6))
    has_rules = draw(st.booleans())
    return Limits(
        least=least,
        most=draw(st.integers(max(least, 1), 40)),
        up=draw(rules()) if has_rules else None,
        down=draw(rules()) if has_rules else None,
        idle_seconds=draw(st.sampled_from([0, 300])),
        pods_per_replica=draw(st.sampled_from([1, 1, 3])),
    )


@st.composite
def services(draw: st.DrawFn) -> ServiceObservation:
    known = draw(facts())
    return ServiceObservation(
        now=NOW,
        wanted=draw(_COUNTS),
        placed=draw(_COUNTS),
        pods=known,
        metrics=tuple(draw(st.lists(metrics(known), min_size=1, max_size=3))),
    )


def memories() -> st.SearchStrategy[Memory]:
    past = st.floats(0, 700).map(lambda seconds: NOW - seconds)
    recommendations = st.lists(st.builds(Recommendation, at=past, replicas=_COUNTS), max_size=4)
    events = st.lists(st.builds(ScaleEvent, at=past, change=st.integers(-5, 5)), max_size=4)
    return st.builds(
        Memory,
        recommendations=recommendations.map(tuple),
        events=events.map(tuple),
        idle_since=st.none() | past,
        is_scaled_to_zero=st.booleans(),
    )


@given(services(), limits(), memories())
def test_a_count_that_changes_is_within_its_limits(
    seen: ServiceObservation, allowed: Limits, memory: Memory
) -> None:
    verdict = decide(seen, allowed, memory)
    if verdict.replicas != seen.wanted:
        # Windows hold a count up that was once within other limits; rates never carry it past.
        assert verdict.replicas >= min(allowed.least, seen.wanted)
        assert verdict.replicas <= max(allowed.most, seen.wanted)


@given(services(), limits(), memories(), st.randoms(use_true_random=False))
def test_the_order_of_pods_and_metrics_does_not_matter(
    seen: ServiceObservation, allowed: Limits, memory: Memory, chance: object
) -> None:
    shuffled = list(seen.pods)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # a generator of Hypothesis
    other = replace(seen, pods=tuple(shuffled), metrics=seen.metrics[::-1])
    assert decide(other, allowed, memory).replicas == decide(seen, allowed, memory).replicas


@given(services(), limits(), memories())
def test_a_metric_that_cannot_be_read_never_makes_a_running_service_smaller(
    seen: ServiceObservation, allowed: Limits, memory: Memory
) -> None:
    blind = replace(seen, metrics=(*seen.metrics, total(None, 1)))
    if allowed.least <= seen.wanted <= allowed.most:
        lowered = decide(blind, allowed, memory).replicas
        stable = [recommendation.replicas for recommendation in memory.recommendations]
        assert lowered >= min([seen.wanted, *stable])


@given(services(), limits(), memories())
def test_a_further_metric_never_lowers_the_count(
    seen: ServiceObservation, allowed: Limits, memory: Memory
) -> None:
    if allowed.least == 0:
        return  # there a further metric may tell that somebody is active, or that nobody is
    one = replace(seen, metrics=seen.metrics[:1])
    fewer, more = decide(one, allowed, memory), decide(seen, allowed, memory)
    has_failed = any(not current_of(item) for item in more.currents)
    if not has_failed:
        assert more.replicas >= fewer.replicas


def current_of(current: object) -> bool:
    return any(getattr(current, name) is not None for name in ("value", "average", "utilization"))


@given(st.integers(0, 60_000), st.integers(1, 20), limits())
def test_a_steady_load_comes_to_rest(value: int, start: int, allowed: Limits) -> None:
    counts = played([value] * 400, allowed, start=start)
    assert len(set(counts[-100:])) == 1


@given(st.lists(st.integers(0, 60_000), min_size=1, max_size=40), st.integers(1, 5))
def test_no_rate_is_exceeded_in_any_period(totals: list[int], value: int) -> None:
    only = (Rate(type="Pods", value=value, period_seconds=60),)
    held = Rules(stabilization_seconds=0, rates=only)
    counts = [10, *played(totals, Limits(least=1, most=100, up=held, down=held), start=10)]
    for later in range(1, len(counts)):
        # Four decisions are a minute: the period begins with what was decided before them.
        before, start = counts[later - 1], counts[max(0, later - 4)]
        assert counts[later] <= max(before, start + value)
        assert counts[later] >= min(before, start - value)
