"""Moments that lie ahead: times written while a clock was ahead are set back.

A hub that started while its machine's time was years ahead has written that time into statuses. If
nothing mended them, back-offs and deadlines would last for those years, because every wait counts
from a stored moment. So whoever leads looks for moments that its own clock has not reached:

- What has happened cannot lie ahead. The latest such moment of an object says by how much the clock
  was ahead, and all moments of that object that lie ahead are set back by as much.
- What is yet to come may lie ahead, but not by more than a month: no wait is that long.

Only statuses are changed. What users write, and what agents report of their clusters, is theirs.
And nothing is changed by a clock that is not sure: it may itself be the one that is behind.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from fairway.api import codec
from fairway.api.autoscaler import FleetAutoscaler
from fairway.api.cluster import Cluster
from fairway.api.errors import ApiError, Invalid
from fairway.api.fleet import Fleet
from fairway.api.governance import FleetPolicy
from fairway.api.kindrule import KindRule
from fairway.api.meta import Object, in_utc
from fairway.api.policy import PlacementPolicy
from fairway.api.queue import Queue
from fairway.api.rollout import Rollout
from fairway.api.workload import Workload
from fairway.clock import timestamp
from fairway.controllers.context import Context
from fairway.controllers.statuses import with_status
from fairway.loops import in_slices
from fairway.store.interface import ResourceKey, Stored, Write
from fairway.store.keys import (
    AUTOSCALERS,
    CLUSTERS,
    FLEET_POLICIES,
    FLEETS,
    KIND_RULES,
    POLICIES,
    QUEUES,
    ROLLOUTS,
    WORKLOADS,
)

_log = logging.getLogger(__name__)

_KINDS: dict[ResourceKey, type[Object]] = {
    FLEETS: Fleet,
    CLUSTERS: Cluster,
    QUEUES: Queue,
    POLICIES: PlacementPolicy,
    FLEET_POLICIES: FleetPolicy,
    KIND_RULES: KindRule,
    ROLLOUTS: Rollout,
    AUTOSCALERS: FleetAutoscaler,
    WORKLOADS: Workload,
}
# The moments of statuses that are yet to come when they are written, and end a wait.
_ENDS = frozenset(
    {"deadline", "not_before", "avoid_until", "leaves_by", "until", "out_until", "try_at"}
)
_COMING = _ENDS | {"starts_at"}
_TIME = re.compile(rb'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)')
_SKEW_SECONDS = 120.0  # by which the clocks of replicas may differ
_LONGEST_SECONDS = 30 * 86_400.0  # of any wait
_LOOK_SECONDS = 300.0
_AGAIN_SECONDS = 30.0
_WRITES_PER_SECOND = 100.0
_WRITE = Write(user="system:fairway", manager="fairway-moments")

Status = TypeVar("Status", bound=Struct)


class Moments:
    """Sets back what a clock that was ahead has written."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._cache = context.cache
        self._clock = context.clock

    async def run(self) -> None:
        while True:
            is_done = await self._look()
            await self._clock.sleep(_LOOK_SECONDS if is_done else _AGAIN_SECONDS)

    async def _look(self) -> bool:
        """Looks at all objects; returns whether nothing is left to be set back."""
        count, is_done = 0, True
        for kind, type_ in _KINDS.items():
            async for _, stored in in_slices(list(self._cache.mirror(kind).items())):
                if not self._clock.is_sure():
                    return False
                if not _may_lie_ahead(stored.raw, self._clock.now()):
                    continue
                try:
                    count += await self._mend(kind, type_, stored)
                except (ApiError, OSError) as fault:
                    is_done = False
                    _log.debug("%s: a status was not set back: %s", kind.plural, fault)
        if count:
            _log.warning("%d objects had times of a clock that was ahead: set back", count)
        return is_done

    async def _mend(self, kind: ResourceKey, type_: type[Object], stored: Stored) -> bool:
        try:
            known = codec.decode(stored.raw, type_)
        except Invalid:
            return False  # the planner reports it
        before: Struct = known.status  # type: ignore[attr-defined]  # each of these kinds has one
        status = set_back(before, self._clock.now())
        if status is before:
            return False
        await self._store.update(
            kind,
            with_status(stored.object(), status),
            namespace=known.metadata.namespace,
            subresource="status",
            write=_WRITE,
        )
        await self._clock.sleep(1 / _WRITES_PER_SECOND)
        return True


def _may_lie_ahead(raw: bytes, now: float) -> bool:
    """Whether any moment in an object lies ahead; texts of UTC times compare as the times do."""
    return max(_TIME.findall(raw), default=b"") > timestamp(now + _SKEW_SECONDS).encode()[:-1]


def set_back(status: Status, now: float) -> Status:
    """A status without moments that a clock that was ahead has written; the same if it has none."""
    present = datetime.fromtimestamp(int(now), UTC)
    ahead = present + timedelta(seconds=_SKEW_SECONDS)
    past: list[datetime] = []

    def gather(name: str, moment: datetime) -> datetime:
        if in_utc(moment) > ahead and name not in _COMING:
            past.append(in_utc(moment))
        return moment

    def change(name: str, moment: datetime) -> datetime:
        if in_utc(moment) <= ahead:
            return moment
        moved = in_utc(moment) - excess
        if name in _ENDS and moved > present + timedelta(seconds=_LONGEST_SECONDS):
            return present
        return moved

    _each(status, gather)
    excess = max(past, default=present) - present
    return _each(status, change)


def _each(part: Status, change: Callable[[str, datetime], datetime]) -> Status:
    """A part with each of its moments changed, by the name of their field."""
    changed: dict[str, object] = {}
    for name in part.__struct_fields__:
        before = getattr(part, name)
        match before:
            case datetime():
                after: object = change(name, before)
            case Struct():
                after = _each(before, change)
            case tuple():
                after = tuple(
                    _each(item, change) if isinstance(item, Struct) else item for item in before
                )
            case _:
                continue
        if after != before:
            changed[name] = after
    return replace(part, **changed) if changed else part
