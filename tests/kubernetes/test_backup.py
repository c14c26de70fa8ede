"""A hub on a real server whose etcd is put back to an earlier day: kills nothing, doubles nothing.

What runs is in simulated clusters, which go on whatever becomes of their hub.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairway.agent.drivers.simulated.driver import Worlds
from fairway.api import codec
from fairway.api.errors import Unavailable
from fairway.api.workload import Workload
from fairway.app import OnKubernetes
from fairway.app.agents import make_agents
from fairway.app.restore import restore_kubernetes
from fairway.clock import SystemClock
from fairway.controllers.plane import ControlPlane as Plane
from fairway.controllers.plane import PlaneOptions
from fairway.controllers.terms import NAME, Settings
from fairway.hub.on_kubernetes import prepare_kubernetes
from fairway.kinds.registry import built_in
from fairway.kubeapi import KubeApi, load_access
from fairway.loops import end
from fairway.store.interface import Patch, Stored, Write
from fairway.store.keys import CLUSTERS, FLEETS, LEASES, QUEUES, WORKLOADS, WORKS
from fairway.store.kubernetes.moments import moment_of
from fairway.store.kubernetes.restored import refuse_running
from fairway.store.kubernetes.store import KubernetesStore
from tests.kubernetes import binaries, control_plane
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.demand import demand
from tests.kubernetes.sweeping import sweep
from tests.store.backups import back_up
from tests.waiting import seen

pytestmark = pytest.mark.real

ADA = Write(user="ada", manager="ada")
OURS = "fairway.dev/v1alpha1"
SERVERS = ("etcd", "kube-apiserver")
PATIENCE_SECONDS = 90
Json = dict[str, Any]


class Rig:
    """The hub of the moment, and what it is asked."""

    def __init__(self, store: KubernetesStore, plane: Plane) -> None:
        self.store, self.plane = store, plane

    async def make(self, kind: Any, name: str, namespace: str = "", **spec: Any) -> None:
        body = {"apiVersion": OURS, "kind": _KINDS[kind], "metadata": {"name": name}, "spec": spec}
        await self.store.create(kind, body, namespace=namespace, write=ADA)

    async def submit(self, name: str, seconds: int = 3600) -> None:
        container = {"name": "main", "image": "training", "resources": {"limits": {"cpu": "8"}}}
        pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
        template = {"manifests": [{**manifest, "spec": {"template": pod}}]}
        run = {"estimate": seconds}
        await self.make(
            WORKLOADS, name, "default", queue="research", runSeconds=run, template=template
        )

    async def hold(self, cluster: str, how: str) -> None:
        patch = Patch(type="merge", body={"spec": {"hold": how}})
        await self.store.patch(CLUSTERS, cluster, patch, write=ADA)

    async def until_runs(self, name: str, cluster: str) -> None:
        def runs(found: Workload) -> bool:
            claim = found.status.claim
            places = [placement.cluster for placement in claim.placements] if claim else []
            return found.status.phase == "Running" and places == [cluster]

        found = None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while found is None or not runs(found):
                    await asyncio.sleep(0.1)
                    raw = (await self.store.get(WORKLOADS, name, "default")).raw
                    found = codec.decode(raw, Workload)
        except TimeoutError:
            raise AssertionError(f"{name} does not run in {cluster}: {found}") from None

    async def until_over(self, name: str) -> None:
        def is_over(stored: Stored) -> bool:
            return codec.decode(stored.raw, Workload).status.phase == "Succeeded"

        await seen(lambda: self.store.get(WORKLOADS, name, "default"), is_over, f"{name} to end")

    async def term(self) -> int:
        lease = (await self.store.get(LEASES, NAME, "fairway-system")).object()
        return int(lease["spec"]["leaseTransitions"])


_KINDS = {FLEETS: "Fleet", CLUSTERS: "Cluster", QUEUES: "Queue", WORKLOADS: "Workload"}


@asynccontextmanager
async def hub_on(plane: ControlPlane, folder: Path, worlds: Worlds) -> AsyncIterator[Rig]:
    """A hub with its agents; the clusters that they look after are there without them as well."""
    clock = SystemClock()
    store = KubernetesStore(KubeApi(load_access(str(plane.kubeconfig)), clock))
    await prepare_kubernetes(store, clock)
    agents = make_agents(store, folder, kinds=built_in(), clock=clock, worlds=worlds)
    terms = Settings(identity="hub", duration_seconds=6.0)
    options = PlaneOptions(terms=terms, secret=b"of the hub", beside=(agents,))
    hub = Plane(store=store, clock=clock, kinds=built_in(), options=options)
    running = asyncio.ensure_future(hub.run())
    try:
        yield Rig(store, hub)
    finally:
        await end([running])
        await hub.close()
        await store.close()


@contextmanager
def stopped(plane: ControlPlane) -> Iterator[Path]:
    """The files of the server's database while nobody writes to them."""
    for name in reversed(SERVERS):
        plane.kill(name)
    yield plane.folder / "etcd"
    for name in SERVERS:
        control_plane.start(plane, name, plane.commands[name])
    plane.wait_until_ready()


def pods(worlds: Worlds, *clusters: str) -> dict[tuple[str, str], float | None]:
    """Every pod in every cluster, and since when it runs: another time would be another pod."""
    return {
        (cluster, pod.work): pod.started_at
        for cluster in clusters
        for work in ("default.train", "default.later")
        for pod in worlds.world(cluster).pods(work) or ()
    }


