"""Flavors: which nodes and clusters have them, written periodically to their status.

The status is for people. It is written only if it changed; nodes come and go, so it is looked at
every quarter of a minute.
"""

from __future__ import annotations

import logging

from msgspec.structs import replace

from fairway.api import codec
from fairway.api.amounts import Quantity, family_of
from fairway.api.errors import ApiError
from fairway.api.flavor import Flavor
from fairway.controllers.context import Context
from fairway.controllers.scheduling.questions import NodesByFlavor
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.controllers.statuses import with_status
from fairway.core.explain.flavor_status import FlavorNodes
from fairway.store.interface import Write
from fairway.store.keys import FLAVORS

_log = logging.getLogger(__name__)

_WRITE = Write(user="system:fairway", manager="fairway-flavors")
_LOOK_SECONDS = 15.0  # all nodes are counted
_CLUSTERS_MOST = 512
_RESOURCES_MOST = 64


class Flavors:
    """The controller of flavor statuses."""

    def __init__(self, context: Context, *, scheduler: Scheduler) -> None:
        self._store = context.store
        self._cache = context.cache
        self._scheduler = scheduler
        self._clock = context.clock

    async def run(self) -> None:
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            try:
                answers = await self._scheduler.ask(NodesByFlavor())
            except ApiError as fault:
                _log.warning("which nodes have which flavor is not known: %s", fault)
                continue
            for answer in answers:
                try:
                    await self._write(answer)
                except (ApiError, OSError) as fault:
                    _log.info("the status of flavor %s was not written: %s", answer.flavor, fault)

    async def _write(self, answer: FlavorNodes) -> None:
        stored = self._cache.mirror(FLAVORS).get(("", answer.flavor))
        if stored is None:
            return
        body = stored.object()
        flavor = codec.decode(body, Flavor)
        amounts = list(answer.allocatable.items())[:_RESOURCES_MOST]
        status = replace(
            flavor.status,
            observed_generation=flavor.metadata.generation,
            nodes=answer.nodes,
            clusters=answer.clusters[:_CLUSTERS_MOST],
            allocatable={
                resource: Quantity(nanos, family_of(resource)) for resource, nanos in amounts
            },
        )
        if status != flavor.status:
            changed = with_status(body, status)
            await self._store.update(FLAVORS, changed, subresource="status", write=_WRITE)
