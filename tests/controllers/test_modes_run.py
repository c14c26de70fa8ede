"""Clusters that are only observed or shadowed: nothing is placed there; one sees what would be."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.meta import Condition
from fairway.clock import VirtualClock
from fairway.controllers.shadow import DIFFERS
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey, Selection
from fairway.store.keys import CLUSTERS
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_breakers_run import codes_of
from tests.controllers.test_running import ELSEWHERE, FLEET, job

EVENTS = ResourceKey("", "v1", "events")


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET + "---\n" + ELSEWHERE)
        await clock.advance(1)
        yield found


async def differs(fleet: Fleet, name: str) -> Condition | None:
    stored = await fleet.store.get(CLUSTERS, name)
    conditions = codec.decode(stored.raw, Cluster).status.conditions
    return next((condition for condition in conditions if condition.type == DIFFERS), None)


@pytest.mark.parametrize("mode", ["Observe", "Shadow"])
async def test_nothing_is_placed_in_a_cluster_that_is_not_managed(fleet: Fleet, mode: str) -> None:
    await fleet.change_cluster("hangzhou", {"spec": {"mode": mode}})
    await fleet.apply("---\n".join(job(f"job-{at}", seconds=600) for at in range(3)))
    await fleet.clock.advance(60)
    placed = [summary_of(await fleet.workload(f"job-{at}")) for at in range(3)]
    assert sorted(placed) == ["", "shanghai", "shanghai"]
    assert await fleet.pods("hangzhou") == 0
    waits = f"job-{placed.index('')}"
    assert "Closed" in await codes_of(fleet, waits)


async def test_a_shadowed_cluster_says_who_would_run_there(fleet: Fleet) -> None:
    await fleet.change_cluster("hangzhou", {"spec": {"mode": "Shadow"}})
    await fleet.apply(job("first", pods=2, seconds=600))
    await fleet.until("first", "Running", 30)
    await fleet.apply(job("second", seconds=600))
    await fleet.clock.advance(60)
    assert await fleet.phase("second") == "Waiting"
    told = await differs(fleet, "hangzhou")
    assert told is not None
    assert (told.status, told.message) == ("True", "1 that wait would run here")
    events = await fleet.store.list(EVENTS, Selection(namespace="default"))
    notes = [item.object() for item in events.items]
    assert [
        (note["involvedObject"]["name"], note["message"])
        for note in notes
        if note["reason"] == "WouldRun"
    ] == [("second", "it would run in hangzhou, if that cluster were managed")]


async def test_a_cluster_that_is_handed_over_takes_what_it_would_have_taken(fleet: Fleet) -> None:
    await fleet.change_cluster("hangzhou", {"spec": {"mode": "Shadow"}})
    await fleet.apply(job("first", pods=2, seconds=600))
    await fleet.until("first", "Running", 30)
    await fleet.apply(job("second", seconds=600))
    await fleet.clock.advance(60)
    await fleet.change_cluster("hangzhou", {"spec": {"mode": "Manage"}})
    started = await fleet.until("second", "Running", 60)
    assert summary_of(started) == "hangzhou"
    await fleet.clock.advance(60)
    assert await differs(fleet, "hangzhou") is None
