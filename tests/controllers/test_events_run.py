"""Events on workloads: one for each turn of their lives, on a whole hub on virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairway.clock import VirtualClock
from fairway.controllers import object_events
from fairway.controllers.object_events import Notes
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import EVERYTHING
from fairway.store.keys import EVENTS
from tests.controllers import test_moves_run as moves
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_events import status, workload
from tests.controllers.test_running import FLEET, job

THEIRS = "apiVersion: v1\nkind: Namespace\nmetadata: {name: theirs}\n---\n"


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def events_on(store: EmbeddedStore, name: str) -> list[dict[str, Any]]:
    """The events on a workload, in the order in which they were written."""
    events = [item.object() for item in (await store.list(EVENTS, EVERYTHING)).items]
    mine = [event for event in events if event["involvedObject"]["name"] == name]
    return sorted(mine, key=lambda event: int(event["metadata"]["resourceVersion"]))


async def told(fleet: Fleet, name: str) -> list[str]:
    """The events on a workload, a line for each; warnings are marked."""
    await fleet.clock.advance(1)
    return [
        f"{'! ' if event['type'] == 'Warning' else ''}{event['reason']}: {event['message']}"
        for event in await events_on(fleet.store, name)
    ]


async def test_one_that_waits_and_runs_is_told_from_its_queue_to_its_end(fleet: Fleet) -> None:
    await fleet.apply(job("first", pods=2, seconds=60))
    await fleet.until("first", "Running", 30)
    await fleet.apply(job("second", seconds=30))
    await fleet.until("second", "Succeeded", 300)
    assert await told(fleet, "second") == [
        "Queued: Pending in queue research: DoesNotFit",
        "Admitted: Attempt 1 starts in hangzhou",
        "Started: Attempt 1 runs in hangzhou",
        "Succeeded: Attempt 1 in hangzhou succeeded",
    ]


async def test_an_event_says_when_it_happened_and_to_what(fleet: Fleet) -> None:
    await fleet.apply(job("train", seconds=60))
    started = await fleet.until("train", "Running", 30)
    await fleet.clock.advance(5)
    _, event = await events_on(fleet.store, "train")
    assert event["involvedObject"] == {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "name": "train",
        "namespace": "default",
        "uid": started.metadata.uid,
    }
    assert event["source"] == {"component": "fairway"}
    assert started.status.started_at is not None
    began = started.status.started_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert event["firstTimestamp"] == event["lastTimestamp"] == began


async def test_one_that_is_preempted_is_told_for_whom_and_that_it_waits_again(
    fleet: Fleet,
) -> None:
    await fleet.apply(job("victim", pods=2, seconds=600))
    await fleet.until("victim", "Running", 30)
    await fleet.apply(job("urgent", pods=2, priority=10, seconds=60))
    await fleet.until("urgent", "Running", 60)
    await fleet.change("victim", {"spec": {"cancelled": True}})
    await fleet.until("victim", "Cancelled", 60)
    assert (await told(fleet, "victim"))[2:] == [
        (
            "Preempted: Attempt 1 in hangzhou was preempted for default/urgent, which comes first"
            " in research"
        ),
        (
            "Requeued: Pending again in queue research after attempt 1 in hangzhou: preempted for"
            " default/urgent, which comes first in research"
        ),
        "Cancelled: It was cancelled",
    ]
    assert (await told(fleet, "urgent"))[0] == (
        "Admitted: Attempt 1 starts in hangzhou as soon as what it preempts is gone"
    )


async def test_a_workload_of_another_namespace_is_not_named(fleet: Fleet) -> None:
    victim = job("victim", pods=2, seconds=600).replace("namespace: default", "namespace: theirs")
    await fleet.apply(f"{THEIRS}{victim}")
    await fleet.clock.advance(30)
    await fleet.apply(job("urgent", pods=2, priority=10, seconds=60))
    await fleet.until("urgent", "Running", 60)
    lines = await told(fleet, "victim")
    assert lines[2] == (
        "Preempted: Attempt 1 in hangzhou was preempted for a workload of another team, which comes"
        " first in research"
    )
    assert "urgent" not in str(lines)


async def test_one_that_is_held_while_it_runs_is_told_until_it_goes_on(fleet: Fleet) -> None:
    await fleet.apply(job("train", seconds=600))
    await fleet.until("train", "Running", 30)
    await fleet.change("train", {"spec": {"hold": "HoldAndDrain"}})
    await fleet.until("train", "Held", 60)
    await fleet.change("train", {"spec": {"hold": "None"}})
    await fleet.until("train", "Running", 60)
    assert (await told(fleet, "train"))[2:] == [
        "Stopping: Attempt 1 in hangzhou ends: it was held while it ran",
        "Held: It is held",
        "Queued: Pending in queue research: no longer held",
        "Admitted: Attempt 2 starts in hangzhou",
        "Started: Attempt 2 runs in hangzhou",
    ]


async def test_a_drained_cluster_is_the_reason_why_one_waits_and_moves(fleet: Fleet) -> None:
    shanghai = FLEET.split("---")[2].replace("hangzhou", "shanghai")
    await fleet.apply(job("train", pods=2, seconds=600))
    await fleet.until("train", "Running", 30)
    await fleet.apply(shanghai)
    await fleet.change_cluster("hangzhou", {"spec": {"hold": "HoldAndDrain"}})
    await fleet.until(
        "train", lambda item: item.status.phase == "Running" and item.status.history != (), 120
    )
    assert (await told(fleet, "train"))[2:] == [
        "Stopping: Attempt 1 in hangzhou ends: hangzhou is drained",
        (
            "Requeued: Pending again in queue research after attempt 1 in hangzhou: hangzhou is"
            " drained"
        ),
        "Admitted: Attempt 2 starts in shanghai",
        "Started: Attempt 2 runs in shanghai",
    ]


async def test_a_program_that_fails_for_good_is_a_warning(fleet: Fleet) -> None:
    faults = {"podFailuresPerHour": 100_000}
    await fleet.change_cluster("hangzhou", {"spec": {"simulated": {"faults": faults}}})
    await fleet.apply(
        job("train", seconds=600).replace("spec:\n", "spec:\n  retry: {limit: 0}\n", 1)
    )
    await fleet.until("train", "Failed", 120)
    lines = await told(fleet, "train")
    assert lines[-1].startswith("! Failed: Attempt 1 in hangzhou failed: "), lines


async def test_replicas_that_come_home_are_told_with_where_they_are(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await moves.begin_away(fleet, 16, moves.service(4))
        await fleet.change_cluster("home", {"spec": {"hold": "None"}})
        await moves.watch(fleet, 300)
        assert await told(fleet, "chat") == [
            "Admitted: Attempt 1 starts in cloud (4)",
            "Started: Attempt 1 runs in cloud (4)",
            "Moved: Now in cloud (3), home (1): there is room in home again",
            "Moved: Now in home (4): there is room in home again",
        ]


async def test_the_batches_of_a_sweep_are_no_turns_of_its_life(fleet: Fleet) -> None:
    spec = "  mode: Independent\n  tasks: {count: 6}\n"
    await fleet.apply(job("sweep", seconds=20).replace("spec:\n", f"spec:\n{spec}", 1))
    await fleet.until("sweep", "Succeeded", 600)
    reasons = [line.partition(":")[0] for line in await told(fleet, "sweep")]
    assert reasons == ["Admitted", "Started", "Succeeded"]


# Bounds.


async def test_events_are_written_at_a_limited_rate_and_past_a_number_dropped(
    store: EmbeddedStore, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    notes = Notes(store, clock)
    many = int(object_events._WAITING_MOST) + 50
    for number in range(many):
        before = workload(name=f"w{number:04d}", namespace="default")
        notes.tell(before, status("Waiting", queue="research"))
    task = asyncio.ensure_future(notes.run())
    try:
        for _ in range(100):
            await clock.advance(0)
        assert len((await store.list(EVENTS, EVERYTHING)).items) == 101
        await clock.advance(30)
        assert len((await store.list(EVENTS, EVERYTHING)).items) == pytest.approx(400, abs=2)
        await clock.advance(100)
        assert len((await store.list(EVENTS, EVERYTHING)).items) == object_events._WAITING_MOST
        assert "50 events on workloads were too many, and dropped" in caplog.text
    finally:
        task.cancel()
