"""What an agent last saw of its cluster, and whether it saw a work since it last touched it.

A look that began before an action does not show its effect. So each look has a number, and a work
that was touched waits for a look that began later.
"""

from __future__ import annotations

from fairway.agent.drivers.interface import Observation, WorkSeen
from fairway.clock import Clock
from fairway.loops import Alarm


class Sight:
    """The last look."""

    def __init__(self, clock: Clock) -> None:
        self.wanted = Alarm(clock)  # marked when there is a reason to look
        self.observation: Observation | None = None
        self._begun = 0
        self._number = 0
        self._touched: dict[str, int] = {}

    def begin(self) -> int:
        """Begins a look and returns its number."""
        self._begun += 1
        return self._begun

    def take(self, observation: Observation, number: int) -> list[str]:
        """Ends a look; returns works that changed, or are first seen since they were touched."""
        before = self.observation.works if self.observation is not None else {}
        self.observation, self._number = observation, number
        works = observation.works
        changed = [name for name, seen in works.items() if before.get(name) is not seen]
        changed.extend(name for name in before if name not in works)
        fresh = [name for name, touched in self._touched.items() if number > touched]
        for name in fresh:
            del self._touched[name]
        return list(dict.fromkeys((*changed, *fresh)))

    def touch(self, name: str) -> None:
        """Records that something was done to a work."""
        self._touched[name] = self._begun
        self.wanted.mark()

    def is_fresh(self, name: str) -> bool:
        """Whether the last look shows the effect of everything done to a work."""
        return self.observation is not None and name not in self._touched

    def work(self, name: str) -> WorkSeen | None:
        return self.observation.works.get(name) if self.observation is not None else None
