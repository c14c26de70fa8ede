"""A hub on a kube-apiserver with three members, each a control plane of its own whose pods "run".

All share this machine, so processor time and writes tell more than rates do. Writes are counted by
the hub's own server, by kind and verb. What runs and ends is noted by the nodes themselves, by one
clock: a freed GPU is used when the next pod runs on it, whatever stands between the two.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from math import inf
from pathlib import Path
from typing import Any

import uvloop

from bench.figures import Report, percentile, resident_mib
from bench.processes import cpu_seconds, hub
from fairway.client import AsyncClient
from fairway.client.asynchronous import WORKLOADS
from fairway.client.wire import Scope
from fairway.clock import SystemClock
from fairway.kubeapi import KubeApi
from tests.kubernetes import fleet, lives
from tests.kubernetes.hubs import HubRig, gang

_WRITERS = 16
_GPUS = 52
_FILLED_SECONDS = 20.0  # by when all GPUs are taken
_APART_SECONDS = 0.5
_PATIENCE_SECONDS = 900.0
_WRITES = re.compile(
    r'^apiserver_request_total\{.*,resource="(\w+)".*subresource="(\w*)".*'
    r'verb="(POST|PUT|PATCH|APPLY|DELETE)".*\} (\S+)$'
)
_SUBMITTED = "workloads POST"
Json = dict[str, Any]


async def writes(client: AsyncClient) -> Counter[str]:
    """Writes that the server has answered so far, by kind, part and verb."""
    api = KubeApi(client.access, SystemClock())
    text = (await api.read("/metrics")).decode()
    await api.close()
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if match := _WRITES.match(line):
            part = f"{match[1]}/{match[2]}" if match[2] else match[1]
            found[f"{part} {match[3]}"] += int(float(match[4]))
    return found


def job(name: str, seconds: float, gpus: int, *, is_pod: bool = False) -> Json:
    """A workload as a person would submit it; without GPUs, many fit on a node."""
    found = gang(name, "sleep", str(seconds), gpus=gpus)
    if is_pod:
        template = found["spec"]["template"]["manifests"][0]["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **template}
        found["spec"]["template"]["manifests"] = [{**pod, "metadata": {"name": name}}]
        return found
    container = found["spec"]["template"]["manifests"][0]["spec"]["template"]["spec"]["containers"]
    container[0]["resources"] = {"limits": {"nvidia.com/gpu": gpus} if gpus else {"cpu": "100m"}}
    return found


async def submit(client: AsyncClient, bodies: list[Json]) -> dict[str, float]:
    """Submits as fast as the server takes it; when each was taken."""
    left, at = iter(bodies), {}

    async def work() -> None:
        for body in left:
            await client.create(body)
            at[body["metadata"]["name"]] = time.time()

    await asyncio.gather(*(work() for _ in range(_WRITERS)))
    return at


class Phases:
    """When each workload was first seen to have come so far."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.dispatched: dict[str, float] = {}
        self.running: dict[str, float] = {}
        self.finished: dict[str, float] = {}
        self.news = asyncio.Event()

    async def follow_workloads(self) -> None:
        async for event in self._client.watch(WORKLOADS, scope=Scope(namespace="team")):
            if event.type == "BOOKMARK":
                continue
            status = event.object.get("status", {})
            self._note(event.object, self.running, status.get("phase") in ("Running", "Succeeded"))
            self._note(event.object, self.finished, status.get("phase") == "Succeeded")

    async def follow_works(self) -> None:
        async for event in self._client.watch("works.fairway.dev"):
            if event.type != "BOOKMARK":
                self._note(event.object["spec"]["workload"], self.dispatched, True)

    def _note(self, who: Json, seen: dict[str, float], holds: bool) -> None:
        name = who.get("name") or who["metadata"]["name"]
        if holds and name not in seen:
            seen[name] = time.time()
            self.news.set()

    async def until(self, seen: dict[str, float], names: list[str]) -> None:
        while not seen.keys() >= set(names):
            self.news.clear()
            await self.news.wait()


