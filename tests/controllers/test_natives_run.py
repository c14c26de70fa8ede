"""Native objects become workloads: again when made anew, and again by whoever leads again."""

from __future__ import annotations

from pathlib import Path

from fairway.clock import VirtualClock
from fairway.controllers.terms import NAME
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import EVERYTHING, Patch, ResourceKey, Write
from fairway.store.keys import LEASES, WORKLOADS
from tests.controllers.fleets import running
from tests.controllers.test_running import FLEET, job

EVENTS = ResourceKey("", "v1", "events")
JOBS = ResourceKey("batch", "v1", "jobs")
USER = Write(user="ada", manager="test")


def native(name: str) -> str:
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: default, labels: {{kueue.x-k8s.io/queue-name: research}}}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - {{name: main, image: training, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}
"""


async def test_an_object_that_is_made_anew_runs_anew(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(native("train"))
        await clock.advance(1)
        first = await fleet.until("job-train", "Running")
        await store.delete(JOBS, "train", namespace="default", write=USER)
        await fleet.apply(native("train"))
        second = await fleet.until(
            "job-train",
            lambda item: item.metadata.uid != first.metadata.uid and item.status.phase == "Running",
        )
        job = (await store.get(JOBS, "train", "default")).object()
        assert [owner.uid for owner in second.metadata.owner_references] == [job["metadata"]["uid"]]


async def test_a_hub_that_leads_again_looks_after_native_objects_again(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(native("one"))
        await clock.advance(1)
        await fleet.until("job-one", "Running")
        term = fleet.plane.terms.term
        taken = Patch(type="merge", body={"spec": {"holderIdentity": "another"}})
        await store.patch(LEASES, NAME, taken, namespace="fairway-system", write=USER)
        await clock.advance(30)
        assert fleet.plane.terms.is_leader
        assert fleet.plane.terms.term > term
        await fleet.apply(native("two"))
        await clock.advance(1)
        await fleet.until("job-two", "Running")


async def test_a_workload_made_by_hand_is_not_taken_over_and_the_object_is_told(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(job("job-train", seconds=100_000))
        own = await fleet.until("job-train", "Running")
        await fleet.apply(native("train"))
        await clock.advance(30)
        kept = await fleet.workload("job-train")
        assert kept.spec == own.spec
        assert kept.metadata.owner_references == ()
        events = await store.list(EVENTS, EVERYTHING)
        told = [item.object() for item in events.items]
        of_job = [item["reason"] for item in told if item["involvedObject"]["kind"] == "Job"]
        assert of_job == ["NameTaken"]
        assert not (await store.get(JOBS, "train", "default")).object()["status"]
        await store.delete(WORKLOADS, "job-train", namespace="default", write=USER)
        await clock.advance(120)
        again = await fleet.workload("job-train")
        assert again.spec.source is not None
        assert again.metadata.uid != own.metadata.uid


async def test_beside_other_controllers_only_what_is_held_back_becomes_a_workload(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    ours = "fairway.dev/queue"
    async with running(store, clock, tmp_path, is_alone=False) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(native("of-kueue"))
        await fleet.apply(native("let-in").replace("kueue.x-k8s.io/queue-name", ours))
        held = native("held").replace("kueue.x-k8s.io/queue-name", ours)
        await fleet.apply(held.replace("spec:\n", "spec:\n  managedBy: fairway.dev/hub\n", 1))
        await clock.advance(1)
        await fleet.until("job-held", "Running")
        listed = await store.list(WORKLOADS, EVERYTHING)
        assert [item.object()["metadata"]["name"] for item in listed.items] == ["job-held"]
        told = [item.object() for item in (await store.list(EVENTS, EVERYTHING)).items]
        refused = [item for item in told if item["reason"] == "NotHeldBack"]
        assert [item["involvedObject"]["name"] for item in refused] == ["let-in"]
        assert "fairway.dev/hub in spec.managedBy" in refused[0]["message"]
