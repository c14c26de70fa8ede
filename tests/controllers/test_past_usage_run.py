"""Past usage of queues, sampled by a hub that runs."""

from __future__ import annotations

import itertools
from pathlib import Path

from fairway.api import codec
from fairway.api.queue import Queue, RememberedUsage
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.keys import QUEUES
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import FLEET, job

SAMPLING = """
apiVersion: fairway.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec: {fairShare: {usageHalfLifeSeconds: 60, usageSamplingSeconds: 60}}
"""


async def remembered(fleet: Fleet) -> RememberedUsage | None:
    stored = await fleet.store.get(QUEUES, "research")
    return codec.decode(stored.raw, Queue).status.remembered


async def test_usage_is_sampled_as_often_as_the_fleet_says(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(SAMPLING)
        await fleet.apply(job("train", seconds=1000))
        samples: dict[float, float] = {}
        for _ in range(40):
            await clock.advance(5)
            if sample := await remembered(fleet):
                gpus = sample.amounts.get("nvidia.com/gpu")
                samples[sample.updated_at.timestamp()] = gpus.nanos / 10**9 if gpus else 0.0
    pauses = [later - before for before, later in itertools.pairwise(samples)]
    assert all(60 <= pause <= 65 for pause in pauses), pauses
    # Each half-life brings it halfway to the eight GPUs in use.
    assert [round(used) for used in samples.values()] == [0, 4, 6, 7]
