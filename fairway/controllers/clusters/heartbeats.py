"""Heartbeats: how long each agent has been silent, by this hub's own clock.

Whoever asks looks every few seconds; what passed between two looks counts only if it was no more
than a hub that is up would need, so that a hub that was paused blames nobody.
"""

from __future__ import annotations

from fairway.api.names import AGENT_LEASE, CUT_OFF, work_namespace
from fairway.clock import Clock
from fairway.controllers.clusters.health import Heard, first_look
from fairway.store.mirrors import Mirror

LOOK_SECONDS = 5.0


class Heartbeats:
    """What was heard of the agents of all clusters."""

    def __init__(self, leases: Mirror, clock: Clock) -> None:
        self._leases = leases
        self._clock = clock
        self._heard: dict[str, Heard] = {}

    def look(self, clusters: list[str]) -> None:
        """Looks at the leases of all clusters; those of others are forgotten."""
        now = self._clock.now()
        result: dict[str, Heard] = {}
        for cluster in clusters:
            stored = self._leases.get((work_namespace(cluster), AGENT_LEASE))
            if stored is None:
                continue
            lease = stored.object()
            renewed = str(lease.get("spec", {}).get("renewTime", ""))
            is_cut_off = CUT_OFF in (lease["metadata"].get("annotations") or {})
            before = self._heard.get(cluster)
            look = before.looked if before else first_look
            result[cluster] = look(renewed, now, is_cut_off=is_cut_off)
        self._heard = result

    def of(self, cluster: str) -> Heard | None:
        return self._heard.get(cluster)

    def forget(self) -> None:
        """A hub that begins to lead counts from then."""
        self._heard.clear()
