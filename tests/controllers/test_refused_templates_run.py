"""A template that a cluster refuses: said at once, and tried where it may be accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.api.workload import Workload
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_running import FLEET, job

SAID = 'manifest 0: admission webhook "images" denied the request: training'


def cluster(name: str, refused: str = "") -> str:
    return f"""
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {{name: {name}}}
spec:
  simulated:
    faults: {{refusedImages: [{refused}]}}
    nodePools:
      - name: gpu
        count: 2
        shape: {{cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}}
        labels: {{accelerator: h100}}
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path) as found:
        await found.apply(
            FLEET.partition("---\napiVersion: fairway.dev/v1alpha1\nkind: Cluster")[0]
        )
        yield found


SERVICE = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: web, namespace: default}
spec:
  queue: research
  mode: Divided
  replicas: 2
  template:
    manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec:
              containers:
                - {name: main, image: training, resources: {limits: {nvidia.com/gpu: 1}}}
"""


def refusals_of(workload: Workload) -> list[tuple[str, str, str]]:
    return [
        (item.status, item.reason, item.message)
        for item in workload.status.conditions
        if item.type == "TemplateAccepted"
    ]


async def explained(fleet: Fleet, name: str) -> list[tuple[str, str]]:
    answer = await fleet.plane.explain("default", name)
    assert answer is not None
    return [(reason["code"], reason["message"]) for reason in answer["reasons"]]


async def test_it_is_said_at_once_and_its_claim_is_freed(fleet: Fleet, clock: VirtualClock) -> None:
    await fleet.apply(cluster("strict", "training"))
    await clock.advance(2)
    began = clock.now()
    await fleet.apply(job("train"))
    await clock.advance(1)
    waiting = await fleet.until(
        "train", lambda item: item.status.phase == "Waiting" and bool(item.status.history), 30
    )
    assert clock.now() - began < 10
    assert (waiting.status.reason, waiting.status.message) == ("TemplateRefused", SAID)
    assert waiting.status.claim is None
    assert waiting.status.releasing == ()
    assert waiting.status.requeue is not None
    assert waiting.status.requeue.avoid == ("strict",)
    await clock.advance(30)
    later = await fleet.workload("train")
    assert (later.status.reason, later.status.message) == ("TemplateRefused", SAID)
    assert ("TemplateRefused", f"strict refused its template: {SAID}") in await explained(
        fleet, "train"
    )


async def test_it_runs_in_a_cluster_that_accepts_it(fleet: Fleet, clock: VirtualClock) -> None:
    await fleet.apply(cluster("a-strict", "training"))
    await fleet.apply(cluster("b-lenient"))
    await clock.advance(2)
    await fleet.apply(job("train", seconds=5))
    await clock.advance(1)
    running_ = await fleet.until("train", "Running", 60)
    assert summary_of(running_).startswith("b-lenient")
    assert (running_.status.reason, running_.status.message) == ("", "")
    await fleet.until("train", "Succeeded")


async def test_a_service_that_runs_elsewhere_still_says_who_refused_it(
    fleet: Fleet, clock: VirtualClock
) -> None:
    await fleet.apply(cluster("a-strict", "training"))
    await fleet.apply(cluster("b-lenient"))
    await clock.advance(2)
    await fleet.apply(SERVICE)
    running_ = await fleet.until("web", lambda item: item.status.pods.ready == 2, 120)
    assert summary_of(running_) == "b-lenient (2)"
    assert running_.status.reason == ""
    assert refusals_of(running_) == [("False", "TemplateRefused", f"a-strict: {SAID}")]
    await clock.advance(300)
    assert refusals_of(await fleet.workload("web")) != []
    await clock.advance(600)  # it no longer avoids the cluster, which may accept it now
    assert refusals_of(await fleet.workload("web")) == []


async def test_it_is_tried_again_once_the_cluster_is_no_longer_avoided(
    fleet: Fleet, clock: VirtualClock
) -> None:
    await fleet.apply(cluster("strict", "training"))
    await clock.advance(2)
    await fleet.apply(job("train", seconds=5))
    await clock.advance(1)
    await fleet.until("train", lambda item: item.status.reason == "TemplateRefused", 30)
    await fleet.apply(cluster("strict"))
    await fleet.until("train", "Succeeded", 1200)


async def test_what_two_clusters_refuse_has_failed(fleet: Fleet, clock: VirtualClock) -> None:
    await fleet.apply(cluster("a-strict", "training"))
    await fleet.apply(cluster("b-strict", "training"))
    await clock.advance(2)
    await fleet.apply(job("train"))
    await clock.advance(1)
    failed = await fleet.until("train", "Failed", 60)
    assert (failed.status.reason, failed.status.message) == ("TemplateRefused", SAID)
    assert [attempt.blame for attempt in failed.status.history] == ["Place", "Program"]


async def test_what_every_cluster_would_refuse_fails_before_it_is_sent(
    fleet: Fleet, clock: VirtualClock
) -> None:
    await fleet.apply(cluster("lenient"))
    await clock.advance(2)
    elsewhere = job("train").replace(
        "metadata: {name: train}\n", "metadata: {name: train, namespace: other}\n"
    )
    await fleet.apply(elsewhere)
    await clock.advance(1)
    failed = await fleet.until("train", "Failed", 60)
    assert failed.status.reason == "ManifestInvalid"
    assert "spec.template.manifests[0].metadata.namespace" in failed.status.message
    assert failed.status.claim is None
    assert failed.status.releasing == ()
