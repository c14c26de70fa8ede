"""The HTTP inventory: a JSON endpoint that is polled.

It answers with what it knows about the pools of a cluster:

    {"pools": [{"name": "spot-a", "stock": 12, "pricePerHour": "9.80"}, ...]}

Pools and fields that it leaves out are unknown. An endpoint that fails is polled again after times
that double, up to the expiry of its last answer; after that, nothing is known, as if there were no
such endpoint. Until its first answer the pools await their stock, and nothing is requested from
them: they may have none.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated

import aiohttp
import msgspec

from fairway.agent.drivers.interface import Observation
from fairway.agent.inventory.interface import Offer, Offers, with_offers
from fairway.api.amounts import Quantity
from fairway.api.pools import HttpInventory as Settings
from fairway.clock import Clock

_log = logging.getLogger(__name__)

_BYTES_MOST = 1 << 20
_POOLS_MOST = 1024
_SECONDS_MOST = 10.0  # timeout of a request
_DOUBLINGS_MOST = 20

# Calls the endpoint; returns the body of its answer.
Fetch = Callable[[], Awaitable[bytes]]


class InventoryFault(Exception):
    """The endpoint does not answer, or its answer is invalid."""


class _Told(msgspec.Struct, rename="camel"):
    name: str
    stock: Annotated[int, msgspec.Meta(ge=0)] | None = None
    price_per_hour: str | None = None


class _Answer(msgspec.Struct):
    pools: Annotated[list[_Told], msgspec.Meta(max_length=_POOLS_MOST)]


class HttpInventory:
    """What one endpoint says about the pools of a cluster."""

    def __init__(self, settings: Settings, clock: Clock, fetch: Fetch | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._fetch = fetch or fetch_from(settings.url)
        self._offers: Offers = {}
        self._told_at = float("-inf")

    async def run(self, changed: Callable[[], None]) -> None:
        failures = 0
        while True:
            try:
                offers = read_offers(await self._fetch())
            except InventoryFault as fault:
                _log.warning("the inventory at %s: %s", self._settings.url, fault)
                failures += 1
                offers = {} if self._is_expired() else self._offers
                is_first = False
            else:
                is_first = self._is_unanswered
                failures, self._told_at = 0, self._clock.now()
            if is_first or offers != self._offers:
                self._offers = offers
                changed()
            await self._clock.sleep(self._wait(failures))

    def _wait(self, failures: int) -> float:
        """Seconds until the next poll; after failures, no later than the last answer expires."""
        interval, expiry = self._settings.interval_seconds, self._settings.expiry_seconds
        doubled: float = interval * 2 ** min(failures, _DOUBLINGS_MOST)
        longest = min(doubled, float(max(interval, expiry)))
        left = self._told_at + expiry - self._clock.now()
        return min(longest, left) if failures and left > 0 else longest

    def merge(self, observation: Observation) -> Observation:
        if self._is_unanswered:
            pools = tuple(replace(pool, awaits_stock=True) for pool in observation.pools)
            return replace(observation, pools=pools)
        return with_offers(observation, {} if self._is_expired() else self._offers)

    @property
    def _is_unanswered(self) -> bool:
        return self._told_at == float("-inf")

    def _is_expired(self) -> bool:
        return self._clock.now() >= self._told_at + self._settings.expiry_seconds


def read_offers(body: bytes) -> Offers:
    """Parses an answer into offers by pool."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        return {
            pool.name: Offer(
                stock=pool.stock,
                price_nanos=None
                if pool.price_per_hour is None
                else Quantity.of(pool.price_per_hour).nanos,
            )
            for pool in answer.pools
        }
    except (msgspec.MsgspecError, ValueError) as fault:
        raise InventoryFault(f"its answer cannot be read: {fault}") from fault


def fetch_from(url: str) -> Fetch:
    """A Fetch of a real endpoint."""

    async def fetch() -> bytes:
        timeout = aiohttp.ClientTimeout(total=_SECONDS_MOST)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(url, headers={"Accept": "application/json"}) as answer,
            ):
                if answer.status != 200:
                    raise InventoryFault(f"it answers {answer.status}")
                body = await answer.content.read(_BYTES_MOST + 1)
        except (aiohttp.ClientError, TimeoutError, OSError) as fault:
            raise InventoryFault(f"it does not answer: {fault!r}") from fault
        if len(body) > _BYTES_MOST:
            raise InventoryFault(f"its answer is longer than {_BYTES_MOST} bytes")
        return body

    return fetch
