"""Workloads that can never start, on a running hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.api.workload import Workload
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Write
from fairway.store.keys import CLUSTERS, QUEUES
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_events_run import told
from tests.controllers.test_native_ends_run import FINISHED, JOBS, annotations, native
from tests.controllers.test_running import FLEET, job

USER = Write(user="root")
LARGER = """
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: larger}
spec:
  simulated:
    nodePools:
      - name: gpu
        count: 1
        shape: {cpu: "64", memory: 512Gi, nvidia.com/gpu: 16, pods: 110}
        labels: {accelerator: h100}
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(FLEET)
        await clock.advance(1)
        yield fleet


async def refuse_impossible(fleet: Fleet) -> None:
    patch = Patch(type="merge", body={"spec": {"refuseImpossible": True}})
    await fleet.store.patch(QUEUES, "research", patch, write=USER)
    await fleet.clock.advance(0.5)


def can_start(workload: Workload) -> Any:
    for condition in workload.status.conditions:
        if condition.type == "CanStart":
            return condition
    return None


async def test_a_condition_says_at_once_that_and_why_a_workload_can_never_start(
    fleet: Fleet,
) -> None:
    await fleet.apply(job("vast", gpus=9))
    waits = await fleet.until("vast", lambda item: can_start(item) is not None, 0.5)
    condition = can_start(waits)
    assert (condition.status, condition.reason) == ("False", "Impossible")
    assert "no node or pool in the fleet is large enough" in condition.message
    assert (waits.status.phase, waits.status.reason) == ("Waiting", "Impossible")


async def test_it_starts_when_the_fleet_grows_and_the_condition_goes(fleet: Fleet) -> None:
    await fleet.apply(job("vast", gpus=9))
    await fleet.until("vast", lambda item: can_start(item) is not None, 1)
    await fleet.apply(LARGER)
    runs = await fleet.until("vast", "Running", 60)
    assert can_start(runs) is None


async def test_the_condition_goes_when_it_may_start_and_waits_for_others(fleet: Fleet) -> None:
    await fleet.apply(job("runs", pods=2, seconds=900))
    await fleet.until("runs", "Running")
    await fleet.apply(job("vast", gpus=9, pods=1))
    await fleet.until("vast", lambda item: can_start(item) is not None, 1)
    await fleet.change("vast", {"spec": {"template": {"manifests": [manifest("vast", 8)]}}})
    waits = await fleet.until("vast", lambda item: can_start(item) is None, 10)
    assert (waits.status.phase, waits.status.reason) == ("Waiting", "DoesNotFit")


def manifest(name: str, gpus: int) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": gpus}}
    container = {"name": "main", "image": "training", "resources": resources}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


async def test_a_queue_that_refuses_the_impossible_ends_it_at_once(fleet: Fleet) -> None:
    await refuse_impossible(fleet)
    await fleet.apply(job("vast", gpus=9))
    await fleet.apply(job("fits"))
    failed = await fleet.until("vast", "Failed", 0.5)
    assert failed.status.reason == "Impossible"
    assert "no node or pool in the fleet is large enough" in failed.status.message
    assert failed.status.finished_at is not None
    assert {item.type: item.status for item in failed.status.conditions} == {
        "Finished": "True",
        "CanStart": "False",
    }
    await fleet.until("fits", "Succeeded", 300)
    assert await fleet.phase("vast") == "Failed"
    (event,) = await told(fleet, "vast")
    assert event.startswith("! Failed: It failed: it can never start as the fleet is: no node or")


async def test_what_was_accepted_waits_though_its_cluster_is_removed(fleet: Fleet) -> None:
    """No accepted workload is lost because someone replaces a cluster."""
    await refuse_impossible(fleet)
    await fleet.apply(LARGER)
    await fleet.clock.advance(10)
    await fleet.apply(job("first", gpus=16, seconds=900))
    await fleet.until("first", "Running")
    await fleet.apply(job("second", gpus=16))
    await fleet.until("second", "Waiting", 30)
    await fleet.change("first", {"spec": {"cancelled": True}})
    await fleet.store.delete(CLUSTERS, "larger", write=USER)
    waits = await fleet.until("second", lambda item: can_start(item) is not None, 60)
    assert waits.status.phase == "Waiting"
    await fleet.apply(LARGER)
    await fleet.until("second", "Running", 120)


async def test_a_native_object_that_is_refused_has_failed_and_says_why(fleet: Fleet) -> None:
    await refuse_impossible(fleet)
    await fleet.apply(native("vast", gpus=9))
    await fleet.clock.advance(1)
    await fleet.until("job-vast", "Failed", 2)
    await fleet.clock.advance(2)
    body = (await fleet.store.get(JOBS, "vast", "default")).object()
    failed = next(item for item in body["status"]["conditions"] if item["type"] == "Failed")
    assert (failed["status"], failed["reason"]) == ("True", "Impossible")
    assert "no node or pool in the fleet is large enough" in failed["message"]
    assert (await annotations(fleet, JOBS, "vast"))[FINISHED] == "Failed"


async def test_nothing_is_refused_while_a_cluster_has_not_reported(fleet: Fleet) -> None:
    await refuse_impossible(fleet)
    await fleet.apply("""
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: silent}
spec: {kubernetes: {kubeconfig: {namespace: default, name: silent, key: config}}}
""")
    await fleet.clock.advance(1)
    await fleet.apply(job("vast", gpus=9))
    waits = await fleet.until("vast", "Waiting", 10)
    assert can_start(waits) is None
    await fleet.store.delete(CLUSTERS, "silent", write=USER)
    waits = await fleet.until("vast", lambda item: can_start(item) is not None, 60)
    assert waits.status.phase == "Waiting"
