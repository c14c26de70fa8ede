"""A native object that has ended runs no more, whatever becomes of its workload."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fairway.api.errors import Forbidden, NotFound
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import EVERYTHING, Patch, ResourceKey, Write
from fairway.store.keys import FLEETS, WORKLOADS
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import FLEET

EVENTS = ResourceKey("", "v1", "events")
JOBS = ResourceKey("batch", "v1", "jobs")
DEPLOYMENTS = ResourceKey("apps", "v1", "deployments")
USER = Write(user="ada", manager="test")
FINISHED = "fairway.dev/finished"


def native(name: str, *, seconds: int = 5, gpus: int = 8, annotations: str = "") -> str:
    return f"""
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: default
  labels: {{fairway.dev/queue: research}}
  annotations: {{fairway.dev/run-seconds: "{seconds}"{annotations}}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - {{name: main, image: training, resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}
"""


SERVICE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: default, labels: {fairway.dev/queue: research}}
spec:
  replicas: 1
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
        - {name: main, image: serving, resources: {limits: {nvidia.com/gpu: 8}}}
"""


async def annotations(fleet: Fleet, kind: ResourceKey, name: str) -> dict[str, str]:
    body = (await fleet.store.get(kind, name, "default")).object()
    kept: dict[str, str] = body["metadata"].get("annotations") or {}
    return kept


async def delete(fleet: Fleet, name: str) -> None:
    await fleet.store.delete(WORKLOADS, name, namespace="default", write=USER)


async def stays_away(fleet: Fleet, name: str, seconds: float = 120) -> None:
    """Lets time pass, and sees that a workload is gone and does not come back."""
    end = fleet.clock.now() + seconds
    while fleet.clock.now() < end:
        await fleet.clock.advance(1)
    with pytest.raises(NotFound):
        await fleet.workload(name)


async def succeeds(fleet: Fleet) -> None:
    await fleet.apply(native("train"))
    await fleet.clock.advance(1)
    await fleet.until("job-train", "Succeeded")


async def is_cancelled_while_it_runs(fleet: Fleet) -> None:
    await fleet.apply(native("train", seconds=100_000))
    await fleet.clock.advance(1)
    await fleet.until("job-train", "Running")
    await fleet.change("job-train", {"spec": {"cancelled": True}})
    await fleet.until("job-train", "Cancelled")


async def is_cancelled_while_it_waits(fleet: Fleet) -> None:
    await fleet.apply(native("train", gpus=64))
    await fleet.clock.advance(1)
    await fleet.change("job-train", {"spec": {"cancelled": True}})
    await fleet.until("job-train", "Cancelled")


async def is_cancelled_and_deleted_in_one_breath(fleet: Fleet) -> None:
    await fleet.apply(native("train", seconds=100_000))
    await fleet.clock.advance(1)
    await fleet.until("job-train", "Running")
    await fleet.change("job-train", {"spec": {"cancelled": True}})


@pytest.mark.parametrize(
    ("ends", "how"),
    [
        (succeeds, "Succeeded"),
        (is_cancelled_while_it_runs, "Cancelled"),
        (is_cancelled_while_it_waits, "Cancelled"),
        (is_cancelled_and_deleted_in_one_breath, "Cancelled"),
    ],
)
async def test_a_job_whose_workload_is_deleted_does_not_run_again(
    ends: Callable[[Fleet], Awaitable[None]],
    how: str,
    store: EmbeddedStore,
    clock: VirtualClock,
    tmp_path: Path,
) -> None:
    async with running(store, clock, tmp_path / "first") as fleet:
        await fleet.apply(FLEET)
        await ends(fleet)
        await delete(fleet, "job-train")
        await stays_away(fleet, "job-train")
        assert (await annotations(fleet, JOBS, "train"))[FINISHED] == how
    async with running(store, clock, tmp_path / "second") as fleet:
        await stays_away(fleet, "job-train")


async def test_a_workload_that_is_deleted_after_its_time_does_not_run_again(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(
            "{apiVersion: fairway.dev/v1alpha1, kind: Fleet, metadata: {name: fleet},"
            " spec: {defaults: {finishedSeconds: 30}}}"
        )
        assert (await store.list(FLEETS, EVERYTHING)).items
        await succeeds(fleet)
        await stays_away(fleet, "job-train")


async def test_what_is_over_while_no_hub_runs_is_remembered_by_the_next(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    """The workload is deleted while no hub runs, and the annotation was lost with a crash."""
    async with running(store, clock, tmp_path / "first") as fleet:
        await fleet.apply(FLEET)
        await succeeds(fleet)
    merge = Patch(type="merge", body={"metadata": {"annotations": {FINISHED: None}}})
    await store.patch(JOBS, "train", merge, namespace="default", write=USER)
    await store.delete(WORKLOADS, "job-train", namespace="default", write=USER)
    async with running(store, clock, tmp_path / "second") as fleet:
        await stays_away(fleet, "job-train")
        assert (await annotations(fleet, JOBS, "train"))[FINISHED] == "Succeeded"


async def test_a_job_whose_workload_is_deleted_while_it_runs_is_queued_again(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(native("train", seconds=100_000))
        await clock.advance(1)
        first = await fleet.until("job-train", "Running")
        await delete(fleet, "job-train")
        await clock.advance(60)
        await fleet.until(
            "job-train",
            lambda item: item.metadata.uid != first.metadata.uid and item.status.phase == "Running",
        )
        assert FINISHED not in await annotations(fleet, JOBS, "train")


async def test_a_job_that_is_recreated_runs_again(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await succeeds(fleet)
        await store.delete(JOBS, "train", namespace="default", write=USER)
        await fleet.apply(native("train"))
        await clock.advance(5)
        await fleet.until("job-train", "Succeeded")


async def test_a_cancelled_service_runs_again_once_nothing_says_that_it_has_ended(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(SERVICE)
        await clock.advance(1)
        await fleet.until("deployment-chat", "Running")
        await fleet.change("deployment-chat", {"spec": {"cancelled": True}})
        await fleet.until("deployment-chat", "Cancelled")
        await delete(fleet, "deployment-chat")
        await stays_away(fleet, "deployment-chat")
        merge = Patch(type="merge", body={"metadata": {"annotations": {FINISHED: None}}})
        await store.patch(DEPLOYMENTS, "chat", merge, namespace="default", write=USER)
        await clock.advance(1)
        await fleet.until("deployment-chat", "Running")


async def test_an_object_that_arrives_with_its_end_is_not_run_and_an_event_says_so(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(native("train", annotations=f", {FINISHED}: Succeeded"))
        await stays_away(fleet, "job-train", 10)
        events: list[dict[str, Any]] = [
            item.object() for item in (await store.list(EVENTS, EVERYTHING)).items
        ]
        assert [(item["reason"], item["involvedObject"]["name"]) for item in events] == [
            ("Ended", "train")
        ]


async def test_a_hub_that_may_not_write_to_native_objects_works_all_the_same(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a server where the rights of an earlier version are still in force."""
    patch = store.patch

    async def may_patch(resource: ResourceKey, *words: Any, **given: Any) -> Any:
        if resource == JOBS and given["write"].manager == "fairway-natives":
            raise Forbidden("the hub may not patch jobs")
        return await patch(resource, *words, **given)

    monkeypatch.setattr(store, "patch", may_patch)
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await succeeds(fleet)
        await clock.advance(5)
        await delete(fleet, "job-train")
        await stays_away(fleet, "job-train")
        body = (await store.get(JOBS, "train", "default")).object()
        assert body["status"]["conditions"][-1]["type"] == "Complete"
        assert FINISHED not in body["metadata"]["annotations"]
