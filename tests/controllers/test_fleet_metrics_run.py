"""The metrics of a fleet, from a hub that runs: what happens is what is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairway.api.fleet_metrics import FLEET_METRICS
from fairway.clock import VirtualClock
from fairway.controllers.plane import ControlPlane, PlaneOptions
from fairway.controllers.scheduling.planner import InlinePlanner, PlannerFault
from fairway.controllers.scheduling.questions import Question, Samples, T
from fairway.controllers.terms import Settings
from fairway.kinds.registry import built_in
from fairway.server.metrics import Metrics
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Write
from fairway.store.keys import QUEUES, WORKLOADS
from tests.controllers.fleets import SECRET, Fleet, running
from tests.controllers.test_history_run import SHARING
from tests.controllers.test_running import FLEET, job

# A second cluster for the flavor, and limits by which a silent cluster is soon lost.
EAST = """
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec:
  simulated:
    nodePools:
      - name: gpu
        count: 1
        shape: {cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}
        labels: {accelerator: h100}
"""
LIMITS = """
---
apiVersion: fairway.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec:
  health: {unreadySeconds: 40, lostSeconds: 60}
  breakers: {movesPerHour: 1}
"""
SERVICE = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: chat, namespace: default, finalizers: [fairway.dev/works]}
spec:
  queue: research
  mode: Divided
  replicas: 2
  onClusterLost: AllowDuplicate
  podSets: [{name: main, count: 1, requests: {nvidia.com/gpu: 8}}]
"""
Labels = dict[str, str]


class Told:
    """What a Prometheus would read now."""

    def __init__(self, metrics: Metrics) -> None:
        self._samples = [
            sample
            for family in text_string_to_metric_families(metrics.render().decode())
            for sample in family.samples
        ]

    def of(self, name: str, **labels: str) -> float | None:
        """The sum of the series that have these labels; None: there is none."""
        found = [
            sample.value
            for sample in self._samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        return sum(found) if found else None

    def series(self, name: str) -> list[Labels]:
        return [sample.labels for sample in self._samples if sample.name == name]

    def names(self) -> set[str]:
        return {sample.name for sample in self._samples}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, metrics: Metrics):
    async with running(store, clock, tmp_path / "clusters", display=metrics.fleet) as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def test_what_waits_runs_and_is_free_is_told(fleet: Fleet, metrics: Metrics) -> None:
    await fleet.apply("---\n".join(job(f"train-{at}", seconds=600) for at in range(3)))
    await fleet.clock.advance(60)
    told = Told(metrics)
    assert told.of("fairway_workloads_waiting", queue="research", reason="DoesNotFit") == 1
    assert told.of("fairway_oldest_wait_seconds", queue="research") == pytest.approx(60, abs=11)
    assert told.of("fairway_workloads_running", queue="research", parent="") == 2
    held = {"queue": "research", "flavor": "h100", "resource": "nvidia.com/gpu"}
    assert told.of("fairway_queue_nominal", **held) == 32
    assert told.of("fairway_queue_used", **held) == 16
    place = {"cluster": "hangzhou", "flavor": "h100"}
    assert told.of("fairway_gpus", **place, state="allocated") == 16
    assert told.of("fairway_gpus", **place) == 16
    assert told.of("fairway_clusters", phase="Ready") == 1
    assert told.of("fairway_planner_objects", kind="nodes") == 2
    assert told.of("fairway_agent_age_seconds", cluster="hangzhou") is not None
    assert told.of("fairway_fleet_paused") == 0


async def test_what_borrows_and_its_share_are_told(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, metrics: Metrics
) -> None:
    async with running(store, clock, tmp_path / "clusters", display=metrics.fleet) as fleet:
        await fleet.apply(FLEET + SHARING.replace("\napiVersion", "\n---\napiVersion", 1))
        await clock.advance(1)
        await fleet.apply("---\n".join(job(f"train-{at}", seconds=6000) for at in range(2)))
        await clock.advance(30)
        await fleet.apply(job("ours").replace("queue: research", "queue: product"))
        await clock.advance(30)
        told = Told(metrics)
        research = {"queue": "research", "parent": "company"}
        assert told.of("fairway_queue_borrowed", **research, flavor="h100") == 8
        share = told.of("fairway_queue_share", **research)
        assert share == 0.5, "of the 16 that the company may lend, 8"
        assert told.of("fairway_queue_fair", **research) == 8
        assert told.of("fairway_queue_used", parent="") == 16, "roots count everything once"
        assert told.of("fairway_oldest_wait_seconds", queue="company") == 0
    told = Told(metrics)
    assert not told.names() & {metric.name for metric in FLEET_METRICS}, "it leads no more"


