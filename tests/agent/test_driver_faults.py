"""Agents whose driver fails or is slow."""

from __future__ import annotations

import pytest

from fairway.agent.drivers.interface import Driver, DriverFault
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


CUT_OFF = "fairway.dev/cut-off"


async def cut_off(stage: Stage) -> bool:
    """Whether the agent's last word is that its cluster does not answer."""
    return CUT_OFF in ((await stage.lease())["metadata"].get("annotations") or {})


async def test_an_agent_that_reaches_its_hub_but_not_its_cluster_says_so_and_ends_nothing(
    stage: Stage, faulty: FaultyDriver
) -> None:
    one = work("one", stop_when_silent_seconds=300)
    await stage.put(one)
    await stage.until("Running", one)
    assert not await cut_off(stage)
    before = (await stage.lease())["spec"]["renewTime"]
    faulty.is_cut_off = True
    await stage.passes(1000)
    # It is silent, so that nothing more is sent to the cluster; and its hub is not.
    assert (await stage.lease())["spec"]["renewTime"] <= before
    assert await cut_off(stage)
    faulty.is_cut_off = False
    await stage.passes(30)
    assert not await cut_off(stage)
    assert (await stage.lease())["spec"]["renewTime"] > before
    assert (await stage.until("Running", one)).attempt == 1
    assert await stage.pods(one) == 1


async def test_an_agent_that_starts_without_its_cluster_says_so(
    stage: Stage, faulty: FaultyDriver
) -> None:
    await stage.crash()

    def wrap(driver: Driver) -> Driver:
        made = FaultyDriver(driver, stage.clock)
        made.is_cut_off = True
        return made

    stage.wrap = wrap
    await stage.start()
    await stage.passes(1)
    assert await cut_off(stage)
    with pytest.raises(DriverFault):
        await stage.crash()
    stage.wrap = lambda driver: driver
    await stage.start()
    await stage.passes(1)
    assert not await cut_off(stage)


async def test_what_its_hub_then_does_not_hear_is_stopped_once_the_cluster_answers(
    stage: Stage, faulty: FaultyDriver
) -> None:
    """Cut off from both, it stops as soon as it can what it was told not to run in silence."""
    one = work("one", stop_when_silent_seconds=300)
    await stage.put(one)
    await stage.until("Running", one)
    faulty.is_cut_off = True
    await stage.passes(60)
    await stage.reached.go_away()
    await stage.passes(600)
    assert await stage.pods(one) == 1, "it cannot be stopped"
    faulty.is_cut_off = False
    await stage.passes(60)
    assert await stage.pods(one) == 0
    assert await cut_off(stage), "so far as the hub knows, nobody has stopped it"
    stage.reached.is_away = False
    assert (await stage.until("Failed", one)).reason == "HubSilent"
    assert not await cut_off(stage)
