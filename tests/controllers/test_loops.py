"""Loops look at what was marked: once, one at a time for each key, and again after a failure."""

from __future__ import annotations

import asyncio

import pytest

from fairway.api.errors import AlreadyExists, ApiError, Conflict, Unavailable
from fairway.clock import VirtualClock
from fairway.loops import Alarm, Loop, end


async def test_a_key_marked_many_times_is_looked_at_once(clock: VirtualClock) -> None:
    seen: list[str] = []

    async def look(key: str) -> None:
        seen.append(key)

    loop = Loop("test", look, clock=clock)
    for _ in range(5):
        loop.mark("a")
    loop.mark("b")
    running = asyncio.ensure_future(loop.run())
    await clock.advance(1)
    assert seen == ["a", "b"]
    running.cancel()


async def test_a_key_marked_while_it_is_looked_at_is_looked_at_again_afterwards(
    clock: VirtualClock,
) -> None:
    at_once: list[int] = []
    looking = 0

    async def look(key: str) -> None:
        nonlocal looking
        looking += 1
        at_once.append(looking)
        await clock.sleep(1)
        looking -= 1

    loop = Loop("test", look, clock=clock)
    loop.mark("a")
    running = asyncio.ensure_future(loop.run())
    await clock.advance(0.5)
    loop.mark("a")
    await clock.advance(5)
    assert at_once == [1, 1]
    running.cancel()


async def test_a_key_that_fails_is_looked_at_again_after_a_while_that_doubles(
    clock: VirtualClock,
) -> None:
    moments: list[float] = []
    start = clock.now()

    async def look(key: str) -> None:
        moments.append(round(clock.now() - start, 3))
        raise Unavailable("not now")

    loop = Loop("test", look, clock=clock)
    loop.mark("a")
    running = asyncio.ensure_future(loop.run())
    await clock.advance(0.8)
    assert moments == [0.0, 0.05, 0.15, 0.35, 0.75]
    running.cancel()


@pytest.mark.parametrize("fault", [Conflict("changed"), AlreadyExists("there")])
async def test_a_write_that_others_came_before_is_tried_again_without_a_warning(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture, fault: ApiError
) -> None:
    seen: list[str] = []

    async def look(key: str) -> None:
        seen.append(key)
        if len(seen) == 1:
            raise fault

    loop = Loop("test", look, clock=clock)
    loop.mark("a")
    running = asyncio.ensure_future(loop.run())
    await clock.advance(5)
    assert seen == ["a", "a"]
    assert not caplog.records
    running.cancel()


async def test_a_key_that_fails_for_a_day_is_still_looked_at_every_minute(
    clock: VirtualClock,
) -> None:
    failures = 0

    async def look(key: str) -> None:
        nonlocal failures
        failures += 1
        raise Unavailable("not now")

    loop = Loop("test", look, clock=clock)
    loop.mark("a")
    running = asyncio.ensure_future(loop.run())
    await clock.advance(86_400)
    assert failures > 1_400
    assert not running.done()
    running.cancel()


async def test_a_key_that_names_a_moment_is_looked_at_then(clock: VirtualClock) -> None:
    moments: list[float] = []
    start = clock.now()

    async def look(key: str) -> float | None:
        moments.append(clock.now() - start)
        return start + 60 if len(moments) == 1 else None

    loop = Loop("test", look, clock=clock)
    loop.mark("a")
    running = asyncio.ensure_future(loop.run())
    await clock.advance(300)
    assert moments == [0, 60]
    running.cancel()


async def test_an_alarm_rings_for_a_mark_before_its_moment(clock: VirtualClock) -> None:
    alarm = Alarm(clock)
    waiting = asyncio.ensure_future(alarm.wait(clock.now() + 100))
    await clock.advance(1)
    assert not waiting.done()
    alarm.mark()
    await clock.advance(0)
    assert waiting.done()


async def test_a_loop_that_forgets_keeps_nothing_while_it_does_not_run(
    clock: VirtualClock,
) -> None:
    seen: list[str] = []

    async def look(key: str) -> float | None:
        seen.append(key)
        return clock.now() + 60

    loop = Loop("test", look, clock=clock, forgets=True)
    loop.mark("early")
    running = asyncio.ensure_future(loop.run(["a", "b"]))
    await clock.advance(1)
    running.cancel()
    await clock.advance(1)
    for number in range(1_000):
        loop.mark(f"late {number}")
    assert len(loop) == 0
    running = asyncio.ensure_future(loop.run(["b"]))
    await clock.advance(100)
    assert seen == ["a", "b", "b", "b"]
    running.cancel()


async def test_moments_that_others_took_the_place_of_are_not_kept(clock: VirtualClock) -> None:
    async def look(key: str) -> None:
        return

    loop = Loop("test", look, clock=clock)
    running = asyncio.ensure_future(loop.run())
    for _ in range(5_000):
        loop.mark_at("a", clock.now() + 1_000)
        loop.mark_at("a", clock.now() + 0.01)
        await clock.advance(0.01)
    assert len(loop._timers) < 2_000
    running.cancel()


async def test_what_is_ended_ends_in_its_own_time_though_its_owner_is_cancelled_too() -> None:
    told: list[str] = []

    async def part() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            told.append("the part is over")

    async def owner() -> None:
        task = asyncio.ensure_future(part())
        await asyncio.sleep(0)
        try:
            await end([task])
        finally:
            told.append("its owner is over")

    owning = asyncio.ensure_future(owner())
    for _ in range(3):
        await asyncio.sleep(0)
    owning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owning
    assert told == ["the part is over", "its owner is over"]