async def test_waits_until_admission_and_start_are_observed_once_for_each_claim(
    fleet: Fleet, metrics: Metrics
) -> None:
    await fleet.apply("---\n".join(job(f"train-{at}", seconds=100) for at in range(3)))
    for at in range(3):
        await fleet.until(f"train-{at}", "Succeeded", 400)
    told = Told(metrics)
    for name in ("fairway_admission_wait_seconds", "fairway_start_wait_seconds"):
        assert told.of(f"{name}_count", queue="research") == 3
        assert told.of(f"{name}_bucket", queue="research", le="15.0") == 2
        assert told.of(f"{name}_bucket", queue="research", le="300.0") == 3
        assert told.of(f"{name}_sum", queue="research") == pytest.approx(105, abs=10)


async def test_the_first_forecast_is_compared_with_the_start(
    fleet: Fleet, metrics: Metrics
) -> None:
    await fleet.apply("---\n".join(job(f"long-{at}", seconds=100) for at in range(2)))
    await fleet.apply(job("waits", seconds=10))
    await fleet.clock.advance(30)
    # It ends earlier than it said.
    await fleet.change("long-0", {"spec": {"cancelled": True}})
    await fleet.until("waits", "Running", 60)
    told = Told(metrics)
    assert told.of("fairway_forecast_error_seconds_count", direction="early") == 1
    assert told.of("fairway_forecast_error_seconds_sum", direction="early") == pytest.approx(
        70, abs=10
    )
    assert told.of("fairway_forecast_error_seconds_count", direction="late") is None


async def test_preemptions_with_the_work_that_they_lost_are_counted(
    fleet: Fleet, metrics: Metrics
) -> None:
    await fleet.apply("---\n".join(job(f"low-{at}", seconds=600) for at in range(2)))
    await fleet.until("low-0", "Running", 60)
    await fleet.until("low-1", "Running", 60)
    await fleet.clock.advance(100)
    await fleet.apply(job("high", priority=10))
    await fleet.until("high", "Running", 120)
    told, why = Told(metrics), "PreemptedWithinQueue"
    assert told.of("fairway_preemptions_total", queue="research", reason=why) == 1
    assert told.of("fairway_evictions_total", queue="research", cause=why, blame="Decision") == 1
    lost = told.of("fairway_lost_gpu_seconds_total", queue="research", cause=why)
    assert lost == pytest.approx(8 * 101, abs=24)


async def test_a_lost_cluster_shows_by_its_agents_age_and_by_what_moves_away(
    fleet: Fleet, metrics: Metrics
) -> None:
    await fleet.apply(EAST + LIMITS)
    await fleet.clock.advance(5)
    await fleet.apply(SERVICE.replace("replicas: 2", "replicas: 3"))
    await fleet.until("chat", lambda item: item.status.pods.ready == 3, 60)
    await fleet.clock.advance(20)
    told = Told(metrics)
    assert told.of("fairway_breaker_open", breaker="Moves") == 0
    age = told.of("fairway_agent_age_seconds", cluster="east")
    assert age is not None
    assert age < 30
    await fleet.change_cluster("east", {"spec": {"simulated": {"faults": {"outage": True}}}})
    await fleet.clock.advance(120)
    told = Told(metrics)
    age = told.of("fairway_agent_age_seconds", cluster="east")
    assert age is not None
    assert age > 60
    assert told.of("fairway_clusters", phase="Lost") == 1
    assert told.of("fairway_gpus", cluster="east", state="idle") == 0
    lost = {"queue": "research", "cause": "ClusterLost", "blame": "Place"}
    assert told.of("fairway_evictions_total", **lost) == 1
    assert told.of("fairway_moves_total", queue="research", reason="ClusterLost") == 1
    assert told.of("fairway_breaker_open", breaker="Moves") == 1


async def test_no_name_of_a_workload_is_told(fleet: Fleet, metrics: Metrics) -> None:
    await fleet.apply("---\n".join(job(f"secret-{at}", seconds=50) for at in range(4)))
    await fleet.clock.advance(200)
    assert "secret" not in metrics.render().decode()


