"""Fleet policies that come, change and go while workloads wait and run."""

# ruff: noqa: RUF001 - sentences are as people read them

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.api import codec
from fairway.api.errors import NotFound
from fairway.api.governance import FleetPolicy, FleetPolicyStatus
from fairway.api.workload import Workload
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Write
from fairway.store.keys import EVENTS, FLEET_POLICIES, NAMESPACES, WORKLOADS, WORKS
from tests.builders import fleet_policy, policy
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_running import FLEET, job

OURS = {"registries": ["registry.example.com"]}
NOT_OURS = (
    "fleet policy p does not allow image training, which is of no allowed registry: rule registries"
)
ROOT = Write(user="root")
HUB = Write(user="system:fairway")
SECOND = """
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: munich, labels: {topology.kubernetes.io/region: eu}}
spec:
  simulated:
    nodePools:
      - name: gpu
        count: 2
        shape: {cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}
        labels: {accelerator: h100}
"""
IN_EUROPE = {"clusters": {"labels": {"matchLabels": {"topology.kubernetes.io/region": "eu"}}}}


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as hub:
        await hub.apply(FLEET)
        await clock.advance(1)
        yield hub


async def put(fleet: Fleet, **spec: Any) -> None:
    """Makes the policy what it is to be."""
    with suppress(NotFound):
        await drop(fleet)
    await fleet.store.create(FLEET_POLICIES, fleet_policy("p", **spec), write=ROOT)


async def drop(fleet: Fleet) -> None:
    await fleet.store.delete(FLEET_POLICIES, "p", write=ROOT)


async def submit_unchecked(fleet: Fleet, text: str) -> None:
    """As on a Kubernetes hub, where nothing is checked when it is written."""
    body = yaml.safe_load(text)
    await fleet.store.create(WORKLOADS, body, namespace="default", write=HUB)


async def status(fleet: Fleet) -> FleetPolicyStatus:
    stored = await fleet.store.get(FLEET_POLICIES, "p")
    return codec.decode(stored.raw, FleetPolicy).status


def condition(workload: Workload, kind: str) -> tuple[str, str]:
    for item in workload.status.conditions:
        if item.type == kind:
            return (item.status, item.message)
    return ("", "")


async def events(fleet: Fleet) -> set[tuple[str, str]]:
    listing = await fleet.store.list(EVENTS)
    bodies = [item.object() for item in listing.items]
    return {(body["reason"], body["message"]) for body in bodies}


async def test_a_workload_waits_with_the_rule_it_breaks_until_the_policy_allows_it(
    fleet: Fleet,
) -> None:
    await put(fleet, **OURS)
    await submit_unchecked(fleet, job("train"))
    await fleet.until("train", lambda item: item.status.reason == "PolicyViolated")
    answer = await fleet.plane.explain("default", "train")
    assert answer is not None
    assert answer["message"] == f"needs 8 × h100 in one cluster; {NOT_OURS}"
    assert (answer["reasons"][0]["policy"], answer["reasons"][0]["rule"]) == ("p", "registries")
    await fleet.clock.advance(120)
    assert await fleet.phase("train") == "Waiting"
    await put(fleet, registries=["registry.example.com", "docker.io"])
    await fleet.until("train", "Running")


async def test_what_runs_is_kept_with_a_condition_and_an_event(fleet: Fleet) -> None:
    await fleet.apply(job("train", seconds=300))
    await fleet.until("train", "Running")
    await put(fleet, **OURS)
    kept = await fleet.until("train", lambda item: condition(item, "PolicyViolated")[0] == "True")
    assert condition(kept, "PolicyViolated") == ("True", NOT_OURS)
    assert condition(kept, "PolicyStop") == ("", "")
    assert ("PolicyViolated", NOT_OURS) in await events(fleet)
    await fleet.clock.advance(60)
    assert await fleet.phase("train") == "Running"
    await drop(fleet)
    await fleet.until("train", lambda item: condition(item, "PolicyViolated")[0] == "False")
    await fleet.until("train", "Succeeded")


