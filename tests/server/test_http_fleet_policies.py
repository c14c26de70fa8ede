"""Fleet policies when workloads are written, over HTTPS."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from hub_calls import JSON_PATCH, MERGE, Caller, Json, fresh

ROOT = "/apis/fairway.dev/v1alpha1"
POLICIES = "/apis/governance.fairway.dev/v1alpha1/fleetpolicies"
Policy = Callable[..., Awaitable[str]]


def job(image: str = "evil.io/x", **labels: str) -> Json:
    containers = [{"name": "main", "image": image}]
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
    metadata = {"name": fresh("job"), "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def workload(*manifests: Json, **spec: Any) -> Json:
    return {
        "metadata": {"name": fresh("train")},
        "spec": {"template": {"manifests": [*manifests] or [job()]}, **spec},
    }


@pytest.fixture
def path(namespace: str) -> str:
    return f"{ROOT}/namespaces/{namespace}/workloads"


@pytest.fixture
async def policy(call: Caller, namespace: str) -> AsyncIterator[Policy]:
    """Makes policies for the namespace of the test alone; other tests share the hub."""
    names: list[str] = []

    async def make(**spec: Any) -> str:
        name = fresh("policy")
        body = {"metadata": {"name": name}, "spec": {"namespaces": {"names": [namespace]}, **spec}}
        answer = await call("POST", POLICIES, body)
        assert answer.status == 201, answer.body
        names.append(name)
        return name

    yield make
    for name in names:
        await call("DELETE", f"{POLICIES}/{name}")


async def test_what_a_policy_does_not_allow_is_refused_with_what_to_do(
    call: Caller, path: str, policy: Policy
) -> None:
    name = await policy(registries=["ghcr.io/acme", "quay.io"], kinds=["batch/Job"])
    body = workload()
    refused = await call("POST", path, body)
    assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
    assert refused.json["message"] == (
        f'workloads.fairway.dev "{body["metadata"]["name"]}" is forbidden: spec.template: fleet'
        f" policy {name} does not allow image evil.io/x, which is of no allowed registry: rule"
        " registries; use images of ghcr.io/acme or quay.io"
    )
    (cause,) = refused.json["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("PolicyViolated", "spec.template")
    made = await call("POST", path, workload(job("quay.io/a/b")))
    assert made.status == 201


@pytest.mark.parametrize(
    ("rules", "spec", "said"),
    [
        ({"kinds": ["apps/Deployment"]}, {}, ("spec.template.manifests: fleet policy .* does not"
         " allow kind batch/Job: rule kinds; use apps/Deployment")),
        ({"priority": {"min": 2, "max": 5}}, {"priority": 6}, ("spec.priority: fleet policy .* does"
         " not allow priority 6: rule priority; use a priority of at least 2 and at most 5")),
        ({"priority": {"min": 2}}, {}, "priority 0: .* at least 2"),
        ({"runSecondsMax": 60}, {"runSeconds": {"limit": 61}}, ("spec.runSeconds.limit: fleet"
         " policy .* a run of 61 seconds: rule runSeconds; set a limit of at most 60 seconds")),
    ],
    ids=["kinds", "priority", "default priority", "runSeconds"],
)  # fmt: skip
async def test_each_rule_is_named_with_its_field(
    call: Caller, path: str, policy: Policy, rules: Json, spec: Json, said: str
) -> None:
    await policy(**rules)
    refused = await call("POST", path, workload(**spec))
    assert refused.status == 403
    assert re.search(said, refused.json["message"]), refused.json["message"]


async def test_a_policy_that_warns_answers_with_a_warning_and_one_that_is_tried_out_with_none(
    call: Caller, path: str, policy: Policy
) -> None:
    await policy(registries=["ghcr.io"], enforcement="DryRun")
    quiet = await call("POST", path, workload())
    assert (quiet.status, quiet.warnings) == (201, [])
    name = await policy(registries=["ghcr.io"], enforcement="Warn")
    warned = await call("POST", path, workload())
    assert warned.status == 201
    (said,) = warned.warnings
    assert said == (
        f'299 - "fleet policy {name} does not allow image evil.io/x, which is of no allowed'
        ' registry: rule registries; use images of ghcr.io"'
    )


async def test_a_workload_that_is_older_than_a_policy_may_change_but_not_add_to_what_it_breaks(
    call: Caller, path: str, policy: Policy
) -> None:
    made = await call("POST", path, workload())
    one = f"{path}/{made.json['metadata']['name']}"
    await policy(registries=["ghcr.io"])
    assert (await call("PATCH", one, {"spec": {"priority": 3}}, headers=MERGE)).status == 200
    image = "/spec/template/manifests/0/spec/template/spec/containers/0/image"
    worse = [{"op": "replace", "path": image, "value": "evil.io/y"}]
    assert (await call("PATCH", one, worse, headers=JSON_PATCH)).status == 403
    better = [{"op": "replace", "path": image, "value": "ghcr.io/y"}]
    assert (await call("PATCH", one, better, headers=JSON_PATCH)).status == 200
    assert (await call("PATCH", one, worse, headers=JSON_PATCH)).status == 403


async def test_native_objects_that_become_workloads_are_checked_and_others_are_not(
    call: Caller, namespace: str, policy: Policy
) -> None:
    await policy(registries=["ghcr.io"], kinds=["apps/Deployment"], priority={"max": 4})
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    labels = {"fairway.dev/queue": "q", "fairway.dev/priority": "5"}
    refused = await call("POST", jobs, job(**labels))
    assert refused.status == 403
    assert [cause["field"] for cause in refused.json["details"]["causes"]] == [
        "kind", "spec", "metadata.labels[fairway.dev/priority]",
    ]  # fmt: skip
    assert (await call("POST", jobs, job())).status == 201  # it names no queue


async def test_the_default_queue_of_a_namespace_makes_its_objects_workloads(
    call: Caller, namespace: str, policy: Policy
) -> None:
    await policy(registries=["ghcr.io"])
    patch = {"metadata": {"labels": {"fairway.dev/default-queue": "q"}}}
    assert (
        await call("PATCH", f"/api/v1/namespaces/{namespace}", patch, headers=MERGE)
    ).status == 200
    refused = await call("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", job())
    assert refused.status == 403


async def test_priority_classes_and_queues_give_the_priority_that_is_checked(
    call: Caller, path: str, policy: Policy
) -> None:
    await policy(priority={"max": 4})
    high, queue = fresh("high"), fresh("queue")
    body: Json = {"metadata": {"name": high}, "value": 5}
    assert (await call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)).status == 201
    body = {"metadata": {"name": queue}, "spec": {"defaults": {"priority": 5}}}
    assert (await call("POST", f"{ROOT}/queues", body)).status == 201
    for spec in ({"priorityClass": high}, {"queue": queue}):
        assert (await call("POST", path, workload(**spec))).status == 403, spec
    assert (await call("POST", path, workload(queue=queue, priority=1))).status == 201


async def test_a_removed_policy_allows_everything_again(
    call: Caller, path: str, policy: Policy
) -> None:
    name = await policy(kinds=["Pod"])
    assert (await call("POST", path, workload())).status == 403
    await call("DELETE", f"{POLICIES}/{name}")
    assert (await call("POST", path, workload())).status == 201


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"registries": ["acme"]}, "spec.registries[0]"),
        ({"registries": ["https://ghcr.io"]}, "spec.registries[0]"),
        ({"clusters": {"expressions": ["cluster.name ="]}}, "spec.clusters.expressions[0]"),
        ({"priority": {"min": 2, "max": 1}}, "spec.priority.min"),
        ({"regions": ["eu"]}, "spec.regions"),
    ],
)
async def test_a_policy_that_cannot_be_right_is_refused(
    call: Caller, spec: Json, field: str
) -> None:
    body = {"metadata": {"name": fresh("policy")}, "spec": spec}
    refused = await call("POST", POLICIES, body)
    assert refused.status == 422
    assert refused.json["details"]["causes"][0]["field"] == field


async def test_tenants_read_policies_at_most_and_never_write_them(
    call: Caller, namespace: str, policy: Policy
) -> None:
    name, rbac = await policy(kinds=["Pod"]), "/apis/rbac.authorization.k8s.io/v1"
    eve = {"Impersonate-User": "eve"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    binding = {"metadata": {"name": fresh("eve")}, "roleRef": role, "subjects": subjects}
    own = f"{rbac}/namespaces/{namespace}/rolebindings"
    assert (await call("POST", own, binding)).status == 201
    assert (await call("GET", f"{POLICIES}/{name}", headers=eve)).status == 403
    assert (await call("POST", f"{rbac}/clusterrolebindings", binding)).status == 201
    assert (await call("GET", f"{POLICIES}/{name}", headers=eve)).status == 200
    body = {"metadata": {"name": fresh("wide")}, "spec": {}}
    for method, path in (("POST", POLICIES), ("DELETE", f"{POLICIES}/{name}")):
        assert (await call(method, path, body, headers=eve)).status == 403
    patch = {"spec": {"kinds": []}}
    widened = await call("PATCH", f"{POLICIES}/{name}", patch, headers={**eve, **MERGE})
    assert widened.status == 403
