"""The loops of lives and works on a real store and virtual time; reports are written by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from fairway.api import codec
from fairway.api.errors import NotFound
from fairway.api.names import report_name, work_namespace
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.clock import VirtualClock, timestamp
from fairway.controllers.cache import Cache
from fairway.controllers.clusters.controller import Clusters
from fairway.controllers.context import Context
from fairway.controllers.lifecycle.controller import Lifecycle
from fairway.controllers.object_events import Notes
from fairway.controllers.proofs import Proofs
from fairway.controllers.shared_state import SharedState
from fairway.controllers.terms import Settings, Terms
from fairway.controllers.work_roster import Roster
from fairway.controllers.work_states import States
from fairway.controllers.works.controller import Works
from fairway.kinds.registry import LiveKinds, built_in
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey, Write
from fairway.store.keys import CLUSTERS, FLEETS, LEASES, REPORTS, WORKLOADS, WORKS
from tests.controllers.test_lifecycle import PULL
from tests.controllers.test_works import JOB

WRITE = Write()
NAMESPACES = ResourceKey("", "v1", "namespaces")
SECRET = b"of the hub"
API = "fairway.dev/v1alpha1"
POD_SET = built_in().pod_sets(JOB, "Gang")[0].name


class Hub:
    """The controllers of lives on a store, and what an agent would write."""

    def __init__(self, store: EmbeddedStore, clock: VirtualClock) -> None:
        self.store, self.clock = store, clock
        self.cache = Cache(store, clock=clock)
        self.states = States(self.cache.mirror(REPORTS))
        terms = Terms(store, clock, Settings(identity="one"))
        terms.term = 4
        proofs = Proofs(SECRET)
        context = Context(
            store=store,
            clock=clock,
            cache=self.cache,
            proofs=proofs,
            roster=Roster(self.cache, proofs),
            states=self.states,
            terms=terms,
            kinds=LiveKinds(built_in()),
            notes=Notes(store, clock),
            shared=SharedState(clock),
        )
        self.parts = (Lifecycle(context), Works(context), Clusters(context))
        self.sequence = 0

    async def start(self) -> list[asyncio.Task[None]]:
        tasks = [asyncio.ensure_future(self.cache.run())]
        await self.cache.complete()
        tasks += [asyncio.ensure_future(part.run()) for part in self.parts]
        return tasks

    async def settle(self, seconds: float = 1.0) -> None:
        await self.clock.advance(seconds)

    async def make(self, kind: ResourceKey, body: dict[str, Any], namespace: str = "") -> Any:
        return (await self.store.create(kind, body, namespace=namespace, write=WRITE)).object()

    async def join(self, *clusters: str) -> None:
        for name in clusters:
            spec = {"simulated": {}}
            body = {"apiVersion": API, "kind": "Cluster", "metadata": {"name": name}, "spec": spec}
            await self.make(CLUSTERS, body)
            with suppress(Exception):
                await self.make(NAMESPACES, {"metadata": {"name": work_namespace(name)}})
            await self.beat(name)

    async def beat(self, cluster: str) -> None:
        namespace = work_namespace(cluster)
        self.sequence += 1
        spec = {"holderIdentity": "agent", "renewTime": f"2027-01-15T08:00:00.{self.sequence:06d}Z"}
        try:
            found = (await self.store.get(LEASES, "fairway-agent", namespace)).object()
            await self.store.update(
                LEASES, {**found, "spec": spec}, namespace=namespace, write=WRITE
            )
        except NotFound:
            body = {"metadata": {"name": "fairway-agent"}, "spec": spec}
            await self.make(LEASES, body, namespace)

    async def report(self, cluster: str, **state: Any) -> None:
        self.sequence += 1
        states = [{"work": "team.train", **state}] if state else []
        spec = {
            "cluster": cluster,
            "agentEpoch": 1,
            "sequence": self.sequence,
            "seenAt": timestamp(self.clock.now()),
            "states": states,
        }
        name = report_name(cluster, 0)
        body: dict[str, Any] = {
            "apiVersion": API,
            "kind": "ClusterReport",
            "metadata": {"name": name},
            "spec": spec,
        }
        try:
            found = (await self.store.get(REPORTS, name)).object()
            await self.store.update(REPORTS, {**found, "spec": spec}, write=WRITE)
        except NotFound:
            await self.make(REPORTS, body)
        await self.settle()

    async def set_fleet(self, **spec: Any) -> None:
        with suppress(NotFound):
            await self.store.delete(FLEETS, "fleet", write=WRITE)
        body = {"apiVersion": API, "kind": "Fleet", "metadata": {"name": "fleet"}, "spec": spec}
        await self.make(FLEETS, body)
        await self.settle()

    async def submit(self, name: str = "train", **spec: Any) -> None:
        body = {
            "apiVersion": API,
            "kind": "Workload",
            "metadata": {"name": name, "finalizers": ["fairway.dev/works"]},
            "spec": {"queue": "research", "template": {"manifests": [JOB]}, **spec},
        }
        await self.make(WORKLOADS, body, "team")

    async def claim(self, cluster: str, attempt: int = 1, name: str = "train") -> None:
        found = (await self.store.get(WORKLOADS, name, "team")).object()
        placement = {
            "cluster": cluster,
            "attempt": attempt,
            "podSets": [{"name": POD_SET, "count": 2}],
        }
        held = {
            "attempt": attempt,
            "term": 4,
            "decidedAt": timestamp(self.clock.now()),
            "placements": [placement],
        }
        status = {**found.get("status", {}), "phase": "Claimed", "claim": held}
        await self.store.update(
            WORKLOADS,
            {**found, "status": status},
            namespace="team",
            subresource="status",
            write=WRITE,
        )
        await self.settle()

    async def workload(self) -> Workload:
        return codec.decode((await self.store.get(WORKLOADS, "train", "team")).raw, Workload)

    async def drain(self, cluster: str) -> None:
        found = (await self.store.get(CLUSTERS, cluster)).object()
        found["spec"]["hold"] = "HoldAndDrain"
        await self.store.update(CLUSTERS, found, write=WRITE)

    async def work(self, cluster: str, name: str = "train") -> Work | None:
        try:
            found = await self.store.get(WORKS, f"team.{name}", work_namespace(cluster))
        except NotFound:
            return None
        return codec.decode(found.raw, Work)


@pytest.fixture
async def hub(store: EmbeddedStore, clock: VirtualClock) -> AsyncIterator[Hub]:
    found = Hub(store, clock)
    await found.make(NAMESPACES, {"metadata": {"name": "team"}})
    tasks = await found.start()
    await found.join("a", "b")
    await found.settle()
    yield found
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_workload_runs_succeeds_and_leaves_nothing(hub: Hub) -> None:
    await hub.submit()
    await hub.claim("a")
    work = await hub.work("a")
    assert work is not None
    assert (work.spec.attempt, work.spec.term, work.spec.desired) == (1, 4, "Run")
    ready = {"pods": [{"name": POD_SET, "ready": 2}], "readyAt": timestamp(hub.clock.now())}
    await hub.report("a", attempt=1, phase="Running", **ready)
    assert (await hub.workload()).status.phase == "Running"
    await hub.report("a", attempt=1, phase="Succeeded")
    assert (await hub.workload()).status.phase == "Succeeded"
    assert await hub.work("a") is not None  # for its logs
    await hub.store.delete(WORKLOADS, "train", namespace="team", write=WRITE)
    await hub.settle()
    assert await hub.work("a") is None
    with pytest.raises(NotFound):
        await hub.workload()


async def test_an_ordinary_life_takes_two_writes_of_these_controllers(hub: Hub) -> None:
    await hub.submit()
    await hub.claim("a")
    before = int((await hub.workload()).metadata.resource_version)
    await hub.report("a", attempt=1, phase="Pending")
    assert int((await hub.workload()).metadata.resource_version) == before
    await hub.report("a", attempt=1, phase="Running", readyAt=timestamp(hub.clock.now()))
    first = (await hub.workload()).metadata.resource_version
    await hub.settle(30)
    assert (await hub.workload()).metadata.resource_version == first


async def test_a_failure_by_fault_of_the_node_is_tried_again_once_all_is_gone(hub: Hub) -> None:
    await hub.submit()
    await hub.claim("a")
    await hub.report(
        "a",
        attempt=1,
        phase="Failed",
        reason="Evicted",
        message="The node was low on resource: ephemeral-storage.",
        node="n7",
    )
    stopping = await hub.workload()
    assert [item.cluster for item in stopping.status.releasing] == ["a"]
    work = await hub.work("a")
    assert work is not None
    assert work.spec.tombstone
    cluster = (await hub.store.get(CLUSTERS, "a")).object()
    assert [node["name"] for node in cluster["status"]["avoidedNodes"]] == ["n7"]
    await hub.report("a", attempt=1, phase="Gone")
    waiting = await hub.workload()
    assert (waiting.status.phase, waiting.status.releasing) == ("Waiting", ())
    assert await hub.work("a") is None
    await hub.claim("a", attempt=2)
    again = await hub.work("a")
    assert again is not None
    assert (again.spec.attempt, "n7" in str(again.spec.manifests[-1].object)) == (2, True)


async def test_a_silent_cluster_is_lost_and_what_may_run_twice_moves(hub: Hub) -> None:
    await hub.submit(onClusterLost="AllowDuplicate")
    await hub.claim("a")
    for _ in range(40):
        await hub.beat("b")
        await hub.settle(10)
    phases = {
        name: (await hub.store.get(CLUSTERS, name)).object()["status"]["phase"] for name in "ab"
    }
    assert phases == {"a": "Lost", "b": "Ready"}
    moved = await hub.workload()
    assert (moved.status.phase, moved.status.history[-1].reason) == ("Waiting", "ClusterLost")
    left = await hub.work("a")
    assert left is not None
    assert left.spec.tombstone  # it is stopped when the cluster comes back


async def test_a_cluster_that_is_drained_gives_its_workloads_back_at_once(hub: Hub) -> None:
    await hub.submit()
    await hub.claim("a")
    await hub.drain("a")
    await hub.settle()
    assert (await hub.workload()).status.reason == "ClusterDrained"


async def test_nothing_is_stopped_while_the_fleet_is_paused(hub: Hub) -> None:
    await hub.submit()
    await hub.claim("a")
    await hub.set_fleet(paused=True)
    await hub.drain("a")
    await hub.settle(20)
    assert (await hub.workload()).status.phase == "Claimed"
    fleet = (await hub.store.get(FLEETS, "fleet")).object()
    assert (fleet["status"]["phase"], fleet["status"]["clusters"]) == ("Paused", 2)


async def test_what_is_over_is_removed_when_its_time_is_up(hub: Hub) -> None:
    await hub.submit(finishedSeconds=30)
    await hub.claim("a")
    await hub.report("a", attempt=1, phase="Succeeded")
    await hub.settle(20)
    assert (await hub.workload()).status.phase == "Succeeded"
    await hub.settle(20)
    with pytest.raises(NotFound):
        await hub.workload()
    assert await hub.work("a") is None


@pytest.mark.parametrize(
    ("pods", "state", "reason"),
    [
        pytest.param({"pending": 2}, {}, "PendingTooLong", id="no node"),
        pytest.param({"bound": 2}, PULL, "ImageError", id="no image"),
    ],
)
async def test_pods_are_pending_for_as_long_as_the_fleet_allows(
    hub: Hub, pods: dict[str, int], state: dict[str, str], reason: str
) -> None:
    await hub.set_fleet(defaults={"pendingSeconds": 40})
    await hub.submit()
    await hub.claim("a")
    of_set = {"name": POD_SET, "pendingSince": timestamp(hub.clock.now()), **pods}
    await hub.report("a", attempt=1, phase="Pending", pods=[of_set], **state)
    await hub.settle(30)
    assert (await hub.workload()).status.phase == "Claimed"
    await hub.settle(15)
    assert (await hub.workload()).status.reason == reason


async def test_works_of_a_drained_cluster_stop_at_the_rate_of_the_fleet(hub: Hub) -> None:
    await hub.set_fleet(health={"deletionsPerSecond": 2})
    names = [f"train-{number}" for number in range(7)]
    for name in names:
        await hub.submit(name)
        await hub.claim("a", name=name)
    await hub.drain("a")
    stopped = []
    for seconds in (0.5, 1, 1, 1):
        await hub.settle(seconds)
        works = [await hub.work("a", name) for name in names]
        stopped.append(sum(work is not None and work.spec.tombstone for work in works))
    assert stopped == [2, 4, 6, 7]
