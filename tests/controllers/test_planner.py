"""The planner's process answers each who asks, whatever becomes of those who asked before."""

from __future__ import annotations

import asyncio
import io
import pickle
import struct
from pathlib import Path

import pytest

from fairway.clock import VirtualClock
from fairway.controllers.scheduling.planner import PlannerFault, ProcessPlanner
from fairway.controllers.scheduling.planner_process import serve
from fairway.controllers.scheduling.planning import Fed, Planned, Planning
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import running
from tests.controllers.test_running import FLEET, job

NOW = 1_800_000_000.0


async def test_who_is_cancelled_while_asking_leaves_no_answer_for_the_next() -> None:
    planner = ProcessPlanner()
    try:
        await planner.standings(NOW)
        for _ in range(5):
            asking = asyncio.ensure_future(planner.standings(NOW))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            asking.cancel()
            assert isinstance(await planner.plan(NOW, 10), Planned)
    finally:
        await planner.close()


async def test_a_fault_in_the_process_is_told_with_its_place_and_the_process_lives_on() -> None:
    planner = ProcessPlanner()
    try:
        with pytest.raises(PlannerFault, match="in feed"):
            await planner.feed([Fed(b"not JSON")])
        assert await planner.explain("default/none", NOW) is None
    finally:
        await planner.close()


def test_a_fault_that_cannot_be_sent_is_told_as_text() -> None:
    class Broken(Planning):
        def look_again(self) -> None:
            raise Unsendable(1, 2)

    body = pickle.dumps(("look_again", ()))
    calls = io.BytesIO(struct.pack("<I", len(body)) + body)
    answers = io.BytesIO()
    serve(calls, answers, Broken())
    is_fault, text = pickle.loads(answers.getvalue()[4:])
    assert is_fault
    assert "Unsendable" in text


class Unsendable(Exception):
    """One that pickle writes and cannot read."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


async def test_who_asks_is_not_told_the_names_of_workloads_in_other_namespaces(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    theirs = job("secret-project", pods=2).replace("namespace: default", "namespace: theirs")
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: theirs}\n"
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(f"{FLEET}---\n{namespace}---\n{theirs}")
        await clock.advance(30)
        await fleet.apply(job("train", pods=2))
        await clock.advance(1)
        found = await fleet.plane.explain("default", "train")
        assert found is not None
        assert found["state"] == "Waits"
        assert "secret-project" not in str(found)
        assert "another namespace" in found["expected"]["because"]
