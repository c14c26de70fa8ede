"""A native object says how it stands: queued, running, cancelled, or ended by the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_native_ends_run import SERVICE, native
from tests.controllers.test_running import FLEET, job

JOBS = ResourceKey("batch", "v1", "jobs")
DEPLOYMENTS = ResourceKey("apps", "v1", "deployments")
TRAININGS = ResourceKey("kubeflow.org", "v1", "pytorchjobs")
RAY = ResourceKey("ray.io", "v1", "rayjobs")

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: {plural}, singular: {singular}, kind: {kind}, listKind: {kind}List}}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {{status: {{}}}}
      schema:
        openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
TRAINING = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: learn, namespace: default, labels: {fairway.dev/queue: research}}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
            - {name: pytorch, image: training, resources: {limits: {nvidia.com/gpu: 8}}}
"""
RAY_JOB = """
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: learn, namespace: default, labels: {fairway.dev/queue: research}}
spec:
  entrypoint: "true"
  submissionMode: HTTPMode
  rayClusterSpec:
    headGroupSpec:
      template:
        spec:
          containers:
            - {name: head, image: ray, resources: {limits: {nvidia.com/gpu: 8}}}
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path) as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def body_of(fleet: Fleet, kind: ResourceKey, name: str) -> dict[str, Any]:
    body: dict[str, Any] = (await fleet.store.get(kind, name, "default")).object()
    return body


def conditions(body: dict[str, Any]) -> dict[str, tuple[str, str]]:
    listed = body.get("status", {}).get("conditions", ())
    return {item["type"]: (item["status"], item.get("reason", "")) for item in listed}


async def crowd(fleet: Fleet) -> None:
    """Takes all nodes, so that whatever comes next waits."""
    await fleet.apply(job("crowd", pods=2, seconds=300, priority=5))
    await fleet.until("crowd", "Running")


async def test_a_job_is_suspended_while_it_is_queued_and_not_once_it_runs(
    fleet: Fleet, clock: VirtualClock
) -> None:
    await crowd(fleet)
    await fleet.apply(native("train"))
    await clock.advance(5)
    queued = await body_of(fleet, JOBS, "train")
    assert queued["spec"]["suspend"] is True
    assert conditions(queued) == {"Suspended": ("True", "Queued")}
    before = await fleet.workload("job-train")
    await clock.advance(60)
    later = await body_of(fleet, JOBS, "train")
    assert later["metadata"]["resourceVersion"] == queued["metadata"]["resourceVersion"]
    await fleet.until("job-train", "Running", 600)
    await clock.advance(1)
    runs = await body_of(fleet, JOBS, "train")
    assert runs["spec"]["suspend"] is False
    assert conditions(runs) == {"Suspended": ("False", "JobResumed")}
    after = await fleet.until("job-train", "Succeeded")
    assert after.spec == before.spec
    await clock.advance(5)
    assert conditions(await body_of(fleet, JOBS, "train"))["Complete"][0] == "True"


async def test_a_job_that_is_preempted_is_suspended_again(
    fleet: Fleet, clock: VirtualClock
) -> None:
    await fleet.apply(native("train", seconds=1000))
    await clock.advance(1)
    await fleet.until("job-train", "Running")
    await crowd(fleet)
    await clock.advance(5)
    queued = await body_of(fleet, JOBS, "train")
    assert queued["spec"]["suspend"] is True
    assert conditions(queued) == {"Suspended": ("True", "Queued")}


async def test_a_job_that_is_held_says_so(fleet: Fleet, clock: VirtualClock) -> None:
    await crowd(fleet)
    await fleet.apply(native("train"))
    await clock.advance(5)
    await fleet.change("job-train", {"spec": {"hold": "Hold"}})
    await clock.advance(5)
    assert conditions(await body_of(fleet, JOBS, "train")) == {"Suspended": ("True", "Held")}


@pytest.mark.parametrize("where", ["in its queue", "while it runs"])
async def test_a_job_that_is_cancelled_has_failed(
    where: str, fleet: Fleet, clock: VirtualClock
) -> None:
    if where == "in its queue":
        await crowd(fleet)
    await fleet.apply(native("train", seconds=1000))
    await clock.advance(10)
    await fleet.change("job-train", {"spec": {"cancelled": True}})
    await fleet.until("job-train", "Cancelled")
    await clock.advance(5)
    ended = await body_of(fleet, JOBS, "train")
    told = conditions(ended)
    assert told["Failed"] == ("True", "Cancelled")
    assert told["FailureTarget"] == ("True", "Cancelled")
    assert ended["status"]["startTime"]
    assert not ended["status"].get("active")


async def test_a_job_that_the_hub_stops_at_its_limit_has_failed(
    fleet: Fleet, clock: VirtualClock
) -> None:
    await fleet.apply(native("train", seconds=20).replace("run-seconds:", "run-seconds-limit:"))
    await clock.advance(1)
    await fleet.until("job-train", "Failed", 300)
    await clock.advance(5)
    told = conditions(await body_of(fleet, JOBS, "train"))
    assert told["Failed"] == ("True", "RunLimitExceeded")


async def test_a_service_that_is_queued_or_cancelled_is_not_available(
    fleet: Fleet, clock: VirtualClock
) -> None:
    await crowd(fleet)
    await fleet.apply(SERVICE)
    await clock.advance(5)
    queued = conditions(await body_of(fleet, DEPLOYMENTS, "chat"))
    assert queued == {"Available": ("False", "Queued"), "Progressing": ("Unknown", "Queued")}
    await fleet.until("deployment-chat", "Running", 600)
    await clock.advance(5)
    assert conditions(await body_of(fleet, DEPLOYMENTS, "chat"))["Available"][0] == "True"
    await fleet.change("deployment-chat", {"spec": {"cancelled": True}})
    await fleet.until("deployment-chat", "Cancelled")
    await clock.advance(5)
    ended = conditions(await body_of(fleet, DEPLOYMENTS, "chat"))
    assert ended == {"Available": ("False", "Cancelled"), "Progressing": ("False", "Cancelled")}


async def test_other_kinds_say_it_by_their_own_conventions(
    fleet: Fleet, clock: VirtualClock
) -> None:
    for group, kind in (("kubeflow.org", "PyTorchJob"), ("ray.io", "RayJob")):
        singular = kind.lower()
        names = {"group": group, "kind": kind, "singular": singular, "plural": f"{singular}s"}
        await fleet.apply(DEFINITION.format(**names))
    await crowd(fleet)
    await fleet.apply(TRAINING)
    await fleet.apply(RAY_JOB)
    await clock.advance(5)
    training = await body_of(fleet, TRAININGS, "learn")
    assert training["spec"]["runPolicy"]["suspend"] is True
    assert conditions(training)["Suspended"] == ("True", "Queued")
    ray = await body_of(fleet, RAY, "learn")
    assert ray["spec"]["suspend"] is True
    assert ray["status"]["jobDeploymentStatus"] == "Suspended"
    await fleet.until("pytorchjob-learn", "Running", 600)
    await fleet.until("rayjob-learn", "Running", 600)
    await clock.advance(1)
    assert (await body_of(fleet, TRAININGS, "learn"))["spec"]["runPolicy"]["suspend"] is False
    assert (await body_of(fleet, RAY, "learn"))["spec"]["suspend"] is False
    for name in ("pytorchjob-learn", "rayjob-learn"):
        await fleet.change(name, {"spec": {"cancelled": True}})
        await fleet.until(name, "Cancelled")
    await clock.advance(5)
    assert conditions(await body_of(fleet, TRAININGS, "learn"))["Failed"] == ("True", "Cancelled")
    ended = (await body_of(fleet, RAY, "learn"))["status"]
    assert (ended["jobDeploymentStatus"], ended["reason"]) == ("Failed", "Cancelled")
