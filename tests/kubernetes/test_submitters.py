"""Who submits what, as a real kube-apiserver records it: nobody says otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from fairway.api.submission import CREATED_BY, SUBMITTED_BY
from fairway.api.workload import Workload
from fairway.clock import SystemClock, timestamp
from fairway.hub.on_kubernetes import prepare_kubernetes
from fairway.kubeapi import KubeApi
from fairway.store.interface import Patch, ResourceKey, Write
from fairway.store.keys import CLUSTERS, NAMESPACES, QUEUES, WORKLOADS
from fairway.store.kubernetes.store import KubernetesStore
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.test_hub import (
    FLEET,
    JOB,
    PATIENCE_SECONDS,
    QUEUE,
    clean_store,
    hub_on,
    until_all,
)

pytestmark = pytest.mark.real
Json = dict[str, Any]

JOBS = ResourceKey("batch", "v1", "jobs")
DEPLOYMENTS = ResourceKey("apps", "v1", "deployments")
PODS = ResourceKey("", "v1", "pods")
ADMINS = ("lab", "system:masters")
POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "training"}]}
LASTING = {**POD, "restartPolicy": "Always"}
MATCHED = {"matchLabels": {"app": "a"}}
KINDS: dict[ResourceKey, Json] = {
    JOBS: {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": POD}}},
    DEPLOYMENTS: {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {
            "selector": MATCHED,
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": LASTING},
        },
    },
    PODS: {"apiVersion": "v1", "kind": "Pod", "spec": POD},
    WORKLOADS: yaml.safe_load(JOB % (0, 0)),
}
FORGED = {SUBMITTED_BY: "alice\nlab", CREATED_BY: "alice"}
ALL = [pytest.param(kind, id=kind.plural) for kind in KINDS]
NATIVE = [pytest.param(kind, id=kind.plural) for kind in KINDS if kind != WORKLOADS]


def body_of(kind: ResourceKey, queue: str = "research", *, name: str = "a", **notes: str) -> Json:
    body: Json = yaml.safe_load(yaml.safe_dump(KINDS[kind]))
    labels = {"fairway.dev/queue": queue} if queue and kind != WORKLOADS else {}
    body["metadata"] = {
        "name": name,
        "namespace": "default",
        "labels": labels,
        "annotations": {"example.com/other": "stays", **notes},
    }
    if kind == WORKLOADS:
        body["spec"]["queue"] = queue
    return body


def moved(kind: ResourceKey, queue: str | None) -> Json:
    if kind == WORKLOADS:
        return {"spec": {"queue": queue}}
    return {"metadata": {"labels": {"fairway.dev/queue": queue}}}


def moved_and_noted(kind: ResourceKey, queue: str, note: str) -> Json:
    change, own = moved(kind, queue), noted(note)
    return {**change, "metadata": {**change.get("metadata", {}), **own["metadata"]}}


def noted(value: str | None) -> Json:
    return {"metadata": {"annotations": {SUBMITTED_BY: value}}}


def note_on(raw: bytes) -> str | None:
    annotations = msgspec.json.decode(raw)["metadata"]["annotations"]
    assert annotations["example.com/other"] == "stays"
    return annotations.get(SUBMITTED_BY)


def user(store: KubernetesStore, name: str) -> KubeApi:
    return store.api.acting_as(name, ADMINS)


async def owner(store: KubernetesStore) -> Json:
    """A controller that is there, so that its objects are left alone."""
    uid = (await store.get(NAMESPACES, "default")).object()["metadata"]["uid"]
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": "default",
        "uid": uid,
        "controller": True,
    }


async def until_counted(store: KubernetesStore) -> None:
    """What the server records counts some seconds after its policies were created."""
    since = max(store.stamps.natives_since, store.stamps.workloads_since)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while timestamp(datetime.now(UTC).timestamp()) <= since:
            await asyncio.sleep(0.2)


async def until_stamped(store: KubernetesStore) -> None:
    """Policies take effect a little after they are created, and count a little later."""
    await until_counted(store)
    trial, write = body_of(JOBS, name="trial", **FORGED), Write(dry_run=True)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            raw = await user(store, "ada").create(JOBS, trial, namespace="default", write=write)
            if str(note_on(raw)).startswith("ada\n"):
                return
            await asyncio.sleep(0.2)


@pytest.fixture
async def store(real: ControlPlane) -> AsyncIterator[KubernetesStore]:
    """A server that is ready for a hub, through the hub's own eyes."""
    async with clean_store(real) as found:
        await prepare_kubernetes(found, SystemClock())
        await until_stamped(found)
        try:
            yield found
        finally:
            for kind in (JOBS, DEPLOYMENTS, PODS):
                for item in (await found.list(kind)).items:
                    metadata = item.object()["metadata"]
                    where = metadata["namespace"]
                    await found.delete(kind, metadata["name"], namespace=where, write=Write())