async def during(seconds: float, look: Callable[[], Any]) -> set[str]:
    """All that is seen while some time passes."""
    seen = set()
    until = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < until:
        seen.add(repr(look()))
        await asyncio.sleep(0.1)
    return seen


async def test_a_server_put_back_to_an_earlier_day_kills_nothing_and_runs_nothing_twice(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    for name in binaries.SERVER_PROGRAMS:
        demand(lambda say, name=name: binaries.program(name, say), request.config)
    worlds = Worlds(built_in().of, SystemClock())
    folder, backup = tmp_path / "agents", tmp_path / "backup"
    (tmp_path / "plane").mkdir()
    shape = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    pool = {"name": "node", "count": 1, "shape": shape}
    with control_plane.running(tmp_path / "plane") as plane:
        async with hub_on(plane, folder, worlds) as hub:
            health = {"heartbeatSeconds": 1, "unreadySeconds": 10, "lostSeconds": 60}
            await hub.make(FLEETS, "fleet", health=health)
            await hub.make(QUEUES, "research", uncovered="Unlimited")
            await hub.make(CLUSTERS, "hangzhou", simulated={"nodePools": [pool]})
            await hub.submit("train")
            await hub.until_runs("train", "hangzhou")
            await hub.make(CLUSTERS, "shanghai", simulated={"nodePools": [pool]})
        with stopped(plane) as files:
            shutil.copytree(files, backup)
        async with hub_on(plane, folder, worlds) as hub:
            await hub.hold("hangzhou", "HoldAndDrain")
            await hub.until_runs("train", "shanghai")
            await hub.submit("later")
            await hub.until_runs("later", "shanghai")
            term, runs = await hub.term(), pods(worlds, "hangzhou", "shanghai")
        assert set(runs) == {("shanghai", "default.train"), ("shanghai", "default.later")}
        with stopped(plane) as files:
            shutil.rmtree(files)
            shutil.copytree(backup, files)
        async with hub_on(plane, folder, worlds) as hub:
            # As far as this hub knows, it runs in hangzhou, and of the other nobody ever spoke.
            await hub.until_runs("train", "shanghai")
            now = await during(5, lambda: pods(worlds, "hangzhou", "shanghai"))
            assert now == {repr(runs)}
            works = [item.object() for item in (await hub.store.list(WORKS)).items]
            kept = {work["metadata"]["name"]: work["spec"] for work in works}
            assert {name: value["cluster"] for name, value in kept.items()} == {
                "default.train": "shanghai",
                "default.later": "shanghai",
            }
            assert not any(item.get("tombstone") for item in kept.values())
            await hub.submit("later")
            await hub.until_runs("later", "shanghai")
            assert pods(worlds, "hangzhou", "shanghai") == runs
            assert await hub.term() >= term  # else agents would refuse what it sends


async def test_a_server_that_lost_everything_of_ours_gets_it_back_and_runs_nothing_twice(
    real: ControlPlane, tmp_path: Path
) -> None:
    """Uids are others then; agents know workloads by those that they had."""
    worlds = Worlds(built_in().of, SystemClock())
    shape = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    store = KubernetesStore(KubeApi(load_access(str(real.kubeconfig)), SystemClock()))
    await sweep(store)
    async with hub_on(real, tmp_path / "agents", worlds) as hub:
        health = {"heartbeatSeconds": 1, "unreadySeconds": 10, "lostSeconds": 60}
        await hub.make(FLEETS, "fleet", health=health)
        await hub.make(QUEUES, "research", uncovered="Unlimited")
        pool = {"name": "node", "count": 1, "shape": shape}
        await hub.make(CLUSTERS, "hangzhou", simulated={"nodePools": [pool]})
        await hub.submit("train")
        await hub.submit("later", seconds=3)
        await hub.until_runs("train", "hangzhou")
        await hub.until_runs("later", "hangzhou")
        backup = await back_up(await moment_of(hub.store))
        await hub.submit("unknown")  # no part of the backup
        await hub.until_over("later")
        runs = pods(worlds, "hangzhou")
        with pytest.raises(Unavailable, match="is running on this server: stop it first"):
            await refuse_running(hub.store, SystemClock())
    before = (await store.get(WORKLOADS, "train", "default")).object()
    await sweep(store, CLUSTERS)  # a simulated cluster of another uid would be another cluster
    where = OnKubernetes(kubeconfig=str(real.kubeconfig))
    outcome, _ = await restore_kubernetes(lambda: iter(backup), where, tmp_path / "data", None)
    after = (await store.get(WORKLOADS, "train", "default")).object()
    again, _ = await restore_kubernetes(lambda: iter(backup), where, tmp_path / "data", None)
    created = {(item.plural, item.name) for item in outcome.created}
    assert created >= {("workloads", "train"), ("workloads", "later"), ("queues", "research")}
    assert ("workloads", "unknown") not in created
    assert ("clusters", "hangzhou") in {(item.plural, item.name) for item in outcome.there}
    assert outcome.left_out == []
    assert (again.created, again.left_out) == ([], [])
    assert after["spec"] == before["spec"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    async with hub_on(real, tmp_path / "agents", worlds) as hub:
        await hub.until_runs("train", "hangzhou")
        await hub.until_over("later")
        assert pods(worlds, "hangzhou") == runs
    await sweep(store)
    await store.close()
