"""Breakers stop the hub: what it did in the past hour is counted, and no more of it is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.fleet import Fleet as FleetObject
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.keys import CLUSTERS, FLEETS
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import ELSEWHERE, FLEET, SERVICE, job

ELASTIC = """
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: cloud}
spec:
  simulated: {}
  elasticPools:
    - name: spot
      shape: {cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}
      labels: {accelerator: h100}
      countMax: 8
      pricePerHour: "10"
      provisionSeconds: 5
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        yield found


async def limit(fleet: Fleet, limits: str) -> None:
    head = "apiVersion: fairway.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\n"
    await fleet.apply(f"{head}spec: {{breakers: {{{limits}}}}}")


async def status_of(fleet: Fleet) -> tuple[str, dict[str, str], set[str]]:
    """The fleet's phase, what breakers counted, and which are open."""
    found = codec.decode((await fleet.store.get(FLEETS, "fleet")).raw, FleetObject)
    breakers = found.status.breakers
    counts = {str(breaker.name): str(breaker.past_hour) for breaker in breakers}
    return (
        found.status.phase,
        counts,
        {str(breaker.name) for breaker in breakers if breaker.open_since},
    )


async def codes_of(fleet: Fleet, name: str) -> set[str]:
    """Codes of all reasons for which a workload waits."""
    told = await fleet.plane.explain("default", name)
    assert told is not None
    return {reason["code"] for reason in _reasons(told)}


def _reasons(told: Any) -> list[Any]:
    if isinstance(told, dict):
        own = [told] if "code" in told else []
        return own + [reason for value in told.values() for reason in _reasons(value)]
    return [reason for each in told for reason in _reasons(each)] if isinstance(told, list) else []


async def test_preemptions_stop_at_the_limit_and_go_on_when_the_hour_has_passed(
    fleet: Fleet,
) -> None:
    await fleet.apply(FLEET)
    await limit(fleet, "preemptionsPerHour: 1")
    for name in ("first", "second"):
        await fleet.apply(job(name, seconds=9000))
        await fleet.until(name, "Running", 30)
    await fleet.apply(job("urgent", priority=10, seconds=9000))
    await fleet.until("urgent", "Running", 60)
    await fleet.apply(job("late", priority=10, seconds=9000))
    await fleet.clock.advance(20)
    assert await status_of(fleet) == ("Broken", {"Preemptions": "1"}, {"Preemptions"})
    assert await fleet.phase("late") == "Waiting"
    assert "BreakerOpen" in await codes_of(fleet, "late")
    await fleet.clock.advance(3700)
    await fleet.until("late", "Running", 60)


async def test_works_are_stopped_up_to_the_limit_of_an_hour(fleet: Fleet) -> None:
    await fleet.apply(FLEET)
    await limit(fleet, "deletionsPerHour: 1")
    for name in ("first", "second"):
        await fleet.apply(job(name, seconds=9000))
        await fleet.until(name, "Running", 30)
    for name in ("first", "second"):
        await fleet.change(name, {"spec": {"cancelled": True}})
    await fleet.until("first", "Cancelled", 120)
    await fleet.clock.advance(120)
    assert await status_of(fleet) == ("Broken", {"Deletions": "1"}, {"Deletions"})
    assert await fleet.phase("second") == "Stopping"
    await fleet.clock.advance(3700)
    await fleet.until("second", "Cancelled", 120)


async def test_new_nodes_stop_at_the_price_of_an_hour(fleet: Fleet) -> None:
    await fleet.apply(FLEET.rsplit("---", maxsplit=1)[0] + "---" + ELASTIC)
    await limit(fleet, "pricePerHour: 15")
    for name in ("first", "second"):
        await fleet.apply(job(name, seconds=9000))
        await fleet.until(name, "Running", 60)
    await fleet.apply(job("third", seconds=9000))
    await fleet.clock.advance(20)
    assert await status_of(fleet) == ("Broken", {"Price": "20"}, {"Price"})
    assert "BreakerOpen" in await codes_of(fleet, "third")
    await limit(fleet, "pricePerHour: 100")
    await fleet.until("third", "Running", 60)
    assert (await status_of(fleet))[0] == "Running"


async def test_a_plan_is_cut_where_a_breaker_opens_in_its_midst(fleet: Fleet) -> None:
    """Four would yield to four at once; the breaker is passed by one workload's victims at most."""
    await fleet.apply(FLEET + "---\n" + ELSEWHERE)
    await limit(fleet, "preemptionsPerHour: 2")
    for number in range(4):
        await fleet.apply(job(f"humble-{number}", seconds=9000))
    for number in range(4):
        await fleet.until(f"humble-{number}", "Running", 30)
    await fleet.apply("---\n".join(job(f"urgent-{at}", priority=10) for at in range(4)))
    await fleet.clock.advance(30)
    _, counts, are_open = await status_of(fleet)
    assert are_open == {"Preemptions"}
    histories = [(await fleet.workload(f"humble-{at}")).status.history for at in range(4)]
    victims = [history for history in histories if history and history[0].preempted_by]
    assert counts == {"Preemptions": str(len(victims))}
    assert 2 <= len(victims) < 4


async def test_replicas_do_not_return_home_while_the_breaker_of_moves_is_open(
    fleet: Fleet,
) -> None:
    await fleet.apply(FLEET + "---\n" + ELSEWHERE)
    await limit(fleet, "movesPerHour: 0")
    await fleet.clock.advance(1)
    await fleet.change_cluster("hangzhou", {"spec": {"hold": "Hold"}})
    returning = SERVICE.replace(
        "  groups:", "  returnHome: {enabled: true, afterSeconds: 1}\n  groups:"
    )
    await fleet.apply(returning.replace("replicas: 3", "replicas: 1"))
    await fleet.until("chat", lambda item: item.status.pods.ready == 1, 60)
    await fleet.change_cluster("hangzhou", {"spec": {"hold": "None"}})
    await fleet.clock.advance(300)
    assert (await fleet.pods("hangzhou"), await fleet.pods("shanghai")) == (0, 1)
    await limit(fleet, "")
    await fleet.clock.advance(300)
    assert (await fleet.pods("hangzhou"), await fleet.pods("shanghai")) == (1, 0)


async def test_a_clusters_status_counts_the_nodes_that_a_pool_has_brought(fleet: Fleet) -> None:
    await fleet.apply(f"{FLEET}---{ELASTIC}")
    await fleet.apply(job("here", pods=2, seconds=6000))
    await fleet.until("here", "Running", 60)
    await fleet.apply(job("there", pods=2, seconds=6000))
    await fleet.until("there", "Running", 60)
    for _ in range(20):
        await fleet.clock.advance(5)
        stored = await fleet.store.get(CLUSTERS, "cloud")
        status = codec.decode(stored.raw, Cluster).status
    assert str(status.allocatable["nvidia.com/gpu"]) == "16"
    assert (status.nodes, status.ready_nodes, status.workloads) == (2, 2, 1)
