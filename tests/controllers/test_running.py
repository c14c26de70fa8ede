"""Workloads run: submitted, placed, run, finished, by the whole hub on virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.api.errors import NotFound
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Write
from fairway.store.keys import FLEETS, QUEUES, WORKLOADS
from tests.controllers.fleets import Fleet, running, summary_of

FLEET = """
apiVersion: fairway.dev/v1alpha1
kind: Flavor
metadata: {name: h100}
spec: {nodeLabels: {accelerator: h100}}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec:
  uncovered: Unlimited
  resourceGroups:
    - resources: [nvidia.com/gpu]
      flavors: [{name: h100, quotas: [{resource: nvidia.com/gpu, nominal: 32}]}]
  preemption: {withinQueue: LowerPriority}
---
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: hangzhou}
spec:
  simulated:
    nodePools:
      - name: gpu
        count: 2
        shape: {cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}
        labels: {accelerator: h100}
"""


def job(
    name: str,
    *,
    gpus: int = 8,
    pods: int = 1,
    completions: int | None = None,
    priority: int = 0,
    seconds: int = 60,
) -> str:
    return f"""
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {{name: {name}, namespace: default, finalizers: [fairway.dev/works]}}
spec:
  queue: research
  priority: {priority}
  runSeconds: {{estimate: {seconds}}}
  template:
    manifests:
      - apiVersion: batch/v1
        kind: Job
        metadata: {{name: {name}}}
        spec:
          parallelism: {pods}
          completions: {pods if completions is None else completions}
          template:
            spec:
              restartPolicy: Never
              containers:
                - name: main
                  image: training
                  resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def test_a_job_is_placed_runs_and_succeeds(fleet: Fleet) -> None:
    await fleet.apply(job("train"))
    started = await fleet.until("train", "Running", 30)
    assert started.status.claim is not None
    assert started.status.claim.summary == "hangzhou"
    assert started.status.pods.ready == 1
    ended = await fleet.until("train", "Succeeded", 120)
    assert ended.status.claim is None
    assert ended.status.history[-1].clusters == ("hangzhou",)


async def test_a_limit_of_claims_that_a_queue_gets_later_counts_what_runs(fleet: Fleet) -> None:
    await fleet.apply(job("first", seconds=60))
    await fleet.until("first", "Running", 30)
    limit = Patch(type="merge", body={"spec": {"claimedWorkloadsMax": 1}})
    await fleet.store.patch(QUEUES, "research", limit, write=Write(user="root"))
    await fleet.apply(job("second"))
    await fleet.until("second", lambda item: item.status.reason == "ClaimsExceeded", 30)
    await fleet.until("second", "Running", 120)


async def test_pods_that_finished_give_back_what_they_held(fleet: Fleet) -> None:
    await fleet.apply(job("long", pods=2, completions=3))
    await fleet.until("long", "Running", 30)
    await fleet.apply(job("next"))
    await fleet.until("next", lambda item: item.status.reason == "DoesNotFit", 30)
    await fleet.until("next", "Running", 120)
    claim = (await fleet.workload("long")).status.claim
    assert claim is not None, "its last completion still runs"
    assert [(each.count, each.finished) for each in claim.placements[0].pod_sets] == [(2, 1)]
    await fleet.until("long", "Succeeded", 120)


async def test_a_job_that_finds_no_room_waits_and_says_why(fleet: Fleet) -> None:
    await fleet.apply(job("first", pods=2))
    await fleet.until("first", "Running", 30)
    await fleet.apply(job("second", pods=2))
    waiting = await fleet.until("second", lambda item: bool(item.status.reason), 30)
    assert (waiting.status.phase, waiting.status.reason) == ("Waiting", "DoesNotFit")
    await fleet.until("first", "Succeeded", 120)
    await fleet.until("second", "Running", 10)


async def test_a_more_urgent_job_preempts_and_the_victim_gets_a_receipt(fleet: Fleet) -> None:
    await fleet.apply(job("humble", pods=2, seconds=600))
    await fleet.until("humble", "Running", 30)
    await fleet.apply(job("urgent", pods=2, priority=10))
    await fleet.until("urgent", "Running", 60)
    victim = await fleet.workload("humble")
    assert victim.status.phase == "Waiting"
    receipt = victim.status.history[-1]
    assert receipt.preempted_by is not None
    assert receipt.preempted_by.name == "urgent"
    await fleet.until("urgent", "Succeeded", 120)
    await fleet.until("humble", "Running", 30)


