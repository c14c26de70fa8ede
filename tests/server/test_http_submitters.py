"""Queues that take workloads of some people only, over HTTPS."""

from __future__ import annotations

import pytest
from hub_calls import APPLY, JSON_PATCH, MERGE, Caller, Json, fresh

ROOT = "/apis/fairway.dev/v1alpha1"
NOTE = "fairway.dev/submitted-by"
BODY = {"podSets": [{"name": "worker", "count": 1}]}


async def make_queue(call: Caller, **spec: object) -> str:
    name = fresh("queue")
    answer = await call("POST", f"{ROOT}/queues", {"metadata": {"name": name}, "spec": spec})
    assert answer.status == 201, answer.body
    return name


def workload(name: str, queue: str = "", **annotations: str) -> Json:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {**BODY, **({"queue": queue} if queue else {})},
    }


@pytest.fixture
def path(namespace: str) -> str:
    return f"{ROOT}/namespaces/{namespace}/workloads"


async def test_a_workload_that_its_queue_does_not_take_is_refused_with_what_to_do(
    call: Caller, namespace: str, path: str
) -> None:
    queue = await make_queue(call, submitters={"namespaces": ["elsewhere"]})
    refused = await call("POST", path, workload("train", queue))
    assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
    assert refused.json["message"] == (
        f'workloads.fairway.dev "train" is forbidden: spec.queue: queue {queue} takes no workloads'
        f" of admin in namespace {namespace}: its submitters name neither; use another queue, or"
        " have the namespace, the user or a group added to its spec.submitters"
    )
    (cause,) = refused.json["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("NotASubmitter", "spec.queue")
    assert (await call("POST", path, workload("train", queue), dryRun="All")).status == 403
    applied = await call(
        "PATCH", f"{path}/train", workload("train", queue), headers=APPLY, fieldManager="me"
    )
    assert applied.status == 403
    assert (await call("GET", f"{path}/train")).status == 404


async def test_a_workload_is_taken_by_namespace_user_or_group(
    call: Caller, namespace: str, path: str
) -> None:
    for submitters in (
        {"namespaces": [namespace]},
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}},
        {"users": ["admin"]},
        {"groups": ["system:masters"]},
    ):
        queue = await make_queue(call, submitters=submitters)
        made = await call("POST", path, workload(fresh("train"), queue))
        assert made.status == 201, (submitters, made.body)
        user, *groups = made.json["metadata"]["annotations"][NOTE].split("\n")
        assert user == "admin"
        assert "system:masters" in groups


async def test_a_queue_above_refuses_too(call: Caller, path: str) -> None:
    above = await make_queue(call, submitters={"users": ["nobody"]})
    queue = await make_queue(call, parent=above, submitters={"users": ["admin"]})
    refused = await call("POST", path, workload("train", queue))
    assert refused.status == 403
    assert f"queue {above} takes no workloads" in refused.json["message"]


@pytest.mark.parametrize(
    ("headers", "patch"),
    [
        pytest.param(MERGE, lambda queue: {"spec": {"queue": queue}}, id="merge patch"),
        pytest.param(
            JSON_PATCH,
            lambda queue: [{"op": "replace", "path": "/spec/queue", "value": queue}],
            id="JSON patch",
        ),
    ],
)
async def test_a_workload_is_not_moved_to_a_queue_that_does_not_take_it(
    call: Caller, path: str, headers: dict[str, str], patch
) -> None:
    name, free = fresh("train"), await make_queue(call)
    closed = await make_queue(call, submitters={"users": ["grace"]})
    assert (await call("POST", path, workload(name, free))).status == 201
    refused = await call("PATCH", f"{path}/{name}", patch(closed), headers=headers)
    assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (403, "spec.queue")
    other = await call("PATCH", f"{path}/{name}", {"spec": {"priority": 3}}, headers=MERGE)
    assert other.status == 200


async def test_what_waits_can_be_changed_when_its_queue_takes_it_no_longer(
    call: Caller, path: str
) -> None:
    name, queue = fresh("train"), await make_queue(call)
    assert (await call("POST", path, workload(name, queue))).status == 201
    closed = {"spec": {"submitters": {"users": ["grace"]}}}
    assert (await call("PATCH", f"{ROOT}/queues/{queue}", closed, headers=MERGE)).status == 200
    changed = await call("PATCH", f"{path}/{name}", {"spec": {"priority": 3}}, headers=MERGE)
    assert changed.status == 200, changed.body


async def test_nobody_writes_who_submitted_a_workload(call: Caller, path: str) -> None:
    name, queue = fresh("train"), await make_queue(call)
    forged = workload(name, queue, **{NOTE: "grace"})
    made = await call("POST", path, forged)
    note = made.json["metadata"]["annotations"][NOTE]
    assert note.startswith("admin\n")
    for value in ("grace", None):
        patch = {"metadata": {"annotations": {NOTE: value}}}
        changed = await call("PATCH", f"{path}/{name}", patch, headers=MERGE)
        assert changed.json["metadata"]["annotations"][NOTE] == note


