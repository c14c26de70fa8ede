"""The store and a hub on a real kube-apiserver, started here on loopback with an etcd of its own.

Server, hub and load share the machine, and the server takes most of it: on two cores some 600
writes a second are all there is. Writes are counted by the server itself, by kind.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from collections import Counter
from pathlib import Path

import uvloop

from bench import members, objects
from bench.figures import Report, percentile, resident_mib
from bench.processes import children, cpu_seconds, hub
from bench.running import _FLAVOR, _cluster, _queue, workload
from fairway.api.names import work_name
from fairway.clock import SystemClock
from fairway.controllers.cache import CLUSTERS, FLAVORS, QUEUES, WORKLOADS, WORKS
from fairway.hub.on_kubernetes import prepare_kubernetes
from fairway.kubeapi import KubeApi, load_access
from fairway.store.interface import Selection, Stored, WatchFrom, Write
from fairway.store.kubernetes.store import KubernetesStore
from fairway.store.mirrors import Mirror
from tests.kubernetes import control_plane

WRITE = Write(user="bench", manager="bench")
_WRITERS = 32
_CLUSTERS = 8
_WRITES = re.compile(
    r'^apiserver_request_total\{.*,resource="(\w*)".*'
    r'verb="(POST|PUT|PATCH|APPLY|DELETE)".*\} (\S+)$'
)


def store_of(plane: control_plane.ControlPlane) -> KubernetesStore:
    return KubernetesStore(KubeApi(load_access(str(plane.kubeconfig)), SystemClock()))


async def side_by_side(count: int, call) -> tuple[float, float]:
    """Calls by several at once: how many a second, and our CPU milliseconds for each."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await call(number)

    started, spent = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(_WRITERS)))
    wall, cpu = time.perf_counter() - started, time.process_time() - spent
    return count / wall, cpu / count * 1000


