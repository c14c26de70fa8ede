"""Gangs grow and shrink while they run, where their kind lets them, and nothing is started anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.api.workload import Workload
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Write
from fairway.store.keys import JOBS
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_natives_run import native
from tests.controllers.test_running import FLEET, job

PODS = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: train, namespace: default}
spec:
  queue: research
  runSeconds: {estimate: 3600}
  podSets: [{name: worker, count: 4, requests: {nvidia.com/gpu: 1}}]
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


def size(count: int) -> dict[str, Any]:
    requests = {"nvidia.com/gpu": "1"}
    return {"spec": {"podSets": [{"name": "worker", "count": count, "requests": requests}]}}


def condition(workload: Workload) -> str:
    return next(
        (
            condition.reason
            for condition in workload.status.conditions
            if condition.type == "Resized"
        ),
        "",
    )


async def starts(fleet: Fleet, work: str) -> dict[str, float | None]:
    pods = fleet.worlds.world("hangzhou").pods(work) or []
    return {pod.name: pod.started_at for pod in pods}


async def test_a_gang_that_asks_for_more_gets_it_while_it_runs(fleet: Fleet) -> None:
    await fleet.apply(PODS)
    first = await fleet.until("train", "Running", 30)
    before = await starts(fleet, "default.train")
    await fleet.change("train", size(8))
    grown = await fleet.until("train", lambda item: item.status.pods.ready == 8, 60)
    after = await starts(fleet, "default.train")
    assert {name: after[name] for name in before} == before  # nothing was started anew
    assert first.status.claim is not None
    assert grown.status.claim is not None
    assert grown.status.claim.attempt == first.status.claim.attempt
    assert (grown.status.history, condition(grown)) == ((), "")


async def test_a_gang_that_asks_for_less_gives_it_up_and_may_have_it_again(fleet: Fleet) -> None:
    await fleet.apply(PODS)
    await fleet.until("train", "Running", 30)
    await fleet.change("train", size(2))
    await fleet.clock.advance(30)
    assert await fleet.pods("hangzhou") == 2
    await fleet.change("train", size(6))
    await fleet.clock.advance(30)
    assert await fleet.pods("hangzhou") == 6


async def test_a_gang_that_asks_for_more_waits_for_room_and_runs_on(fleet: Fleet) -> None:
    await fleet.apply(PODS)
    await fleet.apply(job("other", gpus=8, seconds=120))
    await fleet.until("train", "Running", 30)
    await fleet.until("other", "Running", 30)
    await fleet.change("train", size(12))
    await fleet.clock.advance(30)
    waiting = await fleet.workload("train")
    assert (waiting.status.phase, condition(waiting)) == ("Running", "WaitsForRoom")
    assert await fleet.pods("hangzhou") == 5
    await fleet.until("other", "Succeeded", 200)
    grown = await fleet.until("train", lambda item: item.status.pods.ready == 12, 60)
    assert condition(grown) == ""
    assert grown.status.increased_at is None


async def test_a_gang_that_asks_for_more_than_its_queue_has_waits_for_quota(fleet: Fleet) -> None:
    await fleet.apply(FLEET.replace("nominal: 32", "nominal: 6"))
    await fleet.apply(PODS)
    await fleet.until("train", "Running", 30)
    await fleet.change("train", size(8))
    await fleet.clock.advance(30)
    assert await fleet.pods("hangzhou") == 4
    await fleet.apply(FLEET)
    await fleet.until("train", lambda item: item.status.pods.ready == 8, 60)


async def test_a_gang_that_runs_with_fewer_takes_more_as_room_comes(fleet: Fleet) -> None:
    await fleet.apply(job("other", gpus=8, seconds=120))
    await fleet.until("other", "Running", 30)
    elastic = PODS.replace("count: 4,", "count: 12, leastCount: 4,")
    await fleet.apply(elastic)
    started = await fleet.until("train", "Running", 30)
    assert started.status.pods.ready == 8
    await fleet.until("other", "Succeeded", 200)
    await fleet.until("train", lambda item: item.status.pods.ready == 12, 60)


async def test_a_native_job_is_resized_by_its_parallelism(fleet: Fleet) -> None:
    asks = native("train").replace("gpu: 8", "gpu: 1")
    await fleet.apply(asks.replace("spec:\n  template:", "spec:\n  parallelism: 2\n  template:", 1))
    await fleet.clock.advance(1)
    await fleet.until("job-train", "Running", 30)
    for count in (5, 3):
        patch = Patch(type="merge", body={"spec": {"parallelism": count}})
        await fleet.store.patch(
            JOBS, "train", patch, namespace="default", write=Write(user="ada", manager="test")
        )
        await fleet.clock.advance(20)
        assert await fleet.pods("hangzhou") == count
    assert (await fleet.workload("job-train")).status.history == ()


async def test_a_gang_whose_kind_runs_with_what_it_began_gets_more_with_its_next_attempt(
    fleet: Fleet,
) -> None:
    manifest = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: train, namespace: default}
spec:
  queue: research
  runSeconds: {estimate: 3600}
  podSets: [{name: worker, count: 2, requests: {nvidia.com/gpu: 1}}]
  template:
    manifests:
      - apiVersion: kubeflow.org/v1
        kind: PyTorchJob
        metadata: {name: train}
        spec:
          pytorchReplicaSpecs:
            Worker:
              replicas: 2
              template:
                spec:
                  containers:
                    - {name: pytorch, image: x, resources: {limits: {nvidia.com/gpu: 1}}}
"""
    await fleet.apply(manifest)
    await fleet.until("train", "Running", 30)
    await fleet.change("train", size(3))
    await fleet.clock.advance(30)
    told = await fleet.workload("train")
    assert condition(told) == "NextAttempt"
    assert await fleet.pods("hangzhou") == 2
