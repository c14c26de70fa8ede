"""Replicas and gangs that have a node and do not become ready, on a whole hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_moves_run import (
    FLAVOR,
    GPU,
    apply,
    cluster,
    counts,
    policy,
    queue,
    service,
)

LIMITS = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "Fleet",
    "metadata": {"name": "fleet"},
    "spec": {"defaults": {"readySeconds": 60}},
}
BAD = {"faults": {"badImages": ["serving"]}}


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await apply(found, LIMITS, FLAVOR, queue(16), policy(enabled=False))
        yield found


def bad(name: str, gpus: int) -> dict[str, Any]:
    """A cluster in which no pod becomes ready."""
    made = cluster(name, gpus)
    made["spec"]["simulated"] |= BAD
    return made


async def test_replicas_that_are_ready_elsewhere_leave_a_cluster_where_none_is(
    fleet: Fleet,
) -> None:
    await apply(fleet, bad("home", 2), cluster("cloud", 6), service(4))
    await fleet.until("chat", lambda item: item.status.pods.ready == 2, 60)
    assert summary_of(await fleet.workload("chat")) == "cloud (2), home (2)"
    await fleet.until("chat", lambda item: item.status.pods.ready == 4, 200)
    assert summary_of(await fleet.workload("chat")) == "cloud (4)"
    await fleet.clock.advance(120)
    assert await counts(fleet, "home") == (0, 0)
    assert await counts(fleet, "cloud") == (4, 4)


async def test_only_those_leave_that_are_not_ready(fleet: Fleet) -> None:
    await apply(fleet, cluster("home", 4), cluster("cloud", 6), service(2))
    await fleet.until("chat", lambda item: item.status.pods.ready == 2, 60)
    await fleet.change_cluster("home", {"spec": {"simulated": BAD}})
    await fleet.change("chat", {"spec": {"replicas": 4}})
    await fleet.clock.advance(60)
    assert await counts(fleet, "home") == (2, 4)
    for _ in range(120):
        await fleet.clock.advance(1)
        assert (await counts(fleet, "home"))[0] == 2, "those that are ready keep running"
    assert summary_of(await fleet.workload("chat")) == "cloud (2), home (2)"
    assert await counts(fleet, "cloud") == (2, 2)


async def test_a_program_that_is_ready_nowhere_tries_a_second_cluster_and_stays_there(
    fleet: Fleet,
) -> None:
    await apply(fleet, bad("home", 4), bad("cloud", 6), bad("far", 6), service(4))
    await fleet.clock.advance(500)
    chat = await fleet.workload("chat")
    assert [past.reason for past in chat.status.history] == ["NotReadyInTime"]
    assert summary_of(chat) == "cloud (4)"


def training(name: str, **gang: Any) -> dict[str, Any]:
    """A gang of two pods."""
    container = {"name": "main", "image": "serving", "resources": {"limits": {GPU: 1}}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": 2, "completions": 2, "template": {"spec": pod}},
    }
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queue": "serving", "gang": gang, "template": {"manifests": [manifest]}},
    }


async def test_a_gang_may_say_in_how_many_seconds_it_must_be_ready(fleet: Fleet) -> None:
    await apply(fleet, bad("home", 6), training("hasty", readySeconds=20), training("usual"))
    await apply(fleet, training("patient", readySeconds=200))

    async def late() -> list[str]:
        workloads = [await fleet.workload(name) for name in ("hasty", "usual", "patient")]
        return [
            workload.metadata.name
            for workload in workloads
            if any(past.reason == "NotReadyInTime" for past in workload.status.history)
        ]

    await fleet.clock.advance(10)
    assert await late() == []
    await fleet.clock.advance(30)
    assert await late() == ["hasty"]
    await fleet.clock.advance(60)
    assert await late() == ["hasty", "usual"], "the fleet gives a minute"
