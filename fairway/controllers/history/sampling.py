"""Who looks: every ten seconds what the planner and the workloads say is written down.

It writes nothing to the store, so every replica keeps a history of its own, whether it leads or
not, and whoever is asked can answer. A moment at which the planner does not answer is a gap.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from fairway.api.errors import ApiError
from fairway.clock import Clock
from fairway.controllers.cache import Cache
from fairway.controllers.history.book import (
    FLEET,
    RESOLUTIONS,
    Book,
    Seen,
    Sight,
    fewer,
    largest,
    total,
)
from fairway.controllers.history.keeping import Journal, Keeper
from fairway.controllers.history.reading import Asked, answer, part_of
from fairway.controllers.history.services import Services
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.core.gauges import Gauges, PlaceGauge, QueueGauge

_log = logging.getLogger(__name__)

_STEP = RESOLUTIONS[0].step


class History:
    """Writes down how the fleet stands, and tells it."""

    def __init__(self, *, cache: Cache, scheduler: Scheduler, clock: Clock, keeper: Keeper) -> None:
        self._cache = cache
        self._scheduler = scheduler
        self._clock = clock
        self._journal = Journal(keeper)
        self._services = Services(cache)
        self._queues = _Queues()
        self.book = Book()
        self._is_loaded = False

    async def run(self) -> None:
        """Looks until cancelled, at whole tens of seconds."""
        await self._cache.complete()
        if not self._is_loaded:
            self.book, self._is_loaded = self._journal.load() or self.book, True
            self.book.clear()
            self._journal.begin(self.book)
        while True:
            await self._clock.sleep(_STEP - self._clock.now() % _STEP)
            try:
                await self.look()
            except ApiError as fault:
                _log.info("how the fleet stands is not known: %s", fault)

    async def look(self) -> None:
        gauges = await self._scheduler.gauges()
        now = self._clock.now()
        is_renumbered = self.book.see(now, self._sight(gauges))
        self._journal.write(self.book, now, is_renumbered=is_renumbered)

    def answer(self, asked: Asked) -> dict[str, Any]:
        return answer(self.book, asked, self._clock.now())

    def _sight(self, gauges: Gauges) -> Sight:
        clusters = _clusters(gauges)
        return {
            "queues": self._queues.seen(gauges.queues),
            "clusters": {
                FLEET: total("clusters", list(clusters.values())),
                **largest("clusters", clusters, _first),
            },
            "services": dict(largest("services", self._services.see(), _first)),
        }


class _Queues:
    """What is seen of queues; one that stands as it did is not looked at again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[QueueGauge, Seen]] = {}

    def seen(self, gauges: Mapping[str, QueueGauge]) -> dict[str, Seen]:
        known, self._known = self._known, {}
        for name, gauge in gauges.items():
            before = known.get(name)
            is_same = before is not None and before[0] == gauge
            self._known[name] = before if before is not None and is_same else (gauge, _queue(gauge))
        found = {name: seen for name, (_, seen) in self._known.items()}
        roots = [found[name] for name, gauge in gauges.items() if not gauge.parent]
        return {FLEET: total("queues", roots), **largest("queues", found, _nominal)}


def _queue(gauge: QueueGauge) -> Seen:
    share = math.nan if gauge.share is None else gauge.share
    itself = ("", (gauge.waiting, gauge.running, share, gauge.used, gauge.fair))
    parts = [
        (part_of(one.flavor, one.resource), (one.nominal, one.used, one.borrowed, one.lent))
        for one in gauge.holdings
    ]
    return fewer((itself, *parts))


def _clusters(gauges: Gauges) -> dict[str, Seen]:
    places: dict[str, list[tuple[str, PlaceGauge]]] = {}
    for (cluster, flavor), gauge in gauges.places.items():
        places.setdefault(cluster, []).append((flavor, gauge))
    return {name: _cluster(found) for name, found in places.items()}


def _cluster(places: Sequence[tuple[str, PlaceGauge]]) -> Seen:
    itself = ("", tuple(float(sum(each)) for each in zip(*(one for _, one in places), strict=True)))
    return fewer((itself, *((flavor or "-", tuple(gauge)) for flavor, gauge in places)))


def _first(seen: Seen) -> float:
    """How large a cluster or a service is: what there is, or is wanted, of it in all."""
    return seen[0][1][0]


def _nominal(seen: Seen) -> float:
    """How large a queue is: what it owns of all flavors."""
    return sum(numbers[0] for part, numbers in seen if part)
