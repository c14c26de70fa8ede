"""States of works are what the reports say, put together from whole ones and differences."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairway.clock import VirtualClock
from fairway.controllers.work_states import States
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Write
from fairway.store.keys import REPORTS
from fairway.store.mirrors import Mirror


async def _report(
    store: EmbeddedStore,
    name: str,
    states: dict[str, str],
    *,
    sequence: int,
    since: int | None = None,
    removed: tuple[str, ...] = (),
) -> None:
    spec: dict[str, Any] = {
        "cluster": "c1",
        "agentEpoch": 1,
        "sequence": sequence,
        "chunks": 1,
        "seenAt": "2026-01-01T00:00:00Z",
        "states": [{"work": work, "phase": phase} for work, phase in states.items()],
        "removedWorks": list(removed),
    }
    if since is not None:
        spec["sinceSequence"] = since
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "ClusterReport",
        "metadata": {"name": name},
        "spec": spec,
    }
    await store.patch(REPORTS, name, Patch(type="apply", body=body, force=True), write=Write())


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        pytest.param(1, {"a": "Running", "c": "Pending"}, id="a difference that fits is applied"),
        pytest.param(7, {"a": "Pending", "b": "Pending"}, id="one that does not fit waits"),
    ],
)
async def test_states_are_put_together(
    store: EmbeddedStore, clock: VirtualClock, since: int, expected: dict[str, str]
) -> None:
    mirror = Mirror(store, REPORTS, clock=clock)
    states = States(mirror)
    await _report(store, "c1-0", {"a": "Pending", "b": "Pending"}, sequence=1)
    await _report(
        store,
        "c1-0-difference",
        {"a": "Running", "c": "Pending"},
        sequence=2,
        since=since,
        removed=("b",),
    )
    running = asyncio.ensure_future(mirror.run())
    await clock.advance(1)
    assert {work: state.phase for work, state in states.of_cluster("c1").items()} == expected
    running.cancel()


async def test_only_works_that_changed_are_told(store: EmbeddedStore, clock: VirtualClock) -> None:
    mirror = Mirror(store, REPORTS, clock=clock)
    states = States(mirror)
    told: list[str] = []
    running = asyncio.ensure_future(mirror.run())
    await _report(store, "c1-0", {"a": "Pending", "b": "Pending"}, sequence=1)
    await clock.advance(1)
    states.followers.append(lambda cluster, work: told.append(work))
    await _report(store, "c1-0-difference", {"a": "Running"}, sequence=2, since=1)
    await clock.advance(1)
    await _report(store, "c1-0", {"a": "Running"}, sequence=3)
    await clock.advance(1)
    assert told == ["a", "b"]
    assert states.get("c1", "b") is None
    running.cancel()
