"""A history in a hub that runs: what is told is what was, and it outlives the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.app import prepare_store
from fairway.clock import VirtualClock
from fairway.controllers.history.answers import Asked
from fairway.controllers.scheduling.questions import Samples
from fairway.hub.decision_log import segments
from fairway.hub.history_log import HistoryFile
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import ELSEWHERE, FLEET, job

SHARING = """
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: company}
spec: {uncovered: Unlimited}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec:
  parent: company
  resourceGroups:
    - resources: [nvidia.com/gpu]
      flavors: [{name: h100, quotas: [{resource: nvidia.com/gpu, nominal: 8}]}]
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: product}
spec:
  parent: company
  resourceGroups:
    - resources: [nvidia.com/gpu]
      flavors: [{name: h100, quotas: [{resource: nvidia.com/gpu, nominal: 8}]}]
"""
SERVICE = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: chat, namespace: default, finalizers: [fairway.dev/works]}
spec:
  queue: research
  mode: Divided
  replicas: 3
  podSets: [{name: main, count: 1, requests: {nvidia.com/gpu: 4}}]
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


def told(fleet: Fleet, series: str, name: str = "", since: int = 3600) -> dict[str, Any]:
    asked = Asked(series=series, names=(name,), since=since, points=1000)
    found = fleet.plane.history.answer(asked)["found"]
    assert [item["name"] for item in found] == [name]
    one: dict[str, Any] = found[0]
    return one


def last(one: dict[str, Any]) -> dict[str, Any]:
    return {field: values[-1] for field, values in one["values"].items()}


async def test_what_a_queue_and_a_cluster_have_in_use_is_told(fleet: Fleet) -> None:
    await fleet.clock.advance(60)
    await fleet.apply("---\n".join(job(f"train-{at}", seconds=600) for at in range(3)))
    await fleet.clock.advance(60)
    queue = told(fleet, "queues", "research")
    assert last(queue) == {"waiting": 1, "running": 2, "share": 0, "used": 16, "fair": 16}
    assert queue["values"]["used"][-12:-7] == [0] * 5
    assert last(queue["parts"][0]) == {"nominal": 32, "used": 16, "borrowed": 0, "lent": 0}
    cluster = told(fleet, "clusters", "hangzhou")
    assert last(cluster) == {"whole": 16, "used": 16, "starting": 0, "free": 0, "elastic": 0}
    assert last(cluster["parts"][0]) == last(cluster)
    assert last(told(fleet, "clusters")) == last(cluster)


async def test_what_is_claimed_and_does_not_run_yet_starts(fleet: Fleet) -> None:
    await fleet.apply(job("train", seconds=600))
    seen = []
    for _ in range(60):
        await fleet.clock.advance(0.25)
        now = (await fleet.plane.scheduler.ask(Samples())).places["hangzhou", "h100"]
        seen.append((now.used, now.starting, now.free))
    assert (8, 8, 8) in seen
    assert seen[-1] == (8, 0, 8)


async def test_who_borrows_is_over_its_fair_share_and_who_waits_is_owed(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(FLEET + SHARING.replace("\napiVersion", "\n---\napiVersion", 1))
        await clock.advance(1)
        await fleet.apply("---\n".join(job(f"train-{at}", seconds=6000) for at in range(2)))
        await clock.advance(30)
        await fleet.apply(job("ours").replace("queue: research", "queue: product"))
        await clock.advance(30)
        over, owed = last(told(fleet, "queues", "research")), last(told(fleet, "queues", "product"))
        assert (over["used"], over["fair"]) == (16, 8)
        assert (owed["used"], owed["fair"], owed["waiting"]) == (0, 8, 1)
        part = last(told(fleet, "queues", "product")["parts"][0])
        assert (part["nominal"], part["lent"]) == (8, 8)
        above = told(fleet, "queues", "company")
        assert last(above)["used"] == 16
        assert last(told(fleet, "queues"))["waiting"] == 1


async def test_replicas_of_a_service_are_told_by_cluster(fleet: Fleet) -> None:
    await fleet.apply(ELSEWHERE + "---\n" + SERVICE)
    await fleet.clock.advance(60)
    await fleet.change("chat", {"spec": {"replicas": 5}})
    await fleet.clock.advance(60)
    one = told(fleet, "services", "default/chat")
    assert last(one) == {"wanted": 5, "placed": 5, "ready": 5}
    wanted = [count for count in one["values"]["wanted"] if count is not None]
    assert (wanted, set(wanted)) == (sorted(wanted), {3, 5})
    assert sum(part["values"]["placed"][-1] for part in one["parts"]) == 5
    await fleet.change("chat", {"spec": {"cancelled": True}})
    await fleet.clock.advance(60)
    assert last(told(fleet, "services", "default/chat"))["wanted"] is None


async def test_a_history_outlives_the_hub_and_the_time_between_is_a_gap(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    file = HistoryFile(tmp_path / "history")
    async with running(store, clock, tmp_path / "clusters", history=file) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(job("train", seconds=6000))
        await clock.advance(300)
        before = told(fleet, "queues", "research")["values"]["used"]
        worlds = fleet.worlds
    file.close()
    clock.step(120)
    file = HistoryFile(tmp_path / "history")
    async with running(store, clock, tmp_path / "clusters", worlds=worlds, history=file) as fleet:
        await clock.advance(60)
        after = told(fleet, "queues", "research")["values"]["used"]
    file.close()
    known = [item for item in before if item is not None]
    assert len(known) >= 29
    at = after.index(known[0])
    assert after[at : at + len(known)] == known
    assert after[at + len(known) : -7].count(None) >= 11
    assert after[-5:] == [8] * 5
    assert len(segments(tmp_path / "history", ".history")) == 2


async def test_a_file_that_was_cut_short_is_read_as_far_as_it_goes(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    file = HistoryFile(tmp_path / "history")
    async with running(store, clock, tmp_path / "clusters", history=file) as fleet:
        await fleet.apply(FLEET)
        await clock.advance(300)
    file.close()
    (path,) = segments(tmp_path / "history", ".history")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 100])
    file = HistoryFile(tmp_path / "history")
    async with running(store, clock, tmp_path / "clusters", history=file) as fleet:
        await clock.advance(20)
        found = told(fleet, "queues", "research")["values"]["used"]
    file.close()
    assert 20 <= len([item for item in found if item is not None]) <= 33


async def test_two_runs_of_the_same_story_have_the_same_history(tmp_path: Path) -> None:
    assert await _story(tmp_path / "one") == await _story(tmp_path / "two")


async def _story(folder: Path) -> list[dict[str, Any]]:
    folder.mkdir()
    clock = VirtualClock()
    journal = SqliteJournal(folder / "fairway.db", is_inline=True)
    store = EmbeddedStore(journal, standard_catalogue(), clock=clock)
    store.start()
    await prepare_store(store)
    async with running(store, clock, folder / "clusters") as fleet:
        await fleet.apply(FLEET + "---\n" + SERVICE + "---\n" + job("train", seconds=100))
        await clock.advance(400)
        found = [
            told(fleet, series, name)
            for series, name in (
                ("queues", "research"), ("clusters", "hangzhou"), ("services", "default/chat"),
            )
        ]  # fmt: skip
    await store.close()
    return found
