"""The OpenAPI v3 documents of the served kinds are whole, and say what clients look for."""

from __future__ import annotations

import re
from typing import Any

import pytest
import schemathesis
import schemathesis.specs.openapi.schemas  # compiled now: not after a test of deep nesting

from fairway.resources.builtin import builtin_resources
from fairway.resources.resource import Resource, ScalePaths
from fairway.schema.node import parse
from fairway.server.documents import openapi

SCHEMA = {
    "type": "object",
    "description": "A thing.",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer", "minimum": 0, "default": 1},
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        }
    },
}
CUSTOM = Resource(
    group="example.com",
    version="v1alpha1",
    plural="things",
    kind="Thing",
    singular="thing",
    list_kind="ThingList",
    schema=parse(SCHEMA),
    openapi=SCHEMA,
    has_status=True,
    scale=ScalePaths(replicas=".spec.replicas", status_replicas=".status.replicas"),
    is_custom=True,
)
ALL = [*builtin_resources(), CUSTOM]
DOCUMENTS = {path: openapi.document(members) for path, members in openapi.by_path(ALL).items()}


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        found = {reference for part in value.values() for reference in references(part)}
        own = value.get("$ref")
        return found | {own} if isinstance(own, str) else found
    if isinstance(value, list):
        return {reference for part in value for reference in references(part)}
    return set()


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }


def test_the_index_names_every_group_and_version() -> None:
    index = openapi.index(ALL)
    assert list(index["paths"]) == [
        "api/v1",
        "apis/apiextensions.k8s.io/v1",
        "apis/apps/v1",
        "apis/authentication.k8s.io/v1",
        "apis/authorization.k8s.io/v1",
        "apis/autoscaling/v2",
        "apis/batch/v1",
        "apis/coordination.k8s.io/v1",
        "apis/example.com/v1alpha1",
        "apis/rbac.authorization.k8s.io/v1",
        "apis/resource.k8s.io/v1",
        "apis/scheduling.k8s.io/v1",
    ]
    for path, entry in index["paths"].items():
        pattern = re.escape(f"/openapi/v3/{path}?hash=") + "[0-9A-F]{64}"
        assert re.fullmatch(pattern, entry["serverRelativeURL"])


def test_the_hash_changes_with_a_schema_and_only_then() -> None:
    changed = Resource(
        group="example.com",
        version="v1alpha1",
        plural="things",
        kind="Thing",
        openapi={**SCHEMA, "description": "Another thing."},
    )
    assert openapi.digest([CUSTOM]) == openapi.digest([CUSTOM])
    assert openapi.digest([CUSTOM]) != openapi.digest([changed])


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_reference_leads_to_a_schema(path: str) -> None:
    document = DOCUMENTS[path]
    schemas = document["components"]["schemas"]
    assert references(document) <= {f"#/components/schemas/{name}" for name in schemas}


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_path_parameter_is_declared_and_every_operation_has_its_own_name(path: str) -> None:
    document = DOCUMENTS[path]
    for route, item in document["paths"].items():
        named = [parameter["name"] for parameter in item["parameters"] if parameter["in"] == "path"]
        assert named == sorted(re.findall(r"\{(\w+)\}", route))
    names = [operation["operationId"] for operation in operations(document).values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_a_fuzzer_can_read_a_document(path: str) -> None:
    schema = schemathesis.openapi.from_dict(DOCUMENTS[path])
    count = sum(1 for _ in schema.get_all_operations())
    assert count == len(operations(DOCUMENTS[path]))


def test_a_pod_has_the_operations_of_kubernetes() -> None:
    one = "/api/v1/namespaces/{namespace}/pods/{name}"
    pods = [name for name in operations(DOCUMENTS["api/v1"]) if "/pods" in name]
    assert sorted(pods) == sorted(
        [
            "get /api/v1/pods",
            *(
                f"{verb} /api/v1/namespaces/{{namespace}}/pods"
                for verb in ("get", "post", "delete")
            ),
            *(f"{verb} {one}" for verb in ("get", "put", "patch", "delete")),
            *(f"{verb} {one}/status" for verb in ("get", "put", "patch")),
        ]
    )


def test_clients_learn_what_a_patch_takes() -> None:
    """`kubectl` looks for these before it sends a dry run, a strict write or an apply."""
    patch = DOCUMENTS["apis/apps/v1"]["paths"][
        "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    ]["patch"]
    assert patch["x-kubernetes-action"] == "patch"
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
    }
    taken = {parameter["name"] for parameter in patch["parameters"]}
    assert taken == {"dryRun", "fieldManager", "fieldValidation", "force"}
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    custom = DOCUMENTS["apis/example.com/v1alpha1"]["paths"][
        "/apis/example.com/v1alpha1/namespaces/{namespace}/things/{name}"
    ]["patch"]
    assert sorted(custom["requestBody"]["content"]) == [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ]


def test_scale_is_a_subresource_with_a_kind_of_its_own() -> None:
    for path, plural in (("apis/apps/v1", "deployments"), ("apis/example.com/v1alpha1", "things")):
        scale = DOCUMENTS[path]["paths"][
            f"/{path}/namespaces/{{namespace}}/{plural}/{{name}}/scale"
        ]
        assert sorted(scale) == ["get", "parameters", "patch", "put"]
        kind = scale["get"]["x-kubernetes-group-version-kind"]
        assert kind == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_reviews_can_only_be_created() -> None:
    found = operations(DOCUMENTS["apis/authorization.k8s.io/v1"])
    assert {name.split(" ")[0] for name in found} == {"post"}
    assert len(found) == 4


def test_a_custom_kind_is_named_by_its_group_backwards() -> None:
    schemas = DOCUMENTS["apis/example.com/v1alpha1"]["components"]["schemas"]
    thing = schemas["com.example.v1alpha1.Thing"]
    assert thing["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "version": "v1alpha1", "kind": "Thing"}
    ]
    assert list(thing["properties"]) == ["spec", "apiVersion", "kind", "metadata"]
    assert thing["properties"]["spec"] == SCHEMA["properties"]["spec"]
    assert "com.example.v1alpha1.ThingList" in schemas
    assert "properties" in SCHEMA
    assert "metadata" not in SCHEMA["properties"]