NATIVE = """
apiVersion: batch/v1
kind: Job
metadata: {name: native, namespace: default, labels: {fairway.dev/queue: research}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: main, image: training, resources: {limits: {nvidia.com/gpu: 8}}}
"""


async def test_a_native_job_with_a_queue_label_runs_and_gets_its_status_back(fleet: Fleet) -> None:
    await fleet.apply(NATIVE)
    jobs = ResourceKey("batch", "v1", "jobs")
    before = (await fleet.store.get(jobs, "native", "default")).object()
    await fleet.clock.advance(1)
    await fleet.until("job-native", "Succeeded", 180)
    await fleet.clock.advance(10)
    after = (await fleet.store.get(jobs, "native", "default")).object()
    assert after["status"]["succeeded"] == 1
    assert [condition["type"] for condition in after["status"]["conditions"]][-1] == "Complete"
    assert after["metadata"]["annotations"].pop("fairway.dev/finished") == "Succeeded"
    for part in ("spec", "metadata"):
        for volatile in ("resourceVersion", "managedFields", "generation"):
            before[part].pop(volatile, None)
            after[part].pop(volatile, None)
        assert after[part] == before[part]


async def test_deleting_a_native_job_stops_its_workload(fleet: Fleet) -> None:
    await fleet.apply(NATIVE)
    await fleet.clock.advance(1)
    await fleet.until("job-native", "Running", 30)
    jobs = ResourceKey("batch", "v1", "jobs")
    await fleet.store.delete(jobs, "native", namespace="default", write=Write())
    await fleet.clock.advance(30)
    with pytest.raises(NotFound):
        await fleet.workload("job-native")
    assert await fleet.pods("hangzhou") == 0


async def test_a_workload_that_is_deleted_is_stopped_first(fleet: Fleet) -> None:
    await fleet.apply(job("train", seconds=600))
    await fleet.until("train", "Running", 30)
    await fleet.store.delete(WORKLOADS, "train", namespace="default", write=Write())
    await fleet.clock.advance(30)
    with pytest.raises(NotFound):
        await fleet.workload("train")
    assert await fleet.pods("hangzhou") == 0


async def test_a_cancelled_workload_ends_as_cancelled(fleet: Fleet) -> None:
    await fleet.apply(job("train", seconds=600))
    await fleet.until("train", "Running", 30)
    await fleet.change("train", {"spec": {"cancelled": True}})
    ended = await fleet.until("train", "Cancelled", 60)
    assert ended.status.claim is None
    assert await fleet.pods("hangzhou") == 0


async def test_a_suspended_workload_is_stopped_and_runs_again_when_resumed(fleet: Fleet) -> None:
    await fleet.apply(job("train", seconds=600))
    await fleet.until("train", "Running", 30)
    await fleet.change("train", {"spec": {"hold": "HoldAndDrain"}})
    await fleet.until("train", "Held", 60)
    assert await fleet.pods("hangzhou") == 0
    await fleet.change("train", {"spec": {"hold": "None"}})
    await fleet.until("train", "Running", 60)


ELSEWHERE = FLEET.rsplit("---", maxsplit=1)[-1].replace("hangzhou", "shanghai")


async def test_what_runs_in_a_drained_cluster_moves_elsewhere(fleet: Fleet) -> None:
    await fleet.apply(job("train", seconds=600))
    await fleet.until("train", "Running", 30)
    await fleet.apply(ELSEWHERE)
    await fleet.clock.advance(1)
    await fleet.change_cluster("hangzhou", {"spec": {"hold": "HoldAndDrain"}})
    moved = await fleet.until("train", lambda item: "shanghai" in summary_of(item), 120)
    assert moved.status.history[-1].clusters == ("hangzhou",)
    await fleet.until("train", "Running", 60)
    assert await fleet.pods("hangzhou") == 0


@pytest.mark.parametrize(
    ("elsewhere", "expected"),
    [("true", ["hangzhou", "shanghai"]), ("false", ["hangzhou", "hangzhou"])],
    ids=["a retry goes elsewhere if that is asked for", "otherwise it may go to the same cluster"],
)
async def test_where_a_failed_program_is_tried_again(
    fleet: Fleet, elsewhere: str, expected: list[str]
) -> None:
    await fleet.apply(ELSEWHERE)
    faults = {"podFailuresPerHour": 100_000}
    await fleet.change_cluster("hangzhou", {"spec": {"simulated": {"faults": faults}}})
    retry = f"  retry: {{limit: 3, backoffSeconds: 1, elsewhere: {elsewhere}}}\n"
    once = job("train").replace("parallelism:", "backoffLimit: 0\n          parallelism:")
    await fleet.apply(once.replace("  queue: research\n", f"  queue: research\n{retry}"))
    tried = await fleet.until("train", lambda item: len(item.status.history) == 1, 300)
    again = await fleet.until("train", lambda item: bool(item.status.claim), 300)
    assert [*tried.status.history[0].clusters, summary_of(again)] == expected