@pytest.mark.parametrize("kind", ALL)
async def test_what_users_write_of_the_submitter_does_not_count(
    store: KubernetesStore, kind: ResourceKey
) -> None:
    mallory, ben = user(store, "mallory"), user(store, "ben")
    own = "mallory\n" + "\n".join(ADMINS)
    place = {"namespace": "default", "write": Write(manager="tests")}
    made = await mallory.create(kind, body_of(kind, **FORGED), **place)
    assert str(note_on(made)).startswith(own)
    # Nor on any kind of change, by anybody, by the status, or by the hub's own identity.
    applied = body_of(kind, **FORGED)
    changes = [
        ("", Patch(type="merge", body=noted("alice"))),
        ("", Patch(type="merge", body=noted(None))),
        ("", Patch(type="apply", body=applied, force=True)),
        ("status", Patch(type="merge", body=noted("alice"))),
    ]
    for api in (ben, mallory, store.api):
        for part, patch in changes:
            raw, _ = await api.patch(kind, "a", patch, subresource=part, **place)
            assert str(note_on(raw)).startswith(own), (part, patch)
        raw = await api.get(kind, "a", "default")
        replaced = msgspec.json.decode(raw)
        replaced["metadata"]["annotations"] |= FORGED
        assert str(note_on(await api.replace(kind, replaced, **place))).startswith(own)
    # A user who names another queue is the submitter from then on.
    forged = moved_and_noted(kind, "another", "alice")
    raw, _ = await ben.patch(kind, "a", Patch(type="merge", body=forged), **place)
    assert str(note_on(raw)).startswith("ben\n" + "\n".join(ADMINS))


@pytest.mark.parametrize("kind", NATIVE)
async def test_a_native_object_without_a_queue_says_nothing_of_a_submitter(
    store: KubernetesStore, kind: ResourceKey
) -> None:
    mallory = user(store, "mallory")
    place = {"namespace": "default", "write": Write(manager="tests")}
    for name, body in {
        "plain": body_of(kind, "", **FORGED),
        "of-a-work": body_of(kind, **FORGED),
        "owned": body_of(kind, **FORGED),
    }.items():
        body["metadata"]["name"] = name
        if name == "of-a-work":
            body["metadata"]["labels"]["fairway.dev/work"] = "some"
        if name == "owned":
            body["metadata"]["ownerReferences"] = [await owner(store)]
        assert note_on(await mallory.create(kind, body, **place)) is None
    made = await mallory.create(kind, body_of(kind, **FORGED), **place)
    assert note_on(made) is not None
    patch = Patch(type="merge", body=moved(kind, None))
    raw, _ = await user(store, "ben").patch(kind, "a", patch, **place)
    assert note_on(raw) is None