async def test_a_queue_that_is_deleted_takes_its_series_with_it(
    fleet: Fleet, metrics: Metrics
) -> None:
    extra = FLEET.split("---")[1].replace("name: research", "name: gone")
    await fleet.apply(extra)
    await fleet.apply(job("train", seconds=20).replace("queue: research", "queue: gone"))
    await fleet.until("train", "Succeeded", 100)
    await fleet.clock.advance(10)
    assert Told(metrics).of("fairway_start_wait_seconds_count", queue="gone") == 1
    await fleet.store.delete(WORKLOADS, "train", namespace="default", write=Write(user="root"))
    await fleet.store.delete(QUEUES, "gone", write=Write(user="root"))
    await fleet.clock.advance(20)
    told = Told(metrics)
    assert not [
        name for name in told.names() for labels in told.series(name) if "gone" in labels.values()
    ]


class Mute(InlinePlanner):
    """Fails at samples, as a planner with a bug would."""

    fails = False

    async def ask(self, question: Question[T], now: float) -> T:
        if Mute.fails and isinstance(question, Samples):
            raise PlannerFault("in gauges")
        return await super().ask(question, now)


async def test_gauges_of_a_planner_that_does_not_answer_are_taken_back(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, metrics: Metrics
) -> None:
    options = {"display": metrics.fleet, "make_planner": Mute}
    async with running(store, clock, tmp_path / "clusters", **options) as fleet:
        scheduler = fleet.plane.scheduler
        scheduler.failure_observers.append(metrics.planner_failed)
        await fleet.apply(FLEET)
        await clock.advance(20)
        await fleet.apply(job("train", seconds=10))
        await fleet.until("train", "Succeeded", 100)
        Mute.fails = True
        await clock.advance(30)
        assert Told(metrics).of("fairway_queue_nominal", queue="research") == 32
        await clock.advance(60)
        told = Told(metrics)
        Mute.fails = False
        assert told.of("fairway_queue_nominal", queue="research") is None
        assert told.of("fairway_admission_wait_seconds_count", queue="research") == 1
        assert (told.of("fairway_planner_failures_total") or 0) >= 5
        await clock.advance(20)
        assert Told(metrics).of("fairway_queue_nominal", queue="research") == 32


async def test_each_part_of_a_plan_is_timed(fleet: Fleet, metrics: Metrics) -> None:
    timed: list[tuple[int, float]] = []
    fleet.plane.scheduler.time_observers.append(
        lambda planned, seconds: timed.append((len(planned.steps), seconds))
    )
    await fleet.apply(job("train", seconds=10))
    await fleet.clock.advance(5)
    assert (1, 0.0) in timed, "virtual time does not pass while it plans"


async def test_a_hub_that_starts_counts_nothing_that_was_there_before(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, metrics: Metrics
) -> None:
    for _ in range(2):
        again = Metrics()
        async with running(store, clock, tmp_path / "clusters", display=again.fleet) as fleet:
            await fleet.apply(FLEET)
            await fleet.apply(job("train", seconds=6000))
            await fleet.until("train", "Running", 60)
            await clock.advance(20)
            counted = Told(again).of("fairway_start_wait_seconds_count")
            used = Told(again).of("fairway_queue_used", queue="research")
        assert used == 8
    assert counted is None


@asynccontextmanager
async def replica(
    store: EmbeddedStore, clock: VirtualClock, identity: str, metrics: Metrics
) -> AsyncIterator[ControlPlane]:
    terms = Settings(identity=identity, duration_seconds=15)
    options = PlaneOptions(terms=terms, secret=SECRET, display=metrics.fleet)
    plane = ControlPlane(store=store, clock=clock, kinds=built_in(), options=options)
    task = asyncio.ensure_future(plane.run())
    try:
        yield plane
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await plane.close()


async def test_of_two_replicas_only_the_leader_tells_so_that_sums_are_right(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    numbers = [Metrics(), Metrics()]

    def told() -> list[float | None]:
        return [Told(each).of("fairway_queue_nominal", queue="research") for each in numbers]

    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(FLEET)
    async with AsyncExitStack() as leader:
        first = await leader.enter_async_context(replica(store, clock, "first", numbers[0]))
        await clock.advance(40)
        async with replica(store, clock, "second", numbers[1]) as second:
            await clock.advance(40)
            assert (first.terms.is_leader, second.terms.is_leader) == (True, False)
            assert told() == [32, None]
            await leader.aclose()
            assert told() == [None, None]
            await clock.advance(40)
            assert told() == [None, 32]
