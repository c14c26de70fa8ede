"""The interface of inventories, and how their offers are merged into an observation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from fairway.agent.drivers.interface import Observation, PoolSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a source says about one pool; None: unknown."""

    stock: int | None = None
    price_nanos: int | None = None  # of one node per hour


Offers = Mapping[str, Offer]  # by pool


class Inventory(Protocol):
    """One source, or several."""

    async def run(self, changed: Callable[[], None]) -> None:
        """Follows its source until cancelled; calls `changed` on each change."""
        ...

    def merge(self, observation: Observation) -> Observation:
        """The driver's observation, with what the inventory knows."""
        ...


def with_offers(observation: Observation, offers: Offers) -> Observation:
    """An observation whose pools have the values of the offers; unknown values are kept."""
    if not offers:
        return observation
    pools = tuple(_offer(pool, offers.get(pool.name)) for pool in observation.pools)
    return replace(observation, pools=pools)


def _offer(pool: PoolSeen, offer: Offer | None) -> PoolSeen:
    if offer is None:
        return pool
    return replace(
        pool,
        stock=pool.stock if offer.stock is None else offer.stock,
        price_nanos=pool.price_nanos if offer.price_nanos is None else offer.price_nanos,
    )
