"""Which workloads wait for nodes of which pool, according to their claims."""

from __future__ import annotations

from collections.abc import Sequence

from fairway.controllers.glance import glance
from fairway.controllers.inventory.stock import Ask
from fairway.store.interface import Stored
from fairway.store.mirrors import Mirror, Name

_TOLD_SECONDS = 60.0  # agents report nodes that came within this time


class Asking:
    """Claims that wait for nodes, kept up to date from the mirror of workloads."""

    def __init__(self, workloads: Mirror) -> None:
        self._asks: dict[Name, dict[tuple[str, str], Ask]] = {}
        workloads.followers.append(self._follow)

    def of(self, cluster: str, pool: str, now: float) -> Sequence[Ask]:
        """Claims that wait for nodes of a pool, or did until a moment ago; the earliest first."""
        result = (asks.get((cluster, pool)) for asks in self._asks.values())
        asks = (ask for ask in result if ask is not None and _is_recent(ask, now))
        return sorted(asks, key=lambda ask: (ask.decided_at, ask.workload))

    def _follow(self, name: Name, stored: Stored | None) -> None:
        self._asks.pop(name, None)
        seen = glance(stored) if stored is not None else None
        decided_at = seen.decided_at if seen is not None else None
        if seen is None or seen.status.claim is None or decided_at is None:
            return
        ask = Ask(workload=f"{name[0]}/{name[1]}", decided_at=decided_at, answered_at=seen.ready_at)
        asks = {
            (wait.cluster, wait.pool): ask
            for wait in seen.status.claim.waits_for
            if wait.type == "Provision"
        }
        if asks:
            self._asks[name] = asks


def _is_recent(ask: Ask, now: float) -> bool:
    return ask.answered_at is None or now < ask.answered_at + _TOLD_SECONDS
