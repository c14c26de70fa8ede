"""Faults and their times: drawn from the seed, each for a while.

Faults of single calls are injected by `store_faces` (weather); here are those of whole
participants. A crash of the leader between a claim and its work is not left to chance: it is armed
several times, and triggered by the next claim that is written.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fairway.api.errors import ApiError
from fairway.api.meta import JsonObject
from fairway.sim.forgery import forged
from fairway.sim.log import Log
from fairway.sim.operator import Backup, Operator
from fairway.sim.participants import ClusterAgent, HubReplica, Process
from fairway.sim.store_faces import Weather
from fairway.sim.time import Time
from fairway.store.interface import ResourceKey, Write
from fairway.store.keys import WORKLOADS, WORKS

Fault = Coroutine[Any, Any, None]

_TRAP_SECONDS = 12.0
_FORGER = Write(user="system:serviceaccount:agent", manager="forger")
_JUMPING = 1 / 3  # of all seeds; such a seed needs twice the time
_JUMP_EVERY_SECONDS = 20.0  # on average
_JUMPS_SECONDS = (10 * 365 * 86_400.0, 86_400.0, 3_600.0, -3_600.0, -365 * 86_400.0, -30.0, -5.0)


class Faults:
    """The faults of one run."""

    def __init__(
        self,
        hubs: Sequence[HubReplica],
        agents: Sequence[ClusterAgent],
        operator: Operator,
        *,
        time: Time,
        log: Log,
        chance: random.Random,
        jump_chance: random.Random,
    ) -> None:
        self._hubs = hubs
        self._agents = agents
        self._operator = operator
        self._time = time
        self._log = log
        self._chance = chance
        self._jump_chance = jump_chance
        self._under_way: dict[asyncio.Task[None], None] = {}
        self._is_over = False
        self._restoring: asyncio.Task[None] | None = None
        self.crashes_after_claim = 0
        # Whether a claim already has a work; called when a trap triggers.
        self.has_work: Callable[[str], bool] = lambda _: False

    async def run(self, *, mean_seconds: float) -> None:
        """Injects random faults until cancelled."""
        kinds: dict[Callable[[], Fault], int] = {
            self._crash_hub: 4,
            self._trap: 6,
            self._crash_after_writes: 4,
            self._pause_hub: 4,
            self._cut_hub: 3,
            self._restore_hub: 2,
            self._crash_agent: 4,
            self._lose_disk: 2,
            self._forge_work: 3,
            self._pause_agent: 3,
            self._cut_agent: 4,
            self._lose_cluster: 2,
            self._drop_watches: 6,
            self._bad_weather: 6,
            self._bad_driver: 5,
            self._fail_node: 3,
            self._fail_pod: 4,
        }
        self._is_over = False
        self._begin(self._trap())
        if self._jump_chance.random() < _JUMPING:
            self._begin(self._jump_clocks())
        while True:
            await self._time.sleep(self._chance.expovariate(1 / mean_seconds))
            self._begin(self._chance.choices(list(kinds), list(kinds.values()))[0]())

    def _begin(self, fault: Fault) -> None:
        task = asyncio.ensure_future(fault)
        self._under_way[task] = None
        task.add_done_callback(lambda done: self._under_way.pop(done, None))

    async def stop(self) -> None:
        """Ends all faults, and starts every process that is down."""
        self._is_over = True
        for task in list(self._under_way):
            task.cancel()
        if self._restoring is not None:
            await self._restoring
        for process in (*self._hubs, *self._agents):
            process.mend()
            process.resume()
            process.correct_time()
            process.weather.__init__()  # type: ignore[misc]  # fair weather again
            if isinstance(process, ClusterAgent):
                process.disturb(0.0, 0.0)
            if process.face is not None:
                process.face.on_written = lambda *_: None  # disarms traps
            process.start()

    # Hubs.

    def _leader(self) -> HubReplica | None:
        hub_replicas = [hub for hub in self._hubs if hub.is_leader and hub.is_well]
        return hub_replicas[0] if hub_replicas else None

    async def _crash_hub(self) -> None:
        hub = self._chance.choice(self._hubs)
        self._log.fault("a hub crashes", hub.name)
        await self._down(hub, self._chance.uniform(0.5, 8))

    async def _down(self, process: Process, seconds: float) -> None:
        await process.crash()
        await self._time.sleep(seconds)
        process.start()

    async def _trap(self) -> None:
        """Crashes the leader right after the next claim that it writes."""
        hub = self._leader()
        while hub is None or hub.face is None:
            await self._time.sleep(1)
            hub = self._leader()
        face, sprung = hub.face, asyncio.Event()

        def written(kind: ResourceKey, body: JsonObject, subresource: str) -> None:
            claim = (body.get("status") or {}).get("claim")
            if kind != WORKLOADS or not claim or claim.get("readyAt") or face.is_dead:
                return
            name = body["metadata"]["name"]
            if self.has_work(name):
                return
            self._log.fault("a hub crashes between claim and work", f"{hub.name}: {name}")
            self.crashes_after_claim += 1
            hub.kill()
            sprung.set()

        face.on_written = written
        for _ in range(int(_TRAP_SECONDS)):
            await self._time.sleep(1)
            if sprung.is_set():
                await self._time.sleep(self._chance.uniform(0.1, 6))
                hub.start()
                return
        face.on_written = lambda *_: None

    async def _crash_after_writes(self) -> None:
        """Crashes a hub after a random number of writes, wherever that is."""
        hub = self._chance.choice(self._hubs)
        face, left, sprung = hub.face, [self._chance.randint(1, 12)], asyncio.Event()
        if face is None:
            return

        def written(kind: ResourceKey, body: JsonObject, subresource: str) -> None:
            left[0] -= 1
            if left[0] == 0 and not face.is_dead:
                self._log.fault("a hub crashes after a write", f"{hub.name}: {kind.plural}")
                hub.kill()
                sprung.set()

        face.on_written = written
        for _ in range(int(_TRAP_SECONDS)):
            await self._time.sleep(1)
            if sprung.is_set():
                await self._time.sleep(self._chance.uniform(0.1, 5))
                hub.start()
                return
        face.on_written = lambda *_: None

    async def _pause_hub(self) -> None:
        hub = self._leader() or self._chance.choice(self._hubs)
        await self._pause(hub, "a hub is paused", self._chance.choice((1.0, 4.0, 8.0, 16.0)))

    async def _pause(self, process: Process, kind: str, seconds: float) -> None:
        self._log.fault(kind, f"{process.name} for {seconds} s")
        process.pause()
        await self._time.sleep(seconds)
        process.resume()

    async def _cut_hub(self) -> None:
        hub = self._chance.choice(self._hubs)
        await self._cut(hub, "a hub is cut off", self._chance.choice((2.0, 5.0, 12.0)))

    async def _cut(self, process: Process, kind: str, seconds: float) -> None:
        self._log.fault(kind, f"{process.name} for {seconds} s")
        process.cut()
        await self._time.sleep(seconds)
        process.mend()

    async def _restore_hub(self) -> None:
        """Sets the hub back to a backup while its agents, and their clusters, have gone on."""
        backup = await self._operator.back_up()
        seconds = self._chance.choice((1.0, 5.0, 15.0, 40.0))
        await self._time.sleep(seconds)
        if self._restoring is None or self._restoring.done():
            self._log.fault("a hub is restored", f"to {seconds:.0f} s ago")
            # The end of the faults does not cut it short.
            self._restoring = asyncio.ensure_future(self._restore(backup))

    async def _restore(self, backup: Backup) -> None:
        def stop() -> None:
            for hub in self._hubs:
                hub.kill()

        def start() -> None:
            for hub in self._hubs:
                hub.start()

        await self._operator.set_back(backup, stop_hub=stop, start_hub=start)

    # Agents and clusters.

    async def _crash_agent(self) -> None:
        agent = self._chance.choice(self._agents)
        self._log.fault("an agent crashes", agent.name)
        await self._down(agent, self._chance.choice((0.1, 2.0, 8.0)))

    async def _lose_disk(self) -> None:
        """Restarts an agent without its memory of earlier works."""
        agent = self._chance.choice(self._agents)
        self._log.fault("an agent loses its disk", agent.name)
        await agent.crash()
        agent.lose_disk()
        await self._time.sleep(self._chance.choice((0.1, 4.0)))
        agent.start()

    async def _forge_work(self) -> None:
        """A member makes up a work, with all that it could have seen of another cluster's."""
        agent = self._chance.choice(self._agents)
        if agent.face is None or agent.face.is_dead:
            return
        try:
            works = (await agent.face.list(WORKS)).items
            if not works:
                return
            body = forged(self._chance.choice(works).object(), agent.cluster, self._chance)
            await agent.face.create(
                WORKS, body, namespace=body["metadata"]["namespace"], write=_FORGER
            )
        except (ApiError, OSError):
            return  # a work of that name is there
        self._log.fault("a work is forged", f"{agent.cluster}: {body['metadata']['name']}")

    async def _pause_agent(self) -> None:
        agent = self._chance.choice(self._agents)
        await self._pause(agent, "an agent is paused", self._chance.choice((1.0, 4.0, 10.0)))

    async def _cut_agent(self) -> None:
        agent = self._chance.choice(self._agents)
        await self._cut(agent, "an agent is cut off", self._chance.choice((1.0, 6.0, 14.0)))
        if self._chance.random() < 0.3 and not self._is_over:
            await self._crash_agent()

    async def _lose_cluster(self) -> None:
        """Cuts its agent off until the cluster counts as lost; the agent may restart meanwhile."""
        agent = self._chance.choice(self._agents)
        seconds = self._chance.uniform(25, 60)
        self._log.fault("a cluster is lost", f"{agent.name} for {seconds:.0f} s")
        agent.cut()
        if self._chance.random() < 0.3:
            await self._time.sleep(seconds / 2)
            await agent.crash()
            agent.start()
            seconds /= 2
        await self._time.sleep(seconds)
        agent.mend()

    async def _bad_driver(self) -> None:
        agent = self._chance.choice(self._agents)
        slow, failing = self._chance.choice(((3.0, 0.0), (0.0, 0.3), (1.0, 0.15)))
        self._log.fault("a cluster is slow or failing", agent.name)
        agent.disturb(slow, failing)
        await self._time.sleep(self._chance.uniform(3, 12))
        agent.disturb(0.0, 0.0)

    async def _fail_node(self) -> None:
        agent = self._chance.choice(self._agents)
        names = sorted(node.name for node in agent.world.observe(agent.clock.now()).nodes)
        name = self._chance.choice(names)
        self._log.fault("a node fails", f"{agent.cluster}: {name}")
        agent.world.fail_node(agent.world.node(name), agent.clock.now())

    async def _fail_pod(self) -> None:
        agent = self._chance.choice(self._agents)
        now = agent.clock.now()
        seen = agent.world.observe(now)
        pods = [
            pod
            for name in sorted(seen.works)
            for pod in agent.world.pods(name) or ()
            if pod.phase in ("Bound", "Ready")
        ]
        if pods:
            pod = self._chance.choice(pods)
            reason, code = self._chance.choice((("Error", 1), ("OOMKilled", 137), ("Evicted", 0)))
            self._log.fault("a pod fails", f"{agent.cluster}: {pod.work} {pod.name} {reason}")
            agent.world.fail_pod(pod, now, reason=reason, code=code)

    # Clocks.

    async def _jump_clocks(self) -> None:
        """Jumps beside all other faults, by a chance of their own."""
        while True:
            await self._time.sleep(self._jump_chance.expovariate(1 / _JUMP_EVERY_SECONDS))
            self._begin(self._jump_clock())

    async def _jump_clock(self) -> None:
        """Sets the time of a machine far forward, or back, and corrects it a while later."""
        process = self._jump_chance.choice([*self._hubs, *self._agents])
        seconds = self._jump_chance.choice(_JUMPS_SECONDS)
        lasts = self._jump_chance.uniform(1, 90)
        self._log.fault("a clock jumps", f"{process.name} by {seconds:.0f} s for {lasts:.0f} s")
        process.set_time(seconds)
        await self._time.sleep(lasts)
        process.set_time(-seconds)

    # The store and its network.

    async def _drop_watches(self) -> None:
        process = self._chance.choice([*self._hubs, *self._agents])
        is_expired = self._chance.random() < 0.5
        if process.face is not None and not process.face.is_dead:
            count = process.face.drop_watches(expired=is_expired)
            kind = "watches expire" if is_expired else "watches end"
            self._log.fault(kind, f"{process.name}: {count}")

    async def _bad_weather(self) -> None:
        process = self._chance.choice([*self._hubs, *self._agents])
        kind = self._chance.choice(
            ("late", "lost", "conflict", "unanswered", "repeated", "held_up")
        )
        chances = {"late": 0.6, "repeated": 0.5, "held_up": 0.4}
        usual = getattr(Weather(), kind)
        self._log.fault("bad weather", f"{process.name}: {kind}")
        setattr(process.weather, kind, chances.get(kind, 0.25))
        await self._time.sleep(self._chance.uniform(3, 12))
        setattr(process.weather, kind, usual)
