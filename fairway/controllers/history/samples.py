"""A sample of the fleet at a moment, as a book takes it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fairway.controllers.history.answers import part_of
from fairway.controllers.history.book import FLEET, NamedParts, Sight, fewer, largest, total
from fairway.core.explain.samples import Gauges, PlaceGauge, QueueGauge


class Sights:
    """Makes samples; a queue whose gauge did not change is not processed again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[QueueGauge, NamedParts]] = {}

    def of(self, gauges: Gauges, services: Mapping[str, NamedParts]) -> Sight:
        clusters = _clusters(gauges)
        return {
            "queues": self._queues(gauges.queues),
            "clusters": {
                FLEET: total("clusters", list(clusters.values())),
                **largest("clusters", clusters, _first),
            },
            "services": largest("services", services, _first),
        }

    def _queues(self, gauges: Mapping[str, QueueGauge]) -> dict[str, NamedParts]:
        known, self._known = self._known, {}
        for name, gauge in gauges.items():
            before = known.get(name)
            is_same = before is not None and before[0] == gauge
            self._known[name] = before if before is not None and is_same else (gauge, _queue(gauge))
        queues = {name: seen for name, (_, seen) in self._known.items()}
        roots = [queues[name] for name, gauge in gauges.items() if not gauge.parent]
        return {FLEET: total("queues", roots), **largest("queues", queues, _nominal)}


def _queue(gauge: QueueGauge) -> NamedParts:
    share = math.nan if gauge.share is None else gauge.share
    itself = ("", (gauge.waiting, gauge.running, share, gauge.used, gauge.fair))
    parts = [
        (
            part_of(holding.flavor, holding.resource),
            (holding.nominal, holding.used, holding.borrowed, holding.lent),
        )
        for holding in gauge.holdings
    ]
    return fewer((itself, *parts))


def _clusters(gauges: Gauges) -> dict[str, NamedParts]:
    places: dict[str, list[tuple[str, PlaceGauge]]] = {}
    for (cluster, flavor), gauge in gauges.places.items():
        places.setdefault(cluster, []).append((flavor, gauge))
    return {name: _cluster(place) for name, place in places.items()}


def _cluster(places: Sequence[tuple[str, PlaceGauge]]) -> NamedParts:
    itself = (
        "",
        tuple(float(sum(each)) for each in zip(*(place for _, place in places), strict=True)),
    )
    return fewer((itself, *((flavor or "-", tuple(gauge)) for flavor, gauge in places)))


def _first(seen: NamedParts) -> float:
    """The size of a cluster or a service: all that it has, or that is wanted."""
    return seen[0][1][0]


def _nominal(seen: NamedParts) -> float:
    """The size of a queue: what it owns of all flavors."""
    return sum(numbers[0] for part, numbers in seen if part)
