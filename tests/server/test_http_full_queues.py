"""Queues with a maximum of pending workloads, over HTTPS."""

from __future__ import annotations

import pytest
from hub_calls import MERGE, Caller, Json

from tests.server.test_http_submitters import ROOT, make_queue, workload

POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}


def native(name: str, queue: str) -> Json:
    labels = {"fairway.dev/queue": queue}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"template": {"spec": POD}}}


@pytest.fixture
def path(namespace: str) -> str:
    return f"{ROOT}/namespaces/{namespace}/workloads"


async def test_a_full_queue_refuses_with_what_to_do_until_it_has_a_place(
    call: Caller, path: str
) -> None:
    queue = await make_queue(call, waitingWorkloadsMax=1)
    assert (await call("POST", path, workload("first", queue))).status == 201
    refused = await call("POST", path, workload("second", queue))
    assert refused.status == 403
    assert refused.json["message"] == (
        f'workloads.fairway.dev "second" is forbidden: spec.queue: queue {queue} already has its'
        " maximum of 1 pending workloads; try again when some have started, or use another queue"
    )
    (cause,) = refused.json["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("QueueFull", "spec.queue")
    assert (await call("DELETE", f"{path}/first")).status == 200
    assert (await call("POST", path, workload("second", queue))).status == 201


async def test_a_queue_above_is_full_for_all_below(call: Caller, path: str) -> None:
    above = await make_queue(call, waitingWorkloadsMax=1)
    queues = [await make_queue(call, parent=above) for _ in range(2)]
    assert (await call("POST", path, workload("first", queues[0]))).status == 201
    refused = await call("POST", path, workload("second", queues[1]))
    assert f"queue {above} already has its maximum" in refused.json["message"]


async def test_a_workload_does_not_change_into_a_full_queue(call: Caller, path: str) -> None:
    full, other = await make_queue(call, waitingWorkloadsMax=0), await make_queue(call)
    assert (await call("POST", path, workload("first", other))).status == 201
    patch = {"spec": {"queue": full}}
    assert (await call("PATCH", f"{path}/first", patch, headers=MERGE)).status == 403


async def test_each_user_has_a_limit_of_its_own(call: Caller, path: str) -> None:
    limits = [
        {"name": "admins", "users": ["admin"], "waitingWorkloads": 1},
        {"name": "others", "waitingWorkloads": 0},
    ]
    queue = await make_queue(call, userLimits=limits)
    assert (await call("POST", path, workload("first", queue))).status == 201
    refused = await call("POST", path, workload("second", queue))
    assert "maximum of 1 pending workloads of admin" in refused.json["message"]


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        pytest.param(
            {"waitingWorkloadsMax": 1}, "maximum of 1 pending workloads;", id="of the queue"
        ),
        pytest.param(
            {"userLimits": [{"name": "each", "waitingWorkloads": 1}]},
            "maximum of 1 pending workloads of admin;",
            id="of each user",
        ),
    ],
)
async def test_a_full_queue_refuses_native_objects_too(
    call: Caller, namespace: str, path: str, limit: Json, message: str
) -> None:
    queue, jobs = await make_queue(call, **limit), f"/apis/batch/v1/namespaces/{namespace}/jobs"
    assert (await call("POST", path, workload("first", queue))).status == 201
    refused = await call("POST", jobs, native("second", queue))
    assert refused.status == 403
    assert message in refused.json["message"]
    (cause,) = refused.json["details"]["causes"]
    assert cause["reason"] == "QueueFull"
    assert cause["field"] == "metadata.labels[fairway.dev/queue]"
