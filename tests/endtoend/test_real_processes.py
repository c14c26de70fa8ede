"""Real processes under a real hub: a gang that meets, fails as one and is tried again; a hub that
is killed at any moment; and proof from outside that nothing ran twice.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairway.api.workload import Workload
from tests.agent.local import rendezvous, stamps
from tests.agent.local.machines import shared
from tests.endtoend.hubs import hub_process, processes_of
from tests.waiting import PATIENCE_SECONDS

GAP_SECONDS_MAX = 20.0  # the machine that tests run on may be busy
SEED = int(os.environ.get("SEED", "20"))

# One that runs on any cluster as it is: it knows a host name and a port, and nothing of where it
# is. It stamps from a thread of its own, so that a heartbeat does not wait for the other worker.
PROGRAM = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[1])
import rendezvous, stamps

file, end = sys.argv[2:]
task = "worker-" + os.environ["RANK"]
run = f"{os.getpid()}@{stamps.now()}"
stamps.stamp(file, task, run, "start")
done = threading.Event()

def beat():
    while not done.wait(0.05):
        stamps.stamp(file, task, run, "beat")

beating = threading.Thread(target=beat, daemon=True)
beating.start()

gang = rendezvous.Gang()
total = sum(gang.gather(gang.rank + 1.0))
print(f"worker {gang.rank} of {gang.size}: {total}", run, flush=True)
while not os.path.exists(end):
    time.sleep(0.05)
total = sum(gang.gather(gang.rank + 10.0))
print(f"result {total}", flush=True)
done.set()
beating.join()
stamps.stamp(file, task, run, "end")
"""


def job(name: str, command: list[str], *, pods: int = 1, **spec: Any) -> dict[str, Any]:
    """A workload of one Job, as a user would write it."""
    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    environment = [
        {"name": "MASTER_ADDR", "value": f"{name}-0.{name}"},
        {"name": "MASTER_PORT", "value": "29500"},
        {"name": "WORLD_SIZE", "value": str(pods)},
        {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": index}}},
    ]
    container = {
        "name": "main",
        "image": "training",
        "command": command,
        "env": environment,
        "resources": {"requests": {"cpu": "1"}},
    }
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "subdomain": name,
                    "terminationGracePeriodSeconds": 1,
                    "containers": [container],
                }
            },
        },
    }
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "finalizers": ["fairway.dev/works"]},
        "spec": {"queue": "research", "template": {"manifests": [manifest]}, **spec},
    }


def programs(folder: Path) -> Path:
    """The folder that pods share with a test, with the programs that they run."""
    for module in (rendezvous, stamps):
        shutil.copy(module.__file__, shared(folder))
    return shared(folder)


def lines(file: Path) -> int:
    return len(file.read_bytes().splitlines()) if file.exists() else 0


async def until(holds: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None


def attempts(workload: Workload) -> list[tuple[int, str, int | None]]:
    return [(item.attempt, item.reason, item.exit_code) for item in workload.status.history]


async def test_a_gang_that_loses_a_worker_meets_anew_and_outlives_its_hub(tmp_path: Path) -> None:
    here = programs(tmp_path)
    file, end = here / "stamps", here / "end"
    pair = job(
        "pair",
        [sys.executable, "-S", "-c", PROGRAM, str(here), str(file), str(end)],
        pods=2,
        retry={"limit": 2, "backoffSeconds": 0},
    )
    async with hub_process(tmp_path) as hub:
        await hub.client.create(pair)
        await hub.until("pair", "Running")
        first = [await hub.line_of("pair", f"pair-{rank}", "worker") for rank in (0, 1)]
        assert [line.rpartition(" ")[0] for line in first] == [
            "worker 0 of 2: 3.0",
            "worker 1 of 2: 3.0",
        ]
        hub.kill_worker("pair", "pair-1", first[1].split()[-1])

        def is_second(one: Workload) -> bool:
            claim = one.status.claim
            return claim is not None and claim.attempt == 2 and one.status.phase == "Running"

        await hub.until("pair", is_second, "the second attempt")
        second = [await hub.line_of("pair", f"pair-{rank}", "worker") for rank in (0, 1)]
        assert not {line.split()[-1] for line in first} & {line.split()[-1] for line in second}

        await hub.kill()
        before = lines(file)
        await until(lambda: lines(file) > before + 4, "heartbeats without a hub")
        await hub.start()
        await hub.until("pair", is_second, "the second attempt, found again")
        assert [await hub.line_of("pair", f"pair-{rank}", "worker") for rank in (0, 1)] == second
        end.touch()
        ended = await hub.until("pair", "Succeeded")
        assert attempts(ended) == [(1, "Killed", 137), (2, "Succeeded", None)]
        assert "result 21.0" in await hub.log("pair", "pair-1")
        await until(lambda: len(processes_of(hub.data)) <= 2, "no process but the hub's own")
    runs = stamps.read(file)
    assert len(runs) == 4
    tasks = ["worker-0", "worker-1"]
    assert stamps.faults(runs, tasks=tasks, gap_seconds_max=GAP_SECONDS_MAX, cut_runs=2) == []


FAILS = """
import os, sys, time
print("loading", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
print("no such file", file=sys.stderr)
sys.exit(3)
"""


async def test_a_hub_killed_at_random_points_runs_everything_once_and_forgets_nothing(
    tmp_path: Path,
) -> None:
    """Set SEED for other points."""
    chance = random.Random(SEED)
    here = programs(tmp_path)
    file, names = here / "stamps", [f"job-{number}" for number in range(20)]
    script, end = str(here / "stamps.py"), here / "end"
    async with hub_process(tmp_path, cpus=5) as hub:
        await hub.client.create(job("fails", [sys.executable, "-S", "-c", FAILS, str(end)]))
        for name in names:
            command = [sys.executable, "-S", script, str(file), name, "0.4"]
            await hub.client.create(job(name, command))
        await hub.until("fails", "Running")
        assert await hub.line_of("fails", "", "loading") == "loading"
        # Some 200 stamps in all; between two points the hub may well not have come up yet.
        for point in sorted(chance.randrange(0, 180) for _ in range(5)):
            await until(lambda at=point: lines(file) >= at, "stamps before the next kill")
            await hub.kill()
            await hub.launch()
        end.touch()
        await hub.until_up()
        for name in names:
            ended = await hub.until(name, "Succeeded")
            assert attempts(ended) == [(1, "Succeeded", None)]
        assert attempts(await hub.until("fails", "Failed")) == [(1, "ProgramFailed", 3)]
        assert await hub.log("fails") == "loading\nno such file\n"
        assert await hub.end() == 0
        assert "Traceback" not in "".join(hub.said)
        await until(lambda: processes_of(hub.data) == [], "no process of anybody")
    runs = stamps.read(file)
    assert stamps.faults(runs, tasks=names, gap_seconds_max=GAP_SECONDS_MAX) == []
