"""Follows a hub and prints what happens there, line by line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.discretion import MayLook, everywhere
from fairway.api.errors import ApiError
from fairway.api.meta import JsonObject
from fairway.api.rollout import Rollout
from fairway.api.workload import Workload
from fairway.clock import Clock
from fairway.demo.narrator import (
    Line,
    WaitsLine,
    of_cluster,
    of_rollout,
    of_workload,
    why_it_waits,
)
from fairway.demo.player import Player
from fairway.store.interface import Store, Stored
from fairway.store.keys import CLUSTERS, ROLLOUTS, WORKLOADS
from fairway.store.mirrors import Mirror, Name

# Explains why a workload waits, by namespace and name, to a reader with access to namespaces.
Explain = Callable[[str, str, MayLook], Awaitable[JsonObject | None]]
Tell = Callable[[float, Line], None]

_QUEUE_MOST = 1000  # pending lines; past it the oldest are dropped


class Telling:
    """The demo on a hub: plays its story, and describes what happens as it happens."""

    def __init__(self, store: Store, clock: Clock, *, explain: Explain, tell: Tell) -> None:
        self._clock = clock
        self._began = clock.now()
        self._explain = explain
        self._tell = tell
        self._workloads: dict[str, Workload] = {}
        self._clusters: dict[str, Cluster] = {}
        self._rollouts: dict[str, Rollout] = {}
        self._lines: asyncio.Queue[Line | WaitsLine] = asyncio.Queue(_QUEUE_MOST)
        self._player = Player(store, clock, lambda text: self._put(Line("", "", text)))
        self._mirrors = (
            Mirror(store, CLUSTERS, clock=clock),
            Mirror(store, WORKLOADS, clock=clock),
            Mirror(store, ROLLOUTS, clock=clock),
        )
        self._mirrors[0].followers.append(self._hear_cluster)
        self._mirrors[1].followers.append(self._hear_workload)
        self._mirrors[2].followers.append(self._hear_rollout)

    async def run(self) -> None:
        """Plays and describes until cancelled; then its processes are ended."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for mirror in self._mirrors:
                    tasks.create_task(mirror.run())
                tasks.create_task(self._player.run())
                tasks.create_task(self._speak())
        finally:
            await self._player.leave()

    def _hear_workload(self, name: Name, stored: Stored | None) -> None:
        key = "/".join(name)
        if stored is None:
            self._workloads.pop(key, None)
            return
        after, before = decode(stored.raw, Workload), self._workloads.get(key)
        self._workloads[key] = after
        for line in of_workload(before, after, self._workloads):
            self._put(line)

    def _hear_cluster(self, name: Name, stored: Stored | None) -> None:
        if stored is None:
            self._clusters.pop(name[1], None)
            return
        after, before = decode(stored.raw, Cluster), self._clusters.get(name[1])
        self._clusters[name[1]] = after
        for line in of_cluster(before, after):
            self._put(line)

    def _hear_rollout(self, name: Name, stored: Stored | None) -> None:
        key = "/".join(name)
        if stored is None:
            self._rollouts.pop(key, None)
            return
        after, before = decode(stored.raw, Rollout), self._rollouts.get(key)
        self._rollouts[key] = after
        for line in of_rollout(before, after):
            self._put(line)

    def _put(self, line: Line | WaitsLine) -> None:
        if self._lines.full():
            self._lines.get_nowait()
        self._lines.put_nowait(line)

    async def _speak(self) -> None:
        while True:
            line = await self._lines.get()
            at = self._clock.now() - self._began
            if isinstance(line, WaitsLine):
                self._tell(at, Line("waits", line.workload.metadata.name, await self._why(line)))
            else:
                self._tell(at, line)

    async def _why(self, line: WaitsLine) -> str:
        metadata, code = line.workload.metadata, line.workload.status.reason
        try:
            result = await self._explain(metadata.namespace, metadata.name, everywhere)
        except ApiError:
            result = None
        return why_it_waits(result or {}, code)
