"""A hub that was restored, or is empty, runs nothing twice: its agents know what runs."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from fairway.agent.drivers.simulated.driver import Worlds
from fairway.app import prepare_store
from fairway.clock import VirtualClock
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_running import ELSEWHERE, FLEET, job

CLUSTERS = ("hangzhou", "shanghai")


@asynccontextmanager
async def opened(path: Path, clock: VirtualClock) -> AsyncIterator[EmbeddedStore]:
    store = EmbeddedStore(SqliteJournal(path, is_inline=True), standard_catalogue(), clock=clock)
    store.start()
    await prepare_store(store)
    try:
        yield store
    finally:
        await store.close()


def back_up(path: Path, to: Path) -> None:
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


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
        back_up(tmp_path / "fairway.db", tmp_path / "backup.db")
        await first.change_cluster("hangzhou", {"spec": {"hold": "None"}})
        started = await first.until("train", "Running", 30)
        assert summary_of(started) == "hangzhou"
        starts = Starts(first.worlds)
        starts.look()
    async with (
        opened(tmp_path / "backup.db", clock) as restored,
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


async def test_an_empty_hub_takes_over_what_runs(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    folder = tmp_path / "clusters"
    async with running(store, clock, folder) as first:
        await first.apply(FLEET + "---\n" + ELSEWHERE)
        await first.apply(job("train", seconds=300))
        await first.until("train", "Running", 30)
        starts = Starts(first.worlds)
        starts.look()
    (where, _, _) = next(iter(starts.found))
    uids = {name: first.worlds._worlds[name][0] for name in CLUSTERS}
    async with (
        opened(tmp_path / "empty.db", clock) as empty,
        running(empty, clock, folder, worlds=first.worlds) as again,
    ):
        # The clusters are the same ones though their objects are new.
        await again.apply(FLEET + "---\n" + ELSEWHERE)
        for name in CLUSTERS:
            known = first.worlds._worlds[name][1]
            stored = (await empty.get(CLUSTERS_KEY, name)).object()
            first.worlds._worlds[name] = (stored["metadata"]["uid"], known)
        del uids
        await again.apply(job("train", seconds=300))
        taken_over = await again.until("train", "Running", 60)
        assert summary_of(taken_over) == where
        await starts.until_succeeded(again)
    assert len(starts.found) == 1


async def test_a_cluster_that_stays_silent_holds_up_a_start_no_longer_than_it_counts_as_well(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as first:
        await first.apply(FLEET + "---\n" + ELSEWHERE)
        await clock.advance(20)
        # Nobody looks after it from now on, and it was well when it was last heard.
        await first.change_cluster(
            "shanghai", {"spec": {"simulated": None, "kubernetes": {"kubeconfig": {"name": "k"}}}}
        )
    async with running(store, clock, tmp_path / "clusters", worlds=first.worlds) as again:
        await again.apply(job("train"))
        await clock.advance(30)
        assert (await again.workload("train")).status.claim is None
        await again.until("train", "Running", 30)
