"""Pods are truly scheduled, run and end in each member of the fleet that other tests use."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.contracts.drivers import job
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import MEMBERS, Fleet, Member
from tests.waiting import PATIENCE_SECONDS, seen

pytestmark = IN_THE_FLEET


def asking_for(gpus: int, name: str, *command: str, pods: int = 1) -> dict[str, Any]:
    made = job(name, pods=pods)
    container = made["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    if command:
        container["command"] = list(command)
    return made


def pods(member: Member, name: str) -> list[dict[str, Any]]:
    words = ("get", "pods", f"--selector=job-name={name}", "-o", "json")
    found: list[dict[str, Any]] = json.loads(member.kubectl(*words))["items"]
    return found


@pytest.mark.parametrize("name", sorted(MEMBERS))
async def test_a_job_runs_on_nodes_with_gpus_and_is_completed_by_its_controller(
    fleet: Fleet, name: str
) -> None:
    member = fleet.members[name]
    words = ("sh", "-c", "echo hello; sleep 0.2")
    await asyncio.to_thread(member.client.create, asking_for(2, "greets", *words, pods=2))
    done = ("wait", "job/greets", "--for=condition=Complete", f"--timeout={PATIENCE_SECONDS}s")
    await asyncio.to_thread(member.kubectl, *done)
    nodes = {
        member["name"] for member in MEMBERS[name] if "nvidia.com/gpu" in member["allocatable"]
    }
    assert {pod["spec"]["nodeName"] for pod in pods(member, "greets")} <= nodes
    assert "hello" in member.kubectl("logs", "job/greets")
    member.kubectl("delete", "job", "greets")


async def test_pods_that_do_not_fit_wait_until_others_leave(fleet: Fleet) -> None:
    member = fleet.members["edge"]

    async def found(name: str) -> list[dict[str, Any]]:
        return await asyncio.to_thread(pods, member, name)

    def run(several: list[dict[str, Any]]) -> bool:
        return bool(several) and all(item["status"]["phase"] == "Running" for item in several)

    await asyncio.to_thread(member.client.create, asking_for(2, "first", pods=2))
    await seen(lambda: found("first"), lambda several: len(several) == 2 and run(several), "both")
    await asyncio.to_thread(member.client.create, asking_for(1, "second"))
    await seen(
        lambda: found("second"),
        lambda several: any("Insufficient" in json.dumps(item["status"]) for item in several),
        "a pod for which there is no room",
    )
    await asyncio.to_thread(member.kubectl, "delete", "job", "first")
    await seen(lambda: found("second"), run, "room for the second")
    await asyncio.to_thread(member.kubectl, "delete", "job", "second")
