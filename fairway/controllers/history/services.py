"""Services in the history: replicas that are wanted, placed and ready.

Workloads change all the time and few are services, so a change only marks a service; it is read at
the next sample.
"""

from __future__ import annotations

from fairway.api.names import OVER
from fairway.controllers.cache import Cache
from fairway.controllers.glance import Glance, glance
from fairway.controllers.history.book import NamedParts, fewer
from fairway.store.interface import Stored
from fairway.store.keys import WORKLOADS
from fairway.store.mirrors import Name


class Services:
    """All services, by namespace/name."""

    def __init__(self, cache: Cache) -> None:
        self._workloads = cache.mirror(WORKLOADS)
        self._marked: dict[Name, None] = {}
        self._seen: dict[str, NamedParts] = {}
        self._workloads.followers.append(self._follow)
        for name, stored in self._workloads.items():
            self._follow(name, stored)

    def see(self) -> dict[str, NamedParts]:
        for name in self._marked:
            stored, key = self._workloads.get(name), f"{name[0]}/{name[1]}"
            service = glance(stored) if stored is not None else None
            seen = _seen(service) if service is not None else None
            if seen is None:
                self._seen.pop(key, None)
            else:
                self._seen[key] = seen
        self._marked.clear()
        return self._seen

    def _follow(self, name: Name, stored: Stored | None) -> None:
        is_known = f"{name[0]}/{name[1]}" in self._seen
        seen = glance(stored) if stored is not None else None
        if is_known or (seen is not None and seen.is_service):
            self._marked[name] = None


def _seen(service: Glance) -> NamedParts | None:
    spec, status = service.spec, service.status
    if not service.is_service or status.phase in OVER:
        return None
    placements = status.claim.placements if status.claim is not None else ()
    placed = sum(placement.replicas or 0 for placement in placements)
    # Pods are counted together; replicas of several pods are ready in proportion to their pods.
    ready = status.pods.ready * placed / status.pods.wanted if status.pods.wanted else 0
    wanted = 1 if spec.replicas is None else spec.replicas
    itself = ("", (wanted, placed, min(ready, placed)))
    return fewer(
        (
            itself,
            *(
                (placement.cluster, (placement.replicas or 0,))
                for placement in placements
                if placement.cluster
            ),
        )
    )
