"""A hub that was restored, or is empty, runs nothing twice: its agents know what runs."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from fairway.agent.drivers.simulated.driver import Worlds
from fairway.api.amounts import Quantity
from fairway.api.errors import Unavailable
from fairway.api.meta import JsonObject
from fairway.api.names import ADOPTED, work_namespace
from fairway.api.workload import Workload
from fairway.app import prepare_store
from fairway.clock import VirtualClock
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import EVERYTHING, Patch, ResourceKey, Stored, Write
from fairway.store.keys import CLUSTERS as CLUSTER_KIND
from fairway.store.keys import REPORTS, WORKLOADS, WORKS
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_running import ELSEWHERE, FLEET, job
from tests.store.backups import back_up as lines_of
from tests.store.backups import restore

CLUSTERS = ("hangzhou", "shanghai")
GPU = "nvidia.com/gpu"
# A cluster whose agent was heard once; nobody looks after it from here.
FAR = """
---
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: far}
spec: {kubernetes: {kubeconfig: {namespace: default, name: far, key: config}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: fairway-cluster-far}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: fairway-agent, namespace: fairway-cluster-far}
spec: {holderIdentity: far/1}
"""


@asynccontextmanager
async def opened(path: Path, clock: VirtualClock) -> AsyncIterator[EmbeddedStore]:
    store = EmbeddedStore(SqliteJournal(path, is_inline=True), standard_catalogue(), clock=clock)
    store.start()
    await prepare_store(store)
    try:
        yield store
    finally:
        await store.close()


async def back_up(store: EmbeddedStore, folder: Path) -> None:
    """Restores the store as it is now in another folder, by the code of the commands."""
    await restore(await lines_of(store), folder)


class Starts:
    """Every start of a pod of the workload, in whatever cluster."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds
        self.found: set[tuple[str, str, float]] = set()

    def look(self) -> None:
        for cluster in CLUSTERS:
            for pod in self._worlds.world(cluster).pods("default.train") or ():
                if pod.started_at is not None:
                    self.found.add((cluster, pod.name, pod.started_at))

    async def until_succeeded(self, fleet: Fleet) -> None:
        def look(found: object) -> bool:
            self.look()
            return found.status.phase == "Succeeded"  # type: ignore[attr-defined]  # a workload

        await fleet.until("train", look, 900)


