"""Plays a day on virtual time: a whole hub with its agents and simulated clusters, in one thread.

It differs from a real hub only in the clock, in the store's disk, which is memory, and in that no
other replica can lead.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path

from fairway.agent.agent import Agent
from fairway.agent.drivers.simulated.driver import Worlds
from fairway.agent.fleet import Agents
from fairway.agent.memory import Memory
from fairway.agent.settings import AgentSettings
from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.meta import JsonObject
from fairway.api.names import work_name
from fairway.api.workload import Workload
from fairway.app.embedded_store import prepare_store
from fairway.controllers.plane import ControlPlane, PlaneOptions, run_all
from fairway.controllers.terms import Settings
from fairway.demo.days.day import HOUR, HOURS, NAMESPACE, SERVICE, Day, Reading
from fairway.kinds.registry import LiveKinds, built_in
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.memory import MemoryJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Write
from fairway.store.keys import CLUSTERS, WORKLOADS
from fairway.virtual import START, Time, run

_MIDNIGHT = START - 8 * HOUR
_LOOK_SECONDS = 60.0
_SCALE_SECONDS = 600.0
_TERM_SECONDS = 600.0
_QUIET_SECONDS = 30.0  # for periodic looks, which need not be more frequent
_HELD = ("Bound", "Ready", "Terminating")
_WRITE = Write(user="day", manager="fairway-day")

Look = Callable[[Reading], None]


def play(
    day: Day, look: Look, *, hours: float = HOURS, every_seconds: float = _LOOK_SECONDS
) -> None:
    """Plays a day as fast as it can; `look` is called periodically with the state."""
    time = Time(_MIDNIGHT)
    with tempfile.TemporaryDirectory(prefix="fairway-day-") as folder:
        stage = _Stage(day, time, Path(folder), every_seconds)
        run(time, stage.play(look, hours))


@dataclass(slots=True)
class _Stage:
    """A hub, and the day that is played on it."""

    day: Day
    time: Time
    folder: Path
    every_seconds: float
    store: EmbeddedStore = field(init=False)
    worlds: Worlds = field(init=False)
    kinds: LiveKinds = field(init=False)

    def __post_init__(self) -> None:
        chance = random.Random(self.day.name)  # noqa: S311 - a simulation
        self.store = EmbeddedStore(
            MemoryJournal(), standard_catalogue(), clock=self.time, chance=chance
        )
        self.kinds = LiveKinds(built_in())
        self.worlds = Worlds(self.kinds.of, self.time)

    async def play(self, look: Look, hours: float) -> None:
        self.store.start()
        await prepare_store(self.store)
        settings = Settings(identity="hub", duration_seconds=_TERM_SECONDS, takes_over_at_once=True)
        plane = ControlPlane(
            store=self.store,
            clock=self.time,
            kinds=self.kinds,
            options=PlaneOptions(terms=settings, secret=b"a day", look_seconds=_QUIET_SECONDS),
        )
        agents = Agents(self.store, self._agent, clock=self.time, removed=self.worlds.forget)
        task = asyncio.ensure_future(run_all([plane.run(), agents.run()]))
        try:
            for object_ in self.day.objects:
                await self._create(object_)
            await self._live(look, hours)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await plane.close()
            await self.store.close()

    def _agent(self, cluster: Cluster, settings: AgentSettings) -> Agent | None:
        assert cluster.spec.simulated is not None, "the clusters of a day are simulated"
        name = cluster.metadata.name
        if cluster.spec.simulated.faults.outage:
            self.worlds.forget(name)
            return None
        return Agent(
            name,
            store=self.store,
            driver=self.worlds.driver(cluster),
            memory=Memory(self.folder / name, is_inline=True, is_synced=False),
            find_kind=self.kinds.of,
            clock=self.time,
            settings=replace(settings, cluster_seconds=_QUIET_SECONDS),
        )

    async def _create(self, body: JsonObject) -> None:
        group, _, version = str(body["apiVersion"]).rpartition("/")
        resource = self.store.catalogue.of_kind(group, version, str(body["kind"]))
        assert resource is not None, body["kind"]
        key = ResourceKey(group, version, resource.plural)
        namespace = str(body["metadata"].get("namespace", ""))
        # A day is played repeatedly, and a store modifies what it is given.
        await self.store.create(key, deepcopy(body), namespace=namespace, write=_WRITE)

    async def _live(self, look: Look, hours: float) -> None:
        """Plays the day, from look to look."""
        events = sorted(self.day.events, key=lambda event: event.at)
        batch = sorted(self.day.batch, key=lambda pair: pair[0])
        releases = sorted(self.day.releases, key=lambda release: release.at)
        asked = self.day.replicas_at(0.0)
        for number in range(int(hours * HOUR / self.every_seconds)):
            seconds = number * self.every_seconds
            hour = seconds / HOUR
            due = [event for event in events if event.at <= hour]
            events = events[len(due) :]
            for event in due:
                patch = Patch(type="merge", body=event.patch)
                await self.store.patch(CLUSTERS, event.cluster, patch, write=_WRITE)
            while batch and batch[0][0] <= hour:
                await self._create(batch.pop(0)[1])
            released = [release for release in releases if release.at <= hour]
            releases = releases[len(released) :]
            for release in released:
                await self._release(release.image)
            if seconds % _SCALE_SECONDS == 0 and self.day.replicas_at(hour) != asked:
                asked = self.day.replicas_at(hour)
                await self._scale(asked)
            await self.time.sleep(self.every_seconds)
            says = (
                *(event.says for event in due if event.says),
                *(release.says for release in released),
            )
            was_hit = any(event.takes for event in due)
            look(await self._read(hour, asked, says=says, was_hit=was_hit))

    async def _release(self, image: str) -> None:
        path = "/spec/template/manifests/0/spec/template/spec/containers/0/image"
        patch = Patch(type="json", body=[{"op": "replace", "path": path, "value": image}])
        await self.store.patch(WORKLOADS, SERVICE, patch, namespace=NAMESPACE, write=_WRITE)

    async def _scale(self, replicas: int) -> None:
        patch = Patch(type="merge", body={"spec": {"replicas": replicas}})
        await self.store.patch(WORKLOADS, SERVICE, patch, namespace=NAMESPACE, write=_WRITE)

    async def _read(
        self, hour: float, wanted: int, *, says: tuple[str, ...], was_hit: bool
    ) -> Reading:
        """The state of the clusters themselves, whatever the hub knows of it."""
        work = work_name(NAMESPACE, SERVICE)
        ready: dict[str, int] = {}
        held: dict[str, int] = {}
        others: dict[str, int] = {}
        nodes: dict[str, dict[str, int]] = {}
        for cluster in self.day.clusters():
            name = str(cluster["metadata"]["name"])
            try:
                seen = self.worlds.world(name).observe(self.time.now())
            except KeyError:  # it is down
                ready[name] = held[name] = others[name] = 0
                nodes[name] = {}
                continue
            result = {key: [pod.phase for pod in work.pods] for key, work in seen.works.items()}
            own = result.pop(work, [])
            ready[name] = own.count("Ready")
            held[name] = sum(phase in _HELD for phase in own)
            others[name] = sum(phase in _HELD for each in result.values() for phase in each)
            nodes[name] = {pool.name: pool.nodes + pool.provisioning for pool in seen.pools}
        stored = await self.store.get(WORKLOADS, SERVICE, NAMESPACE)
        claim = codec.decode(stored.raw, Workload).status.claim
        placed = sum(
            (placement.replicas or 0) * self.day.speed(placement.cluster)
            for placement in (claim.placements if claim else ())
        )
        return Reading(
            hour=hour,
            wanted=wanted,
            ready=ready,
            held=held,
            others=others,
            nodes=nodes,
            waiting=max(0, ceil(wanted - placed)),
            was_hit=was_hit,
            says=says,
        )
