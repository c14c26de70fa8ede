"""The participants: hub replicas and agents, processes that may crash, be paused or be cut off.

A process keeps its memory for one run only. The store, a cluster, and an agent's folder outlive it.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fairway.agent.agent import Agent
from fairway.agent.drivers.simulated.driver import Worlds
from fairway.agent.memory import Memory
from fairway.agent.settings import AgentSettings
from fairway.api.cluster import Cluster
from fairway.api.fleet import Health
from fairway.api.work import Work
from fairway.clock import Clock
from fairway.controllers.plane import ControlPlane, PlaneOptions
from fairway.controllers.scheduling.planner import InlinePlanner
from fairway.controllers.scheduling.planner_state import Planned, Planning
from fairway.controllers.terms import Settings as TermSettings
from fairway.kinds.registry import Kinds
from fairway.loops import run_steadily
from fairway.sim.driver_faces import DriverFace
from fairway.sim.log import Log
from fairway.sim.store_faces import StoreFace, Weather
from fairway.sim.time import Gate, OwnClock, Time
from fairway.store.interface import Store

_DRIFT_MOST = 0.01  # of a hub's clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What all participants share."""

    seed: int
    time: Time
    live_store: Callable[[], Store]
    kinds: Kinds
    log: Log
    folder: Path


class Process:
    """A process that may be stopped, paused and cut off."""

    def __init__(self, name: str, stage: Stage) -> None:
        self.name = name
        self.weather = Weather()
        self.face: StoreFace | None = None
        self.gate = Gate()
        self.runs = 0
        self.hurt_at = float("-inf")  # when it last was down or paused
        self.mended_at = float("-inf")  # when it last was cut off
        self._stage = stage
        self._task: asyncio.Task[None] | None = None
        self._killed: list[asyncio.Task[None]] = []
        self._is_cut = False
        self._ahead = 0.0  # the wrong part of its machine's time

    @property
    def is_up(self) -> bool:
        return self._task is not None

    @property
    def is_well(self) -> bool:
        return self.is_up and not self.gate.is_shut and not self._is_cut

    @property
    def unwell_at(self) -> float:
        """When it last was down, paused or cut off."""
        now = self._stage.time.now()
        return max(self.hurt_at, self.mended_at) if self.is_well else now

    def start(self) -> None:
        if self._task is not None:
            return
        self.runs += 1
        self.gate = Gate()
        self.face = StoreFace(
            self._stage.live_store,
            name=self.name,
            time=self._stage.time,
            gate=self.gate,
            weather=self.weather,
            log=self._stage.log,
            chance=self.chance("store"),
        )
        if self._is_cut:
            self.face.cut()
        self._task = asyncio.ensure_future(self._run(self.face))
        self._task.add_done_callback(self._end)

    def chance(self, of: str) -> random.Random:
        seed = f"{self._stage.seed}/{self.name}/{self.runs}/{of}"
        return random.Random(seed)  # noqa: S311 - a simulation

    async def _run(self, face: StoreFace) -> None:
        raise NotImplementedError

    def _end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._stage.log.report(f"{self.name} ended by a fault: {task.exception()!r}")

    def kill(self) -> None:
        """Makes it ineffective at once; its task ends later."""
        task, self._task = self._task, None
        if task is not None and self.face is not None:
            self.face.die()
            self.gate.open()
            task.cancel()
            self._killed.append(task)
        self.hurt_at = self._stage.time.now()

    async def crash(self) -> None:
        self.kill()
        killed, self._killed = self._killed, []
        await asyncio.gather(*killed, return_exceptions=True)

    def pause(self) -> None:
        self.gate.shut()

    def resume(self) -> None:
        self.hurt_at = self._stage.time.now()
        self.gate.open()

    def set_time(self, seconds: float) -> None:
        """Sets the time of its machine forward, or back; it stays so after a crash."""
        self._ahead += seconds

    def correct_time(self) -> None:
        self._ahead = 0.0

    def machine_clock(self, skew: float, drift: float = 0.0) -> OwnClock:
        """The clock of its machine during one run, with its jumps."""
        return OwnClock(
            self._stage.time, skew=skew, drift=drift, gate=self.gate, ahead=lambda: self._ahead
        )

    def cut(self) -> None:
        self._is_cut = True
        if self.face is not None:
            self.face.cut()

    def mend(self) -> None:
        if self._is_cut:
            self.mended_at = self._stage.time.now()
        self._is_cut = False
        if self.face is not None:
            self.face.mend()


