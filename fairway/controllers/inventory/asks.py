"""Which workloads wait for nodes of which pool, according to their claims."""

from __future__ import annotations

from collections.abc import Sequence

from fairway.api import codec
from fairway.api.errors import ApiError
from fairway.api.workload import Workload
from fairway.controllers.inventory.stock import Ask
from fairway.store.interface import Stored
from fairway.store.mirrors import Mirror, Name

_TOLD_SECONDS = 60.0  # agents report nodes that came within this time
_WORD = b'"Provision"'  # in every claim that asks for nodes, and hardly anywhere else


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
        if stored is None or _WORD not in stored.raw:
            return
        try:
            claim = codec.decode(stored.raw, Workload).status.claim
        except ApiError:
            return  # the planner reports unreadable workloads
        if claim is None:
            return
        ask = Ask(
            workload=f"{name[0]}/{name[1]}",
            decided_at=claim.decided_at.timestamp(),
            answered_at=None if claim.ready_at is None else claim.ready_at.timestamp(),
        )
        asks = {
            (victim.cluster, victim.pool): ask
            for victim in claim.waits_for
            if victim.type == "Provision"
        }
        if asks:
            self._asks[name] = asks


def _is_recent(ask: Ask, now: float) -> bool:
    return ask.answered_at is None or now < ask.answered_at + _TOLD_SECONDS
