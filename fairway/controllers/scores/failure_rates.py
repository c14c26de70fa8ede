"""How often attempts ended because of the cluster that they ran in.

Counted from the histories of workloads, so a hub that starts knows it at once. Attempts that ended
by a decision of the hub, and those whose end nobody can explain, do not count.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from fairway.clock import parse_timestamp
from fairway.controllers.cache import Cache
from fairway.controllers.glance import glance
from fairway.store.interface import Stored
from fairway.store.keys import WORKLOADS
from fairway.store.mirrors import Name

_ENDS_MAX = 2_000  # of each cluster
_COUNTED = ("Place", "Program")


class End(NamedTuple):
    """The end of an attempt."""

    at: float
    is_by_place: bool


class FailureRates:
    """The last ends of attempts in each cluster."""

    def __init__(self, cache: Cache) -> None:
        self._ends: dict[str, deque[End]] = {}
        self._known: dict[Name, tuple[str, int]] = {}  # UID, and the last attempt that was counted
        mirror = cache.mirror(WORKLOADS)
        mirror.followers.append(self._follow)

    def rate(self, cluster: str, *, half_life: float, now: float) -> float | None:
        """The share of attempts that failed by the place, weighted by age; None: there is none."""
        ends = self._ends.get(cluster, ())
        weights = [(2 ** (-max(now - end.at, 0.0) / half_life), end.is_by_place) for end in ends]
        total = sum(weight for weight, _ in weights)
        if total <= 0:
            return None
        return sum(weight for weight, failed in weights if failed) / total

    def _follow(self, name: Name, stored: Stored | None) -> None:
        seen = glance(stored) if stored is not None else None
        if stored is None:
            self._known.pop(name, None)
        if seen is None or not seen.status.history:
            return
        uid, counted = self._known.get(name, ("", -1))
        counted = counted if uid == seen.metadata.uid else -1
        for attempt in seen.status.history:
            if attempt.attempt > counted and attempt.ended_at and attempt.blame in _COUNTED:
                end = End(parse_timestamp(attempt.ended_at), attempt.blame == "Place")
                for cluster in attempt.clusters:
                    self._ends.setdefault(cluster, deque(maxlen=_ENDS_MAX)).append(end)
        last = max(attempt.attempt for attempt in seen.status.history)
        self._known[name] = (seen.metadata.uid, max(last, counted))
