"""What scores cost a hub: 500 clusters and 10 scorers, on virtual time.

Each scorer yields a changing number for each cluster every minute. Compared is a minute with
scorers and a minute without: time of a processor, writes to the store, memory. The planner is in
the same process, and has a workload to rank clusters for once a second.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bench.figures import Report, resident_mib
from fairway.app import prepare_store
from fairway.clock import VirtualClock
from fairway.controllers.plane import ControlPlane, PlaneOptions, run_all
from fairway.controllers.scheduling.questions import PolicyChoices
from fairway.controllers.terms import Settings
from fairway.kinds.registry import LiveKinds, built_in
from fairway.metrics.interface import Sample
from fairway.metrics.measurements import Measurement
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.memory import MemoryJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Write
from fairway.store.keys import CLUSTER_SCORES, CLUSTERS, POLICIES, SCORERS

Plain = dict[str, Any]

_WRITE = Write(user="bench", manager="bench")
_MINUTES = 5
_STEP_SECONDS = 5.0


class Changing:
    """Yields a number for each cluster that differs from run to run."""

    def __init__(self, clusters: list[str]) -> None:
        self._clusters = clusters
        self._chance = random.Random(7)

    async def measure(self, measurement: Measurement, cluster: str = "") -> tuple[Sample, ...]:
        return tuple(
            Sample(value=self._chance.uniform(-90, 90), at=0.0, labels={"cluster": name})
            for name in self._clusters
        )


def run(report: Report, *, scale: float) -> None:
    clusters, scorers = max(5, round(500 * scale)), max(2, round(10 * scale))
    print(f"Scores: {clusters} clusters, {scorers} scorers, a minute apart")
    asyncio.run(_measure(report, clusters, 0))
    asyncio.run(_measure(report, clusters, scorers))
    asyncio.run(_measure(report, clusters // 5 or 1, scorers))


async def _measure(report: Report, clusters: int, scorers: int) -> None:
    names = [f"cluster-{number:03}" for number in range(clusters)]
    async with _hub(names) as (store, plane, clock):
        for name in names:
            await store.create(CLUSTERS, _cluster(name), write=_WRITE)
        scores = [{"scorer": f"score-{number}"} for number in range(max(scorers, 1))]
        policy = _object("PlacementPolicy", "ranks", {"scores": scores, "numberOfClusters": 3})
        await store.create(POLICIES, policy, namespace="fairway-system", write=_WRITE)
        await _pass(clock, 30)
        before, memory = store.version, resident_mib()
        for number in range(scorers):
            body = _object(
                "Scorer",
                f"score-{number}",
                {"prometheus": {"query": "load", "server": {"url": "http://there.example"}}},
                group="scores.fairway.dev",
            )
            await store.create(SCORERS, body, write=_WRITE)
        await _pass(clock, 90)
        before, began = store.version, time.process_time()
        await _pass(clock, 60 * _MINUTES)
        spent = (time.process_time() - began) / _MINUTES
        writes = (store.version - before) / _MINUTES
        sizes = [len(item.raw) for item in (await store.list(CLUSTER_SCORES)).items]
        asked = time.process_time()
        await plane.scheduler.ask(PolicyChoices())
        choice = (time.process_time() - asked) * 1000
    label = f"{clusters} clusters, {scorers} scorers"
    report.add(f"{label}: processor time of a minute", spent, "s")
    report.add(f"{label}: writes in a minute", writes, "writes")
    report.add(f"{label}: memory beyond that without scorers", resident_mib() - memory, "MiB")
    report.add(f"{label}: a policy chooses", choice, "ms")
    if sizes:
        report.add(f"{label}: size of a ClusterScore", max(sizes) / 1024, "KiB")


@asynccontextmanager
async def _hub(
    names: list[str],
) -> AsyncIterator[tuple[EmbeddedStore, ControlPlane, VirtualClock]]:
    clock = VirtualClock()
    store = EmbeddedStore(MemoryJournal(), standard_catalogue(), clock=clock)
    store.start()
    await prepare_store(store)
    plane = ControlPlane(
        store=store,
        clock=clock,
        kinds=LiveKinds(built_in()),
        options=PlaneOptions(
            terms=Settings(identity="hub", takes_over_at_once=True),
            secret=b"a benchmark",
            measurer=Changing(names),
        ),
    )
    task = asyncio.ensure_future(run_all([plane.run()]))
    try:
        yield store, plane, clock
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await plane.close()
        await store.close()


async def _pass(clock: VirtualClock, seconds: float) -> None:
    for _ in range(round(seconds / _STEP_SECONDS)):
        await clock.advance(_STEP_SECONDS)


def _cluster(name: str) -> Plain:
    shape = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"}
    pool = {"name": "n", "count": 4, "shape": shape}
    return _object("Cluster", name, {"simulated": {"nodePools": [pool]}})


def _object(kind: str, name: str, spec: Plain, *, group: str = "fairway.dev") -> Plain:
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
