"""Workloads that say only which pods they need run in simulated clusters, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.clock import VirtualClock
from fairway.controllers.works.generated import GENERATED
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import ELSEWHERE, FLEET

HEAD = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: train, namespace: default}
spec:
  queue: research
  runSeconds: {estimate: 30}
"""
GANG = (
    HEAD
    + """
  podSets:
    - {name: leader, count: 1, requests: {cpu: "2", nvidia.com/gpu: 2}}
    - {name: worker, count: 2, requests: {cpu: "8", memory: 64Gi, nvidia.com/gpu: 6}}
"""
)
SERVICE = (
    HEAD
    + """
  mode: Divided
  replicas: 3
  podSets:
    - {name: server, count: 1, requests: {nvidia.com/gpu: 8}}
"""
)
SWEEP = (
    HEAD
    + """
  mode: Independent
  tasks: {count: 20, concurrency: 8, retries: 1}
  podSets:
    - {name: task, count: 1, requests: {nvidia.com/gpu: 2}}
"""
)


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET + "---\n" + ELSEWHERE)
        await clock.advance(1)
        yield found


def pods_of(fleet: Fleet, cluster: str) -> dict[str, int]:
    """Pods of the workload that run in a cluster, by pod set."""
    found: dict[str, int] = {}
    for pod in fleet.worlds.world(cluster).pods("default.train") or ():
        if pod.phase == "Ready":
            found[pod.pod_set] = found.get(pod.pod_set, 0) + 1
    return found


async def test_a_gang_of_two_pod_sets_runs_all_together_and_succeeds(fleet: Fleet) -> None:
    await fleet.apply(GANG)
    started = await fleet.until("train", "Running", 30)
    assert started.status.claim is not None
    (placement,) = started.status.claim.placements
    assert pods_of(fleet, placement.cluster) == {"leader": 1, "worker": 2}
    assert started.status.pods.ready == 3
    await fleet.until("train", "Succeeded", 120)


async def test_what_is_generated_is_marked(fleet: Fleet) -> None:
    await fleet.apply(GANG)
    started = await fleet.until("train", "Running", 30)
    assert started.status.claim is not None
    works = ResourceKey("fairway.dev", "v1alpha1", "works")
    namespace = f"fairway-cluster-{started.status.claim.placements[0].cluster}"
    work = (await fleet.store.get(works, "default.train", namespace)).object()
    manifests = [manifest["object"] for manifest in work["spec"]["manifests"]]
    assert [manifest["metadata"]["annotations"][GENERATED] for manifest in manifests] == [
        "podSets/leader",
        "podSets/worker",
    ]


async def test_a_gang_that_loses_a_node_is_tried_again_as_a_whole(fleet: Fleet) -> None:
    await fleet.apply(GANG)
    started = await fleet.until("train", "Running", 30)
    assert started.status.claim is not None
    world = fleet.worlds.world(started.status.claim.placements[0].cluster)
    pod = next(pod for pod in world.pods("default.train") or () if pod.pod_set == "worker")
    world.fail_pod(pod, fleet.clock.now(), reason="Evicted")
    again = await fleet.until(
        "train", lambda item: item.status.phase == "Running" and bool(item.status.history), 120
    )
    assert again.status.claim is not None
    assert again.status.claim.attempt == 2
    assert pods_of(fleet, again.status.claim.placements[0].cluster) == {"leader": 1, "worker": 2}


async def test_a_service_runs_its_replicas_and_is_resized(fleet: Fleet) -> None:
    await fleet.apply(SERVICE)
    await fleet.until("train", lambda item: item.status.pods.ready == 3, 60)
    await fleet.change("train", {"spec": {"replicas": 1}})
    await fleet.until("train", lambda item: item.status.replicas == 1, 60)
    await fleet.clock.advance(60)
    assert await fleet.pods("hangzhou") + await fleet.pods("shanghai") == 1
    assert await fleet.phase("train") == "Running"


async def test_a_sweep_runs_every_task(fleet: Fleet) -> None:
    await fleet.apply(SWEEP)
    ended = await fleet.until("train", "Succeeded", 300)
    assert ended.status.succeeded_tasks == "0-19"


HERE = """
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: here, labels: {accelerator: h100}}
spec: {local: {capacity: {cpu: "4", memory: 8Gi}}}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: any}
spec: {uncovered: Unlimited}
"""
MODES = {
    "a gang": "",
    "a service": "  mode: Divided\n  replicas: 2\n",
    "a sweep": "  mode: Independent\n  tasks: {count: 4}\n",
}


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
async def test_a_real_cluster_is_never_given_pods_without_a_program_and_the_workload_says_why(
    fleet: Fleet, mode: str
) -> None:
    for name in ("hangzhou", "shanghai"):
        await fleet.change_cluster(name, {"spec": {"hold": "Hold"}})
    pods = '  podSets: [{name: main, count: 1, requests: {cpu: "1"}}]\n'
    head = HEAD.replace("queue: research", "queue: any")
    await fleet.apply(f"{HERE}---\n{head}{mode}{pods}")
    await fleet.clock.advance(60)
    waiting = await fleet.workload("train")
    assert waiting.status.phase == "Waiting"
    assert waiting.status.claim is None
    told = await fleet.plane.explain("default", "train")
    assert told is not None
    assert "here does not serve pod sets without a template" in str(told)


async def test_a_workload_without_a_program_runs_where_one_is_not_needed(fleet: Fleet) -> None:
    await fleet.apply(HERE)
    pods = '  podSets: [{name: main, count: 1, requests: {cpu: "1"}}]\n'
    await fleet.apply(HEAD.replace("queue: research", "queue: any") + pods)
    ended = await fleet.until("train", "Succeeded", 300)
    assert set(ended.status.history[-1].clusters) <= {"hangzhou", "shanghai"}
