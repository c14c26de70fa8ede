"""Queues: their state, written periodically to their status, and their memory of past usage.

What a queue holds changes with every claim, so it is worked out when read. The status is for
people: it is taken every few seconds and written only if it changed. Remembered usage decays and is
updated at the fleet's sampling interval.

A queue that an earlier version stored did not limit resources that no group names. It keeps that,
and is told once to say so.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from msgspec.structs import replace

from fairway.api import codec
from fairway.api.amounts import Quantity, family_of
from fairway.api.errors import ApiError
from fairway.api.meta import JsonObject
from fairway.api.queue import FlavorUsage, Queue, QueueStatus, RememberedUsage
from fairway.controllers.clusters.heartbeats import LOOK_SECONDS
from fairway.controllers.context import Context
from fairway.controllers.scheduling.questions import Standings
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.core.explain.queue_status import QueueState
from fairway.core.quota.shares import decay
from fairway.store.interface import Patch, Write
from fairway.store.keys import QUEUES
from fairway.view.queues import is_from_before, line_of, uncovered_of

_log = logging.getLogger(__name__)

_WRITE = Write(user="system:fairway", manager="fairway-queues")


class Queues:
    """The controller of queue statuses."""

    def __init__(
        self, context: Context, *, scheduler: Scheduler, look_seconds: float = LOOK_SECONDS
    ) -> None:
        self._look_seconds = look_seconds
        self._store = context.store
        self._cache = context.cache
        self._scheduler = scheduler
        self._clock = context.clock
        self._notes = context.notes
        self._queues: dict[str, Queue] = {}  # as of this look

    async def run(self) -> None:
        while True:
            await self._clock.sleep(self._look_seconds)
            try:
                standings = await self._scheduler.ask(Standings())
            except ApiError as fault:
                _log.warning("how queues stand is not known: %s", fault)
                continue
            self._queues = {queue.metadata.name: queue for queue in self._cache.all(Queue)}
            for standing in standings:
                try:
                    await self._write(standing)
                except (ApiError, OSError) as fault:
                    _log.info("the status of queue %s was not written: %s", standing.queue, fault)

    async def _write(self, standing: QueueState) -> None:
        stored = self._cache.mirror(QUEUES).get(("", standing.queue))
        if stored is None:
            return
        body = stored.object()
        queue = self._queues[standing.queue] = codec.decode(body, Queue)
        if self._must_migrate(queue):
            await self._migrate(body)
            return  # the rest follows when the change is seen
        status = self._status(queue, standing)
        if status != queue.status:
            await self._store.update(
                QUEUES,
                {**body, "status": codec.to_plain(status)},
                subresource="status",
                write=_WRITE,
            )

    def _must_migrate(self, queue: Queue) -> bool:
        """Whether an earlier version stored the queue, and nothing says what is uncovered.

        Queues below follow the queue above them, which is asked first.
        """
        line = line_of(self._queues, queue.metadata.name)
        if not is_from_before(queue) or any(spec.uncovered for spec in line):
            return False
        above = self._queues.get(queue.spec.parent)
        return above is None or not is_from_before(above)

    async def _migrate(self, body: JsonObject) -> None:
        """What the queue did not limit stays unlimited; from now on it says so."""
        name, seen = body["metadata"]["name"], body["metadata"]["resourceVersion"]
        patch = Patch(
            type="merge",
            body={"metadata": {"resourceVersion": seen}, "spec": {"uncovered": "Unlimited"}},
        )
        await self._store.patch(QUEUES, name, patch, write=_WRITE)
        await self._notes.warn(
            body,
            "UncoveredIsUnlimited",
            "resources that no resource group names stay unlimited in this queue and below; "
            "queues that are created from now on refuse them unless they say uncovered: Unlimited",
        )

    def _status(self, queue: Queue, standing: QueueState) -> QueueStatus:
        return replace(
            queue.status,
            observed_generation=queue.metadata.generation,
            waiting_workloads=standing.waiting,
            claimed_workloads=standing.claimed,
            running_workloads=standing.running,
            share=standing.share or 0,
            usage=tuple(
                FlavorUsage(
                    flavor=holding.flavor,
                    resource=holding.resource,
                    used=Quantity(holding.used, family_of(holding.resource)),
                    borrowed=Quantity(holding.borrowed, family_of(holding.resource)),
                )
                for holding in standing.holdings
                if holding.used
            ),
            remembered=self._remember(queue, standing),
            uncovered=uncovered_of(queue, line_of(self._queues, queue.metadata.name)),
        )

    def _remember(self, queue: Queue, standing: QueueState) -> RememberedUsage | None:
        """Decayed usage, updated if it is due."""
        settings = self._cache.fleet().spec.fair_share
        if not settings.usage_half_life_seconds:
            return None
        now = self._clock.now()
        before = queue.status.remembered
        seconds = now - before.updated_at.timestamp() if before else float("inf")
        if before is not None and seconds < settings.usage_sampling_seconds:
            return before
        used: dict[str, int] = {}
        for holding in standing.holdings:
            used[holding.resource] = used.get(holding.resource, 0) + holding.used
        known = {value: amount.nanos for value, amount in before.amounts.items()} if before else {}
        # Usage that was never sampled is not known; memory begins empty.
        faded = decay(known, used, seconds, settings.usage_half_life_seconds) if before else known
        return RememberedUsage(
            amounts={
                resource: Quantity(nanos, family_of(resource)) for resource, nanos in faded.items()
            },
            updated_at=datetime.fromtimestamp(int(now), UTC),
        )
