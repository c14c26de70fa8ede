"""A volume claim pins its workload to the cluster where it was first bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.clock import VirtualClock
from fairway.kinds.volumes import BOUND_IN
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.keys import VOLUME_CLAIMS
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_breakers_run import codes_of
from tests.controllers.test_running import ELSEWHERE, FLEET, job

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
"""


def with_volume(text: str, more: str = "") -> str:
    """A job that mounts the claim."""
    volumes = "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n              "
    text = text.replace("restartPolicy: Never", volumes + "restartPolicy: Never")
    return text.replace("  queue: research\n", f"  queue: research\n{more}")


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET + "---\n" + ELSEWHERE + "---\n" + CLAIM)
        await found.change_cluster("hangzhou", {"spec": {"hold": "Hold"}})
        await clock.advance(1)
        yield found


async def bound_in(fleet: Fleet) -> str:
    claim = (await fleet.store.get(VOLUME_CLAIMS, "data", "default")).object()
    return str(claim["metadata"].get("annotations", {}).get(BOUND_IN, ""))


async def test_the_first_run_notes_where_the_volume_is(fleet: Fleet) -> None:
    assert await bound_in(fleet) == ""
    await fleet.apply(with_volume(job("first")))
    await fleet.until("first", "Running", 30)
    await fleet.clock.advance(1)
    assert await bound_in(fleet) == "shanghai"


async def test_a_workload_follows_its_volume_and_says_so_while_it_waits(fleet: Fleet) -> None:
    await fleet.apply(with_volume(job("first")))
    await fleet.until("first", "Succeeded", 120)
    await fleet.change_cluster("hangzhou", {"spec": {"hold": "None"}})
    await fleet.apply(job("filler", pods=2, seconds=300, priority=5))
    filler = await fleet.until("filler", "Running", 30)
    # The other cluster is free, or this one: the volume decides all the same.
    await fleet.change_cluster("shanghai", {"spec": {"hold": "Hold"}})
    await fleet.apply(with_volume(job("next")))
    await fleet.clock.advance(30)
    assert await fleet.phase("next") == "Waiting"
    assert "Pinned" in await codes_of(fleet, "next")
    await fleet.change_cluster("shanghai", {"spec": {"hold": "None"}})
    started = await fleet.until("next", "Running", 400)
    assert summary_of(started) == "shanghai"
    assert filler.status.claim is not None


async def test_a_portable_volume_pins_nothing(fleet: Fleet) -> None:
    await fleet.apply(with_volume(job("first")))
    await fleet.until("first", "Succeeded", 120)
    await fleet.change_cluster("hangzhou", {"spec": {"hold": "None"}})
    await fleet.change_cluster("shanghai", {"spec": {"hold": "Hold"}})
    await fleet.apply(with_volume(job("next"), "  portableVolumes: [data]\n"))
    started = await fleet.until("next", "Running", 60)
    assert summary_of(started) == "hangzhou"
    assert await bound_in(fleet) == "shanghai"
