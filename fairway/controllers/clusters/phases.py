"""Follows changes of the phases of clusters, and ignores all their other changes."""

from __future__ import annotations

from collections.abc import Callable

from fairway.api.cluster import Cluster
from fairway.controllers.cache import Cache
from fairway.store.interface import Stored
from fairway.store.keys import CLUSTERS
from fairway.store.mirrors import Name


class Phases:
    """The last known phases of clusters."""

    def __init__(self, cache: Cache) -> None:
        self.followers: list[Callable[[], None]] = []  # called when the phase of a cluster changes
        self._cache = cache
        self._phases: dict[str, str | None] = {}
        cache.mirror(CLUSTERS).followers.append(self._follow)

    def _follow(self, name: Name, stored: Stored | None) -> None:
        cluster = self._cache.get(Cluster, name[1]) if stored is not None else None
        phase = cluster.status.phase if cluster is not None else None
        if self._phases.get(name[1]) != phase:
            self._phases[name[1]] = phase
            for follow in self.followers:
                follow()
