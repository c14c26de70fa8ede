"""A hub on a kube-apiserver and real members: pods run where the plan said, and what becomes of
them is heard of.

Jobs are run by Kubernetes' own controllers and scheduler; no test writes a status of theirs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairway.api.workload import Workload
from tests.contracts.drivers import service
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import H100, MEMBERS, Fleet
from tests.kubernetes.hubs import Json, basics, gang, hub_of
from tests.waiting import seen

pytestmark = IN_THE_FLEET
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def nodes_of(pods: list[Json]) -> list[str]:
    return sorted(pod["spec"]["nodeName"] for pod in pods)


def label(member: str, node: str, key: str) -> str:
    found: dict[str, Any] = next(other for other in MEMBERS[member] if other["name"] == node)
    return str(found["labels"][key])


def placed(workload: Workload) -> str:
    assert workload.status.claim is not None
    return workload.status.claim.placements[0].cluster


async def test_a_gang_runs_where_the_plan_said_and_succeeds(fleet: Fleet, tmp_path: Path) -> None:
    objects = basics(a100=0, l4=0)
    async with hub_of(fleet, tmp_path, "hangzhou", "berlin", "edge", objects=objects) as hub:
        words = ("sh", "-c", "echo hello; sleep 2")
        await hub.apply(gang("train", *words, pods=2, rack=True))
        running = await hub.until("train", "Running")
        assert placed(running) == "hangzhou"
        pods = await hub.pods("hangzhou", "train")
        claim = running.status.claim
        assert claim is not None
        racks = set(claim.placements[0].pod_sets[0].domains)
        assert len(racks) == 1
        assert {label("hangzhou", node, "rack") for node in nodes_of(pods)} == racks
        assert len(set(nodes_of(pods))) == 2  # eight GPUs each, hence a node each
        assert {label("hangzhou", node, "nvidia.com/gpu.product") for node in nodes_of(pods)} == {
            H100
        }
        for other in ("berlin", "edge"):
            assert await hub.pods(other, "train") == []
        told = [part async for part in hub.client.log("train", namespace="team")]
        assert b"hello" in b"".join(told)
        done = await hub.until("train", "Succeeded")
        assert done.status.claim is None or done.status.finished_at is not None


async def test_a_gang_waits_for_quota_though_gpus_are_free(fleet: Fleet, tmp_path: Path) -> None:
    objects = basics(h100=8, a100=0, l4=0)
    async with hub_of(fleet, tmp_path, "hangzhou", objects=objects) as hub:
        await hub.apply(gang("first"))
        await hub.until("first", "Running")
        await hub.apply(gang("second", "sleep", "0.1"))
        await hub.until("second", lambda item: "Quota" in item.status.reason, "a wait for quota")
        assert await hub.pods("hangzhou", "second") == []
        await hub.cancel("first")
        await hub.until("second", "Succeeded")


async def test_a_preempted_gang_makes_room_and_runs_again(fleet: Fleet, tmp_path: Path) -> None:
    objects = basics(h100=0, a100=0)
    async with hub_of(fleet, tmp_path, "edge", objects=objects) as hub:
        await hub.apply(gang("humble", pods=2, gpus=2))
        await hub.until("humble", "Running")
        before = {pod["metadata"]["uid"] for pod in await hub.pods("edge", "humble")}
        await hub.apply(gang("urgent", "sleep", "2", pods=2, gpus=2, priority=1000))
        await hub.until("urgent", "Running")
        humble = await hub.pods("edge", "humble")
        assert not before & {item["metadata"]["uid"] for item in humble}
        await hub.until("urgent", "Succeeded")
        again = await hub.until("humble", "Running")
        assert [item.reason for item in again.status.history] == ["PreemptedWithinQueue"]
        after = {pod["metadata"]["uid"] for pod in await hub.pods("edge", "humble")}
        assert len(after) == 2
        assert not before & after


async def test_nothing_is_left_of_a_workload_that_is_cancelled(
    fleet: Fleet, tmp_path: Path
) -> None:
    async with hub_of(fleet, tmp_path, "berlin", objects=basics(h100=0, l4=0)) as hub:
        await hub.apply(gang("train", pods=2))
        await hub.until("train", "Running")
        await hub.cancel("train")
        await hub.until("train", "Cancelled")

        async def left() -> str:
            words = ("get", "jobs,pods", "--namespace=team", "-o", "name")
            return await hub.kubectl("berlin", *words)

        await seen(left, lambda told: not told.strip(), "nothing left of it")


async def test_a_gang_moves_off_a_node_that_is_drained(fleet: Fleet, tmp_path: Path) -> None:
    async with hub_of(fleet, tmp_path, "berlin", objects=basics(h100=0, l4=0)) as hub:
        await hub.apply(gang("train"))
        await hub.until("train", "Running")
        (node,) = nodes_of(await hub.pods("berlin", "train"))
        words = ("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force")
        await hub.kubectl("berlin", *words, "--timeout=120s")
        again = await hub.until(
            "train",
            lambda other: other.status.phase == "Running" and bool(other.status.history),
            "another attempt that runs",
        )
        assert [item.reason for item in again.status.history] == ["NodeDrained"]
        (other,) = nodes_of(await hub.pods("berlin", "train"))
        assert other != node


async def test_nothing_is_placed_in_a_member_that_is_full_of_others_pods(
    fleet: Fleet, tmp_path: Path
) -> None:
    foreign = service("foreign", replicas=2)
    container = foreign["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": "2"}}
    async with hub_of(fleet, tmp_path, "edge", objects=basics(h100=0, a100=0)) as hub:
        await hub.kubectl("edge", "apply", "-f", "-", given=json.dumps(foreign))
        try:
            words = ("rollout", "status", "deployment/foreign", "--timeout=120s")
            await hub.kubectl("edge", *words)

            async def free() -> str:
                found = await hub.client.get("clusters.fairway.dev", "edge")
                return str(found["status"]["free"]["nvidia.com/gpu"])

            await seen(free, lambda told: told == "0", "no free GPU")
            await hub.apply(gang("train", "sleep", "0.1", gpus=1))
            await hub.until("train", lambda item: bool(item.status.reason), "a reason to wait")
            assert await hub.phase("train") == "Waiting"
            assert await hub.pods("edge", "train") == []
        finally:
            await hub.kubectl("edge", "delete", "deployment", "foreign", "--wait=true")
        await hub.until("train", "Succeeded")


async def test_a_gang_moves_off_a_node_that_is_lost(fleet: Fleet, tmp_path: Path) -> None:
    member = fleet.members["berlin"]
    async with hub_of(fleet, tmp_path, "berlin", objects=basics(h100=0, l4=0)) as hub:
        await hub.apply(gang("train"))
        await hub.until("train", "Running")
        (node,) = nodes_of(await hub.pods("berlin", "train"))
        member.silence(node)
        try:
            await hub.kubectl(
                "berlin", "wait", f"node/{node}", "--for=condition=Ready=Unknown", "--timeout=120s"
            )
            # Whoever owns the machines finds it off: only then nothing can run there any more.
            await hub.kubectl("berlin", "taint", "node", node, f"{OUT_OF_SERVICE}=off:NoExecute")
            again = await hub.until(
                "train",
                lambda other: other.status.phase == "Running" and bool(other.status.history),
                "another attempt that runs",
            )
        finally:
            await hub.kubectl("berlin", "taint", "node", node, f"{OUT_OF_SERVICE}:NoExecute-")
            member.silence(node, is_silent=False)
        assert [item.reason for item in again.status.history] == ["NodeTainted"]
        assert nodes_of(await hub.pods("berlin", "train")) != [node]


async def test_a_member_that_is_killed_is_missed_and_comes_back_as_it_was(
    fleet: Fleet, tmp_path: Path
) -> None:
    member = fleet.members["edge"]
    async with hub_of(fleet, tmp_path, "edge", objects=basics(h100=0, a100=0)) as hub:
        await hub.apply(gang("train", gpus=2))
        await hub.until("train", "Running")
        before = [pod["metadata"]["uid"] for pod in await hub.pods("edge", "train")]

        async def phase() -> str:
            found = await hub.client.get("clusters.fairway.dev", "edge")
            return str(found["status"]["phase"])

        member.kill()
        try:
            await seen(phase, lambda told: told != "Ready", "the member to be missed")
            assert await hub.phase("train") == "Running"
        finally:
            member.bring_back()  # by this very thread, with which its processes live
        await seen(phase, lambda told: told == "Ready", "the member to be back")
        assert [pod["metadata"]["uid"] for pod in await hub.pods("edge", "train")] == before
        await hub.apply(gang("second", "sleep", "0.1", gpus=2))
        await hub.until("second", "Succeeded")
        assert await hub.phase("train") == "Running"
