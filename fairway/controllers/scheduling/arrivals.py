"""Which clusters have reported since this hub started.

A hub that was restored from a backup does not know what was decided since the backup. Its agents
do: they report what runs, and bring the works back. So after a start the hub plans nothing, and
sends no earlier decisions, until every cluster that was not known to be lost has reported, or has
been silent for long enough to count as unready.
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

# Pending and Unready clusters may have reported since the backup was made.
_AWAITED = ("", "Pending", "Ready", "Held", "Unready")


class _Spec(msgspec.Struct, rename="camel"):
    cluster: str
    seen_at: datetime


class _Report(msgspec.Struct):
    """The fields of a report that say which cluster it is from, and from when."""

    spec: _Spec


_decode = msgspec.json.Decoder(_Report).decode


class Arrivals:
    """Waits for the reports of clusters after a start."""

    def __init__(self, cache: Cache, clock: Clock) -> None:
        self._cache = cache
        self._clock = clock
        self._started_at = clock.now()
        self._began_at: float | None = None  # when the cache was complete
        self._heard: set[str] = set()
        self._is_over = False
        cache.mirror(REPORTS).followers.append(self._report_changed)

    def begin(self) -> None:
        """The cache is complete: every later report is new."""
        if self._began_at is None:
            self._began_at = self._clock.now()

    def waits_until(self) -> float | None:
        """Until when the first plan may have to wait; None: it need not wait."""
        if self._is_over or self._began_at is None:
            return None
        due = self._began_at + self._cache.fleet().spec.health.unready_seconds
        if self._clock.now() < due and self._is_incomplete():
            return due
        self._is_over = True
        self._heard.clear()
        return None

    def is_waiting(self) -> bool:
        """Whether the hub may not know yet all that runs."""
        return not self._is_over and (self._began_at is None or self.waits_until() is not None)

    def _is_incomplete(self) -> bool:
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
        # An agent in this process may have reported before the cache was complete.
        if self._began_at is not None or spec.seen_at.timestamp() >= self._started_at:
            self._heard.add(spec.cluster)
