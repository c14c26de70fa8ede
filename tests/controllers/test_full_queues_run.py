"""A queue with a maximum of pending workloads, as others start."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.api.errors import Forbidden
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Write
from fairway.store.keys import NAMESPACES, QUEUES
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import FLEET, job


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def allow(fleet: Fleet, most: int | None) -> None:
    patch = Patch(type="merge", body={"spec": {"waitingWorkloadsMax": most}})
    await fleet.store.patch(QUEUES, "research", patch, write=Write(user="root"))


async def test_a_workload_gets_a_place_when_another_has_started(fleet: Fleet) -> None:
    await allow(fleet, 1)
    await fleet.apply(job("first", pods=2, seconds=300))
    await fleet.until("first", "Running")
    await fleet.apply(job("second", pods=2, seconds=300))
    with pytest.raises(Forbidden, match="maximum of 1 pending workloads"):
        await fleet.apply(job("third", pods=2))
    await fleet.until("second", "Running", 600)
    await fleet.apply(job("third", pods=2))


async def test_a_lower_maximum_leaves_the_latest_without_a_place_until_there_is_one(
    fleet: Fleet,
) -> None:
    await fleet.apply(job("runs", pods=2, seconds=300))
    await fleet.until("runs", "Running")
    for name in ("first", "second"):
        await fleet.apply(job(name, pods=1, seconds=60))
        await fleet.clock.advance(1)
    await allow(fleet, 1)
    await fleet.until("second", lambda item: item.status.reason == "QueueFull", 60)
    told = await fleet.plane.explain("default", "second")
    assert told is not None
    assert "queue research already has its maximum of 1 pending workload" in told["message"]
    await fleet.until("runs", "Succeeded", 600)
    # Both fit; the second follows at once, since the first has left its place.
    await fleet.until("first", "Running", 30)
    await fleet.until("second", "Running", 2)


async def test_a_workload_without_a_queue_waits_in_the_default_queue_of_its_namespace(
    fleet: Fleet,
) -> None:
    label = {"metadata": {"labels": {"fairway.dev/default-queue": "research"}}}
    await fleet.store.patch(
        NAMESPACES, "default", Patch(type="merge", body=label), write=Write(user="root")
    )
    await fleet.apply(job("train").replace("queue: research", 'queue: ""'))
    started = await fleet.until("train", "Running", 30)
    assert started.status.claim is not None
    assert started.status.claim.queue == "research"