async def test_a_native_object_is_refused_by_its_label_and_by_the_default_of_its_namespace(
    call: Caller, namespace: str
) -> None:
    closed = await make_queue(call, submitters={"users": ["grace"]})
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    }
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    job = {"metadata": {"name": "train"}, "spec": {"template": template}}
    labelled = {**job, "metadata": {"name": "train", "labels": {"fairway.dev/queue": closed}}}
    refused = await call("POST", jobs, labelled)
    assert refused.status == 403
    cause = refused.json["details"]["causes"][0]
    assert cause["field"] == "metadata.labels[fairway.dev/queue]"
    assert (await call("POST", jobs, job)).status == 201
    label = {"metadata": {"labels": {"fairway.dev/queue": closed}}}
    assert (await call("PATCH", f"{jobs}/train", label, headers=MERGE)).status == 403
    default = {"metadata": {"labels": {"fairway.dev/default-queue": closed}}}
    space = f"/api/v1/namespaces/{namespace}"
    assert (await call("PATCH", space, default, headers=MERGE)).status == 200
    other = {**job, "metadata": {"name": "other"}}
    assert (await call("POST", jobs, other)).status == 403


POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
FORGED = {NOTE: "grace", "fairway.dev/created-by": "grace"}


def native(name: str, queue: str = "", **more: object) -> Json:
    labels = {"fairway.dev/queue": queue} if queue else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": FORGED, **more},
        "spec": {"template": {"spec": POD}},
    }


async def owner(call: Caller, namespace: str) -> Json:
    """A controller that is there, so that its objects stay."""
    uid = (await call("GET", f"/api/v1/namespaces/{namespace}")).json["metadata"]["uid"]
    named = {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": uid}
    return {**named, "controller": True}


@pytest.mark.parametrize("way", ["create", "apply"])
@pytest.mark.parametrize("kind", ["workloads", "jobs"])
async def test_nobody_writes_who_submitted_an_object_by_any_kind_of_write(
    call: Caller, namespace: str, path: str, kind: str, way: str
) -> None:
    name, queue = fresh("train"), await make_queue(call)
    place = path if kind == "workloads" else f"/apis/batch/v1/namespaces/{namespace}/jobs"
    body = workload(name, queue, **FORGED) if kind == "workloads" else native(name, queue)
    if way == "create":
        made = await call("POST", place, body)
    else:
        made = await call("PATCH", f"{place}/{name}", body, headers=APPLY, fieldManager="me")
    assert made.status == 201, made.body
    note = made.json["metadata"]["annotations"][NOTE]
    assert note.startswith("admin\n")
    forged = {"metadata": {"annotations": FORGED}}
    key = NOTE.replace("/", "~1")
    operation = {"op": "replace", "path": f"/metadata/annotations/{key}", "value": "grace"}
    changed = [
        await call("PATCH", f"{place}/{name}", forged, headers=MERGE),
        await call("PATCH", f"{place}/{name}", [operation], headers=JSON_PATCH),
        await call(
            "PATCH", f"{place}/{name}", body, headers=APPLY, fieldManager="other", force="true"
        ),
        await call("PATCH", f"{place}/{name}/status", forged, headers=MERGE),
    ]
    latest = (await call("GET", f"{place}/{name}")).json
    latest["metadata"]["annotations"] = FORGED
    changed.append(await call("PUT", f"{place}/{name}", latest))
    assert [answer.status for answer in changed] == [200] * 5
    kept = (await call("GET", f"{place}/{name}")).json["metadata"]["annotations"]
    assert (kept[NOTE], kept["fairway.dev/created-by"]) == (note, "admin")


async def test_a_job_without_a_queue_says_nothing_of_a_submitter(
    call: Caller, namespace: str
) -> None:
    name, queue = fresh("train"), await make_queue(call)
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    owners = [await owner(call, namespace)]
    for body in (native(fresh("plain")), native(fresh("owned"), queue, ownerReferences=owners)):
        made = await call("POST", jobs, body)
        assert made.status == 201, made.body
        assert NOTE not in made.json["metadata"]["annotations"]
    made = await call("POST", jobs, native(name, queue))
    assert NOTE in made.json["metadata"]["annotations"]
    label = {"metadata": {"labels": {"fairway.dev/queue": None}}}
    left = await call("PATCH", f"{jobs}/{name}", label, headers=MERGE)
    assert NOTE not in left.json["metadata"]["annotations"]


async def test_a_job_is_not_brought_to_a_closed_queue_by_way_of_an_owner(
    call: Caller, namespace: str
) -> None:
    name, free = fresh("train"), await make_queue(call)
    closed = await make_queue(call, submitters={"users": ["grace"]})
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    assert (await call("POST", jobs, native(name, free))).status == 201
    owners = [await owner(call, namespace)]
    owned = {"labels": {"fairway.dev/queue": closed}, "ownerReferences": owners}
    assert (await call("PATCH", f"{jobs}/{name}", {"metadata": owned}, headers=MERGE)).status == 200
    freed = {"metadata": {"ownerReferences": None}}
    refused = await call("PATCH", f"{jobs}/{name}", freed, headers=MERGE)
    assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
