"""A Job in each of several clusters: one status for all of them, over when the last one is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.agent.drivers.simulated.driver import Worlds
from fairway.api.workload import Workload
from fairway.clock import VirtualClock
from fairway.kinds.registry import built_in
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey, Write
from fairway.store.keys import CLUSTERS
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_native_status_run import conditions
from tests.controllers.test_restored_hubs import back_up, opened
from tests.controllers.test_running import FLEET, job

EVERYWHERE = """
apiVersion: fairway.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: everywhere}
spec: {division: {type: Duplicated}}
"""
SECOND = FLEET.rpartition("---")[2].replace("hangzhou", "shanghai")
SCAN = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: scan}
spec:
  queue: research
  policy: everywhere
  mode: Divided
  replicas: 1
  runSeconds: {estimate: 20}
  template:
    manifests:
      - apiVersion: batch/v1
        kind: Job
        metadata: {name: scan}
        spec:
          completions: 2
          parallelism: 2
          template:
            spec:
              restartPolicy: Never
              containers:
                - {name: main, image: scan, resources: {requests: {nvidia.com/gpu: 1}}}
"""


JOBS = ResourceKey("batch", "v1", "jobs")
USER = Write(user="ada", manager="test")
EITHER = """
apiVersion: fairway.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: everywhere}
spec:
  division: {type: Duplicated}
  groups:
    - {name: first, selector: {names: [hangzhou]}, copies: 1}
    - {name: second, selector: {names: [shanghai, suzhou]}, copies: 1}
"""
THIRD = SECOND.replace("shanghai", "suzhou")
NATIVE = """
apiVersion: batch/v1
kind: Job
metadata:
  name: scan
  namespace: default
  labels: {fairway.dev/queue: research, fairway.dev/policy: everywhere}
  annotations: {fairway.dev/run-seconds: "20", fairway.dev/mode: Divided}
spec:
  completions: 2
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: main, image: scan, resources: {limits: {nvidia.com/gpu: 1}}}
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path) as found:
        for text in (FLEET, EVERYWHERE, SECOND):
            await found.apply(text)
        await clock.advance(3)
        yield found


def scan(*, seconds: int = 20, retry: str = "", **spec: str) -> str:
    """The Job of which one copy may fail."""
    more = "".join(
        f"\n  {key}: {value}" for key, value in {**spec, "retry": retry}.items() if value
    )
    return (
        SCAN.replace("estimate: 20", f"estimate: {seconds}")
        .replace("completions: 2", "backoffLimit: 0\n          completions: 2")
        .replace("replicas: 1", f"replicas: 1{more}")
    )


def clusters_of(workload: Workload) -> list[str]:
    claim = workload.status.claim
    return [placement.cluster for placement in claim.placements] if claim else []


def over(workload: Workload) -> tuple[str, ...]:
    return workload.status.succeeded_clusters


async def lose(fleet: Fleet, cluster: str, *, is_lost: bool = True) -> None:
    fault = {"simulated": {"faults": {"outage": is_lost}}}
    await fleet.change_cluster(cluster, {"spec": fault})


async def fail(fleet: Fleet, cluster: str, work: str = "default.scan") -> None:
    """Lets a pod of the copy in a cluster fail."""
    world = fleet.worlds.world(cluster)
    world.fail_pod(world.pods(work)[0], fleet.clock.now(), reason="Error", code=1)


async def test_their_pods_are_counted_together_and_it_is_over_with_the_last(fleet: Fleet) -> None:
    await fleet.apply(SCAN)
    held = await fleet.until("scan", "Running", 30)
    assert clusters_of(held) == ["hangzhou", "shanghai"]
    await fleet.until("scan", lambda item: item.status.pods.ready == 4, 30)
    ended = await fleet.until("scan", "Succeeded", 60)
    assert (ended.status.pods.succeeded, ended.status.pods.failed) == (4, 0)
    assert ended.status.claim is None
    assert ended.status.history[-1].clusters == ("hangzhou", "shanghai")


@pytest.mark.parametrize("seconds", [20, 300], ids=["the other ends first", "the other runs on"])
async def test_a_copy_that_failed_is_retried_and_the_other_does_not_run_again(
    seconds: int, fleet: Fleet
) -> None:
    await fleet.apply(scan(seconds=seconds, retry="{limit: 2, backoffSeconds: 60}"))
    await fleet.until("scan", "Running", 30)
    await fleet.clock.advance(5)
    await fail(fleet, "shanghai")
    await fleet.until("scan", lambda item: over(item) == ("hangzhou",), 400)
    attempts = {cluster: set() for cluster in ("hangzhou", "shanghai")}
    while (found := await fleet.workload("scan")).status.phase != "Succeeded":
        assert found.status.phase != "Failed"
        for placement in found.status.claim.placements if found.status.claim else ():
            attempts[placement.cluster].add(placement.attempt)
        await fleet.clock.advance(1)
    assert (len(attempts["hangzhou"]), len(attempts["shanghai"])) == (0, 1)
    assert over(found) == ("hangzhou", "shanghai")
    assert found.status.pods.succeeded == 4


async def test_without_a_retry_left_it_fails_and_names_the_cluster(fleet: Fleet) -> None:
    await fleet.apply(scan(seconds=300))
    await fleet.until("scan", "Running", 30)
    await fleet.clock.advance(5)
    await fail(fleet, "shanghai")
    ended = await fleet.until("scan", "Failed", 60)
    assert ended.status.reason == "ProgramFailed"
    assert ended.status.message.startswith("in shanghai: ")
    assert await fleet.pods("hangzhou") == 0


async def test_a_copy_without_room_is_waited_for(fleet: Fleet) -> None:
    await fleet.apply(job("full", gpus=8, pods=2, seconds=100))
    await fleet.until("full", "Running", 30)
    await fleet.apply(SCAN)
    started = await fleet.until("scan", "Running", 30)
    assert clusters_of(started) == ["shanghai"]
    assert started.status.claim is not None
    assert started.status.claim.missing_copies == 1
    waits = await fleet.until("scan", "Waiting", 60)
    assert over(waits) == ("shanghai",)
    await fleet.until("full", "Succeeded", 200)
    again = await fleet.until("scan", "Running", 60)
    assert clusters_of(again) == ["hangzhou"]
    ended = await fleet.until("scan", "Succeeded", 60)
    assert ended.status.pods.succeeded == 4


async def test_a_copy_that_was_lost_runs_when_its_cluster_is_back(fleet: Fleet) -> None:
    await fleet.apply(scan(seconds=200, onClusterLost="AllowDuplicate"))
    await fleet.until("scan", "Running", 30)
    await lose(fleet, "shanghai")
    waits = await fleet.until("scan", lambda item: item.status.claim is None, 600)
    assert (waits.status.phase, over(waits)) == ("Waiting", ("hangzhou",))
    await fleet.clock.advance(300)
    assert await fleet.phase("scan") == "Waiting"
    await lose(fleet, "shanghai", is_lost=False)
    ended = await fleet.until("scan", "Succeeded", 1500)
    assert over(ended) == ("hangzhou", "shanghai")


async def test_another_cluster_of_its_group_takes_over_a_copy_that_was_lost(fleet: Fleet) -> None:
    await fleet.apply(THIRD)
    await fleet.apply(EITHER)
    await fleet.clock.advance(3)
    await fleet.apply(scan(seconds=200, onClusterLost="AllowDuplicate"))
    held = await fleet.until("scan", "Running", 30)
    assert clusters_of(held) == ["hangzhou", "shanghai"]
    await lose(fleet, "shanghai")
    await fleet.until("scan", lambda item: "suzhou" in clusters_of(item), 300)
    ended = await fleet.until("scan", "Succeeded", 600)
    assert over(ended) == ("hangzhou", "suzhou")


async def test_it_is_over_once_the_cluster_that_it_waits_for_is_removed(fleet: Fleet) -> None:
    await fleet.change_cluster("shanghai", {"spec": {"hold": "Hold"}})
    await fleet.apply(SCAN)
    waits = await fleet.until("scan", lambda item: over(item) == ("hangzhou",), 60)
    assert waits.status.phase == "Waiting"
    await fleet.clock.advance(60)
    assert await fleet.phase("scan") == "Waiting"
    await fleet.store.delete(CLUSTERS, "shanghai", write=USER)
    ended = await fleet.until("scan", "Succeeded", 60)
    assert (over(ended), ended.status.pods.succeeded) == (("hangzhou",), 2)


async def test_a_hub_that_restarts_remembers_the_copies_that_are_over(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    worlds = Worlds(built_in().of, clock)
    async with running(store, clock, tmp_path, worlds=worlds) as fleet:
        for text in (FLEET, EVERYWHERE, SECOND, job("full", gpus=8, pods=2, seconds=100)):
            await fleet.apply(text)
        await fleet.until("full", "Running", 30)
        await fleet.apply(SCAN)
        await fleet.until("scan", lambda item: over(item) == ("shanghai",), 60)
    async with running(store, clock, tmp_path, worlds=worlds) as fleet:
        again = await fleet.until("scan", "Running", 300)
        assert clusters_of(again) == ["hangzhou"]
        ended = await fleet.until("scan", "Succeeded", 60)
        assert over(ended) == ("hangzhou", "shanghai")


async def test_a_restored_hub_plans_though_copies_that_are_over_wait_for_others(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    folder, worlds = tmp_path / "clusters", Worlds(built_in().of, clock)
    async with running(store, clock, folder, worlds=worlds) as fleet:
        for text in (FLEET, EVERYWHERE, SECOND, job("full", gpus=8, pods=2, seconds=1000)):
            await fleet.apply(text)
        await fleet.until("full", "Running", 30)
        await fleet.apply(SCAN)
        await fleet.until("scan", "Running", 30)
        await back_up(store, tmp_path / "backup")
        await fleet.until("scan", "Waiting", 60)
    async with (
        opened(tmp_path / "backup" / "fairway.db", clock) as restored,
        running(restored, clock, folder, worlds=worlds) as fleet,
    ):
        await fleet.apply(job("next", seconds=5))
        await fleet.until("next", "Running", 60)
        waits = await fleet.until("scan", "Waiting", 60)
        assert over(waits) == ("shanghai",)


async def test_a_native_job_is_complete_when_all_its_copies_are(fleet: Fleet) -> None:
    await fleet.apply(job("full", gpus=8, pods=2, seconds=100))
    await fleet.until("full", "Running", 30)
    await fleet.apply(NATIVE)
    await fleet.clock.advance(1)
    await fleet.until("job-scan", lambda item: over(item) == ("shanghai",), 60)
    await fleet.clock.advance(2)
    waits = await native(fleet)
    assert conditions(waits)["Suspended"][0] == "True"
    assert waits["status"]["succeeded"] == 2
    again = await fleet.until("job-scan", "Running", 300)
    assert clusters_of(again) == ["hangzhou"]
    while (await fleet.phase("job-scan")) != "Succeeded":
        assert "Complete" not in conditions(await native(fleet))
        await fleet.clock.advance(1)
    await fleet.clock.advance(2)
    ended = await native(fleet)
    assert conditions(ended)["Complete"] == ("True", "CompletionsReached")
    assert (ended["status"]["succeeded"], ended["status"].get("failed", 0)) == (4, 0)


async def test_a_native_job_has_failed_with_one_of_its_copies(fleet: Fleet) -> None:
    await fleet.apply(NATIVE.replace("completions: 2", "backoffLimit: 0\n  completions: 2"))
    await fleet.clock.advance(1)
    await fleet.until("job-scan", "Running", 30)
    await fail(fleet, "shanghai", "default.job-scan")
    await fleet.until("job-scan", "Failed", 60)
    await fleet.clock.advance(2)
    ended = await native(fleet)
    assert conditions(ended)["Failed"][0] == "True"
    assert "Complete" not in conditions(ended)


async def native(fleet: Fleet) -> dict[str, Any]:
    body: dict[str, Any] = (await fleet.store.get(JOBS, "scan", "default")).object()
    return body
