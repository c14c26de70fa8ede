"""What the controllers of one hub share: its breakers, and whether clusters have reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairway.api.amounts import Quantity
from fairway.api.fleet import FleetSpec
from fairway.clock import Clock
from fairway.controllers.breakers import Breakers, Name


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateRefusal:
    """Why the works of a claim cannot be sent, as found before any agent could refuse them."""

    attempt: int
    message: str
    clusters: frozenset[str]  # that refuse it; empty: every cluster would


class SharedState:
    """Counts what is done, and says whether more may be done."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.breakers = Breakers()
        # Whether a hub that has just started still waits for reports; set by the scheduler.
        self.awaits_clusters: Callable[[], bool] = lambda: False
        # By workload; set by the controller of works, and taken into account by the lifecycle.
        self.refusals: dict[tuple[str, str], TemplateRefusal] = {}
        self.on_refusal: Callable[[tuple[str, str]], None] = lambda name: None

    def refuse(self, name: tuple[str, str], refusal: TemplateRefusal | None) -> None:
        """Keeps why the works of a workload cannot be sent; None: they can."""
        if refusal is None:
            self.refusals.pop(name, None)
        elif self.refusals.get(name) != refusal:
            self.refusals[name] = refusal
            self.on_refusal(name)

    def count(self, name: Name, count: int = 1) -> None:
        if count:
            self.breakers = self.breakers.count(name, self._clock.now(), count=count)

    def spend(self, name: Name, nanos: int) -> None:
        """Counts an amount, such as a price, in billionths."""
        if nanos:
            now = self._clock.now()
            self.breakers = self.breakers.count(name, now, price=Quantity(nanos))

    def is_open(self, name: Name, fleet: FleetSpec) -> bool:
        return self.breakers.is_open(name, fleet.breakers, self._clock.now())
