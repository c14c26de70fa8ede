"""Elastic pools in a hub that runs: stock-outs are learned, and idle nodes are given back."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.clock import VirtualClock
from fairway.controllers.clusters.heartbeats import LOOK_SECONDS
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.keys import CLUSTERS
from tests import waiting
from tests.controllers import test_moves_run as moves
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_breakers_run import codes_of
from tests.controllers.test_running import FLEET, job

BASE = FLEET.rsplit("---", maxsplit=1)[0] + "---"


def cloud(name: str, *, price: int = 10, more: str = "", outs: str = "", pool: str = "") -> str:
    return f"""
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {{name: {name}}}
spec:
  simulated: {{stockOuts: [{outs}]}}
  elasticPools:
    - name: {pool or "spot"}
      shape: {{cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}}
      labels: {{accelerator: h100}}
      countMax: 8
      pricePerHour: "{price}"
      provisionSeconds: 30
      idleSeconds: 120
{more}
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        yield found


async def cluster(fleet: Fleet, name: str) -> Cluster:
    return codec.decode((await fleet.store.get(CLUSTERS, name)).raw, Cluster)


async def nodes(fleet: Fleet, name: str) -> int:
    agent = fleet.agents.get(name)
    assert agent is not None
    return len((await agent._driver.observe()).nodes)


async def test_a_workload_whose_pool_has_no_stock_is_placed_in_another_cluster_at_once(
    fleet: Fleet,
) -> None:
    out = "{pool: spot, seconds: 100000}"
    await fleet.apply(f"{BASE}{cloud('a-cheap', outs=out)}---{cloud('b-dear', price=20)}")
    await fleet.apply(job("train", seconds=600))
    found = await fleet.until("train", "Running", 120)
    assert summary_of(found) == "b-dear"
    assert [item.reason for item in found.status.history] == ["OutOfStock"]
    belief = (await cluster(fleet, "a-cheap")).status.stock[0]
    assert (belief.name, belief.tries) == ("spot", 1)
    assert belief.fault == "0 of 1 nodes of spot can be had"


async def test_who_has_nowhere_else_to_go_is_told_until_when_and_starts_once_there_is_stock(
    fleet: Fleet,
) -> None:
    await fleet.apply(BASE + cloud("cloud", outs="{pool: spot, seconds: 900}"))
    await fleet.apply(job("train", seconds=600))
    await fleet.until("train", lambda item: bool(item.status.history), 60)
    await fleet.clock.advance(5)
    assert "OutOfStock" in await codes_of(fleet, "train")
    told = await fleet.plane.explain("default", "train")
    assert "is out of stock, and is tried again at" in str(told)
    await fleet.until("train", "Running", 2400)
    await fleet.clock.advance(LOOK_SECONDS)
    belief = (await cluster(fleet, "cloud")).status.stock[0]
    assert belief.out_since is None
    assert sum(belief.ended) == 1000
    assert belief.provision_seconds is not None