async def test_what_runs_is_stopped_after_the_grace_if_the_policy_says_so(fleet: Fleet) -> None:
    await fleet.apply(job("train", seconds=3600))
    await fleet.until("train", "Running")
    await put(fleet, **OURS, onViolation="Stop", graceSeconds=120)
    await fleet.until("train", lambda item: condition(item, "PolicyStop")[0] == "True", 5)
    noticed = fleet.clock.now()
    await fleet.clock.advance(115)
    assert await fleet.phase("train") == "Running"
    stopped = await fleet.until("train", lambda item: item.status.claim is None)
    assert 119 <= fleet.clock.now() - noticed <= 125
    past = stopped.status.history[-1]
    assert (past.reason, past.message, past.blame) == ("PolicyViolated", NOT_OURS, "Decision")
    waiting = await fleet.until("train", lambda item: item.status.phase == "Waiting")
    assert condition(waiting, "PolicyStop") == ("", "")
    await fleet.until("train", lambda item: item.status.reason == "PolicyViolated")
    await drop(fleet)
    await fleet.until("train", "Running")


async def test_a_grace_begins_again_with_the_next_change(fleet: Fleet) -> None:
    await fleet.apply(job("train", seconds=3600))
    await fleet.until("train", "Running")
    await put(fleet, **OURS, onViolation="Stop", graceSeconds=120)
    await fleet.clock.advance(100)
    await drop(fleet)
    await fleet.clock.advance(100)
    await put(fleet, **OURS, onViolation="Stop", graceSeconds=120)
    await fleet.clock.advance(100)
    assert await fleet.phase("train") == "Running"
    await fleet.clock.advance(30)
    assert await fleet.phase("train") != "Running"


async def test_a_job_leaves_a_cluster_that_is_forbidden_for_one_that_is_allowed(
    fleet: Fleet,
) -> None:
    await fleet.apply(job("train", seconds=3600))
    await fleet.until("train", "Running")
    await fleet.apply(SECOND)
    await put(fleet, **IN_EUROPE, onViolation="Stop", graceSeconds=30)
    moved = await fleet.until("train", lambda item: summary_of(item) == "munich")
    past = moved.status.history[-1]
    assert (past.reason, past.message) == (
        "PolicyViolated",
        "fleet policy p does not allow hangzhou: rule clusters",
    )
    await fleet.until("train", "Running")
    await fleet.clock.advance(100)
    assert summary_of(await fleet.workload("train")) == "munich"


async def test_a_label_of_a_cluster_or_namespace_changes_what_is_allowed(fleet: Fleet) -> None:
    by_label = {"labels": {"matchLabels": {"tenancy": "partner"}}}
    await put(fleet, **IN_EUROPE, namespaces=by_label)
    await fleet.apply(job("first", seconds=300))
    await fleet.until("first", "Running")
    patch = Patch(type="merge", body={"metadata": {"labels": {"tenancy": "partner"}}})
    await fleet.store.patch(NAMESPACES, "default", patch, write=ROOT)
    kept = await fleet.until("first", lambda item: condition(item, "PolicyViolated")[0] == "True")
    assert condition(kept, "PolicyViolated")[1] == (
        "fleet policy p does not allow hangzhou: rule clusters"
    )
    await fleet.apply(job("second"))
    await fleet.until("second", lambda item: item.status.reason == "ClusterForbidden")
    region = {"topology.kubernetes.io/region": "eu"}
    await fleet.change_cluster("hangzhou", {"metadata": {"labels": region}})
    await fleet.until("second", "Running")
    await fleet.until("first", lambda item: condition(item, "PolicyViolated")[0] == "False")


