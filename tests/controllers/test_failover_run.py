"""Copies of a service in failover groups, on a whole hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_moves_run import FLAVOR, apply, cluster, counts, policy, queue, service
from tests.controllers.test_unready_run import LIMITS, bad


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        yield found


def pairs() -> dict[str, Any]:
    """Two groups of two clusters; one of each carries a copy."""
    rules = policy()
    groups = [("near", ["cloud", "home"]), ("far", ["north", "south"])]
    rules["spec"] = {
        "division": {"type": "Duplicated"},
        "groups": [
            {"name": name, "selector": {"names": names}, "copies": 1} for name, names in groups
        ],
    }
    return rules


async def test_another_cluster_of_the_group_takes_over_from_one_that_is_lost(
    fleet: Fleet,
) -> None:
    places = [cluster("cloud", 4), cluster("home", 2), cluster("north", 4), cluster("south", 2)]
    soon = {**LIMITS, "spec": {"health": {"lostSeconds": 60}}}
    await apply(fleet, soon, FLAVOR, *places, queue(16), pairs())
    await apply(fleet, service(2, onClusterLost="AllowDuplicate"))
    await fleet.until("chat", lambda item: item.status.pods.ready == 4, 60)
    assert summary_of(await fleet.workload("chat")) == "cloud (2), north (2)"
    await fleet.change_cluster("cloud", {"spec": {"simulated": {"faults": {"outage": True}}}})
    await fleet.until("chat", lambda item: summary_of(item) == "home (2), north (2)", 400)
    await fleet.clock.advance(40)
    assert await counts(fleet, "home") == (2, 2)
    assert await counts(fleet, "south") == (0, 0)
    await fleet.change_cluster("cloud", {"spec": {"simulated": {"faults": {"outage": False}}}})
    await fleet.clock.advance(120)
    assert summary_of(await fleet.workload("chat")) == "home (2), north (2)", "it stays"
    assert await counts(fleet, "cloud") == (0, 0)


async def test_it_takes_over_from_one_where_the_copy_does_not_become_ready(fleet: Fleet) -> None:
    places = [bad("cloud", 4), cluster("home", 2), cluster("north", 4), cluster("south", 2)]
    await apply(fleet, LIMITS, FLAVOR, *places, queue(16), pairs(), service(2))
    await fleet.clock.advance(40)
    assert summary_of(await fleet.workload("chat")) == "cloud (2), north (2)"
    await fleet.until("chat", lambda item: item.status.pods.ready == 4, 240)
    assert summary_of(await fleet.workload("chat")) == "home (2), north (2)"