async def measure(report: Report, found: fleet.Fleet, scale: float) -> None:
    print("A hub on a kube-apiserver, 3 members with control planes of their own")
    with tempfile.TemporaryDirectory() as folder:
        async with (
            hub(found.hub, Path(folder)) as process,
            AsyncClient.connect(str(found.hub.kubeconfig)) as client,
        ):
            queue = {"metadata": {"name": "research"}, "spec": {"uncovered": "Unlimited"}}
            queue |= {"apiVersion": "fairway.dev/v1alpha1", "kind": "Queue"}
            await HubRig(client, found.members).begin([queue])
            phases = Phases(client)
            async with asyncio.timeout(_PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
                following = [
                    tasks.create_task(phases.follow_workloads()),
                    tasks.create_task(phases.follow_works()),
                ]
                await submit(client, [job("warm-up", 0.1, 1)])
                await phases.until(phases.finished, ["warm-up"])
                await _burst(report, client, phases, process.pid, max(20, int(200 * scale)))
                await _freed(report, client, phases, found, min(_GPUS, max(20, int(40 * scale))))
                report.add("hub memory by then", resident_mib(process.pid), "MiB")
                for item in following:
                    item.cancel()


async def _burst(
    report: Report, client: AsyncClient, phases: Phases, process: int, count: int
) -> None:
    names = [f"burst-{number}" for number in range(count)]
    before, spent, started = await writes(client), cpu_seconds(process), time.time()
    submitted = await submit(client, [job(name, 20, 0) for name in names])
    await phases.until(phases.dispatched, names)
    by_dispatch, cpu = (await writes(client)) - before, cpu_seconds(process) - spent
    await phases.until(phases.running, names)
    by_running, cpu_running = (await writes(client)) - before, cpu_seconds(process) - spent
    for what, seen, made, used in (
        ("dispatched", phases.dispatched, by_dispatch, cpu),
        ("running", phases.running, by_running, cpu_running),
    ):
        waits = [seen[name] - submitted[name] for name in names]
        taken = max(seen[name] for name in names) - started
        aims = {"dispatched": (60.0, 4.0)}.get(what, (None, None))
        report.add(f"workloads/s submitted to {what}", count / taken, "/s", aim=aims[0])
        each = (sum(made.values()) - made[_SUBMITTED]) / count
        report.add(f"hub writes for each workload until {what}", each, "writes", aim=aims[1])
        report.add(f"hub CPU for each workload until {what}", used / count * 1000, "ms")
        report.add(f"submitted to {what}, p50", percentile(waits, 0.5), "s")
        report.add(f"submitted to {what}, p99", percentile(waits, 0.99), "s")
        print("    writes: " + ", ".join(f"{key} {n}" for key, n in made.most_common()))
    await phases.until(phases.finished, names)
    made = (await writes(client)) - before
    each = (sum(made.values()) - made[_SUBMITTED]) / count
    report.add("hub writes for each workload until finished", each, "writes")
    print("    writes: " + ", ".join(f"{key} {n}" for key, n in made.most_common()))
    used = cpu_seconds(process) - spent
    report.add("hub CPU for each workload until finished", used / count * 1000, "ms")


async def _freed(
    report: Report, client: AsyncClient, phases: Phases, found: fleet.Fleet, count: int
) -> None:
    """Every GPU is taken and others wait: from the end of a pod until the next one runs.

    Pods end one by one, so that this is the time it takes and not how many there are at once. They
    are plain ones: the controller of Jobs looks at a pod that ended a second later, by design.
    """
    since = time.time()
    first = [f"first-{number}" for number in range(_GPUS)]
    spread = [_FILLED_SECONDS + at * _APART_SECONDS for at in range(_GPUS)]
    ends = dict(zip(first, spread, strict=True))
    await submit(client, [job(name, seconds, 1, is_pod=True) for name, seconds in ends.items()])
    await phases.until(phases.running, first)
    line = [f"line-{number}" for number in range(count)]
    await submit(client, [job(name, 3600, 1, is_pod=True) for name in line])
    await phases.until(phases.running, line)
    links: list[Link] = []
    for name, member in found.members.items():
        links += _links(lives.read(member.plane.folder, name, since))
    waits = [after.start - before.end for before, after in links]
    report.add(f"freed GPU used again, p50 of {len(waits)}", percentile(waits, 0.5), "s")
    report.add("freed GPU used again, p99", percentile(waits, 0.99), "s", aim=1.0)
    known = [phases.finished.get(_name(before), before.end) - before.end for before, _ in links]
    sent = [phases.dispatched[_name(after)] - before.end for before, after in links]
    report.add("  of which until the hub knows of the end, p50", percentile(known, 0.5), "s")
    report.add("  until the next work is dispatched, p50", percentile(sent, 0.5), "s")


Link = tuple[lives.Run, lives.Run]  # who ended, and who ran next in its place


def _name(run: lives.Run) -> str:
    return run.work.rpartition(".")[2]


def _links(runs: list[lives.Run]) -> list[Link]:
    """Of one member that is full: the n-th end, and the n-th later start."""
    starts = sorted(runs, key=lambda item: item.start)
    ends = sorted((item for item in runs if item.end < inf), key=lambda item: item.end)
    if not ends:
        return []
    later = [item for item in starts if item.start > ends[0].end]
    return list(zip(ends, later, strict=False))


def run(report: Report, *, scale: float = 1.0) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = stack.enter_context(fleet.running(folder))
        uvloop.run(measure(report, found, scale))