class TestLongestRun:
    async def test_a_workload_without_a_limit_gets_that_of_the_policy(self, fleet: Fleet) -> None:
        await put(fleet, runSecondsMax=60)
        await fleet.apply(job("train", seconds=3600))
        started = await fleet.until("train", "Running")
        assert started.status.claim is not None
        assert started.status.claim.run_seconds_limit == 60
        ended = await fleet.until("train", "Failed", 120)
        assert ended.status.reason == "RunLimitExceeded"

    async def test_it_holds_for_what_was_decided_under_it_when_the_policy_is_gone(
        self, fleet: Fleet
    ) -> None:
        await put(fleet, runSecondsMax=60)
        await fleet.apply(job("train", seconds=3600))
        await fleet.until("train", "Running")
        await drop(fleet)
        await fleet.until("train", "Failed", 120)

    async def test_what_ran_before_is_kept_with_a_condition(self, fleet: Fleet) -> None:
        await fleet.apply(job("train", seconds=300))
        await fleet.until("train", "Running")
        await put(fleet, runSecondsMax=60)
        kept = await fleet.until(
            "train", lambda item: condition(item, "PolicyViolated")[0] == "True", 65
        )
        assert condition(kept, "PolicyViolated")[1] == (
            "fleet policy p does not allow a run of more than 60 seconds: rule runSeconds"
        )
        await fleet.until("train", "Succeeded")

    async def test_or_stopped_for_good(self, fleet: Fleet) -> None:
        await fleet.apply(job("train", seconds=3600))
        await fleet.until("train", "Running")
        await put(fleet, runSecondsMax=60, onViolation="Stop", graceSeconds=30)
        await fleet.clock.advance(80)
        assert await fleet.phase("train") == "Running"
        ended = await fleet.until("train", "Failed", 30)
        assert ended.status.reason == "PolicyViolated"


async def test_a_policy_that_warns_lets_run_with_a_condition_and_counts(fleet: Fleet) -> None:
    await put(fleet, **OURS, enforcement="Warn", onViolation="Stop", graceSeconds=0)
    await fleet.apply(job("train", seconds=120))
    started = await fleet.until("train", lambda item: condition(item, "PolicyWarning")[0] == "True")
    assert condition(started, "PolicyWarning") == ("True", NOT_OURS)
    assert ("PolicyWarning", NOT_OURS) in await events(fleet)
    await fleet.until("train", "Succeeded")


async def test_a_policy_that_is_tried_out_only_counts(fleet: Fleet) -> None:
    tallies: list[Any] = []
    fleet.plane.fleet_policies.observers.append(tallies.append)
    await put(fleet, **OURS, **IN_EUROPE, priority={"max": 5}, enforcement="DryRun")
    await fleet.apply(job("train", seconds=120))
    await fleet.apply(job("urgent", seconds=120, priority=6))
    await fleet.until("train", "Running")
    await fleet.clock.advance(10)
    said = await status(fleet)
    assert (said.workloads, said.violating) == (2, 2)
    counts = {item.rule: (item.count, item.workloads) for item in said.violations}
    assert counts["registries"] == (2, ("default/train", "default/urgent"))
    assert counts["priority"] == (1, ("default/urgent",))
    assert counts["clusters"] == counts["registries"]  # where they run
    assert tallies[-1]["p", "registries", "DryRun"] == 2
    workload = await fleet.workload("train")
    assert not [item for item in workload.status.conditions if item.type.startswith("Policy")]
    assert not {reason for reason, _ in await events(fleet) if reason.startswith("Policy")}
    await fleet.until("train", "Succeeded")
    await fleet.until("urgent", "Succeeded")
    await fleet.clock.advance(10)
    said = await status(fleet)
    assert (said.workloads, said.violating, said.violations) == (0, 0, ())


