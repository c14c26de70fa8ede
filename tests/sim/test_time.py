"""Time moves when nobody has anything left to do, and only then."""

from __future__ import annotations

import asyncio

import pytest

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
