"""A hub and its agents ask a scorer of OCM's contract, a file and a Prometheus, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from fairway.api.errors import ApiError
from fairway.app import HubOptions, open_hub
from fairway.client import AsyncClient
from tests.metrics.scorers import Scorer, scorer_server
from tests.waiting import seen

CLUSTER = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "Cluster",
    "spec": {"simulated": {"nodePools": [{"name": "n", "count": 1, "shape": {"cpu": 8}}]}},
}


@asynccontextmanager
async def fleet(folder: Path) -> AsyncIterator[tuple[AsyncClient, Scorer]]:
    """A hub with two clusters, and a server that scores."""
    async with (
        scorer_server() as server,
        open_hub(HubOptions(data=folder / "hub", port=0)) as hub,
        AsyncClient.connect(str(hub.kubeconfig)) as client,
    ):
        for name in ("oslo", "berlin"):
            await client.create({**CLUSTER, "metadata": {"name": name}})
        yield client, server


def scorer(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scores.fairway.dev/v1alpha1",
        "kind": "Scorer",
        "metadata": {"name": name},
        "spec": spec,
    }


async def scores(client: AsyncClient, cluster: str) -> dict[str, Any]:
    try:
        found = await client.get("clusterscores.scores.fairway.dev", cluster)
    except ApiError:
        return {}
    return {value["scorer"]: value for value in found["spec"]["values"]}


async def test_the_hub_and_the_agents_ask_servers(tmp_path: Path) -> None:
    async with fleet(tmp_path) as (client, server):
        params = {"query": "avg(load)", "range": 300, "step": 60}
        server.source = {"type": "Prometheus", "host": server.url, "params": params}

        async def file(_: web.Request) -> web.StreamResponse:
            return web.Response(text="place,value\noslo,45\nberlin,400\n")

        server.instead["/carbon.csv"] = file
        await client.create(
            scorer("outlook", http={"configUrl": f"{server.url}/config"}, validSeconds=600)
        )
        await client.create(
            scorer("own", http={"url": f"{server.url}/scoring", "series": [{"query": "avg(load)"}],
                                "server": {"url": server.url}}, runBy="Agent")
        )  # fmt: skip
        await client.create(
            scorer("carbon", table={"csv": {"url": f"{server.url}/carbon.csv"}},
                   clusterLabel="place", scale={"worst": "500", "best": "0"})
        )  # fmt: skip
        found = await seen(
            lambda: scores(client, "oslo"), lambda found: len(found) == 3, "three scores"
        )
        assert {name: value["value"] for name, value in found.items()} == {
            "outlook": 10, "own": 40, "carbon": 82,
        }  # fmt: skip
        assert found["outlook"]["source"] == "Http"
        assert found["own"]["samples"] == 2, "all that an agent gets is of its cluster"
        lasts = [found[name]["validUntil"] > found[name]["measuredAt"] for name in found]
        assert all(lasts)
        south = await seen(
            lambda: scores(client, "berlin"), lambda found: len(found) == 3, "three scores"
        )
        assert {name: value["value"] for name, value in south.items()} == {
            "outlook": 70, "own": 40, "carbon": -60,
        }  # fmt: skip
