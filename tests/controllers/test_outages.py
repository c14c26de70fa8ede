"""A cluster that is lost for a while, and what it is told when it comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.api import codec
from fairway.api.names import work_namespace
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Selection
from fairway.store.keys import WORKS
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_running import ELSEWHERE, FLEET, job

HEALTH = """
apiVersion: fairway.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec:
  health: {heartbeatSeconds: 2, unreadySeconds: 6, lostSeconds: 10, skewSeconds: 1}
"""


def moving(name: str, how: str) -> str:
    text = job(name, seconds=600).replace("spec:\n", f"spec:\n  onClusterLost: {how}\n", 1)
    return text.replace("queue: research", "queue: research\n  clusterLostSeconds: 0", 1)


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(HEALTH)
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def set_outage(fleet: Fleet, *, is_down: bool) -> None:
    faults = {"faults": {"outage": is_down}}
    await fleet.change_cluster("hangzhou", {"spec": {"simulated": faults}})


async def works_in(fleet: Fleet, cluster: str) -> list[str]:
    listing = await fleet.store.list(WORKS, Selection(namespace=work_namespace(cluster)))
    return [str(item.object()["metadata"]["name"]) for item in listing.items]


async def test_what_ran_in_a_lost_cluster_runs_elsewhere_and_the_cluster_is_used_again(
    fleet: Fleet,
) -> None:
    # The one that leaves last comes first by name: its agent hears of the highest term first.
    await fleet.apply(moving("one", "StopAndMove"))
    await fleet.apply(moving("two", "AllowDuplicate"))
    for name in ("one", "two"):
        await fleet.until(name, "Running", 30)
    await fleet.apply(ELSEWHERE)
    await fleet.clock.advance(1)
    await set_outage(fleet, is_down=True)
    for name in ("two", "one"):
        moved = await fleet.until(name, lambda item: "shanghai" in summary_of(item), 120)
        assert moved.status.history[-1].reason == "ClusterLost"
    assert await works_in(fleet, "hangzhou") == ["default.one", "default.two"]
    await set_outage(fleet, is_down=False)
    await fleet.clock.advance(60)
    assert await works_in(fleet, "hangzhou") == []
    await fleet.apply(job("next", pods=2))
    assert "hangzhou" in summary_of(await fleet.until("next", "Running", 30))


async def test_what_waits_for_its_cluster_runs_there_again(fleet: Fleet) -> None:
    await fleet.apply(job("train", seconds=30))
    await fleet.until("train", "Running", 30)
    await set_outage(fleet, is_down=True)
    await fleet.clock.advance(60)
    assert await fleet.phase("train") == "Running"
    await set_outage(fleet, is_down=False)
    ended = await fleet.until("train", "Succeeded", 120)
    assert codec.to_plain(ended)["status"]["history"][-1]["clusters"] == ["hangzhou"]
