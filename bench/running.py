"""Workloads end to end: submitted over HTTPS, planned, run in simulated clusters, finished.

The hub is its own process with its planner as a child, as in life; the load comes from here. First
as many workloads as it takes, as fast as they are taken (sustained rate, writes for each); then at
half that rate, one by one (time from submitting to running); then a restart with many that wait.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from bench.figures import Report, percentile, resident_mib
from bench.http import Connection

_GROUP = "/apis/fairway.dev/v1alpha1"
_WORKLOADS = f"{_GROUP}/namespaces/default/workloads"
_CLUSTERS = 8
_CONNECTIONS = 16


def _cluster(number: int) -> dict[str, Any]:
    pool = {
        "name": "gpu",
        "count": 200,
        "shape": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": 8, "pods": 110},
        "labels": {"accelerator": "h100"},
    }
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": f"c{number}"},
        "spec": {
            "simulated": {
                "seed": number,
                "startSeconds": 0,
                "stopSeconds": 0,
                "nodePools": [pool],
            }
        },
    }


_FLAVOR = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "Flavor",
    "metadata": {"name": "h100"},
    "spec": {"nodeLabels": {"accelerator": "h100"}},
}


def _queue(name: str, gpus: int) -> dict[str, Any]:
    quotas = [
        {
            "resources": ["nvidia.com/gpu"],
            "flavors": [
                {"name": "h100", "quotas": [{"resource": "nvidia.com/gpu", "nominal": gpus}]}
            ],
        }
    ]
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"uncovered": "Unlimited", "resourceGroups": quotas},
    }


def workload(name: str, *, gpus: int = 1, seconds: int = 5, queue: str = "bench") -> bytes:
    """One pod that asks for GPUs, and runs for some seconds."""
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "finalizers": ["fairway.dev/works"]},
        "spec": {
            "queue": queue,
            "runSeconds": {"estimate": seconds},
            "template": {
                "manifests": [
                    {
                        "apiVersion": "batch/v1",
                        "kind": "Job",
                        "metadata": {"name": name},
                        "spec": {
                            "template": {
                                "spec": {
                                    "restartPolicy": "Never",
                                    "containers": [
                                        {
                                            "name": "main",
                                            "image": "busybox",
                                            "resources": {"limits": {"nvidia.com/gpu": gpus}},
                                        }
                                    ],
                                }
                            }
                        },
                    }
                ]
            },
        },
    }
    return json.dumps(body).encode()


class _Followed:
    """What a watch says of workloads: when each was first seen in each phase."""

    def __init__(self) -> None:
        self.at: dict[tuple[str, str], float] = {}
        self.counts: dict[str, int] = {}
        self.writes: dict[str, int] = {}
        self._changed = asyncio.Event()

    def take(self, line: bytes) -> None:
        event = json.loads(line)
        if event["type"] not in ("ADDED", "MODIFIED"):
            return
        found = event["object"]
        name = found["metadata"]["name"]
        self.writes[name] = self.writes.get(name, 0) + 1
        phase = (found.get("status") or {}).get("phase")
        if phase and (name, phase) not in self.at:
            self.at[name, phase] = time.perf_counter()
            self.counts[phase] = self.counts.get(phase, 0) + 1
            self._changed.set()

    async def until(self, phase: str, count: int, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while self.counts.get(phase, 0) < count:
                self._changed.clear()
                await self._changed.wait()

    async def run(self, folder: Path) -> None:
        connection = await Connection(folder).open()
        connection.send("GET", f"{_WORKLOADS}?watch=true")
        await connection.head()
        async for line in connection.stream():
            self.take(line)


@asynccontextmanager
async def _hub(folder: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "fairway.cli.main", "up", "--data", str(folder), "--port", "0"]
    log = (folder / "hub.log").open("ab")
    kubeconfig = folder / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    process = subprocess.Popen(command, stdout=log, stderr=log)
    while not kubeconfig.exists():
        if process.poll() is not None:
            raise RuntimeError((folder / "hub.log").read_text()[-2000:])
        await asyncio.sleep(0.02)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


async def _submit(folder: Path, bodies: list[bytes], rate: float | None) -> dict[int, float]:
    """Submits workloads, as fast as they are taken or at a steady rate; when each was sent."""
    sent: dict[int, float] = {}
    numbers = iter(range(len(bodies)))
    started = time.perf_counter()

    async def one() -> None:
        connection = await Connection(folder).open()
        for number in numbers:
            if rate is not None:
                await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
            sent[number] = time.perf_counter()
            status, answer = await connection.call("POST", _WORKLOADS, bodies[number])
            if status != 201:
                raise RuntimeError(f"{status}: {answer[:300]!r}")
        connection.close()

    await asyncio.gather(*(one() for _ in range(_CONNECTIONS)))
    return sent


async def _version(folder: Path) -> int:
    """The version of the store: every write takes one."""
    connection = await Connection(folder).open()
    _, body = await connection.call("GET", f"{_GROUP}/fleets?limit=1")
    connection.close()
    return int(json.loads(body)["metadata"]["resourceVersion"])


async def _prepare(folder: Path, gpus: int) -> None:
    connection = await Connection(folder).open()
    objects = [
        ("flavors", _FLAVOR),
        ("queues", _queue("bench", gpus)),
        ("queues", _queue("none", 1)),
    ]
    objects += [("clusters", _cluster(number)) for number in range(_CLUSTERS)]
    for plural, body in objects:
        status, answer = await connection.call(
            "POST", f"{_GROUP}/{plural}", json.dumps(body).encode()
        )
        if status not in (201, 409):
            raise RuntimeError(f"{status}: {answer[:300]!r}")
    connection.close()


async def _measure(report: Report, folder: Path, scale: float) -> None:
    count = max(200, int(10_000 * scale))
    async with _hub(folder) as hub:
        await _prepare(folder, _CLUSTERS * 200 * 8)
        await asyncio.sleep(2)
        followed = _Followed()
        following = asyncio.ensure_future(followed.run(folder))
        before = await _version(folder)
        started = time.perf_counter()
        await _submit(folder, [workload(f"a{number}") for number in range(count)], None)
        submitted = time.perf_counter() - started
        await followed.until("Succeeded", count, 600)
        seconds = time.perf_counter() - started
        writes = (await _version(folder) - before) / count
        report.add("workloads/s, submitted to finished", count / seconds, "/s", 250)
        report.add("workloads/s taken in", count / submitted, "/s")
        report.add("writes of the store for each workload", writes, "writes")
        own = sum(followed.writes[f"a{n}"] for n in range(count)) / count
        report.add("writes of a workload itself", own, "writes")
        few = max(100, int(2_000 * scale))
        sent = await _submit(folder, [workload(f"b{number}") for number in range(few)], 125)
        await followed.until("Succeeded", count + few, 300)
        waits = [followed.at[f"b{number}", "Running"] - sent[number] for number in range(few)]
        report.add(
            "ms from submit to running at 125/s, p50", percentile(waits, 0.5) * 1e3, "ms", 100
        )
        report.add("ms from submit to running at 125/s, p99", percentile(waits, 0.99) * 1e3, "ms")
        report.add("memory of the hub", resident_mib(hub.pid), "MiB")
        following.cancel()


async def _look(folder: Path, latencies: list[float]) -> None:
    """Reads an object again and again, and takes the time of each."""
    connection = await Connection(folder).open()
    while True:
        started = time.perf_counter()
        await connection.call("GET", f"{_WORKLOADS}/w1")
        latencies.append(time.perf_counter() - started)
        await asyncio.sleep(0.02)


async def _restart(report: Report, folder: Path, scale: float) -> None:
    """A hub that starts with many who wait: how long until its first claim, and how it answers."""
    count = max(1_000, int(100_000 * scale))
    async with _hub(folder):
        bodies = [workload(f"w{number}", gpus=2, queue="none") for number in range(count)]
        await _submit(folder, bodies, None)
        await _submit(folder, [workload("last", queue="none")], None)
    started = time.perf_counter()
    async with _hub(folder):
        followed = _Followed()
        following = asyncio.ensure_future(followed.run(folder))
        latencies: list[float] = []
        looking = asyncio.ensure_future(_look(folder, latencies))
        connection = await Connection(folder).open()
        await connection.call("POST", _WORKLOADS, workload("first"))
        while ("first", "Claimed") not in followed.at and ("first", "Running") not in followed.at:
            await asyncio.sleep(0.01)
        report.add(
            f"s from start to the first claim, {count:,} waiting",
            time.perf_counter() - started,
            "s",
            20,
        )
        # Another plan over all of them: a quota that changes frees something.
        await connection.call("PUT", f"{_GROUP}/queues/none", await _changed_queue(connection))
        await asyncio.sleep(10)
        p99 = percentile(latencies, 0.99) * 1e3
        report.add(f"ms to read an object while {count:,} are planned, p99", p99, "ms", 50)
        looking.cancel()
        following.cancel()


async def _changed_queue(connection: Connection) -> bytes:
    _, body = await connection.call("GET", f"{_GROUP}/queues/none")
    queue = json.loads(body)
    queue["spec"]["weight"] = "2"
    return json.dumps(queue).encode()


def run(report: Report, *, scale: float = 1.0) -> None:
    async def both() -> None:
        with tempfile.TemporaryDirectory() as name:
            await _measure(report, Path(name), scale)
        with tempfile.TemporaryDirectory() as name:
            async with _hub(Path(name)):
                await _prepare(Path(name), _CLUSTERS * 200 * 8)
            await _restart(report, Path(name), scale)

    uvloop.run(both())