async def test_what_was_learned_outlives_the_hub(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(BASE + cloud("cloud", outs="{pool: spot, seconds: 100000}"))
        await fleet.apply(job("train", seconds=600))
        await fleet.clock.advance(600)
        before = (await cluster(fleet, "cloud")).status.stock[0]
        assert before.tries > 1
        worlds = fleet.worlds
    async with running(store, clock, tmp_path / "clusters", worlds=worlds) as fleet:
        await fleet.clock.advance(1)
        after = (await cluster(fleet, "cloud")).status.stock[0]
        assert (after.out_since, after.tries) == (before.out_since, before.tries)


async def test_idle_nodes_are_given_back_after_the_time_of_their_pool(fleet: Fleet) -> None:
    await fleet.apply(BASE + cloud("cloud"))
    await fleet.apply(job("train", seconds=300))
    await fleet.until("train", "Running", 120)
    assert await nodes(fleet, "cloud") == 1
    await fleet.until("train", "Succeeded", 400)
    await fleet.clock.advance(100)
    assert await nodes(fleet, "cloud") == 1
    await fleet.clock.advance(60)
    assert await nodes(fleet, "cloud") == 0
    await fleet.clock.advance(20)
    assert (await cluster(fleet, "cloud")).status.leaving_nodes == ()


async def test_a_pool_keeps_as_many_idle_nodes_as_it_says(fleet: Fleet) -> None:
    await fleet.apply(BASE + cloud("cloud", more="      countMin: 1"))
    await fleet.apply(job("train", pods=2, seconds=100))
    await fleet.until("train", "Succeeded", 400)
    assert await nodes(fleet, "cloud") == 2
    await fleet.clock.advance(600)
    assert await nodes(fleet, "cloud") == 1


async def test_a_node_that_somebody_needs_in_time_stays(fleet: Fleet) -> None:
    await fleet.apply(BASE + cloud("cloud"))
    await fleet.apply(job("first", seconds=60))
    await fleet.until("first", "Succeeded", 200)
    for name in ("second", "third", "fourth"):
        await fleet.clock.advance(100)
        assert await nodes(fleet, "cloud") == 1
        await fleet.apply(job(name, seconds=60))
        found = await fleet.until(name, "Running", 10)
        assert found.status.claim is not None
        assert found.status.claim.rung == "Idle"
        await fleet.until(name, "Succeeded", 100)


async def test_a_quota_of_the_provider_limits_several_pools_together(fleet: Fleet) -> None:
    more = """
      quota: gpus
    - name: other
      shape: {cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}
      labels: {accelerator: h100}
      countMax: 8
      provisionSeconds: 30
      quota: gpus
  providerQuotas: [{name: gpus, limits: {nvidia.com/gpu: 16}}]
"""
    await fleet.apply(BASE + cloud("cloud", more=more))
    for number in range(4):
        await fleet.apply(job(f"train-{number}", seconds=6000))
    await fleet.clock.advance(200)
    assert await nodes(fleet, "cloud") == 2
    phases = [await fleet.phase(f"train-{number}") for number in range(4)]
    assert sorted(phases) == ["Running", "Running", "Waiting", "Waiting"]


async def test_a_service_scaled_in_frees_the_nodes_that_were_bought_for_it(fleet: Fleet) -> None:
    pool = {
        "name": "spot",
        "shape": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1", "pods": "10"},
        "countMax": 8,
        "provisionSeconds": 30,
        "idleSeconds": 120,
    }
    site, far = moves.cluster("home", 3), moves.cluster("cloud", 0, elasticPools=[pool])
    rules = moves.policy(enabled=False)
    rules["spec"] = {"division": {"type": "DynamicWeight"}}  # one group
    await moves.apply(fleet, moves.FLAVOR, site, far, moves.queue(16), rules, moves.service(6))
    await fleet.until("chat", lambda item: item.status.pods.ready == 6, 300)
    assert summary_of(await fleet.workload("chat")) == "cloud (3), home (3)"
    assert await nodes(fleet, "cloud") == 3
    await fleet.change("chat", {"spec": {"replicas": 4}})
    await fleet.clock.advance(300)
    assert summary_of(await fleet.workload("chat")) == "cloud (1), home (3)"
    assert await nodes(fleet, "cloud") == 1


async def test_a_pool_with_a_stock_source_gets_nothing_until_its_first_answer(
    fleet: Fleet, unused_tcp_port: int
) -> None:
    answers: list[str] = []

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=answers[0]) if answers else web.Response(status=503)

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    try:
        source = f"  inventory: {{http: {{url: 'http://127.0.0.1:{unused_tcp_port}'}}}}"
        await fleet.apply(BASE + cloud("cloud", more=source))
        await fleet.apply(job("train", seconds=600))
        await fleet.clock.advance(30)
        assert await fleet.phase("train") == "Waiting"
        assert "StockUnknown" in await codes_of(fleet, "train")
        answers.append('{"pools": [{"name": "spot", "stock": 1}]}')

        async def phase() -> str:
            await fleet.clock.advance(10)
            return await fleet.phase("train")

        await waiting.seen(phase, lambda now: now == "Running", "nodes of the pool")
        seen = (await cluster(fleet, "cloud")).status.elastic_pools[0]
        assert (seen.stock, seen.awaits_stock) == (1, False)
    finally:
        await runner.cleanup()