class HubReplica(Process):
    """One replica of the hub."""

    def __init__(self, name: str, stage: Stage, *, term_seconds: float) -> None:
        super().__init__(name, stage)
        self._term_seconds = term_seconds
        self.plane: ControlPlane | None = None

    @property
    def is_leader(self) -> bool:
        return self.is_up and self.plane is not None and self.plane.terms.is_leader

    async def _run(self, face: StoreFace) -> None:
        chance = self.chance("clock")
        skew, drift = chance.uniform(-20, 20), chance.uniform(-_DRIFT_MOST, _DRIFT_MOST)
        machine = self.machine_clock(skew, drift)
        await run_steadily(lambda clock: self._decide(face, clock), machine)

    async def _decide(self, face: StoreFace, clock: Clock) -> None:
        self.plane = ControlPlane(
            store=face,
            clock=clock,
            kinds=self._stage.kinds,
            options=PlaneOptions(
                terms=TermSettings(identity=self.name, duration_seconds=self._term_seconds),
                secret=b"of all replicas",
                make_planner=lambda: InlinePlanner(Planning(check_seconds=0)),
            ),
        )
        self.plane.scheduler.observers.append(self._check)
        await self.plane.run()

    def _check(self, planned: Planned, *_: object) -> None:
        for fault in planned.faults or ():
            self._stage.log.report(f"{self.name} planned what no plan may do: {fault}")


class ClusterAgent(Process):
    """The agent of one cluster, and the cluster itself, which continues without it."""

    def __init__(self, cluster: Cluster, stage: Stage, health: Health) -> None:
        super().__init__(f"agent of {cluster.metadata.name}", stage)
        self.cluster = cluster.metadata.name
        self._described = cluster
        self._settings = AgentSettings.of(health)
        skew = self.chance("clock").uniform(-20, 20)
        self.clock = OwnClock(stage.time, skew=skew)  # of the cluster itself
        self._skew = skew
        self._worlds = Worlds(stage.kinds.of, self.clock)
        self._worlds.driver(cluster)
        self.world = self._worlds.world(self.cluster)
        self.driver: DriverFace | None = None
        self.memory: _Memory | None = None
        self.lost_disk_at = float("-inf")
        self.on_act: Callable[[str, str, str, Work | None], None] = lambda *_: None
        self.on_keep: Callable[[str, Work, int], None] = lambda *_: None
        self.slow_seconds = 0.0
        self.failing = 0.0

    async def _run(self, face: StoreFace) -> None:
        machine = self.machine_clock(self._skew)
        await run_steadily(lambda clock: self._tend(face, clock), machine)

    async def _tend(self, face: StoreFace, clock: Clock) -> None:
        self.driver = DriverFace(
            self._worlds.driver(self._described),
            cluster=self.cluster,
            time=self._stage.time,
            gate=self.gate,
            log=self._stage.log,
            chance=self.chance("driver"),
        )
        self.driver.on_act = lambda what, name, work: self.on_act(self.cluster, what, name, work)
        self.disturb(self.slow_seconds, self.failing)
        self.memory = _Memory(self._stage.folder / self.cluster, self._keep)
        agent = Agent(
            self.cluster,
            store=face,
            driver=self.driver,
            memory=self.memory,
            find_kind=self._stage.kinds.of,
            clock=clock,
            settings=self._settings,
        )
        await agent.run()

    def lose_disk(self) -> None:
        """Deletes its folder while it is down."""
        assert not self.is_up, "nobody takes the disk of a process that runs"
        shutil.rmtree(self._stage.folder / self.cluster, ignore_errors=True)
        self.lost_disk_at = self._stage.time.now()

    def _keep(self, work: Work, term: int) -> None:
        self.on_keep(self.cluster, work, term)

    def disturb(self, slow_seconds: float, failing: float) -> None:
        """Sets how slow the cluster is, and how often its calls fail."""
        self.slow_seconds, self.failing = slow_seconds, failing
        if self.driver is not None:
            self.driver.slow_seconds, self.driver.failing = slow_seconds, failing
        self.hurt_at = self._stage.time.now()


class _Memory(Memory):
    """An agent's memory that reports each accepted work, with the term at that time."""

    def __init__(self, folder: Path, accepted: Callable[[Work, int], None]) -> None:
        super().__init__(folder, is_inline=True, is_synced=False)
        self._accepted = accepted

    async def keep(self, work: Work, *, goes_on: bool = False) -> None:
        self._accepted(work, self.term)
        await super().keep(work, goes_on=goes_on)
