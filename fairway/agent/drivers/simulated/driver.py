"""The driver of a simulated cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from fairway.agent.drivers.interface import (
    CommandQuery,
    DriverFault,
    LogQuery,
    NotPossible,
    Observation,
    PortQuery,
)
from fairway.agent.drivers.simulated.lives import LivePod
from fairway.agent.drivers.simulated.objects import FindKind
from fairway.agent.drivers.simulated.world import World
from fairway.api.cluster import Cluster
from fairway.api.work import Stop, Work
from fairway.clock import Clock, timestamp
from fairway.loops import Alarm
from fairway.metrics.interface import PodUsage
from fairway.streams.requests import Exchange

_FOLLOW_SECONDS = 1.0


class SimulatedDriver:
    """A connection to a world. The world continues when it closes, and catches up on open."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock
        self._news = asyncio.Event()
        self._alarm = Alarm(clock)
        self._timing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._world.on_change = self._news.set
        self._world.timers.on_earlier = self._alarm.mark
        self._news.set()
        self._timing = asyncio.ensure_future(self._keep_time())

    async def close(self) -> None:
        if self._timing is not None:
            self._timing.cancel()
            with suppress(asyncio.CancelledError):
                await self._timing
            self._timing = None

    def silent_seconds(self) -> float:
        return 0.0

    async def observe(self) -> Observation:
        self._news.clear()
        return self._world.observe(self._clock.now())

    async def wait_for_change(self) -> None:
        await self._news.wait()

    async def apply(self, work: Work) -> None:
        self._world.apply(work, self._clock.now())

    async def stop(self, name: str, how: Stop) -> None:
        self._world.stop(name, how, self._clock.now())

    async def remove(self, name: str) -> None:
        self._world.remove(name, self._clock.now())

    async def release(self, nodes: Sequence[str]) -> None:
        self._world.release(nodes, self._clock.now())

    async def logs(self, query: LogQuery) -> AsyncIterator[bytes]:
        """The short log of a simulated pod: when it started and ended."""
        shown = 0
        self._pod(query)
        yield b""
        while True:
            self._world.advance(self._clock.now())
            pod = self._pod(query)
            lines = _lines(pod)
            if not shown and query.tail_lines is not None:
                shown = max(0, len(lines) - query.tail_lines)
            for line in lines[shown:]:
                yield line
            shown = max(shown, len(lines))
            if not query.follow or not pod.is_live:
                return
            await self._clock.sleep(_FOLLOW_SECONDS)

    async def execute(self, query: CommandQuery, exchange: Exchange) -> int:
        raise NotPossible("pods of a simulated cluster run nothing, so no command runs in them")

    async def forward(self, query: PortQuery, exchange: Exchange) -> None:
        raise NotPossible("pods of a simulated cluster run nothing, so they have no ports")

    async def usage(self, work: str) -> tuple[PodUsage, ...]:
        raise NotPossible("pods of a simulated cluster run nothing, so they use nothing")

    def _pod(self, query: LogQuery) -> LivePod:
        pods = self._world.pods(query.work)
        if pods is None:
            raise DriverFault(f"there is no work {query.work}")
        for pod in pods:
            if query.pod in ("", pod.name):
                return pod
        raise DriverFault(f"the work {query.work} has no pod {query.pod}".rstrip())

    async def _keep_time(self) -> None:
        """Advances the world whenever something is due in it."""
        while True:
            await self._alarm.wait(self._world.timers.next_at)
            self._world.advance(self._clock.now())


class Worlds:
    """The simulated clusters of one process, by name; they outlive their agents."""

    def __init__(self, find_kind: FindKind, clock: Clock) -> None:
        self._find_kind = find_kind
        self._clock = clock
        self._worlds: dict[str, tuple[str, World]] = {}

    def driver(self, cluster: Cluster) -> SimulatedDriver:
        """A driver for a cluster as it is now; another cluster of the same name is a new world."""
        name, uid = cluster.metadata.name, cluster.metadata.uid
        known, world = self._worlds.get(name, ("", None))
        if world is None or known != uid:
            world = World(cluster, self._find_kind, now=self._clock.now())
            self._worlds[name] = (uid, world)
        else:
            world.reshape(cluster, self._clock.now())
        return SimulatedDriver(world, self._clock)

    def world(self, name: str) -> World:
        return self._worlds[name][1]

    def forget(self, name: str) -> None:
        """Drops the world of a cluster that was removed."""
        self._worlds.pop(name, None)


def _lines(pod: LivePod) -> list[bytes]:
    lines = []
    if pod.started_at is not None:
        lines.append(f"{timestamp(pod.started_at)} {pod.name} started on {pod.node_name}\n")
    if pod.finished_at is not None:
        ended = "succeeded" if pod.phase == "Succeeded" else f"failed: {pod.message}"
        lines.append(f"{timestamp(pod.finished_at)} {pod.name} {ended}\n")
    return [name.encode() for name in lines]
