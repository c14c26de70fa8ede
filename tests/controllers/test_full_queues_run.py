"""A queue with a maximum of pending workloads, as others start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fairway.api.errors import Forbidden
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Write
from fairway.store.keys import NAMESPACES, QUEUES
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import FLEET, job


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def allow(fleet: Fleet, most: int | None) -> None:
    patch = Patch(type="merge", body={"spec": {"waitingWorkloadsMax": most}})
    await fleet.store.patch(QUEUES, "research", patch, write=Write(user="root"))


async def limit_ada(fleet: Fleet, **limits: int) -> None:
    """Limits the user who applies what a test applies."""
    body = {"spec": {"userLimits": [{"name": "ada", "users": ["ada"], **limits}]}}
    patch = Patch(type="merge", body=body)
    await fleet.store.patch(QUEUES, "research", patch, write=Write(user="root"))


def native(name: str, *, pods: int = 1, seconds: int = 60) -> str:
    """A Job with a queue label; its workload is `job-NAME`."""
    body = yaml.safe_load(job(name, pods=pods))["spec"]["template"]["manifests"][0]
    body["metadata"] |= {
        "namespace": "default",
        "labels": {"fairway.dev/queue": "research"},
        "annotations": {"fairway.dev/run-seconds": str(seconds)},
    }
    return yaml.safe_dump(body)


async def submit(fleet: Fleet, text: str) -> None:
    """Applies an object, and lets the hub create the workload of a native one."""
    await fleet.apply(text)
    await fleet.clock.advance(1)


EITHER = pytest.mark.parametrize(
    ("make", "prefix"),
    [
        pytest.param(job, "", id="a workload"),
        pytest.param(native, "job-", id="a native object"),
    ],
)


async def test_a_workload_gets_a_place_when_another_has_started(fleet: Fleet) -> None:
    await allow(fleet, 1)
    await fleet.apply(job("first", pods=2, seconds=300))
    await fleet.until("first", "Running")
    await fleet.apply(job("second", pods=2, seconds=300))
    with pytest.raises(Forbidden, match="maximum of 1 pending workloads"):
        await fleet.apply(job("third", pods=2))
    await fleet.until("second", "Running", 600)
    await fleet.apply(job("third", pods=2))


@EITHER
async def test_a_queue_that_is_full_for_its_user_refuses(
    fleet: Fleet, make: Callable[..., str], prefix: str
) -> None:
    await limit_ada(fleet, waitingWorkloads=1)
    await submit(fleet, make("first", pods=2, seconds=300))
    await fleet.until(f"{prefix}first", "Running", 30)
    await submit(fleet, make("second", pods=2, seconds=300))
    for another in (job, native):
        with pytest.raises(Forbidden, match="maximum of 1 pending workloads of ada"):
            await fleet.apply(another("third", pods=2))
    await fleet.until(f"{prefix}second", "Running", 600)
    await submit(fleet, make("third", pods=2))


async def test_native_objects_that_come_at_once_wait_without_a_place(fleet: Fleet) -> None:
    await fleet.apply(job("runs", pods=2, seconds=300))
    await fleet.until("runs", "Running", 30)
    await limit_ada(fleet, waitingWorkloads=1)
    for name in ("first", "second"):  # before the hub has created their workloads
        await fleet.apply(native(name))
    await fleet.clock.advance(1)
    await fleet.until("job-second", lambda item: item.status.reason == "QueueFull", 60)


@EITHER
async def test_a_limit_of_claims_for_a_user_holds(
    fleet: Fleet, make: Callable[..., str], prefix: str
) -> None:
    await limit_ada(fleet, claimedWorkloads=1)
    await submit(fleet, make("first", seconds=60))
    await fleet.until(f"{prefix}first", "Running", 30)
    await submit(fleet, make("second", seconds=60))
    await fleet.until(f"{prefix}second", lambda item: item.status.reason == "UserLimitExceeded", 30)
    await fleet.until(f"{prefix}second", "Running", 120)


async def test_a_lower_maximum_leaves_the_latest_without_a_place_until_there_is_one(
    fleet: Fleet,
) -> None:
    await fleet.apply(job("runs", pods=2, seconds=300))
    await fleet.until("runs", "Running")
    for name in ("first", "second"):
        await fleet.apply(job(name, pods=1, seconds=60))
        await fleet.clock.advance(1)
    await allow(fleet, 1)
    await fleet.until("second", lambda item: item.status.reason == "QueueFull", 60)
    told = await fleet.plane.explain("default", "second")
    assert told is not None
    assert "queue research already has its maximum of 1 pending workload" in told["message"]
    await fleet.until("runs", "Succeeded", 600)
    # Both fit; the second follows at once, since the first has left its place.
    await fleet.until("first", "Running", 30)
    await fleet.until("second", "Running", 2)


async def test_a_workload_without_a_queue_waits_in_the_default_queue_of_its_namespace(
    fleet: Fleet,
) -> None:
    label = {"metadata": {"labels": {"fairway.dev/default-queue": "research"}}}
    await fleet.store.patch(
        NAMESPACES, "default", Patch(type="merge", body=label), write=Write(user="root")
    )
    await fleet.apply(job("train").replace("queue: research", 'queue: ""'))
    started = await fleet.until("train", "Running", 30)
    assert started.status.claim is not None
    assert started.status.claim.queue == "research"
