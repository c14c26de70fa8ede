"""One run: takes a seed, returns what happened."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import process_time

from fairway.api import codec, crds
from fairway.api.cluster import Cluster
from fairway.api.fleet import Fleet
from fairway.api.meta import JsonObject
from fairway.kinds.registry import built_in
from fairway.resources.catalogue import standard_catalogue
from fairway.sim import fleet
from fairway.sim.checks import Checks
from fairway.sim.database import Database
from fairway.sim.faults import Faults
from fairway.sim.log import Log
from fairway.sim.operator import Operator
from fairway.sim.participants import ClusterAgent, HubReplica, Stage
from fairway.sim.rest import Rest
from fairway.sim.time import START, Stuck, Time, run
from fairway.sim.truth import Truth
from fairway.sim.users import Users
from fairway.store.embedded.journal import Row
from fairway.store.embedded.memory import MemoryJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Write
from fairway.store.keys import CLUSTERS, DEFINITIONS, FLAVORS, FLEETS, NAMESPACES, POLICIES, QUEUES

STEPS_LEAST = 2_000
FAULT_KINDS_LEAST = 5
_ROUNDS_MOST = 5  # of faults and rest, until enough has happened
_STEPS_EACH = 8  # roughly, for a workload to end
_CHAOS_SECONDS_MOST = 1_500.0
_REST_SECONDS_MOST = 3_600.0  # a lost node is avoided for half an hour, and clocks get sure
_TERM_SECONDS = 4.0
_LOOK_SECONDS = 2.0
_WRITE = Write(user="root", manager="root")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a seed."""

    seed: int
    digest: str
    steps: int
    virtual_seconds: float
    processor_seconds: float
    crashes_after_claim: int
    counts: Mapping[str, int]
    faults: Mapping[str, int]
    phases: Mapping[str, int]
    violations: tuple[str, ...]
    lines: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_counted(self) -> bool:
        """Whether enough happened for the seed to be meaningful."""
        return _is_enough(self.steps, self.faults, self.crashes_after_claim)


def _is_enough(steps: int, faults: Mapping[str, int], crashes_after_claim: int) -> bool:
    return steps >= STEPS_LEAST and len(faults) >= FAULT_KINDS_LEAST and crashes_after_claim > 0