async def test_a_running_service_keeps_its_image_where_a_new_one_is_forbidden(
    fleet: Fleet,
) -> None:
    await fleet.apply(SERVICE)
    await fleet.until("web", "Running")
    await put(fleet, **OURS)
    body = yaml.safe_load(SERVICE)
    container = body["spec"]["template"]["manifests"][0]["spec"]["template"]["spec"]["containers"][
        0
    ]
    container["image"] = "evil.io/web"
    patch = Patch(type="merge", body={"spec": body["spec"]})
    await fleet.store.patch(WORKLOADS, "web", patch, namespace="default", write=HUB)
    await fleet.clock.advance(60)
    assert await images(fleet) == ["training"]
    refused = {message for reason, message in await events(fleet) if reason == "ManifestRefused"}
    assert refused == {NOT_OURS.replace("training", "evil.io/web")}
    await fleet.change("web", {"spec": {"replicas": 0}})  # fewer are always allowed
    await fleet.clock.advance(30)
    await put(fleet, registries=["evil.io"])
    await fleet.change("web", {"spec": {"replicas": 1}})
    await fleet.clock.advance(60)
    assert await images(fleet) == ["evil.io/web"]


HIDDEN = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: hidden, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: hidden}}
  template:
    metadata: {labels: {app: hidden}}
    spec: {containers: [{name: main, image: evil.io/x}]}
"""


async def test_what_is_sent_along_is_refused_by_the_agent_and_the_attempt_ends(
    fleet: Fleet,
) -> None:
    await put(fleet, registries=["docker.io"])
    await fleet.apply(HIDDEN)  # it names no queue, so the hub does not run it
    body = yaml.safe_load(job("train", seconds=3600))
    along = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hidden"}
    body["spec"]["dependencies"] = [along]
    await fleet.apply(yaml.safe_dump(body))
    refused = await fleet.until("train", lambda item: bool(item.status.history), 30)
    past = refused.status.history[-1]
    assert (past.reason, past.message) == (
        "PolicyViolated",
        NOT_OURS.replace("training", "evil.io/x"),
    )
    assert refused.status.requeue is not None
    assert refused.status.requeue.avoid == ("hangzhou",)
    assert await fleet.pods("hangzhou") == 0
    await put(fleet, registries=["docker.io", "evil.io"])
    await fleet.until("train", "Running", 1200)


async def test_a_service_leaves_the_forbidden_cluster_only(fleet: Fleet) -> None:
    await fleet.apply(SECOND)
    spread = {"spread": [{"by": "Cluster", "least": 2}], "division": {"type": "DynamicWeight"}}
    await fleet.apply(yaml.safe_dump(policy("both", **spread)))
    body = yaml.safe_load(SERVICE)
    body["spec"] |= {"replicas": 4, "policy": "both"}
    await fleet.apply(yaml.safe_dump(body))
    await fleet.until("web", lambda item: places(item) == ["hangzhou", "munich"])
    await fleet.until("web", "Running")
    await fleet.apply(yaml.safe_dump(policy("both")))  # one cluster may have them all
    await put(fleet, **IN_EUROPE)
    await fleet.clock.advance(120)
    assert places(await fleet.workload("web")) == ["hangzhou", "munich"]
    await put(fleet, **IN_EUROPE, onViolation="Stop", graceSeconds=30)
    moved = await fleet.until("web", lambda item: places(item) == ["munich"])
    assert moved.status.phase == "Running"
    moved = await fleet.until("web", lambda item: item.status.pods.ready == 4)
    assert moved.status.claim is not None
    assert [item.replicas for item in moved.status.claim.placements] == [4]
    assert await fleet.pods("hangzhou") == 0


def places(workload: Workload) -> list[str]:
    claim = workload.status.claim
    return [item.cluster for item in claim.placements] if claim is not None else []


async def images(fleet: Fleet) -> list[str]:
    """The images of all works."""
    listing = await fleet.store.list(WORKS)
    return [
        manifest["object"]["spec"]["template"]["spec"]["containers"][0]["image"]
        for item in listing.items
        for manifest in item.object()["spec"].get("manifests", ())
    ]


SERVICE = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: web, namespace: default, finalizers: [fairway.dev/works]}
spec:
  queue: research
  mode: Divided
  replicas: 1
  template:
    manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 1
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec:
              containers:
                - {name: main, image: training, resources: {limits: {nvidia.com/gpu: 1}}}
"""
