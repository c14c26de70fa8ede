"""Sweeps run: tasks over clusters, task by task, by the whole hub on virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fairway.agent.drivers.simulated.lives import LivePod
from fairway.agent.drivers.simulated.world import World
from fairway.api.claim import PastAttempt
from fairway.api.workload import Workload
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_breakers_run import ELASTIC
from tests.controllers.test_running import ELSEWHERE, FLEET, job

WORK = "default.sweep"


def sweep(*, count: int = 40, concurrency: int = 12, range_size: int = 1, more: str = "") -> str:
    return f"""
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {{name: sweep, namespace: default}}
spec:
  queue: research
  mode: Independent
  tasks: {{count: {count}, concurrency: {concurrency}, rangeSize: {range_size}{more}}}
  runSeconds: {{estimate: 20}}
  template:
    manifests:
      - apiVersion: batch/v1
        kind: Job
        metadata: {{name: sweep}}
        spec:
          template:
            spec:
              restartPolicy: Never
              containers:
                - {{name: main, image: scoring, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}
"""


# Eight tasks fit in each of the two clusters.
SMALL = FLEET.replace("count: 2", "count: 1")
TWO = SMALL + "---\n" + ELSEWHERE.replace("count: 2", "count: 1")


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(TWO)
        await clock.advance(1)
        yield found


class Watcher:
    """Counts, from the clusters themselves, which tasks started, how often and how many at once."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._seen: set[tuple[str, str, float]] = set()
        self.starts: Counter[str] = Counter()
        self.most = 0
        self.where: dict[str, set[str]] = {}

    async def until(
        self, is_so: Callable[[Workload], bool] | str, seconds: float = 600
    ) -> Workload:
        def look(workload: Workload) -> bool:
            self.look()
            return workload.status.phase == is_so if isinstance(is_so, str) else is_so(workload)

        return await self._fleet.until("sweep", look, seconds)

    def look(self) -> None:
        alive = 0
        for cluster in ("hangzhou", "shanghai"):
            for pod in self._fleet.worlds.world(cluster).pods(WORK) or ():
                alive += pod.node is not None
                if pod.started_at is None:
                    continue
                start = (cluster, pod.name, pod.started_at)
                if start not in self._seen:
                    self._seen.add(start)
                    self.starts[pod.name] += 1
                    self.where.setdefault(cluster, set()).add(pod.name)
        self.most = max(self.most, alive)


async def pod_of(fleet: Fleet, name: str, restarts: int = 0) -> tuple[World, LivePod]:
    """A pod that runs, wherever it is, once it has been started again so often."""
    for _ in range(400):
        for cluster in ("hangzhou", "shanghai"):
            world = fleet.worlds.world(cluster)
            for pod in world.pods(WORK) or ():
                if pod.name == name and pod.phase == "Ready" and pod.restarts == restarts:
                    return world, pod
        await fleet.clock.advance(0.25)
    raise AssertionError(f"{name} does not run")


async def test_every_task_runs_once_over_two_clusters_within_the_cap(fleet: Fleet) -> None:
    await fleet.apply(sweep())
    watcher = Watcher(fleet)
    ended = await watcher.until("Succeeded")
    assert ended.status.succeeded_tasks == "0-39"
    assert ended.status.failed_tasks == ""
    assert ended.status.claim is None
    assert watcher.starts == Counter({f"sweep-{number}-0": 1 for number in range(40)})
    assert 10 <= watcher.most <= 12
    assert set(watcher.where) == {"hangzhou", "shanghai"}


async def test_a_task_that_fails_is_tried_again_and_the_others_go_on(fleet: Fleet) -> None:
    await fleet.apply(sweep(more=", retries: 1"))
    world, pod = await pod_of(fleet, "sweep-3-0")
    world.fail_pod(pod, fleet.clock.now())
    watcher = Watcher(fleet)
    ended = await watcher.until("Succeeded")
    assert ended.status.succeeded_tasks == "0-39"
    assert watcher.starts["sweep-3-0"] >= 1
    assert all(many == 1 for name, many in watcher.starts.items() if name != "sweep-3-0")


async def test_a_task_that_fails_for_good_fails_the_sweep_unless_some_may_fail(
    fleet: Fleet,
) -> None:
    await fleet.apply(sweep(more=", retries: 1"))
    for restarts in (0, 1):
        world, pod = await pod_of(fleet, "sweep-3-0", restarts)
        world.fail_pod(pod, fleet.clock.now())
    ended = await fleet.until("sweep", "Failed", 60)
    assert ended.status.reason == "TasksFailed"
    assert ended.status.failed_tasks == "3"
    await fleet.clock.advance(30)
    assert (await fleet.pods("hangzhou"), await fleet.pods("shanghai")) == (0, 0)


async def test_failed_tasks_within_the_limit_are_told_and_the_rest_succeeds(fleet: Fleet) -> None:
    await fleet.apply(sweep(more=", failedMax: 2"))
    world, pod = await pod_of(fleet, "sweep-3-0")
    world.fail_pod(pod, fleet.clock.now())
    ended = await Watcher(fleet).until("Succeeded")
    assert ended.status.failed_tasks == "3"
    assert ended.status.succeeded_tasks == "0-2,4-39"


async def test_ranges_stay_together_in_one_cluster(fleet: Fleet) -> None:
    await fleet.apply(sweep(count=24, concurrency=12, range_size=4))
    watcher = Watcher(fleet)
    await watcher.until("Succeeded")
    assert set(watcher.starts.values()) == {1}
    assert len(watcher.starts) == 24
    for names in watcher.where.values():
        runs = Counter(name.split("-")[1] for name in names)
        assert set(runs.values()) == {4}, runs


async def test_room_that_a_task_leaves_goes_to_whoever_waits(fleet: Fleet) -> None:
    """A sweep that holds both clusters ends task by task; a small job starts before it is over."""
    await fleet.apply(sweep(count=16, concurrency=16))
    await fleet.until("sweep", "Running", 30)
    await fleet.apply(sweep(count=1, concurrency=1).replace("name: sweep", "name: late"))
    await fleet.clock.advance(5)
    assert await fleet.phase("late") != "Running"
    await fleet.until("late", "Succeeded", 120)
    await fleet.until("sweep", "Succeeded", 120)


async def test_a_hub_that_starts_again_in_the_middle_repeats_no_task(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as first:
        await first.apply(TWO)
        await first.apply(sweep())
        watcher = Watcher(first)
        await watcher.until(lambda item: bool(item.status.succeeded_tasks))
    async with running(store, clock, tmp_path / "clusters", worlds=first.worlds):
        ended = await watcher.until("Succeeded")
    assert ended.status.succeeded_tasks == "0-39"
    assert set(watcher.starts.values()) == {1}
    assert len(watcher.starts) == 40


async def test_lots_of_tasks_are_one_line_of_the_history_and_lose_nothing(fleet: Fleet) -> None:
    await fleet.apply(sweep(count=40, concurrency=8))
    ended = await fleet.until("sweep", "Succeeded")
    assert [item.reason for item in ended.status.history] == ["TasksDone", "Succeeded"]
    assert [item.lost_seconds for item in ended.status.history] == [0, 0]
    attempts = [item.attempt for item in ended.status.history]
    assert attempts == sorted(set(attempts))
    assert ended.status.requeue is None


async def test_a_sweep_that_yields_loses_the_tasks_that_run_and_no_others(fleet: Fleet) -> None:
    await fleet.apply(sweep(count=200, concurrency=16))
    began = await fleet.until("sweep", "Running", 30)
    assert began.status.claim is not None
    await fleet.clock.advance(110)  # five lots are over, and another has begun or is about to
    await fleet.apply(job("urgent", priority=10))
    yielded = await fleet.until("sweep", lambda item: bool(_preemptions(item)), 30)
    (receipt,) = _preemptions(yielded)
    assert receipt.preempted_by is not None
    assert receipt.preempted_by.name == "urgent"
    assert receipt.lost_seconds <= 20  # of one lot at most, and not of all that ran before


def _preemptions(workload: Workload) -> list[PastAttempt]:
    return [item for item in workload.status.history if item.preempted_by is not None]


async def test_a_sweep_that_asks_a_pool_for_more_gets_more(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as fleet:
        queue = FLEET.partition("kind: Cluster")[0].rpartition("---")[0]
        await fleet.apply(f"{queue}---\n{ELASTIC}")
        await fleet.apply(sweep(count=64, concurrency=8).replace("estimate: 20", "estimate: 600"))
        await fleet.until("sweep", "Running", 60)
        assert await fleet.pods("cloud") == 8
        await fleet.change("sweep", {"spec": {"tasks": {"concurrency": 24}}})
        await clock.advance(30)
        assert await fleet.pods("cloud") == 24
