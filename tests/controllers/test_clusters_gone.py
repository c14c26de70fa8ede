"""What becomes of a cluster's namespace on the hub when its Cluster goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.api.errors import NotFound
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Write
from fairway.store.keys import CLUSTERS, NAMESPACES
from tests.controllers.fleets import running
from tests.controllers.test_running import FLEET, job

SPACE = "fairway-cluster-hangzhou"


async def test_the_namespace_of_a_cluster_goes_with_it_and_comes_back_with_it(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(FLEET)
        await clock.advance(20)
        first = (await store.get(NAMESPACES, SPACE)).object()
        await store.delete(CLUSTERS, "hangzhou", write=Write())
        await clock.advance(20)
        with pytest.raises(NotFound):
            await store.get(NAMESPACES, SPACE)
        await fleet.apply(FLEET)
        await clock.advance(20)
        again = (await store.get(NAMESPACES, SPACE)).object()
        assert again["metadata"]["uid"] != first["metadata"]["uid"]
        await fleet.apply(job("train"))
        await fleet.until("train", "Running", 60)