async def measure_store(report: Report, plane: control_plane.ControlPlane, scale: float) -> None:
    print("Kubernetes store, 32 writers")
    count = max(200, int(1_000 * scale))
    store = store_of(plane)
    await prepare_kubernetes(store, SystemClock())

    async def create(number: int) -> None:
        body = objects.workload(number)
        await store.create(WORKLOADS, body, namespace="default", write=WRITE)

    rate, cpu = await side_by_side(count, create)
    report.add("creates/s", rate, "/s")
    report.add("client CPU of a create", cpu, "ms")

    started, spent, seen = time.perf_counter(), time.process_time(), 0
    watching = await store.watch(WORKLOADS, start=WatchFrom(bookmarks=True))
    while seen < count:
        seen += sum(item.type != "BOOKMARK" for item in await watching.batch())
    wall, cpu = time.perf_counter() - started, time.process_time() - spent
    report.add("watch events/s, of what is there", count / wall, "/s")
    report.add("client CPU of a watch event", cpu / count * 1e6, "us")
    await watching.close()

    started, spent = time.perf_counter(), time.process_time()
    listing = await store.list(WORKLOADS)
    wall, cpu = time.perf_counter() - started, time.process_time() - spent
    report.add(f"list of {len(listing.items):,}", wall, "s")
    report.add(f"client CPU of a list of {len(listing.items):,}", cpu, "s")

    bodies = [item.object() for item in listing.items]

    async def update(number: int) -> None:
        body = {**bodies[number], "status": {"phase": "Waiting", "priority": number}}
        stored = await store.update(
            WORKLOADS, body, namespace="default", subresource="status", write=WRITE
        )
        bodies[number] = stored.object()

    rate, cpu = await side_by_side(count // 5, update)
    report.add("status updates/s", rate, "/s")
    report.add("client CPU of a status update", cpu, "ms")
    rate, cpu = await side_by_side(count // 5, update)
    report.add("status updates/s that change nothing", rate, "/s")
    await store.close()


async def writes(store: KubernetesStore) -> Counter[str]:
    """Writes that the server has answered so far, by resource."""
    text = (await store.api.read("/metrics")).decode()
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if match := _WRITES.match(line):
            found[match[1]] += int(float(match[3]))
    return found


async def dispatched(store: KubernetesStore, names: list[str]) -> dict[str, float]:
    """When the work of each workload was first seen."""
    wanted = {work_name("default", name): name for name in names}
    seen: dict[str, float] = {}
    all_seen = asyncio.Event()

    def follow(key: tuple[str, str], stored: Stored | None) -> None:
        if stored is not None and key[1] in wanted:
            seen.setdefault(wanted[key[1]], time.perf_counter())
            if len(seen) == len(wanted):
                all_seen.set()

    mirror = Mirror(store, WORKS, clock=SystemClock())
    mirror.followers.append(follow)
    following = asyncio.ensure_future(mirror.run())
    await all_seen.wait()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return seen


async def measure_hub(report: Report, plane: control_plane.ControlPlane, scale: float) -> None:
    print("A hub on a kube-apiserver, 8 simulated clusters of 200 nodes")
    count = max(50, int(300 * scale))
    store = store_of(plane)
    with tempfile.TemporaryDirectory() as folder:
        async with hub(plane, Path(folder)) as process:
            for number in range(_CLUSTERS):
                await store.create(CLUSTERS, _cluster(number), write=WRITE)
            await store.create(FLAVORS, _FLAVOR, write=WRITE)
            await store.create(QUEUES, _queue("bench", 100_000), write=WRITE)
            await _submitted(store, ["warm-up"])
            await dispatched(store, ["warm-up"])
            await _burst(report, store, process.pid, count)
            await _memory(report, store, process.pid, scale)
    await store.close()


async def _memory(report: Report, store: KubernetesStore, process: int, scale: float) -> None:
    """What a hub holds with so many workloads that wait; its planner is a process of its own."""
    await store.create(QUEUES, _queue("full", 0), write=WRITE)
    there = 0
    first = max(100, int(1_000 * min(1.0, scale)))
    for wanted in (first, *([10_000] if scale >= 1 else [])):
        names = [f"waits-{number}" for number in range(there, wanted)]
        await _submitted(store, names, queue="full")
        await _told(store, names[-1])
        there = wanted
        held = resident_mib(process)
        planner = sum(resident_mib(child) for child in children(process))
        report.add(f"hub memory, {wanted:,} that wait", held, "MiB", planner=planner)


async def _told(store: KubernetesStore, name: str) -> None:
    """Returns once a workload was told why it waits."""
    chosen = Selection(namespace="default", fields=f"metadata.name={name}")
    watching = await store.watch(WORKLOADS, chosen)
    async for event in watching:
        if event.type != "BOOKMARK" and event.stored.object().get("status", {}).get("reason"):
            break
    await watching.close()


async def _burst(report: Report, store: KubernetesStore, process: int, count: int) -> None:
    """Submits as fast as the server takes it, and waits until every work is dispatched."""
    before, spent = await writes(store), cpu_seconds(process)
    names = [f"train-{number}" for number in range(count)]
    works = asyncio.ensure_future(dispatched(store, names))
    started = time.perf_counter()
    submitted = await _submitted(store, names)
    submitting = time.perf_counter() - started
    seen = await works
    taken = max(seen.values()) - started
    after = await writes(store)
    used = cpu_seconds(process) - spent
    made = {kind: after[kind] - before[kind] for kind in after if after[kind] > before[kind]}
    waits = [seen[name] - submitted[name] for name in names]
    report.add("workloads/s submitted, by 32 writers", count / submitting, "/s")
    report.add("workloads/s dispatched", count / taken, "/s", aim=60)
    each = sum(made.values()) / count - 1
    report.add("hub writes for each workload by then", each, "writes", aim=4)
    report.add("hub CPU for each workload by then", used / count * 1000, "ms")
    report.add("submitted to dispatched, p50", percentile(waits, 0.5), "s")
    report.add("hub memory", resident_mib(process), "MiB")
    print("    writes by kind: " + ", ".join(f"{k} {v}" for k, v in sorted(made.items())))


async def _submitted(
    store: KubernetesStore, names: list[str], queue: str = "bench"
) -> dict[str, float]:
    numbers = iter(names)
    at: dict[str, float] = {}

    async def submit() -> None:
        for name in numbers:
            body = json.loads(workload(name, seconds=30, queue=queue))
            await store.create(WORKLOADS, body, namespace="default", write=WRITE)
            at[name] = time.perf_counter()

    await asyncio.gather(*(submit() for _ in range(_WRITERS)))
    return at


def run(report: Report, *, scale: float = 1.0) -> None:
    with tempfile.TemporaryDirectory() as folder, control_plane.running(Path(folder)) as plane:
        uvloop.run(measure_store(report, plane, scale))
    with tempfile.TemporaryDirectory() as folder, control_plane.running(Path(folder)) as plane:
        uvloop.run(measure_hub(report, plane, scale))
    members.run(report, scale=scale)
