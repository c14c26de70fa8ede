"""Who has been heard since this hub started.

A hub may have been restored from a backup, and then know nothing of what was decided since. Its
agents know: they report what runs, and bring the works back. So a hub that starts plans nothing,
and sends nothing that was decided before, until every cluster that it did not know to be lost has
reported, or was silent for so long that it would not count as well any more.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from fairway.api.cluster import Cluster
from fairway.clock import Clock
from fairway.controllers.cache import Cache
from fairway.store.interface import Stored
from fairway.store.keys import REPORTS
from fairway.store.mirrors import Name

# Those that were not heard before may have been since: that is just what a backup does not know.
_AWAITED = ("", "Pending", "Ready", "Held", "Unready")


class _Spec(msgspec.Struct, rename="camel"):
    cluster: str
    seen_at: datetime


class _Report(msgspec.Struct):
    """As much of a report as tells from whom and of when it is."""

    spec: _Spec


_decode = msgspec.json.Decoder(_Report).decode


class Arrivals:
    """What is awaited of clusters after a start."""

    def __init__(self, cache: Cache, clock: Clock) -> None:
        self._cache = cache
        self._clock = clock
        self._started_at = clock.now()
        self._began_at: float | None = None  # when all that the store has was read
        self._heard: set[str] = set()
        self._is_over = False
        cache.mirror(REPORTS).followers.append(self._report_changed)

    def begin(self) -> None:
        """All that the store has was read; a report that comes from now on is news."""
        if self._began_at is None:
            self._began_at = self._clock.now()

    def waits_until(self) -> float | None:
        """How long the first plan may still have to wait; None: it need not."""
        if self._is_over or self._began_at is None:
            return None
        due = self._began_at + self._cache.fleet().spec.health.unready_seconds
        if self._clock.now() < due and self._missing():
            return due
        self._is_over = True
        self._heard.clear()
        return None

    def is_waiting(self) -> bool:
        """Whether what runs may not all be known yet."""
        return not self._is_over and (self._began_at is None or self.waits_until() is not None)

    def _missing(self) -> bool:
        return any(
            cluster.spec.mode == "Manage"
            and cluster.spec.accepted
            and cluster.status.phase in _AWAITED
            and cluster.metadata.name not in self._heard
            for cluster in self._cache.all(Cluster)
        )

    def _report_changed(self, _name: Name, stored: Stored | None) -> None:
        if self._is_over or stored is None:
            return
        spec = _decode(stored.raw).spec
        # An agent of this process may have reported before everything was read.
        if self._began_at is not None or spec.seen_at.timestamp() >= self._started_at:
            self._heard.add(spec.cluster)
