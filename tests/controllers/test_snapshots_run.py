"""What a hub dumps is what a plan is made of: fed to a planner elsewhere, it decides the same."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairway.api import codec
from fairway.clock import VirtualClock
from fairway.core.cycle import plan
from fairway.core.snapshot import Snapshot
from fairway.store.embedded.store import EmbeddedStore
from fairway.view.objects import Objects
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_own_kinds_run import DEFINITION, OBJECT
from tests.controllers.test_running import FLEET, NATIVE, job
from tests.controllers.test_volumes_run import CLAIM, with_volume
from tests.kinds.rules.test_loading import SWEEP


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def dumped(fleet: Fleet) -> list[dict]:
    return msgspec.json.decode(msgspec.json.encode(await fleet.plane.snapshot()))["items"]


async def test_native_objects_are_in_a_dump_once_as_the_workloads_that_stand_for_them(
    fleet: Fleet,
) -> None:
    await fleet.apply(NATIVE)
    await fleet.clock.advance(1)
    await fleet.until("job-native", "Running", 30)
    await fleet.apply(job("large", pods=2))
    await fleet.clock.advance(5)
    objects = Objects.of(await dumped(fleet))
    facts = objects.facts(fleet.clock.now())
    assert sorted(facts.workloads) == ["default/job-native", "default/large"]
    assert facts.workloads["default/job-native"].held is not None
    found, _ = plan(Snapshot(facts))
    assert found.steps == ()
    assert [item.workload for item in found.waiting] == ["default/large"]


async def test_own_kinds_and_bound_volumes_are_in_a_dump(fleet: Fleet) -> None:
    for text in (
        codec.to_yaml(SWEEP),
        DEFINITION,
        OBJECT,
        CLAIM,
        with_volume(job("mounts", gpus=4)),
    ):
        await fleet.apply(text)
        await fleet.clock.advance(1)
    await fleet.until("mounts", "Running", 120)
    await fleet.clock.advance(1)
    facts = Objects.of(await dumped(fleet)).facts(fleet.clock.now())
    (pods,) = facts.workloads["default/sweep-rates"].forms[0].pod_sets
    assert (pods.name, pods.count) == ("trial", 3)
    assert facts.workloads["default/mounts"].pinned_to == "hangzhou"