async def test_an_object_that_its_owner_gives_up_is_submitted_by_who_takes_it(
    store: KubernetesStore,
) -> None:
    body = body_of(JOBS, **FORGED)
    body["spec"]["managedBy"] = "fairway.dev/hub"
    body["metadata"]["ownerReferences"] = [await owner(store)]
    place = {"namespace": "default", "write": Write(manager="tests")}
    assert note_on(await user(store, "mallory").create(JOBS, body, **place)) is None
    freed = {"metadata": {"ownerReferences": None, "annotations": FORGED}}
    raw, _ = await user(store, "ben").patch(JOBS, "a", Patch(type="merge", body=freed), **place)
    assert str(note_on(raw)).startswith("ben\n")


@pytest.mark.parametrize("kind", ALL)
async def test_users_of_the_hubs_own_address_submit_in_their_own_name(
    store: KubernetesStore, kind: ResourceKey
) -> None:
    grace, ben = Write(user="grace", groups=("lab",)), Write(user="ben", groups=("ops",))
    made = await store.create(kind, body_of(kind, **FORGED), namespace="default", write=grace)
    assert note_on(made.raw) == "grace\nlab"
    path = "/spec/queue" if kind == WORKLOADS else "/metadata/labels/fairway.dev~1queue"
    key = f"/metadata/annotations/{SUBMITTED_BY.replace('/', '~1')}"
    forging = {"op": "add", "path": key, "value": "alice"}
    applied = body_of(kind, "fourth", **FORGED)
    for change, note in (
        (Patch(type="merge", body=noted("alice")), "grace\nlab"),
        (Patch(type="json", body=[forging]), "grace\nlab"),
        (Patch(type="merge", body=moved_and_noted(kind, "second", "alice")), "ben\nops"),
        (
            Patch(type="json", body=[forging, {"op": "replace", "path": path, "value": "third"}]),
            "ben\nops",
        ),
        (Patch(type="apply", body=applied, force=True), "ben\nops"),
    ):
        stored, _ = await store.patch(kind, "a", change, namespace="default", write=ben)
        assert note_on(stored.raw) == note, change
        back = Patch(type="merge", body=moved(kind, "research"))
        await store.patch(kind, "a", back, namespace="default", write=grace)
    body = (await store.get(kind, "a", "default")).object()
    body["metadata"]["annotations"] |= FORGED
    if kind == WORKLOADS:
        body["spec"]["queue"] = "fifth"
    else:
        body["metadata"]["labels"]["fairway.dev/queue"] = "fifth"
    stored = await store.update(kind, body, namespace="default", write=ben)
    assert note_on(stored.raw) == "ben\nops"


def waits_as_no_submitter(workload: Workload) -> bool:
    return workload.status.reason == "NotASubmitter"


async def test_a_queue_takes_the_native_objects_of_its_users_and_no_forged_ones(
    store: KubernetesStore, real: ControlPlane, tmp_path: Path
) -> None:
    write = Write(manager="tests")
    place = {"namespace": "default", "write": write}
    async with hub_on(real, tmp_path):
        for kind, text in ((CLUSTERS, FLEET % "first"), (QUEUES, QUEUE)):
            await store.create(kind, yaml.safe_load(text), write=write)
        limits = [{"name": "alice", "users": ["alice"], "claimedWorkloads": 1}]
        closed = {"spec": {"submitters": {"users": ["alice"]}, "userLimits": limits}}
        await store.patch(QUEUES, "research", Patch(type="merge", body=closed), write=write)
        forged = body_of(JOBS, name="forged", **FORGED)
        await user(store, "mallory").create(JOBS, forged, **place)
        found = await until_all(store, 1, waits_as_no_submitter, "wait as no submitter")
        forged_workload = found["job-forged"].metadata.annotations
        assert forged_workload[SUBMITTED_BY].startswith("mallory\n")
        assert forged_workload[CREATED_BY] == "system:fairway"
        alice = user(store, "alice")
        for name in ("first", "second"):
            body = body_of(JOBS, name=name, **{"fairway.dev/run-seconds": "600"})
            await alice.create(JOBS, body, **place)
            is_so = (
                (lambda item: item.status.phase == "Running")
                if name == "first"
                else (lambda item: item.status.reason == "UserLimitExceeded")
            )
            await until_all(store, 1, is_so, f"are as {name} should be")
