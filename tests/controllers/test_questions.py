"""Questions asked of a hub that is starting, ending, or begins anew: told to ask again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairway.api.errors import Unavailable
from fairway.clock import VirtualClock
from fairway.controllers.plane import ControlPlane, PlaneOptions
from fairway.controllers.scheduling.planner import InlinePlanner, PlannerFault
from fairway.controllers.scheduling.planner_state import Fed
from fairway.controllers.scheduling.questions import Question, Standings, T
from fairway.controllers.terms import Settings
from fairway.kinds.registry import built_in
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import running
from tests.controllers.test_running import FLEET, job


async def test_who_asks_before_everything_was_read_is_told_to_ask_again(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    options = PlaneOptions(terms=Settings(identity="hub", takes_over_at_once=True), secret=b"")
    plane = ControlPlane(store=store, clock=clock, kinds=built_in(), options=options)
    with pytest.raises(Unavailable) as refused:
        await plane.standing()
    assert refused.value.details == {"retryAfterSeconds": 1}
    with pytest.raises(Unavailable):
        await plane.explain("default", "train")
    await plane.close()


async def test_who_asks_a_hub_that_has_ended_is_told_to_ask_again(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await clock.advance(1)
        assert (await fleet.plane.standing())["queues"]
    with pytest.raises(Unavailable) as refused:
        await fleet.plane.standing()
    assert refused.value.details == {"retryAfterSeconds": 1}


class Failing(InlinePlanner):
    """Fails at one question, as a planner with a bug would."""

    fails = False

    async def ask(self, question: Question[T], now: float) -> T:
        if Failing.fails and isinstance(question, Standings):
            raise PlannerFault("in standings")
        return await super().ask(question, now)


async def test_a_planner_that_fails_to_answer_is_replaced_and_the_next_is_answered(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path, make_planner=Failing) as fleet:
        await fleet.apply(FLEET)
        await clock.advance(1)
        Failing.fails = True
        with pytest.raises(Unavailable):
            await fleet.plane.standing()
        Failing.fails = False
        await clock.advance(1)
        assert [queue["queue"] for queue in (await fleet.plane.standing())["queues"]] == [
            "research"
        ]


class Slow(InlinePlanner):
    """Takes a while for what it is fed."""

    clock: VirtualClock

    async def feed(self, events: Sequence[Fed]) -> None:
        await Slow.clock.sleep(1)
        await super().feed(events)


async def test_nobody_is_answered_by_a_planner_that_does_not_know_everything_yet(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    Slow.clock = clock
    async with running(store, clock, tmp_path, make_planner=Slow) as fleet:
        await fleet.apply(FLEET + "---" + job("train", gpus=8, pods=9))
        await clock.advance(60)
        beginning = asyncio.ensure_future(fleet.plane.scheduler._restart())
        await clock.advance(0.5)
        asking = asyncio.ensure_future(fleet.plane.explain("default", "train"))
        await clock.advance(30)
        found = await asking
        assert found is not None
        assert found["state"] != "Runs"
        await beginning
