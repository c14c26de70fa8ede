"""Time moves when nobody has anything left to do, and only then."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable

import pytest

from fairway.clock import VirtualClock
from fairway.sim.time import START, Gate, OwnClock, Stuck, Time, run


def test_sleepers_wake_in_order_and_exactly_on_time() -> None:
    time, woken = Time(), []

    async def sleep(seconds: float) -> None:
        await time.sleep(seconds)
        woken.append((seconds, time.now() - START))

    async def work() -> None:
        await asyncio.gather(sleep(3), sleep(1), sleep(2))

    run(time, work())
    assert woken == [(1, 1), (2, 2), (3, 3)]


def test_who_is_ready_runs_before_time_moves() -> None:
    time, order = Time(), []

    async def busy() -> None:
        for _ in range(50):
            await asyncio.sleep(0)
        order.append("busy")

    async def work() -> None:
        task = asyncio.ensure_future(busy())
        await time.sleep(0.001)
        order.append("slept")
        await task

    run(time, work())
    assert order == ["busy", "slept"]


def test_waiting_for_what_never_comes_is_noticed() -> None:
    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck):
        run(Time(), work())


def test_being_busy_for_ever_is_noticed() -> None:
    async def work() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="time stands still"):
        run(Time(), work())


def test_the_shortest_sleep_takes_time() -> None:
    time = Time()

    async def work() -> None:
        await time.sleep(1e-9)

    run(time, work())
    assert time.now() > START


def test_the_clock_of_who_is_paused_stands_still() -> None:
    time, gate = Time(), Gate()
    clock = OwnClock(time, skew=5, gate=gate)

    async def work() -> float:
        gate.shut()
        sleeping = asyncio.ensure_future(clock.sleep(1))
        await time.sleep(10)
        assert not sleeping.done()
        gate.open()
        await sleeping
        return clock.now() - START

    assert run(time, work()) == 15


async def _rounds(monkeypatch: pytest.MonkeyPatch, work: Awaitable[None]) -> int:
    """How often the loop goes round meanwhile."""
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    rounds, select = 0, selector.select

    def counted(timeout: float | None = None) -> object:
        nonlocal rounds
        rounds += 1
        return select(timeout)

    with monkeypatch.context() as patched:
        patched.setattr(selector, "select", counted)
        await work
    return rounds


async def test_an_idle_moment_takes_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock()

    async def beat() -> None:
        while True:
            await clock.sleep(1)

    beating = asyncio.ensure_future(beat())
    # Threads of pools that earlier tests left would be waited for.
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread()])
    assert await _rounds(monkeypatch, clock.advance(100)) < 300
    beating.cancel()


async def test_where_a_thread_may_wake_a_task_it_is_given_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await asyncio.to_thread(lambda: None)
    assert await _rounds(monkeypatch, VirtualClock().advance(0)) >= 20


async def test_what_follows_from_a_moment_has_happened_before_the_next() -> None:
    clock, order = VirtualClock(), []

    async def follow(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        for _ in range(10):
            await asyncio.sleep(0)
        order.append(f"{name} {clock.now() - START:.0f}")

    tasks = [asyncio.ensure_future(follow("a", 1)), asyncio.ensure_future(follow("b", 2))]
    await clock.advance(2)
    assert order == ["a 1", "b 2"]
    await asyncio.gather(*tasks)
