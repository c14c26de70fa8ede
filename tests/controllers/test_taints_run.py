"""Clusters with taints on a whole hub: who leaves, when, and that nothing goes round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.workload import Workload
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Deletion, Write
from fairway.store.keys import CLUSTERS
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_breakers_run import codes_of
from tests.controllers.test_moves_run import FLAVOR, apply, cluster, policy, queue, service

TAINT = {"key": "maintenance", "effect": "NoExecute"}
BEARS = {"key": "maintenance", "operator": "Exists", "tolerationSeconds": 60}


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        yield found


def tolerant(*tolerations: dict[str, Any]) -> dict[str, Any]:
    rules = policy()
    rules["spec"]["tolerations"] = list(tolerations)
    return rules


async def taints_of(fleet: Fleet, name: str) -> list[tuple[str, float | None]]:
    """The taints of a cluster, and how many seconds ago each was added."""
    stored = await fleet.store.get(CLUSTERS, name)
    return [
        (taint.key, taint.time_added and fleet.clock.now() - taint.time_added.timestamp())
        for taint in codec.decode(stored.raw, Cluster).spec.taints
    ]


def is_serving(workload: Workload) -> bool:
    return workload.status.pods.ready == 2


async def test_a_workload_leaves_once_when_its_toleration_ends_and_never_goes_round(
    fleet: Fleet,
) -> None:
    await apply(fleet, FLAVOR, cluster("home", 4), queue(8), tolerant(BEARS), service(2))
    await fleet.until("chat", is_serving, 120)
    await fleet.change_cluster("home", {"spec": {"taints": [TAINT]}})
    await fleet.clock.advance(55)
    assert summary_of(await fleet.workload("chat")) == "home (2)"
    await fleet.clock.advance(600)
    found = await fleet.workload("chat")
    assert [past.reason for past in found.status.history] == ["ClusterTainted"]
    assert (found.status.phase, summary_of(found)) == ("Waiting", "")
    assert "Tainted" in await codes_of(fleet, "chat")


async def test_what_a_taint_evicts_moves_to_a_cluster_without_it(fleet: Fleet) -> None:
    await apply(fleet, FLAVOR, cluster("home", 4), cluster("cloud", 4), queue(8))
    await apply(fleet, tolerant(BEARS), service(2))
    await fleet.until("chat", is_serving, 120)
    await fleet.change_cluster("home", {"spec": {"taints": [TAINT]}})
    await fleet.clock.advance(300)
    found = await fleet.workload("chat")
    assert (summary_of(found), is_serving(found)) == ("cloud (2)", True)
    assert len(found.status.history) == 1


async def test_a_taint_keeps_its_time_when_it_is_written_again(fleet: Fleet) -> None:
    await apply(fleet, cluster("home", 1, taints=[TAINT]))
    await fleet.clock.advance(30)
    await apply(fleet, cluster("home", 1, taints=[TAINT, {"key": "old", "effect": "NoSchedule"}]))
    assert await taints_of(fleet, "home") == [("maintenance", 30), ("old", None)]
    await fleet.change_cluster("home", {"spec": {"taints": [TAINT]}})
    assert await taints_of(fleet, "home") == [("maintenance", 30)]
    await fleet.change_cluster("home", {"spec": {"taints": [{**TAINT, "value": "disk"}]}})
    assert await taints_of(fleet, "home") == [("maintenance", 0)], "another value, another taint"
    given = {**TAINT, "timeAdded": "2020-01-01T00:00:00Z"}
    await fleet.change_cluster("home", {"spec": {"taints": [given]}})
    ((_, ago),) = await taints_of(fleet, "home")
    assert ago is not None
    assert ago > 30, "a time that its writer gives is kept"


async def test_a_taint_that_the_store_did_not_stamp_counts_from_when_the_hub_saw_it(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a kube-apiserver, which stamps nothing."""
    monkeypatch.setattr("fairway.store.embedded.admission.stamp", lambda *_: None)
    await apply(fleet, FLAVOR, cluster("home", 4), queue(8), tolerant(BEARS), service(2))
    await fleet.until("chat", is_serving, 120)
    await fleet.change_cluster("home", {"spec": {"taints": [TAINT]}})
    await fleet.clock.advance(50)
    await fleet.change_cluster("home", {"spec": {"taints": [{**TAINT, "value": ""}]}})
    assert summary_of(await fleet.workload("chat")) == "home (2)"
    await fleet.clock.advance(300)
    found = await fleet.workload("chat")
    assert [past.reason for past in found.status.history] == ["ClusterTainted"]
    assert summary_of(found) == ""
    stored = codec.decode((await fleet.store.get(CLUSTERS, "home")).raw, Cluster)
    assert [taint.key for taint in stored.status.taints] == ["maintenance"]
    await fleet.change_cluster("home", {"spec": {"taints": []}})
    again = await fleet.until("chat", is_serving, 120)
    assert summary_of(again) == "home (2)"
    stored = codec.decode((await fleet.store.get(CLUSTERS, "home")).raw, Cluster)
    assert stored.status.taints == ()


@pytest.mark.parametrize("seconds", [120, 3600])
async def test_an_eviction_that_is_stuck_ends_after_the_time_that_the_fleet_states(
    fleet: Fleet, seconds: int
) -> None:
    settings = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Fleet",
        "metadata": {"name": "fleet"},
        "spec": {"defaults": {"leaveSeconds": seconds}},
    }
    await apply(fleet, settings, FLAVOR, cluster("home", 4), queue(8), policy())
    await apply(fleet, service(2, disruption={"maxUnavailable": 0}))
    await fleet.until("chat", is_serving, 120)
    await fleet.change_cluster("home", {"spec": {"taints": [TAINT]}})
    await fleet.clock.advance(110)
    assert await fleet.pods("home") == 2
    await fleet.clock.advance(600)
    assert await fleet.pods("home") == (0 if seconds == 120 else 2)


async def test_a_cluster_that_is_being_deleted_gets_nothing_new(fleet: Fleet) -> None:
    doomed = cluster("home", 4)
    doomed["metadata"]["finalizers"] = ["example.com/keeps"]
    await apply(fleet, FLAVOR, doomed, queue(8), policy())
    await fleet.clock.advance(5)
    await fleet.store.delete(
        CLUSTERS, "home", how=Deletion(), write=Write(user="ada", manager="test")
    )
    await apply(fleet, service(2))
    await fleet.clock.advance(60)
    assert summary_of(await fleet.workload("chat")) == ""
    assert "Closed" in await codes_of(fleet, "chat")
    await apply(fleet, cluster("cloud", 4))
    assert summary_of(await fleet.until("chat", is_serving, 120)) == "cloud (2)"
