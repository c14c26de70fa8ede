"""The HTTP inventory: what an endpoint says of pools, and what is known when it says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from fairway.agent.drivers.interface import Observation, PoolSeen
from fairway.agent.inventory.http import HttpInventory, InventoryFault, fetch_from, read_offers
from fairway.agent.inventory.interface import Inventory, Offer
from fairway.agent.inventory.listed import Listed
from fairway.api.pools import HttpInventory as Settings
from fairway.clock import VirtualClock

SEEN = Observation(pools=(PoolSeen(name="spot", nodes=2, stock=9), PoolSeen(name="other")))
ANSWER = b'{"pools": [{"name": "spot", "stock": 4, "pricePerHour": "9.80"}]}'
SETTINGS = Settings(url="http://stock.example.com", interval_seconds=60, expiry_seconds=600)


def stock(inventory: Inventory) -> list[tuple[int | None, int | None]]:
    return [(pool.stock, pool.price_nanos) for pool in inventory.merge(SEEN).pools]


class Endpoint:
    """Answers as it is told; remembers when it was asked."""

    def __init__(self, clock: VirtualClock, answer: bytes | None = ANSWER) -> None:
        self.answer = answer
        self.asked: list[float] = []
        self._clock = clock

    async def fetch(self) -> bytes:
        self.asked.append(self._clock.now())
        if self.answer is None:
            raise InventoryFault("it does not answer")
        return self.answer


@asynccontextmanager
async def following(
    endpoint: Endpoint, clock: VirtualClock
) -> AsyncIterator[tuple[HttpInventory, list[float]]]:
    inventory = HttpInventory(SETTINGS, clock, endpoint.fetch)
    changes: list[float] = []
    task = asyncio.ensure_future(inventory.run(lambda: changes.append(clock.now())))
    await clock.advance(0)
    yield inventory, changes
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_what_an_endpoint_says_of_a_pool_goes_before_what_the_driver_sees() -> None:
    clock = VirtualClock()
    endpoint = Endpoint(clock)
    async with following(endpoint, clock) as (inventory, changes):
        assert stock(inventory) == [(4, 9_800_000_000), (None, None)]
        assert inventory.merge(SEEN).pools[0].nodes == 2
        await clock.advance(600)
        assert len(changes) == 1, "the same answer is no news"
        endpoint.answer = b'{"pools": [{"name": "other", "stock": 0}]}'
        await clock.advance(60)
        assert stock(inventory) == [(9, None), (0, None)]
        assert len(changes) == 2


async def test_an_endpoint_that_fails_is_asked_less_and_less_and_what_it_said_expires() -> None:
    clock = VirtualClock()
    endpoint = Endpoint(clock)
    async with following(endpoint, clock) as (inventory, changes):
        began = clock.now()
        endpoint.answer = None
        await clock.advance(599)
        assert stock(inventory)[0] == (4, 9_800_000_000)
        await clock.advance(1)
        assert stock(inventory)[0] == (9, None), "as though there were no endpoint"
        assert len(changes) == 2
        assert _gaps(endpoint.asked, began) == [0, 60, 180, 420, 600]
        await clock.advance(1800)
        assert _gaps(endpoint.asked, began)[-3:] == [1200, 1800, 2400]
        endpoint.answer = ANSWER
        await clock.advance(600)
        assert stock(inventory)[0] == (4, 9_800_000_000)
        await clock.advance(60)
        assert _gaps(endpoint.asked, began)[-2:] == [3000, 3060]


async def test_until_the_first_answer_pools_await_their_stock() -> None:
    clock = VirtualClock()
    endpoint = Endpoint(clock, None)
    async with following(endpoint, clock) as (inventory, changes):
        assert [pool.awaits_stock for pool in inventory.merge(SEEN).pools] == [True, True]
        await clock.advance(1800)
        assert [pool.awaits_stock for pool in inventory.merge(SEEN).pools] == [True, True]
        endpoint.answer = b'{"pools": []}'
        await clock.advance(600)
        assert inventory.merge(SEEN) == SEEN, "an answer that names no pool is one too"
        assert len(changes) == 1
        endpoint.answer = None
        await clock.advance(1800)
        assert inventory.merge(SEEN) == SEEN, "what has answered once is not awaited again"


def _gaps(asked: Sequence[float], began: float) -> list[int]:
    return [round(item - began) for item in asked]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"no json", "malformed"),
        (b'{"pools": [{"stock": 1}]}', "missing required field `name`"),
        (b'{"pools": [{"name": "a", "stock": -1}]}', ">= 0"),
        (b'{"pools": [{"name": "a", "pricePerHour": "dear"}]}', "dear"),
    ],
)
def test_an_answer_that_cannot_be_read_says_why(body: bytes, message: str) -> None:
    with pytest.raises(InventoryFault, match="cannot be read") as fault:
        read_offers(body)
    assert message in str(fault.value)


def test_what_an_answer_leaves_open_it_does_not_say() -> None:
    assert read_offers(b'{"pools": [{"name": "a", "zone": "b"}]}') == {"a": Offer()}


async def test_a_real_endpoint_is_asked(unused_tcp_port: int) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/broken":
            return web.Response(status=503)
        return web.Response(body=ANSWER, content_type="application/json")

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    base = f"http://127.0.0.1:{unused_tcp_port}"
    try:
        assert await fetch_from(f"{base}/pools")() == ANSWER
        with pytest.raises(InventoryFault, match="answers 503"):
            await fetch_from(f"{base}/broken")()
    finally:
        await runner.cleanup()
    with pytest.raises(InventoryFault, match="does not answer"):
        await fetch_from(f"{base}/pools")()


async def test_the_static_inventory_adds_nothing() -> None:
    inventory = Listed()
    await inventory.run(lambda: None)
    assert inventory.merge(SEEN) is SEEN
