"""Every kind that a hub serves, through its whole life over HTTPS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hub_calls import MERGE, Caller, Json, fresh

ROOT = Path(__file__).parents[2]
CLUSTER_SCOPED = {
    "Scorer",
    "ClusterScore",
    "Namespace",
    "PriorityClass",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "Fleet",
    "CostAccount",
    "Cluster",
    "ClusterReport",
    "Flavor",
    "Queue",
    "KindRule",
    "FleetPolicy",
}


def one_of_each() -> dict[str, Json]:
    found: dict[str, Json] = {}
    for path in [ROOT / "tests/resources/data/samples.yaml", *(ROOT / "examples/fleet").iterdir()]:
        for body in yaml.safe_load_all(path.read_text()):
            found.setdefault(body["kind"], body)
    return found


SAMPLES = one_of_each()
BUILT_IN = {
    *("Namespace", "Pod", "Job", "Deployment", "StatefulSet", "Service", "ServiceAccount"),
    *("PersistentVolumeClaim", "Secret", "ConfigMap", "Event", "Lease", "PriorityClass"),
    *("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "CustomResourceDefinition"),
    *("HorizontalPodAutoscaler", "ResourceClaim", "ResourceClaimTemplate"),
}
OURS = {
    *("Fleet", "Cluster", "ClusterReport", "Flavor", "Queue", "Workload", "PlacementPolicy"),
    *("Work", "KindRule", "Rollout", "Revision", "FleetAutoscaler", "CostAccount"),
    *("FleetPolicy", "Scorer", "ClusterScore"),
}


def test_each_kind_has_a_sample() -> None:
    assert set(SAMPLES) == BUILT_IN | OURS


async def served_as(call: Caller, body: Json) -> tuple[str, Json]:
    """Where a version of a group is served, and the kind's entry in its discovery."""
    version = body["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    listed = (await call("GET", root)).json["resources"]
    (entry,) = [item for item in listed if item["kind"] == body["kind"] and "/" not in item["name"]]
    return root, entry


async def place_of(call: Caller, body: Json, namespace: str) -> str:
    root, entry = await served_as(call, body)
    assert entry["namespaced"] != (body["kind"] in CLUSTER_SCOPED)
    return (
        f"{root}/namespaces/{namespace}/{entry['name']}"
        if entry["namespaced"]
        else (f"{root}/{entry['name']}")
    )


def sample(kind: str, namespace: str) -> Json:
    body: Json = yaml.safe_load(yaml.safe_dump(SAMPLES[kind]))
    body.pop("status", None)
    if kind == "Event":
        body["involvedObject"]["namespace"] = namespace
    if kind not in ("CustomResourceDefinition", "Fleet"):
        body["metadata"]["name"] = fresh(kind.lower())
    body["metadata"].pop("namespace", None)
    if kind not in CLUSTER_SCOPED:
        body["metadata"]["namespace"] = namespace
    return body


@pytest.mark.parametrize("kind", sorted(SAMPLES))
async def test_a_kind_is_created_read_listed_changed_and_deleted(
    call: Caller, namespace: str, kind: str
) -> None:
    body = sample(kind, namespace)
    name = body["metadata"]["name"]
    path = await place_of(call, body, namespace)

    made = await call("POST", path, body)
    assert made.status == 201, made.body
    metadata = made.json["metadata"]
    assert metadata["uid"]
    assert metadata["creationTimestamp"]
    assert metadata["annotations"]["fairway.dev/created-by"] == "admin"
    assert (await call("POST", path, body)).json["reason"] == "AlreadyExists"

    got = await call("GET", f"{path}/{name}")
    assert got.json["metadata"]["uid"] == metadata["uid"]
    listed = await call("GET", path, fieldSelector=f"metadata.name={name}")
    assert [item["metadata"]["name"] for item in listed.json["items"]] == [name]
    assert listed.json["kind"] == f"{kind}List"

    labelled = {"metadata": {"labels": {"checked": "yes"}}}
    patched = await call("PATCH", f"{path}/{name}", labelled, headers=MERGE)
    assert (patched.status, patched.json["metadata"]["labels"]["checked"]) == (200, "yes")
    chosen = await call("GET", path, labelSelector="checked=yes")
    assert name in [item["metadata"]["name"] for item in chosen.json["items"]]

    replacement: Any = patched.json
    replacement["metadata"]["annotations"]["note"] = "replaced"
    replaced = await call("PUT", f"{path}/{name}", replacement)
    assert (replaced.status, replaced.version > patched.version) == (200, True)
    stale = await call(
        "PUT",
        f"{path}/{name}",
        replacement
        | {
            "metadata": {
                **replacement["metadata"],
                "resourceVersion": made.json["metadata"]["resourceVersion"],
            }
        },
    )
    assert stale.json["reason"] == "Conflict"

    assert (await call("DELETE", f"{path}/{name}")).status == 200
    if kind not in ("Namespace", "CustomResourceDefinition"):  # these empty themselves first
        assert (await call("GET", f"{path}/{name}")).status == 404


STATUSES: dict[str, Json] = {
    "Pod": {"phase": "Running"},
    "Job": {"active": 1},
    "Deployment": {"replicas": 2},
    "StatefulSet": {"replicas": 2},
    "PersistentVolumeClaim": {"phase": "Bound"},
}


@pytest.mark.parametrize("kind", sorted(STATUSES))
async def test_a_status_has_its_own_door(call: Caller, namespace: str, kind: str) -> None:
    body = sample(kind, namespace)
    name = body["metadata"]["name"]
    path = await place_of(call, body, namespace)
    made = (await call("POST", path, body)).json
    spec = made["spec"]

    through_front = await call("PATCH", f"{path}/{name}", {"status": STATUSES[kind]}, headers=MERGE)
    assert through_front.json.get("status", {}).items() >= made.get("status", {}).items()
    assert not STATUSES[kind].items() <= through_front.json.get("status", {}).items()

    written = through_front.json
    written["status"] = {**(written.get("status") or {}), **STATUSES[kind]}
    written["spec"] = {}
    written["metadata"].setdefault("labels", {})["sneaked"] = "in"
    after = await call("PUT", f"{path}/{name}/status", written)
    assert after.status == 200, after.body
    assert STATUSES[kind].items() <= after.json["status"].items()
    assert after.json["spec"] == spec
    assert "sneaked" not in after.json["metadata"].get("labels", {})
    assert after.json["metadata"].get("generation") == made["metadata"].get("generation")
    shown = await call("GET", f"{path}/{name}/status")
    assert shown.json["status"] == after.json["status"]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
async def test_scale_is_one_number_seen_alike(call: Caller, namespace: str, kind: str) -> None:
    body = sample(kind, namespace)
    name = body["metadata"]["name"]
    path = await place_of(call, body, namespace)
    await call("POST", path, body)

    scale = await call("GET", f"{path}/{name}/scale")
    assert (scale.json["kind"], scale.json["spec"]) == ("Scale", {"replicas": 1})
    selector = {"Deployment": "app=a,tier in (a,b),z", "StatefulSet": "app=a"}[kind]
    assert scale.json["status"]["selector"] == selector
    put = await call("PUT", f"{path}/{name}/scale", {**scale.json, "spec": {"replicas": 3}})
    assert put.json["spec"] == {"replicas": 3}
    stale = await call("PUT", f"{path}/{name}/scale", {**scale.json, "spec": {"replicas": 4}})
    assert stale.json["reason"] == "Conflict"
    patched = await call("PATCH", f"{path}/{name}/scale", {"spec": {"replicas": 5}}, headers=MERGE)
    assert patched.json["spec"] == {"replicas": 5}
    whole = (await call("GET", f"{path}/{name}")).json
    assert (whole["spec"]["replicas"], whole["metadata"]["generation"]) == (5, 3)
    negative = await call(
        "PATCH", f"{path}/{name}/scale", {"spec": {"replicas": -1}}, headers=MERGE
    )
    assert negative.json["reason"] == "Invalid"
    for wrong in ({"metadata": []}, {"spec": []}, {"kind": "Pod"}, []):
        assert (await call("PUT", f"{path}/{name}/scale", wrong)).status in (400, 422)


async def test_kinds_without_status_or_scale_have_no_such_door(
    call: Caller, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await call("POST", path, {"metadata": {"name": "one"}})
    for door in ("status", "scale", "nothing", "status/deeper"):
        assert (await call("GET", f"{path}/one/{door}")).status == 404


@pytest.mark.parametrize("method", ["DELETE", "POST"])
async def test_a_status_is_neither_deleted_nor_created(
    call: Caller, namespace: str, method: str
) -> None:
    body = sample("Pod", namespace)
    name = body["metadata"]["name"]
    path = f"/api/v1/namespaces/{namespace}/pods"
    await call("POST", path, body)
    assert (await call(method, f"{path}/{name}/status", body)).status == 405
    assert (await call("GET", f"{path}/{name}")).status == 200
