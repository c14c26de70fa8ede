"""Heartbeats: how long each agent has been silent, by this hub's own clock.

Callers check every few seconds. The time between two checks counts only if it is no longer than a
running hub needs, so that a pause of the hub does not count as silence of an agent.
"""

from __future__ import annotations

from fairway.api.names import AGENT_LEASE, CUT_OFF, work_namespace
from fairway.clock import Clock
from fairway.controllers.clusters.health import Heard, first_look
from fairway.store.mirrors import Mirror

LOOK_SECONDS = 5.0


class Heartbeats:
    """The heartbeats of the agents of all clusters."""

    def __init__(self, leases: Mirror, clock: Clock) -> None:
        self._leases = leases
        self._clock = clock
        self._heard: dict[str, Heard] = {}

    def look(self, clusters: list[str]) -> None:
        """Checks the leases of the given clusters; forgets all others."""
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
            look = before.look if before else first_look
            result[cluster] = look(renewed, now, is_cut_off=is_cut_off)
        self._heard = result

    def of(self, cluster: str) -> Heard | None:
        return self._heard.get(cluster)

    def forget(self) -> None:
        """Starts over: a new leader counts silence from its start."""
        self._heard.clear()
