"""Agents whose driver fails or is slow."""

from __future__ import annotations

import pytest

from fairway.agent.drivers.interface import Driver
from tests.agent.faulty_driver import FaultyDriver
from tests.agent.stage import Stage
from tests.contracts.drivers import work


@pytest.fixture
async def faulty(stage: Stage) -> FaultyDriver:
    """The stage's agent, begun anew on a driver that can fail."""
    made: list[FaultyDriver] = []

    def wrap(driver: Driver) -> Driver:
        made.append(FaultyDriver(driver, stage.clock))
        return made[-1]

    await stage.crash()
    stage.wrap = wrap
    await stage.start()
    await stage.passes(1)
    return made[0]


async def test_a_work_that_cannot_be_applied_is_told_and_tried_again(
    stage: Stage, faulty: FaultyDriver
) -> None:
    faulty.failing.add("apply")
    one = work("one")
    await stage.put(one)
    await stage.passes(40)
    state = await stage.state(one)
    assert state is not None
    assert (state.phase, state.reason, state.message) == ("Pending", "DriverFault", "apply fails")
    assert faulty.calls.count("apply") == 6  # after 0, 1, 3, 7, 15 and 31 seconds
    faulty.failing.clear()
    running = await stage.until("Running", one)
    assert running.reason == ""


async def test_a_work_that_cannot_be_stopped_is_stopped_later(
    stage: Stage, faulty: FaultyDriver
) -> None:
    one = work("one")
    await stage.put(one)
    await stage.until("Running", one)
    faulty.failing.add("stop")
    await stage.bury(one)
    await stage.passes(20)
    assert await stage.pods(one) == 1
    faulty.failing.clear()
    await stage.until("Gone", one)


async def test_a_slow_apply_does_not_hold_up_others_or_heartbeats(
    stage: Stage, faulty: FaultyDriver
) -> None:
    faulty.slow["apply"] = 300
    await stage.put(work("slow"))
    await stage.passes(1)
    faulty.slow.clear()
    quick = work("quick")
    await stage.put(quick)
    await stage.until("Running", quick, seconds=5)
    before = (await stage.lease())["spec"]["renewTime"]
    await stage.passes(20)
    assert (await stage.lease())["spec"]["renewTime"] > before


async def test_a_tombstone_that_comes_during_a_slow_apply_leaves_nothing(
    stage: Stage, faulty: FaultyDriver
) -> None:
    faulty.slow["apply"] = 10
    one = work("one")
    await stage.put(one)
    await stage.passes(1)
    await stage.bury(one)
    await stage.passes(5)
    # Something may yet come of what was begun.
    assert await stage.state(one) is None
    await stage.until("Gone", one)
    await stage.passes(60)
    assert await stage.pods(one) == 0


async def test_a_cluster_that_cannot_be_looked_at_is_looked_at_again(
    stage: Stage, faulty: FaultyDriver
) -> None:
    faulty.failing.add("observe")
    one = work("one")
    await stage.put(one)
    await stage.passes(30)
    faulty.failing.clear()
    await stage.until("Running", one)
