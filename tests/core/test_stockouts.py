"""Stock-outs: what is learned of them, and that it is better than not to learn."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.stockouts import WAYS, Figures, fixed, replayed, traces
from fairway.core.provisioning import stock_outs
from fairway.core.provisioning.stock_outs import (
    LAST_RESORT,
    STEPS,
    WAIT_LEAST,
    WAIT_MOST,
    Belief,
    after_ask,
    after_failure,
    came,
    slow_after,
    survival,
    wait_after,
)

MINUTE = 60.0
HOUR = 3600.0
TRACES = {trace.name: (trace, *traces(2)[at : at + 1]) for at, trace in enumerate(traces(1))}


def figures(name: str, way: str | float) -> tuple[int, float]:
    """Failed provisions and mean seconds to capacity, on two traces of a sort."""
    after = fixed(way) if isinstance(way, float) else WAYS[str(way)]
    found: list[Figures] = [replayed(trace, after) for trace in TRACES[name]]
    requests = sum(item.requests for item in found)
    seconds = sum(item.mean_seconds * item.requests for item in found) / requests
    return sum(item.failed for item in found), seconds


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("minutes", [1, 3, 5])
def test_learned_stock_outs_fail_less_and_have_capacity_sooner_than_fixed_back_off(
    name: str, minutes: int
) -> None:
    failures, seconds = figures(name, "learned")
    fixed_failures, fixed_seconds = figures(name, minutes * MINUTE)
    print(f"{name}: learned {failures} failed, {seconds:.0f} s to capacity; ", end="")
    print(f"fixed at {minutes} min {fixed_failures} failed, {fixed_seconds:.0f} s")
    assert failures < fixed_failures
    assert seconds < fixed_seconds


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("minutes", [10, 15, 30, 60])
def test_no_longer_back_off_has_capacity_sooner(name: str, minutes: int) -> None:
    assert figures(name, "learned")[1] < figures(name, minutes * MINUTE)[1]


def after_stock_outs_of(seconds: float, count: int = 6) -> Belief:
    belief, now = Belief(), 0.0
    for _ in range(count):
        belief = after_failure(belief, now)
        belief = after_failure(belief, now + seconds - 1)
        belief = came(belief, now + seconds + 1)
        now += 10 * seconds
    return belief


def test_a_pool_that_nothing_is_known_of_is_left_alone_for_longer_with_each_failure() -> None:
    belief, waits = Belief(), []
    now = 0.0
    for _ in range(12):
        belief = after_failure(belief, now)
        assert belief.out_until is not None
        waits.append(belief.out_until - now)
        now = belief.out_until
    assert waits[0] == WAIT_LEAST
    assert waits == sorted(waits)
    assert waits[-1] > 10 * waits[0]
    assert belief.tries == 12


def test_a_pool_whose_stock_outs_last_an_hour_is_asked_again_after_about_an_hour() -> None:
    """Three failures are enough to be past what the prior knows; the next wait is the pool's."""
    belief = after_stock_outs_of(HOUR)
    ages = [0.0]
    while ages[-1] < HOUR:
        ages.append(ages[-1] + wait_after(belief.ended, ages[-1], chance=stock_outs.CHANCE))
    assert len(ages) < 8
    assert 0.7 * HOUR < ages[-1] < 1.6 * HOUR
    longest = max(after - before for before, after in pairwise(ages))
    assert longest > 0.5 * HOUR


def test_who_has_nowhere_else_to_go_asks_earlier() -> None:
    belief = after_failure(after_stock_outs_of(HOUR), 1e6)
    belief = after_failure(belief, 1e6 + 0.25 * HOUR)
    assert belief.try_at is not None
    assert belief.out_until is not None
    assert belief.failed_at is not None
    assert belief.failed_at < belief.try_at < belief.out_until
    assert belief.is_out(belief.try_at - 1)
    assert not belief.is_out(belief.try_at)
    assert belief.is_doubtful(belief.try_at)
    assert not belief.is_doubtful(belief.out_until)


def test_of_a_pool_that_was_out_one_asks_at_a_time() -> None:
    belief = after_failure(Belief(), 0.0)
    assert belief.out_until is not None
    tried = after_ask(belief, belief.out_until, within=300.0)
    assert tried.is_out(belief.out_until + 299)
    assert not tried.is_out(belief.out_until + 300)


def test_of_a_pool_that_has_stock_as_many_may_ask_as_want() -> None:
    assert after_ask(Belief(), 100.0, within=300.0) == Belief()


def test_nodes_that_come_end_a_stock_out_and_tell_how_long_they_took() -> None:
    belief = came(after_failure(Belief(), 0.0), 900.0, took=200.0)
    assert (belief.out_since, belief.out_until, belief.tries) == (None, None, 0)
    assert belief.provision_seconds == 200.0
    assert sum(belief.ended) == stock_outs.WEIGHT
    assert came(belief, 2000.0, took=300.0).provision_seconds == pytest.approx(230.0)


def test_a_failure_long_after_the_last_is_another_stock_out() -> None:
    belief = after_failure(after_failure(Belief(), 0.0), 1e6)
    assert (belief.out_since, belief.tries) == (1e6, 1)


def test_a_provision_that_takes_three_times_as_long_as_usual_has_failed() -> None:
    assert slow_after(Belief(), 300.0) == 900.0
    assert slow_after(Belief(provision_seconds=600.0), 300.0) == 1800.0
    assert slow_after(Belief(), 5.0) == 120.0


weights = st.lists(st.integers(0, 10_000), min_size=STEPS, max_size=STEPS).map(tuple)


@given(ended=weights, age=st.floats(0, 1e6), chance=st.sampled_from([0.045, 0.3, 0.9]))
def test_waits_are_bounded_whatever_was_seen(
    ended: tuple[int, ...], age: float, chance: float
) -> None:
    assert WAIT_LEAST <= wait_after(ended, age, chance=chance) <= WAIT_MOST


@given(ended=weights, times=st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)))
def test_fewer_stock_outs_last_longer(ended: tuple[int, ...], times: tuple[float, float]) -> None:
    shorter, longer = sorted(times)
    assert 0 < survival(ended, longer) <= survival(ended, shorter) <= 1


@given(st.lists(st.tuples(st.booleans(), st.floats(1, 1e5)), max_size=60))
def test_what_is_remembered_is_bounded_and_later_failures_never_end_earlier(
    events: list[tuple[bool, float]],
) -> None:
    belief, now = Belief(), 0.0
    for comes, seconds in events:
        now += seconds
        belief = came(belief, now) if comes else after_failure(belief, now)
        assert len(belief.ended) in (0, STEPS)
        assert sum(belief.ended) <= 10 * stock_outs.WEIGHT
        if not comes:
            assert belief.out_until is not None
            assert now + WAIT_LEAST <= belief.out_until <= now + WAIT_MOST
            assert belief.try_at is not None
            assert belief.try_at <= belief.out_until


def test_the_last_resort_is_bolder() -> None:
    assert stock_outs.CHANCE > LAST_RESORT