class _Complaints(logging.Handler):
    """Turns logged errors into violations; a failing controller only logs, and continues."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        self._log.report(f"{record.getMessage()}{f': {cause!r}' if cause else ''}")


def simulate(seed: int, *, keeps_lines: bool = False) -> Result:
    """Runs a seed."""
    prepare()
    with _without_collector():
        return _simulate(seed, keeps_lines=keeps_lines)


def simulate_last(seed: int) -> Result:
    """Runs the only seed of a process that then ends, so its garbage need not be collected."""
    prepare()
    gc.disable()
    return _simulate(seed, keeps_lines=False)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Disables garbage collection: a run is short and makes little garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
        gc.collect()


def _simulate(seed: int, *, keeps_lines: bool) -> Result:
    began = process_time()
    time = Time()
    log = Log(time, keeps_lines=keeps_lines)
    folder = Path(tempfile.mkdtemp(prefix="fairway-sim-"))
    logger = logging.getLogger("fairway")
    complaints, level = _Complaints(log), logger.level
    logger.addHandler(complaints)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        simulation = Simulation(seed, time, log, folder)
        phases = run(time, simulation.run())
    except Stuck as fault:
        log.report(str(fault))
        phases = {}
    finally:
        logger.removeHandler(complaints)
        logger.setLevel(level)
        logger.propagate = True
        shutil.rmtree(folder, ignore_errors=True)
    return Result(
        seed=seed,
        digest=log.digest,
        steps=log.steps,
        virtual_seconds=time.now() - START,
        processor_seconds=process_time() - began,
        crashes_after_claim=simulation.crashes_after_claim,
        counts=dict(log.counts),
        faults=dict(sorted(log.faults.items())),
        phases=phases,
        violations=tuple(log.violations),
        lines=tuple(log.lines),
    )


class Simulation:
    """A fleet with its users and faults."""

    def __init__(self, seed: int, time: Time, log: Log, folder: Path) -> None:
        self._seed = seed
        self._time = time
        self._log = log
        self._folder = folder
        self._lives = 0
        self.crashes_after_claim = 0

    async def run(self) -> Mapping[str, int]:
        """Runs users and faults, then waits for rest; returns the number of workloads by phase."""
        database = Database(prepare(), self._open)
        stage = Stage(
            seed=self._seed,
            time=self._time,
            live_store=database.live,
            kinds=built_in(),
            log=self._log,
            folder=self._folder,
        )
        hubs = [HubReplica(f"hub-{n}", stage, term_seconds=_TERM_SECONDS) for n in (1, 2)]
        agents = await self._fleet(database.live(), stage)
        users = Users(database.live, self._time, self._log, self._chance("users"))
        truth = Truth(self._time, self._log, users.wishes, agents)
        checks = Checks(self._time, self._log, users.wishes, truth)
        database.followers.append(checks.follow)
        for queue in fleet.queues():
            await database.live().create(QUEUES, queue, write=_WRITE)
        operator = Operator(
            database, users, checks, truth, time=self._time, chance=self._chance("operator")
        )
        faults = Faults(
            hubs,
            agents,
            operator,
            time=self._time,
            log=self._log,
            chance=self._chance("faults"),
            jump_chance=self._chance("clocks"),
        )
        faults.has_work = lambda name: any(
            database.has(
                ("fairway.dev", "works"), (f"fairway-cluster-{agent.cluster}", f"default.{name}")
            )
            for agent in agents
        )
        for process in (*hubs, *agents):
            process.start()
        rest = Rest(database, self._time, self._log, users.wishes, truth, checks)
        rounds = 0
        while not self._log.violations and rounds < _ROUNDS_MOST:
            await self._chaos(users, faults, rest)
            await faults.stop()
            await users.relent()
            await rest.come(_REST_SECONDS_MOST)
            rounds += 1
            if _is_enough(self._log.steps, self._log.faults, faults.crashes_after_claim):
                break
        self.crashes_after_claim = faults.crashes_after_claim
        for process in (*hubs, *agents):
            await process.crash()
        await database.stop()
        return rest.phases()

    def _open(self, journal: MemoryJournal) -> EmbeddedStore:
        """A store of its own for each life of the data: no two lives make the same uids."""
        self._lives += 1
        chance = self._chance(f"store {self._lives}")
        return EmbeddedStore(journal, standard_catalogue(), clock=self._time, chance=chance)

    async def _chaos(self, users: Users, faults: Faults, rest: Rest) -> None:
        """Runs users and faults until enough will have happened."""
        acting = [
            asyncio.ensure_future(users.run(mean_seconds=1.3)),
            asyncio.ensure_future(faults.run(mean_seconds=4.0)),
        ]
        end = self._time.now() + _CHAOS_SECONDS_MOST
        while self._time.now() < end and not self._log.violations:
            await self._time.sleep(_LOOK_SECONDS)
            rest.look()
            expected = self._log.steps + _STEPS_EACH * rest.count_unfinished()
            if _is_enough(expected, self._log.faults, faults.crashes_after_claim):
                break
        for task in acting:
            task.cancel()
        await asyncio.gather(*acting, return_exceptions=True)
        for task in acting:
            if not task.cancelled() and task.exception() is not None:
                self._log.report(f"the simulation itself failed: {task.exception()!r}")

    async def _fleet(self, store: EmbeddedStore, stage: Stage) -> list[ClusterAgent]:
        """Creates the platform team's objects, and an agent for each cluster."""
        described = await store.create(FLEETS, fleet.fleet(), write=_WRITE)
        health = codec.decode(described.raw, Fleet).spec.health
        for flavor in fleet.flavors():
            await store.create(FLAVORS, flavor, write=_WRITE)
        for policy in (fleet.policy(), fleet.home_policy()):
            namespace = policy["metadata"]["namespace"]
            await store.create(POLICIES, policy, namespace=namespace, write=_WRITE)
        agents = []
        for name in sorted(fleet.FLAVOR_OF):
            stored = await store.create(CLUSTERS, fleet.cluster(name, self._seed), write=_WRITE)
            agents.append(ClusterAgent(codec.decode(stored.raw, Cluster), stage, health))
        return agents

    def _chance(self, of: str) -> random.Random:
        return random.Random(f"{self._seed}/{of}")  # noqa: S311 - a simulation


@cache
def prepare() -> tuple[Row, ...]:
    """The initial content of every hub; made once, because it is the same for all seeds."""
    journal, time = MemoryJournal(), Time(START - 60)

    async def fill() -> None:
        chance = random.Random("prepared")  # noqa: S311 - a simulation
        store = EmbeddedStore(journal, standard_catalogue(), clock=time, chance=chance)
        store.start()
        for definition in crds.definitions():
            await store.create(DEFINITIONS, definition, write=_WRITE)
        for name in ("default", "fairway-system", "kube-public", "kube-system"):
            body: JsonObject = {"metadata": {"name": name}}
            await store.create(NAMESPACES, body, write=_WRITE)
        await store.close()

    run(time, fill())
    gc.collect()
    gc.freeze()  # these objects stay, so later collections skip them
    return tuple(journal.rows)