async def test_a_hub_restored_from_before_the_claim_takes_over_what_runs(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    folder = tmp_path / "clusters"
    async with running(store, clock, folder) as first:
        await first.apply(FLEET + "---\n" + ELSEWHERE)
        await clock.advance(20)
        await first.change_cluster("shanghai", {"spec": {"hold": "Hold"}})
        await first.change_cluster("hangzhou", {"spec": {"hold": "Hold"}})
        await first.apply(job("train", seconds=300))
        await clock.advance(5)
        await back_up(store, tmp_path / "backup")
        await first.change_cluster("hangzhou", {"spec": {"hold": "None"}})
        started = await first.until("train", "Running", 30)
        assert summary_of(started) == "hangzhou"
        starts = Starts(first.worlds)
        starts.look()
    async with (
        opened(tmp_path / "backup" / "fairway.db", clock) as restored,
        running(restored, clock, folder, worlds=first.worlds) as again,
    ):
        # As far as this hub knows the workload waits, and now there is room everywhere.
        assert (await again.workload("train")).status.claim is None
        for name in CLUSTERS:
            await again.change_cluster(name, {"spec": {"hold": "None"}})
        taken_over = await again.until("train", "Running", 60)
        assert summary_of(taken_over) == "hangzhou"
        await starts.until_succeeded(again)
    assert len(starts.found) == 1


async def test_a_hub_restored_from_before_a_move_does_not_send_the_workload_back(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    folder = tmp_path / "clusters"
    async with running(store, clock, folder) as first:
        await first.apply(FLEET + "---\n" + ELSEWHERE)
        await clock.advance(20)
        await first.change_cluster("shanghai", {"spec": {"hold": "Hold"}})
        await first.apply(job("train", seconds=300))
        assert summary_of(await first.until("train", "Running", 30)) == "hangzhou"
        await back_up(store, tmp_path / "backup")
        await first.change_cluster("shanghai", {"spec": {"hold": "None"}})
        await first.change_cluster("hangzhou", {"spec": {"hold": "HoldAndDrain"}})

        def has_moved(found: Workload) -> bool:
            return found.status.phase == "Running" and summary_of(found) == "shanghai"

        moved = await first.until("train", has_moved, 120)
        starts = Starts(first.worlds)
        starts.look()
        assert {cluster for cluster, *_ in starts.found} == {"shanghai"}
    async with (
        opened(tmp_path / "backup" / "fairway.db", clock) as restored,
        running(restored, clock, folder, worlds=first.worlds) as again,
    ):
        assert summary_of(await again.workload("train")) == "hangzhou"
        taken_over = await again.until("train", has_moved, 60)
        before, after = moved.status.claim, taken_over.status.claim
        assert before is not None
        assert after is not None
        assert (after.attempt, after.placements) == (before.attempt, before.placements)
        await starts.until_succeeded(again)
        left = await restored.list(WORKS)
        assert {item.object()["spec"]["cluster"] for item in left.items} == {"shanghai"}
    assert len(starts.found) == 1


async def test_a_hub_that_never_heard_of_a_workload_takes_it_over_once_it_is_submitted_again(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    folder = tmp_path / "clusters"
    async with running(store, clock, folder) as first:
        await first.apply(FLEET + "---\n" + ELSEWHERE)
        await clock.advance(20)
        await back_up(store, tmp_path / "backup")
        await first.apply(job("train", seconds=300))
        started = await first.until("train", "Running", 30)
        starts = Starts(first.worlds)
        starts.look()
    async with (
        opened(tmp_path / "backup" / "fairway.db", clock) as restored,
        running(restored, clock, folder, worlds=first.worlds) as again,
    ):
        await again.apply(job("train", seconds=300))
        taken_over = await again.until("train", "Running", 60)
        assert summary_of(taken_over) == summary_of(started)
        await starts.until_succeeded(again)
    assert len(starts.found) == 1


async def test_a_larger_workload_of_that_name_is_decided_anew_once_what_runs_has_stopped(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    folder = tmp_path / "clusters"
    async with running(store, clock, folder) as first:
        await first.apply(FLEET)
        await clock.advance(20)
        await back_up(store, tmp_path / "backup")
        await first.apply(job("train", gpus=1, seconds=900))
        await first.until("train", "Running", 30)
    async with (
        opened(tmp_path / "backup" / "fairway.db", clock) as restored,
        running(restored, clock, folder, worlds=first.worlds) as again,
    ):
        await again.apply(job("train", gpus=4, seconds=900))
        taken = await again.until("train", "Running", 90)
        assert taken.status.claim is not None
        (placement,) = taken.status.claim.placements
        assert placement.pod_sets[0].requests == {GPU: Quantity.of(4)}
        assert await again.pods(placement.cluster) == 1


class SlowReturns:
    """A store that takes objects of one kind from agents only after a while."""

    def __init__(
        self, store: EmbeddedStore, clock: VirtualClock, kind: ResourceKey, seconds: float
    ) -> None:
        self._store = store
        self._clock = clock
        self._kind = kind
        self._opens_at = clock.now() + seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _refuse(self, kind: ResourceKey, write: Write) -> None:
        if kind == self._kind and "agent" in write.user and self._clock.now() < self._opens_at:
            raise Unavailable("too much comes back at once")

    async def create(self, kind: ResourceKey, body: JsonObject, **more: Any) -> Stored:
        self._refuse(kind, more["write"])
        return await self._store.create(kind, body, **more)

    async def update(self, kind: ResourceKey, body: JsonObject, **more: Any) -> Stored:
        self._refuse(kind, more["write"])
        return await self._store.update(kind, body, **more)

    async def patch(self, kind: ResourceKey, name: str, patch: Patch, **more: Any) -> Any:
        self._refuse(kind, more["write"])
        return await self._store.patch(kind, name, patch, **more)


@pytest.mark.parametrize(
    ("late", "seconds"), [(WORKS, 20), (REPORTS, 60)], ids=["works", "reports"]
)
async def test_a_restored_hub_plans_once_agents_have_brought_back_what_they_report(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, late: ResourceKey, seconds: int
) -> None:
    folder = tmp_path / "clusters"
    async with running(store, clock, folder) as first:
        await first.apply(FLEET + "---\n" + ELSEWHERE)
        await clock.advance(20)
        for name in CLUSTERS:
            await first.change_cluster(name, {"spec": {"hold": "Hold"}})
        await first.apply(job("train", seconds=30))
        await clock.advance(5)
        await back_up(store, tmp_path / "backup")
        await first.change_cluster("hangzhou", {"spec": {"hold": "None"}})
        await first.until("train", "Running", 30)
        starts = Starts(first.worlds)
        await starts.until_succeeded(first)
    async with opened(tmp_path / "backup" / "fairway.db", clock) as restored:
        slow: Any = SlowReturns(restored, clock, late, seconds)
        async with running(slow, clock, folder, worlds=first.worlds) as again:
            for name in CLUSTERS:
                await again.change_cluster(name, {"spec": {"hold": "None"}})
            await again.apply(job("other"))
            await clock.advance(seconds - 5)
            assert (await again.workload("other")).status.claim is None
            await starts.until_succeeded(again)
            await again.until("other", "Running", 30)
    assert len(starts.found) == 1


async def put_in_the_place(store: EmbeddedStore, cluster: str) -> None:
    """A work that a member makes up, where the workload is yet to run."""
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Work",
        "metadata": {"name": "default.train", "labels": {ADOPTED: "true"}},
        "spec": {
            "cluster": cluster,
            "workload": {"namespace": "default", "name": "train"},
            "attempt": 99,
            "term": 1,
            "manifests": [],
        },
    }
    await store.create(WORKS, body, namespace=work_namespace(cluster), write=Write(user="agent"))


@pytest.mark.parametrize("seconds", [300, 5], ids=["what runs", "what has ended"])
async def test_a_made_up_work_in_the_backup_does_not_keep_an_agent_from_bringing_back(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, seconds: int
) -> None:
    folder = tmp_path / "clusters"
    async with running(store, clock, folder) as first:
        await first.apply(FLEET + "---\n" + ELSEWHERE)
        await clock.advance(20)
        for name in CLUSTERS:
            await first.change_cluster(name, {"spec": {"hold": "Hold"}})
        await first.apply(job("train", seconds=seconds))
        await clock.advance(5)
        await put_in_the_place(store, "hangzhou")
        await back_up(store, tmp_path / "backup")
        await first.change_cluster("hangzhou", {"spec": {"hold": "None"}})
        await first.until("train", "Running", 30)
        starts = Starts(first.worlds)
        starts.look()
        await clock.advance(20)
    async with (
        opened(tmp_path / "backup" / "fairway.db", clock) as restored,
        running(restored, clock, folder, worlds=first.worlds) as again,
    ):
        await again.change_cluster("shanghai", {"spec": {"hold": "None"}})
        await starts.until_succeeded(again)
    assert {cluster for cluster, *_ in starts.found} == {"hangzhou"}
    assert len(starts.found) == 1


async def test_a_workload_deleted_on_a_restored_hub_is_stopped_where_it_runs(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    folder = tmp_path / "clusters"
    async with running(store, clock, folder) as first:
        await first.apply(FLEET)
        await clock.advance(20)
        await first.change_cluster("hangzhou", {"spec": {"hold": "Hold"}})
        await first.apply(job("train", seconds=3_600))
        await clock.advance(5)
        await back_up(store, tmp_path / "backup")
        await first.change_cluster("hangzhou", {"spec": {"hold": "None"}})
        await first.until("train", "Running", 30)
    async with (
        opened(tmp_path / "backup" / "fairway.db", clock) as restored,
        running(restored, clock, folder, worlds=first.worlds) as again,
    ):
        # As far as this hub knows the workload waits, and nothing is to be stopped.
        await restored.delete(WORKLOADS, "train", namespace="default", write=Write())
        while (await restored.list(WORKLOADS)).items:
            await clock.advance(0.25)
        assert await again.pods("hangzhou") == 0
        await clock.advance(5)
        assert (await restored.list(WORKS)).items == []


async def test_a_cluster_that_stays_silent_holds_up_a_start_no_longer_than_it_counts_as_well(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as first:
        await first.apply(FLEET + FAR)
        await clock.advance(20)
    well = Patch(type="merge", body={"status": {"phase": "Ready"}})
    await store.patch(CLUSTER_KIND, "far", well, subresource="status", write=Write())
    async with running(store, clock, tmp_path / "clusters", worlds=first.worlds) as again:
        await again.apply(job("train"))
        await clock.advance(30)
        assert (await again.workload("train")).status.claim is None
        await again.until("train", "Running", 30)


async def test_a_restored_hub_stops_what_runs_though_its_agents_know_of_later_terms(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    folder = tmp_path / "clusters"
    async with running(store, clock, folder) as first:
        await first.apply(FLEET)
        await clock.advance(20)
        await back_up(store, tmp_path / "backup")
        for _ in range(50):
            await first.plane.terms.advance()
        await first.apply(job("train", seconds=3_600))
        await first.until("train", "Running", 30)
        term = first.plane.terms.term
    async with (
        opened(tmp_path / "backup" / "fairway.db", clock) as restored,
        running(restored, clock, folder, worlds=first.worlds) as again,
    ):
        await again.apply(job("train", seconds=3_600))
        await again.until("train", "Running", 60)
        await again.change("train", {"spec": {"cancelled": True}})
        await again.until("train", "Cancelled", 120)
        assert again.plane.terms.term > term


async def test_a_workload_that_cannot_be_read_is_set_aside_and_the_others_run(
    clock: VirtualClock, tmp_path: Path
) -> None:
    path = tmp_path / "fairway.db"
    async with opened(path, clock) as store, running(store, clock, tmp_path / "one") as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(job("odd").replace("queue: research", "queue: nobodys"))
        await clock.advance(5)
    with closing(sqlite3.connect(path)) as journal, journal:
        journal.execute(
            "UPDATE log SET value = CAST(replace(CAST(value AS TEXT), '\"priority\":0',"
            " '\"priority\":\"high\"') AS BLOB) WHERE plural = 'workloads' AND name = 'odd'"
        )
    async with opened(path, clock) as store, running(store, clock, tmp_path / "one") as fleet:
        begun = fleet.plane.planner._planner
        await fleet.apply(job("even"))
        await fleet.until("even", "Succeeded", 300)
        assert fleet.plane.planner._planner is begun  # and not one of many in its place
        events = await store.list(ResourceKey("", "v1", "events"), EVERYTHING)
        told = [item.object() for item in events.items]
        (note,) = [item for item in told if item["type"] == "Warning"]
        assert (note["involvedObject"]["name"], note["reason"]) == ("odd", "Unreadable")
        assert "spec.priority" in note["message"]
