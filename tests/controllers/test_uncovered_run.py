"""Queues that an earlier version stored keep what they did not limit; new ones refuse it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.api.meta import JsonObject
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Write
from fairway.store.keys import EVENTS, QUEUES
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import FLEET, job

OLD = """
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: NAME}
spec: {SPEC}
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def stored(fleet: Fleet, name: str) -> JsonObject:
    return (await fleet.store.get(QUEUES, name)).object()


async def seen_before(fleet: Fleet, name: str, spec: str) -> None:
    """A queue as a hub of an earlier version left it."""
    await fleet.apply(OLD.replace("NAME", name).replace("SPEC", spec))
    body = await stored(fleet, name)
    body["status"] = {"observedGeneration": 1}
    await fleet.store.update(QUEUES, body, subresource="status", write=Write(user="root"))


async def test_a_stored_queue_is_told_once_to_say_what_it_did(
    fleet: Fleet, clock: VirtualClock
) -> None:
    await seen_before(fleet, "old", "")
    await seen_before(fleet, "below", "parent: old")
    await clock.advance(30)
    old, below = await stored(fleet, "old"), await stored(fleet, "below")
    assert old["spec"]["uncovered"] == "Unlimited"
    assert old["status"]["uncovered"] == "Unlimited"
    assert "uncovered" not in below["spec"], "it follows the queue above it"
    assert below["status"]["uncovered"] == "Unlimited"
    events = [event.object() for event in (await fleet.store.list(EVENTS)).items]
    warned = [
        event["involvedObject"]["name"]
        for event in events
        if event["reason"] == "UncoveredIsUnlimited"
    ]
    assert warned == ["old"]


async def test_a_new_queue_refuses_what_it_does_not_name(fleet: Fleet, clock: VirtualClock) -> None:
    await fleet.apply(OLD.replace("NAME", "new").replace("SPEC", ""))
    await clock.advance(30)
    new = await stored(fleet, "new")
    assert "uncovered" not in new["spec"]
    assert new["status"]["uncovered"] == "Unavailable"
    await fleet.apply(job("train").replace("queue: research", "queue: new"))
    waiting = await fleet.until("train", lambda item: bool(item.status.reason), 30)
    assert waiting.status.reason == "NotCovered"
