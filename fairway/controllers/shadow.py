"""Shadows: what the hub would do with clusters that it may not touch yet.

A cluster in mode Shadow takes no part in decisions. Every half minute the same decisions are made
as if it did. The workloads that would run there are counted in a condition of the cluster, and up
to ten of them get a note. This shows what would change before a cluster is handed over.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Literal

from msgspec.structs import replace

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.errors import ApiError
from fairway.api.meta import Condition
from fairway.api.names import namespace_and_name
from fairway.controllers.context import Context
from fairway.controllers.scheduling.planner import PlannerLost
from fairway.controllers.scheduling.questions import Shadow
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.controllers.statuses import with_status
from fairway.store.interface import Write
from fairway.store.keys import CLUSTERS, WORKLOADS

DIFFERS = "ShadowDiffers"
_WRITE = Write(user="system:fairway", manager="fairway-shadows")
_LOOK_SECONDS = 30.0
_NAMED_MOST = 10  # workloads that get a note each

_log = logging.getLogger(__name__)


class Shadows:
    """Reports what would run in shadowed clusters."""

    def __init__(self, context: Context, *, scheduler: Scheduler) -> None:
        self._store = context.store
        self._cache = context.cache
        self._scheduler = scheduler
        self._clock = context.clock
        self._notes = context.notes

    async def run(self) -> None:
        """Looks every half minute, if there is a cluster to shadow, until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            clusters = list(self._cache.all(Cluster))
            if any(cluster.spec.mode == "Shadow" or _condition(cluster) for cluster in clusters):
                try:
                    await self._look(clusters)
                except (ApiError, OSError, PlannerLost) as fault:
                    _log.debug("what shadowed clusters would get was not told: %s", fault)

    async def _look(self, clusters: list[Cluster]) -> None:
        result = await self._scheduler.ask(Shadow())
        for cluster in clusters:
            name = cluster.metadata.name
            if cluster.spec.mode == "Shadow":
                await self._tell(name, result.get(name, []))
                await self._note(name, result.get(name, []))
            elif _condition(cluster):
                await self._tell(name, None)

    async def _tell(self, name: str, workloads: list[str] | None) -> None:
        """Writes the condition of a cluster; None removes it."""
        stored = self._cache.mirror(CLUSTERS).get(("", name))
        if stored is None:
            return
        body = stored.object()
        cluster = codec.decode(body, Cluster)
        others = tuple(
            condition for condition in cluster.status.conditions if condition.type != DIFFERS
        )
        made = () if workloads is None else (self._make(cluster, workloads),)
        status = replace(cluster.status, conditions=(*others, *made))
        if set(status.conditions) != set(cluster.status.conditions):
            changed = with_status(body, status)
            await self._store.update(CLUSTERS, changed, subresource="status", write=_WRITE)

    def _make(self, cluster: Cluster, workloads: list[str]) -> Condition:
        word: Literal["True", "False"] = "True" if workloads else "False"
        old = _condition(cluster)
        now = datetime.fromtimestamp(int(self._clock.now()), UTC)
        count = len(workloads)
        return Condition(
            type=DIFFERS,
            status=word,
            reason="WouldRunHere" if workloads else "NoDifference",
            # The workloads are named in notes on them, for users who may see them.
            message=f"{count} that wait would run here" if workloads else "",
            last_transition_time=(
                old.last_transition_time if old is not None and old.status == word else now
            ),
            observed_generation=cluster.metadata.generation,
        )

    async def _note(self, cluster: str, workloads: list[str]) -> None:
        for key in sorted(workloads)[:_NAMED_MOST]:
            stored = self._cache.mirror(WORKLOADS).get(namespace_and_name(key))
            if stored is not None:
                message = f"it would run in {cluster}, if that cluster were managed"
                await self._notes.say(stored.object(), "WouldRun", message)


def _condition(cluster: Cluster) -> Condition | None:
    return next(
        (condition for condition in cluster.status.conditions if condition.type == DIFFERS), None
    )
