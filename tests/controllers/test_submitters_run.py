"""A queue that takes workloads of some only, as its submitters change."""

# ruff: noqa: RUF001 - sentences are as people read them

from __future__ import annotations

from pathlib import Path
from typing import Any

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


async def restrict(fleet: Fleet, submitters: dict[str, Any] | None) -> None:
    patch = Patch(type="merge", body={"spec": {"submitters": submitters}})
    await fleet.store.patch(QUEUES, "research", patch, write=Write(user="root"))


async def test_a_workload_waits_with_its_reason_until_its_queue_takes_it_again(
    fleet: Fleet,
) -> None:
    await fleet.apply(job("first", pods=2, seconds=30))
    await fleet.until("first", "Running")
    await fleet.apply(job("train", pods=2, seconds=30))
    await restrict(fleet, {"namespaces": ["vision"]})
    await fleet.until("first", "Succeeded")  # what runs is left alone
    found = await fleet.until("train", lambda item: item.status.reason == "NotASubmitter")
    await fleet.clock.advance(120)
    assert await fleet.phase("train") == "Waiting"
    assert found.status.claim is None
    told = await fleet.plane.explain("default", "train")
    assert told is not None
    assert told["message"] == (
        "needs 16 × h100 in one cluster; queue research does not accept workloads from namespace"
        " default: its submitters name neither the namespace nor the user who submitted it"
    )
    await restrict(fleet, None)
    await fleet.until("train", "Running")


async def test_a_label_of_the_namespace_lets_it_start(fleet: Fleet) -> None:
    await fleet.apply(job("train", pods=2))
    await fleet.until("train", "Running")
    await fleet.apply(job("next", pods=2))
    await restrict(fleet, {"namespaceSelector": {"matchLabels": {"gpu": "yes"}}})
    await fleet.until("train", "Succeeded")
    await fleet.until("next", lambda item: item.status.reason == "NotASubmitter")
    patch = Patch(type="merge", body={"metadata": {"labels": {"gpu": "yes"}}})
    await fleet.store.patch(NAMESPACES, "default", patch, write=Write(user="root"))
    await fleet.until("next", "Running")


async def test_who_named_the_queue_of_a_native_object_counts_for_its_workload(
    fleet: Fleet,
) -> None:
    native = yaml.safe_load(job("train"))["spec"]["template"]["manifests"][0]
    native["metadata"] |= {"namespace": "default", "labels": {"fairway.dev/queue": "research"}}
    forged = {"fairway.dev/submitted-by": "grace", "fairway.dev/created-by": "grace"}
    native["metadata"]["annotations"] = forged
    await restrict(fleet, {"users": ["grace"]})
    with pytest.raises(Forbidden, match=r"metadata.labels\[fairway.dev/queue\]: queue research"):
        await fleet.apply(yaml.safe_dump(native))
    await restrict(fleet, {"users": ["ada"]})
    await fleet.apply(yaml.safe_dump(native))
    await fleet.clock.advance(1)
    found = await fleet.until("job-train", "Running")
    assert found.metadata.annotations["fairway.dev/submitted-by"] == "ada"
    assert found.metadata.annotations["fairway.dev/created-by"] == "system:fairway"
    assert "fairway.dev/submitted-by" not in str(found.spec.template)
