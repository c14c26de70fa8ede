"""Devices that pods ask for through resource claims, on a running hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.api import codec
from fairway.api.amounts import Quantity
from fairway.api.work import Work
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.keys import WORKS
from tests.controllers.fleets import Fleet, running, summary_of

CLASS = "deviceclass.resource.kubernetes.io/"
FLEET = f"""
apiVersion: fairway.dev/v1alpha1
kind: Fleet
metadata: {{name: fleet}}
spec:
  deviceClasses:
  - {{name: gpu.example.com, resource: nvidia.com/gpu}}
  - {{name: slice.example.com, resource: example.com/slice}}
---
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {{name: here}}
spec:
  simulated:
    nodePools:
    - name: gpu
      count: 2
      shape: {{cpu: "64", "{CLASS}gpu.example.com": 4, "{CLASS}slice.example.com": 8, pods: 110}}
---
apiVersion: fairway.dev/v1alpha1
kind: Flavor
metadata: {{name: any}}
spec: {{}}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {{name: research}}
spec:
  resourceGroups:
  - resources: [nvidia.com/gpu, example.com/slice]
    flavors:
    - name: any
      quotas:
      - {{resource: nvidia.com/gpu, nominal: 6}}
      - {{resource: example.com/slice, nominal: 8}}
  uncovered: Unlimited
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: devices, namespace: default}
spec: {spec: {devices: {requests: [REQUEST]}}}
"""
EXACT = TEMPLATE.replace(
    "REQUEST", "{name: gpu, exactly: {deviceClassName: gpu.example.com, count: 3}}"
)
EITHER = TEMPLATE.replace(
    "REQUEST",
    "{name: gpu, firstAvailable: [{name: a, deviceClassName: gpu.example.com, count: 4},"
    " {name: b, deviceClassName: slice.example.com, count: 2}]}",
)
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, namespace: default, labels: {fairway.dev/queue: research}}
spec:
  parallelism: 1
  completions: 1
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{name: gpu, resourceClaimTemplateName: devices}]
      containers:
      - {name: main, image: train, resources: {requests: {cpu: "1"}, claims: [{name: gpu}]}}
"""


def job(name: str) -> str:
    return JOB.replace("NAME", name)


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET)
        await clock.advance(5)
        yield found


async def submit(fleet: Fleet, text: str) -> None:
    """Writes objects; a native one is adopted a moment later."""
    await fleet.apply(text)
    await fleet.clock.advance(1)


async def manifests(fleet: Fleet, name: str) -> list[dict[str, Any]]:
    stored = await fleet.store.get(WORKS, f"default.{name}", "fairway-cluster-here")
    return [item.object for item in codec.decode(stored.raw, Work).spec.manifests]


async def test_devices_are_charged_and_their_template_goes_along(fleet: Fleet) -> None:
    await submit(fleet, EXACT + "---" + job("first") + "---" + job("second"))
    for name in ("job-first", "job-second"):
        started = await fleet.until(name, "Running", 60)
        assert summary_of(started) == "here"
        assert started.status.claim is not None
        (pods,) = started.status.claim.placements[0].pod_sets
        assert pods.requests["nvidia.com/gpu"] == Quantity.of(3)
        assert pods.flavors["nvidia.com/gpu"] == "any"
    kinds = [item["kind"] for item in await manifests(fleet, "job-first")]
    assert kinds == ["ResourceClaimTemplate", "Job"]
    await submit(fleet, job("third"))
    waiting = await fleet.until("job-third", lambda item: bool(item.status.reason), 60)
    assert waiting.status.reason == "QuotaExceeded"
    await fleet.until("job-first", "Succeeded", 600)
    await fleet.until("job-third", "Running", 60)


async def test_a_template_that_comes_later_lets_a_job_start(fleet: Fleet) -> None:
    await submit(fleet, job("early"))
    waiting = await fleet.until("job-early", lambda item: bool(item.status.reason), 60)
    assert waiting.status.reason == "DevicesNotCounted"
    await submit(fleet, EXACT)
    await fleet.until("job-early", "Running", 60)


async def test_an_alternative_that_was_charged_is_the_one_that_is_sent(fleet: Fleet) -> None:
    await submit(fleet, EITHER + "---" + job("first"))
    first = await fleet.until("job-first", "Running", 60)
    await submit(fleet, job("second"))
    second = await fleet.until("job-second", "Running", 60)
    chosen = []
    for item in (first, second):
        assert item.status.claim is not None
        template, _ = await manifests(fleet, item.metadata.name)
        (request,) = template["spec"]["spec"]["devices"]["requests"]
        chosen.append((item.status.claim.alternative, request["exactly"]["deviceClassName"]))
    assert chosen == [("", "gpu.example.com"), ("device-choice-2", "slice.example.com")]