CHECKPOINTS = {
    "saved when it is asked, nothing is lost": ("{intervalSeconds: 60}", 0, 200),
    "saved by itself, the last part is lost": ('{intervalSeconds: 60, signal: ""}', 40, 240),
    "never saved, all is lost": ("", 100, 300),
}


@pytest.mark.parametrize(("checkpoint", "lost", "left"), CHECKPOINTS.values(), ids=CHECKPOINTS)
async def test_a_job_that_moves_goes_on_from_its_last_checkpoint(
    fleet: Fleet, checkpoint: str, lost: int, left: int
) -> None:
    told = job("train", seconds=300)
    if checkpoint:
        told = told.replace("  template:", f"  checkpoint: {checkpoint}\n  template:", 1)
    await fleet.apply(told)
    await fleet.until("train", "Running", 30)
    await fleet.apply(ELSEWHERE)
    await fleet.clock.advance(100)
    await fleet.change_cluster("hangzhou", {"spec": {"hold": "HoldAndDrain"}})
    await fleet.until("train", lambda item: "shanghai" in summary_of(item), 120)
    ended = await fleet.until("train", "Succeeded", 600)
    first, second = ended.status.history
    assert first.lost_seconds == pytest.approx(lost, abs=2)
    assert second.started_at is not None
    assert second.ended_at is not None
    assert (second.ended_at - second.started_at).total_seconds() == pytest.approx(left, abs=4)


SERVICE = """
apiVersion: fairway.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: home-first, namespace: default}
spec:
  groups:
    - {name: home, selector: {names: [hangzhou]}}
    - {name: away, selector: {names: [shanghai]}}
---
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: chat, namespace: default, finalizers: [fairway.dev/works]}
spec:
  queue: research
  policy: home-first
  mode: Divided
  replicas: 3
  template:
    manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          selector: {matchLabels: {app: chat}}
          template:
            metadata: {labels: {app: chat}}
            spec:
              containers:
                - {name: main, image: server, resources: {limits: {nvidia.com/gpu: 8}}}
"""


async def test_a_service_overflows_by_replica_and_shrinks_in_reverse(fleet: Fleet) -> None:
    await fleet.apply(ELSEWHERE)
    await fleet.clock.advance(1)
    await fleet.apply(SERVICE)
    await fleet.until("chat", lambda item: item.status.pods.ready == 3, 60)
    assert (await fleet.pods("hangzhou"), await fleet.pods("shanghai")) == (2, 1)
    await fleet.change("chat", {"spec": {"replicas": 2}})
    await fleet.clock.advance(30)
    assert (await fleet.pods("hangzhou"), await fleet.pods("shanghai")) == (2, 0)
    await fleet.change("chat", {"spec": {"replicas": 4}})
    await fleet.clock.advance(30)
    assert (await fleet.pods("hangzhou"), await fleet.pods("shanghai")) == (2, 2)


async def test_a_hub_that_is_started_again_goes_on_where_it_was(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as first:
        await first.apply(FLEET)
        await first.apply(job("train", seconds=120))
        await first.until("train", "Running", 30)
        await first.apply(job("next", pods=2, seconds=30))
    await clock.advance(60)
    async with running(store, clock, tmp_path / "clusters") as again:
        await again.until("train", "Succeeded", 300)
        await again.until("next", "Succeeded", 300)


async def test_a_fleet_that_is_paused_for_long_goes_on_afterwards(fleet: Fleet) -> None:
    await fleet.apply(job("first", pods=2, seconds=30))
    await fleet.until("first", "Running", 30)
    await fleet.apply(job("second", pods=2, seconds=30))
    await fleet.until("second", lambda item: bool(item.status.reason), 30)
    merge = Patch(type="merge", body={"spec": {"paused": True}})
    await fleet.apply("{apiVersion: fairway.dev/v1alpha1, kind: Fleet, metadata: {name: fleet}}")
    await fleet.store.patch(FLEETS, "fleet", merge, write=Write())
    await fleet.clock.advance(120)  # longer than the last plan said it would look again
    assert await fleet.phase("second") == "Waiting"
    merge = Patch(type="merge", body={"spec": {"paused": False}})
    await fleet.store.patch(FLEETS, "fleet", merge, write=Write())
    await fleet.until("second", "Succeeded", 120)
