"""Two workers meet by a program that knows a host name and a port, as on any cluster."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairway.agent.drivers.interface import LogQuery
from tests.agent.local import rendezvous
from tests.agent.local.machines import LocalRig, machine, shared
from tests.contracts.drivers import in_phase, pods_of, work


def pair(rig: LocalRig, name: str, *arguments: str) -> dict[str, Any]:
    """An indexed Job of two workers, as one would write it for any cluster."""
    script = shutil.copy(rendezvous.__file__, shared(rig.folder.parent))
    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "subdomain": name,
                    "terminationGracePeriodSeconds": 1,
                    "containers": [
                        {
                            "name": "main",
                            "command": [sys.executable, "-S", script, *arguments],
                            "env": [
                                {"name": "MASTER_ADDR", "value": f"{name}-0.{name}"},
                                {"name": "MASTER_PORT", "value": "29500"},
                                {"name": "WORLD_SIZE", "value": "2"},
                                {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": index}}},
                            ],
                        }
                    ],
                }
            },
        },
    }


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LocalRig]:
    async with machine(tmp_path) as opened:
        yield opened


async def line_of(rig: LocalRig, name: str, pod: str) -> str:
    """The first line that a worker says of its result."""
    told = ""
    async for part in rig.driver.logs(LogQuery(work=name, pod=pod, follow=True)):
        told += part.decode()
        for line in told.splitlines(keepends=True):
            if line.startswith("worker") and line.endswith("\n"):
                return line
    raise AssertionError(f"{pod} ended without a result: {told}")


async def test_two_gangs_of_two_workers_meet_side_by_side(rig: LocalRig) -> None:
    works = [work(name, pair(rig, name), pods=2) for name in ("one", "two")]
    for other in works:
        await rig.driver.apply(other)
    for item in works:
        await rig.until(in_phase(item, "Succeeded", 2), "both workers at their end")
        for rank in (0, 1):
            name = item.spec.workload.name
            line = await line_of(rig, item.metadata.name, f"{name}-{rank}")
            assert line.startswith(f"worker {rank} of 2: 3.0")


async def test_a_worker_that_is_killed_fails_the_gang_which_meets_anew_in_the_next_attempt(
    rig: LocalRig,
) -> None:
    first = work("pair", pair(rig, "pair", "wait"), pods=2, attempt=1)
    await rig.driver.apply(first)
    pid = int((await line_of(rig, first.metadata.name, "pair-1")).split()[-1])
    os.kill(rig.on_machine(first, pid, "pair-1"), signal.SIGKILL)

    def has_failed(seen: Any) -> bool:
        pods = pods_of(seen, first)
        status = seen.works[first.metadata.name].objects[0]["status"]
        is_told = "Failed" in {condition["type"] for condition in status.get("conditions", ())}
        return is_told and (
            [(p.name, p.phase) for p in pods if p.phase != "Terminating"] == [("pair-1", "Failed")]
            or all(p.phase == "Failed" for p in pods)
        )

    await rig.until(has_failed, "the failure of the gang")
    second = work("pair", pair(rig, "pair"), pods=2, attempt=2)
    await rig.driver.apply(second)
    after = await rig.until(in_phase(second, "Succeeded", 2), "both workers at their end")
    assert {pod.attempt for pod in pods_of(after, second)} == {2}
