"""The static inventory: what the Cluster lists, and the driver reports, is all there is."""

from __future__ import annotations

from collections.abc import Callable

from fairway.agent.drivers.interface import Observation


class Listed:
    """Adds nothing to what the driver sees."""

    async def run(self, changed: Callable[[], None]) -> None:
        """There is nothing to keep up with."""

    def merged(self, observation: Observation) -> Observation:
        return observation
