"""Pods are truly scheduled, run and end in each member of the fleet that other tests use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.contracts.drivers import job
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import MEMBERS, Fleet, Member

pytestmark = IN_THE_FLEET
PATIENCE_SECONDS = 60


def asking_for(gpus: int, name: str, *command: str, pods: int = 1) -> dict[str, Any]:
    made = job(name, pods=pods)
    container = made["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    if command:
        container["command"] = list(command)
    return made


async def until(look: Callable[[], Any], what: str) -> Any:
    """What a look finds, as soon as it finds something."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (found := await asyncio.to_thread(look)):
                await asyncio.sleep(0.1)
            return found
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None


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
    nodes = {one["name"] for one in MEMBERS[name] if "nvidia.com/gpu" in one["allocatable"]}
    assert {one["spec"]["nodeName"] for one in pods(member, "greets")} <= nodes
    assert "hello" in member.kubectl("logs", "job/greets")
    member.kubectl("delete", "job", "greets")


async def test_pods_that_do_not_fit_wait_until_others_leave(fleet: Fleet) -> None:
    member = fleet.members["edge"]
    for one in (asking_for(2, "first", pods=2), asking_for(1, "second")):
        await asyncio.to_thread(member.client.create, one)
    await until(
        lambda: (
            [one for one in pods(member, "second") if "Insufficient" in json.dumps(one["status"])]
        ),
        "a pod for which there is no room",
    )
    await asyncio.to_thread(member.kubectl, "delete", "job", "first")
    await until(
        lambda: [one for one in pods(member, "second") if one["status"]["phase"] == "Running"],
        "room for the second",
    )
    await asyncio.to_thread(member.kubectl, "delete", "job", "second")
