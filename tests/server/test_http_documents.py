"""What a hub says about itself: discovery, version, health, metrics, OpenAPI."""

from __future__ import annotations

import pytest
from hub_calls import Caller, Json

from fairway.server.documents.openapi_v2 import PROTOBUF

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def resources(listed: Json) -> dict[str, Json]:
    return {resource["name"]: resource for resource in listed["resources"]}


async def test_the_old_discovery_names_groups_versions_and_resources(call: Caller) -> None:
    assert (await call("GET", "/api")).json["versions"] == ["v1"]
    groups = {group["name"]: group for group in (await call("GET", "/apis")).json["groups"]}
    assert {"apps", "batch", "fairway.dev", "apiextensions.k8s.io"} <= set(groups)
    assert "" not in groups
    apps = (await call("GET", "/apis/apps")).json
    assert apps["kind"] == "APIGroup"
    assert apps["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    core = (await call("GET", "/api/v1")).json
    assert (core["kind"], core["groupVersion"]) == ("APIResourceList", "v1")
    pods = resources(core)["pods"]
    assert (pods["kind"], pods["namespaced"], pods["shortNames"]) == ("Pod", True, ["po"])
    assert "watch" in pods["verbs"]
    assert resources(core)["serviceaccounts/token"]["kind"] == "TokenRequest"
    deployments = resources((await call("GET", "/apis/apps/v1")).json)
    scale = deployments["deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


@pytest.mark.parametrize("path", ["/apis/none.example", "/apis/apps/v9", "/api/v9", "/nothing"])
async def test_what_is_not_served_is_not_found(call: Caller, path: str) -> None:
    answer = await call("GET", path)
    assert (answer.status, answer.json["kind"], answer.json["code"]) == (404, "Status", 404)


async def test_aggregated_discovery_says_the_same_in_one_answer(call: Caller) -> None:
    for path in ("/api", "/apis"):
        answer = await call("GET", path, headers={"Accept": AGGREGATED + ",application/json"})
        assert answer.headers["Content-Type"] == AGGREGATED
        assert answer.json["kind"] == "APIGroupDiscoveryList"
        for group in answer.json["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                old_path = f"/apis/{name}/{version['version']}" if name else "/api/v1"
                old = resources((await call("GET", old_path)).json)
                found = {resource["resource"]: resource for resource in version["resources"]}
                assert set(found) == {item for item in old if "/" not in item}
                for plural, value in found.items():
                    assert value["verbs"] == old[plural]["verbs"]
                    assert (value["scope"] == "Namespaced") == old[plural]["namespaced"]
                    below = (
                        {f"{plural}/{each['subresource']}" for each in value["subresources"]}
                        if ("subresources" in value)
                        else set()
                    )
                    assert below == {each for each in old if each.startswith(plural + "/")}


async def test_the_version_is_one_that_clients_understand(call: Caller) -> None:
    version = (await call("GET", "/version")).json
    assert (version["major"], version["gitVersion"].startswith("v1.")) == ("1", True)
    assert version["minor"].isdigit()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_a_hub_that_runs_is_well(call: Caller, path: str) -> None:
    answer = await call("GET", path)
    assert (answer.status, answer.body) == (200, b"ok")


async def test_metrics_count_requests_writes_objects_and_watches(
    call: Caller, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await call("POST", path, {"metadata": {"name": "one"}})
    async with call.watch(path) as stream:
        await stream.event()
        answer = await call("GET", "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = answer.body.decode().splitlines()

    def value(start: str, *labels: str) -> float:
        found = [
            line
            for line in lines
            if line.startswith(start) and all(label in line for label in labels)
        ]
        assert found, f"no line of {start} with {labels}"
        return float(found[0].split()[-1])

    assert value("fairway_requests_total", 'verb="create"', 'resource="configmaps"') >= 1
    assert value("fairway_store_objects", 'resource="configmaps"') >= 1
    assert value("fairway_watches", 'resource="configmaps"') == 1
    assert value("fairway_watch_events_total") >= 1


async def test_openapi_v3_lists_documents_that_are_there(call: Caller) -> None:
    index = (await call("GET", "/openapi/v3")).json["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/fairway.dev/v1alpha1"} <= set(index)
    for path, entry in index.items():
        answer = await call("GET", entry["serverRelativeURL"])
        assert answer.status == 200, path
        document = answer.json
        assert document["openapi"].startswith("3.")
        if path == "apis/fairway.dev/v1alpha1":
            shown = document["paths"]["/apis/fairway.dev/v1alpha1/namespaces/{namespace}/workloads"]
            assert {"get", "post", "delete"} <= set(shown)
            assert any(name.endswith(".Workload") for name in document["components"]["schemas"])


@pytest.mark.parametrize("path", ["/openapi/v3/api", "/openapi/v3/apis/apps", "/openapi/v3/x/y/z"])
async def test_openapi_v3_of_nothing_is_not_found(call: Caller, path: str) -> None:
    assert (await call("GET", path)).status == 404


async def test_openapi_v2_comes_as_json_and_as_protobuf(call: Caller) -> None:
    document = (await call("GET", "/openapi/v2")).json
    assert document["swagger"] == "2.0"
    assert "/api/v1/namespaces/{namespace}/pods" in document["paths"]
    answer = await call("GET", "/openapi/v2", headers={"Accept": PROTOBUF})
    assert answer.headers["Content-Type"] == PROTOBUF
    assert answer.body[:5] == b"\x0a\x032.0"
    assert b"io.k8s.api.core.v1.Pod" in answer.body
