"""The static inventory: only what the Cluster lists and the driver reports."""

from __future__ import annotations

from collections.abc import Callable

from fairway.agent.drivers.interface import Observation


class Listed:
    """Adds nothing to what the driver sees."""

    async def run(self, changed: Callable[[], None]) -> None:
        """Does nothing: there is no source to follow."""

    def merge(self, observation: Observation) -> Observation:
        return observation
