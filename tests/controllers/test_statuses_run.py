"""Statuses of flavors and of the fleet, as a running hub writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Write
from fairway.store.keys import CLUSTERS, FLAVORS, FLEETS
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import FLEET, job


async def status(fleet: Fleet, kind: Any, name: str) -> dict[str, Any]:
    body = (await fleet.store.get(kind, name)).object()
    status: dict[str, Any] = body.get("status") or {}
    return status


async def test_a_flavor_says_which_nodes_and_clusters_have_it(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(FLEET)
        await clock.advance(20)
        known = await status(fleet, FLAVORS, "h100")
        assert (known["nodes"], known["clusters"]) == (2, ["hangzhou"])
        assert known["allocatable"]["nvidia.com/gpu"] == "16"
        version = (await store.get(FLAVORS, "h100")).object()["metadata"]["resourceVersion"]
        await fleet.apply(job("train", seconds=600))
        await fleet.until("train", "Running")
        await clock.advance(20)
        # What runs on the nodes changes nothing of what they are, and nothing is written.
        now = (await store.get(FLAVORS, "h100")).object()["metadata"]["resourceVersion"]
        assert now == version
        await fleet.change("train", {"spec": {"cancelled": True}})
        await fleet.until("train", "Cancelled")
        await store.delete(CLUSTERS, "hangzhou", write=Write(user="root"))
        await clock.advance(30)
        known = await status(fleet, FLAVORS, "h100")
        assert not known.get("nodes")
        assert not known.get("clusters")


async def test_the_fleet_says_who_leads_and_how_many_wait_and_run(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(FLEET)
        await fleet.apply("apiVersion: fairway.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}")
        for name in ("first", "second", "third"):
            await fleet.apply(job(name, pods=2, seconds=600))
        await clock.advance(30)
        known = await status(fleet, FLEETS, "fleet")
        assert known["leader"] == "hub"
        assert (known["claimedWorkloads"], known["waitingWorkloads"]) == (1, 2)
