"""Quotas and limits of a cluster's namespaces, as its agent reports them to a running hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.api.workload import Workload
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_running import FLEET, job

GPUS = "requests.nvidia.com/gpu"
MUNICH = """
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: munich}
spec:
  simulated:
    nodePools:
      - name: gpu
        count: 2
        shape: {cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}
        labels: {accelerator: h100}
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as hub:
        await hub.apply(FLEET)
        await clock.advance(1)
        yield hub


async def rule(fleet: Fleet, **rules: Any) -> None:
    """Gives the namespace of all workloads its rules in one cluster; its agent reports them."""
    namespaces = [{"name": "default", **rules}] if rules else []
    await fleet.change_cluster("hangzhou", {"spec": {"simulated": {"namespaces": namespaces}}})
    await fleet.clock.advance(15)


def quota(hard: int, others: int = 0) -> dict[str, Any]:
    return {"quotas": [{"name": "compute", "hard": {GPUS: hard}, "others": {GPUS: others}}]}


def can_start(workload: Workload) -> str:
    return next((item.reason for item in workload.status.conditions if item.type == "CanStart"), "")


async def test_a_full_namespace_gets_nothing_and_another_cluster_does(fleet: Fleet) -> None:
    await rule(fleet, **quota(8, others=8))
    await fleet.apply(job("train"))
    waiting = await fleet.until("train", lambda item: bool(item.status.reason))
    assert waiting.status.reason == "NamespaceQuotaExceeded"
    answer = await fleet.plane.explain("default", "train")
    assert answer is not None
    assert answer["reasons"][0]["message"] == (
        "hangzhou: ResourceQuota compute of namespace default leaves 0 of 8"
        " requests.nvidia.com/gpu, and it needs 8"
    )
    await fleet.clock.advance(60)
    assert await fleet.pods("hangzhou") == 0
    await fleet.apply(MUNICH)
    started = await fleet.until("train", "Running")
    assert summary_of(started) == "munich"


async def test_what_others_leave_is_taken_and_what_ends_is_given_back(fleet: Fleet) -> None:
    await rule(fleet, **quota(8, others=4))
    await fleet.apply(job("first", gpus=4))
    await fleet.until("first", "Running")
    await fleet.apply(job("second", gpus=4))
    await fleet.until("second", lambda item: item.status.reason == "NamespaceQuotaExceeded")
    await fleet.until("first", "Succeeded", 120)
    await fleet.until("second", "Running")


async def test_a_victim_of_the_same_namespace_makes_room(fleet: Fleet) -> None:
    await rule(fleet, **quota(8))
    await fleet.apply(job("low", seconds=3600))
    await fleet.until("low", "Running")
    await fleet.apply(job("high", priority=9))
    await fleet.until("high", "Running")
    assert await fleet.phase("low") == "Waiting"


async def test_what_the_rules_never_allow_says_so_until_they_change(fleet: Fleet) -> None:
    await rule(fleet, limits=[{"name": "bounds", "max": {"nvidia.com/gpu": 4}}])
    await fleet.apply(job("train"))
    refused = await fleet.until("train", lambda item: can_start(item) == "NotAdmitted")
    assert refused.status.phase == "Waiting"
    await rule(fleet)
    await fleet.until("train", "Running")
