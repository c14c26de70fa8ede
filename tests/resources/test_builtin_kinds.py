"""The table of built-in kinds says what a Kubernetes 1.36 says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairway.resources.builtin import builtin_resources
from fairway.resources.builtin.definitions import definitions, node_of
from fairway.resources.resource import Resource

BY_KIND = {resource.kind: resource for resource in builtin_resources()}

# Kind: api version, plural, short names, namespaced, categories; from `kubectl api-resources`.
DISCOVERED = {
    "ConfigMap": ("v1", "configmaps", "cm", True, ""),
    "Event": ("v1", "events", "ev", True, ""),
    "Namespace": ("v1", "namespaces", "ns", False, ""),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims", "pvc", True, ""),
    "Pod": ("v1", "pods", "po", True, "all"),
    "Secret": ("v1", "secrets", "", True, ""),
    "ServiceAccount": ("v1", "serviceaccounts", "sa", True, ""),
    "Service": ("v1", "services", "svc", True, "all"),
    "CustomResourceDefinition": (
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        "crd,crds",
        False,
        "api-extensions",
    ),
    "Deployment": ("apps/v1", "deployments", "deploy", True, "all"),
    "StatefulSet": ("apps/v1", "statefulsets", "sts", True, "all"),
    "SelfSubjectReview": ("authentication.k8s.io/v1", "selfsubjectreviews", "", False, ""),
    "TokenReview": ("authentication.k8s.io/v1", "tokenreviews", "", False, ""),
    "LocalSubjectAccessReview": (
        "authorization.k8s.io/v1",
        "localsubjectaccessreviews",
        "",
        True,
        "",
    ),
    "SelfSubjectAccessReview": (
        "authorization.k8s.io/v1",
        "selfsubjectaccessreviews",
        "",
        False,
        "",
    ),
    "SelfSubjectRulesReview": (
        "authorization.k8s.io/v1",
        "selfsubjectrulesreviews",
        "",
        False,
        "",
    ),
    "SubjectAccessReview": ("authorization.k8s.io/v1", "subjectaccessreviews", "", False, ""),
    "Job": ("batch/v1", "jobs", "", True, "all"),
    "HorizontalPodAutoscaler": ("autoscaling/v2", "horizontalpodautoscalers", "hpa", True, "all"),
    "ResourceClaim": ("resource.k8s.io/v1", "resourceclaims", "", True, ""),
    "ResourceClaimTemplate": ("resource.k8s.io/v1", "resourceclaimtemplates", "", True, ""),
    "Lease": ("coordination.k8s.io/v1", "leases", "", True, ""),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", "clusterrolebindings", "", False, ""),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "clusterroles", "", False, ""),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings", "", True, ""),
    "Role": ("rbac.authorization.k8s.io/v1", "roles", "", True, ""),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses", "pc", False, ""),
}


def test_exactly_the_kinds_of_the_hub_are_built_in() -> None:
    assert BY_KIND.keys() == DISCOVERED.keys()
    assert len(builtin_resources()) == len(BY_KIND)


@pytest.mark.parametrize("kind", DISCOVERED)
def test_a_kind_is_discovered_as_in_kubernetes(kind: str) -> None:
    one = BY_KIND[kind]
    found = (
        one.api_version,
        one.plural,
        ",".join(one.short_names),
        one.namespaced,
        ",".join(one.categories),
    )
    assert found == DISCOVERED[kind]
    assert one.singular == kind.lower()


def test_reviews_are_answered_and_never_stored() -> None:
    reviews = [resource for resource in builtin_resources() if not resource.is_stored]
    assert {review.kind for review in reviews} == {kind for kind in DISCOVERED if "Review" in kind}
    assert {review.verbs for review in reviews} == {("create",)}


def test_namespaces_cannot_be_deleted_many_at_once() -> None:
    without = [
        resource.kind
        for resource in builtin_resources()
        if "deletecollection" not in resource.verbs
    ]
    assert [kind for kind in without if "Review" not in kind] == ["Namespace"]


@pytest.mark.parametrize("one", builtin_resources(), ids=lambda resource: resource.kind)
def test_every_kind_has_a_schema_with_the_fields_of_an_object(one: Resource) -> None:
    assert {"apiVersion", "kind", "metadata"} <= one.schema.properties.keys()
    assert ("status" in one.schema.properties) >= one.has_status
    assert one.openapi["$ref"].endswith("." + one.kind)
    assert bool(one.columns) == one.is_stored


def test_schemas_keep_how_lists_merge() -> None:
    containers = node_of("io.k8s.api.core.v1.PodSpec").properties["containers"]
    assert containers.list_type == "map"
    assert containers.list_map_keys == ("name",)
    assert containers.patch_strategies == {"merge"}
    assert containers.patch_merge_key == "name"
    ports = node_of("io.k8s.api.core.v1.Container").properties["ports"]
    assert ports.list_map_keys == ("containerPort", "protocol")
    assert ports.items is not None
    assert ports.items.properties["protocol"].default == "TCP"


def test_amounts_and_ports_take_both_text_and_numbers() -> None:
    port = node_of("io.k8s.api.core.v1.ServicePort").properties["targetPort"]
    assert port.int_or_string
    limits = node_of("io.k8s.api.core.v1.ResourceRequirements").properties["limits"]
    assert limits.additional is not None
    assert limits.additional.format == "quantity"
    assert [item.type for item in limits.additional.any_of] == ["string", "number"]


def test_a_schema_may_hold_schemas() -> None:
    package = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
    schema = node_of(f"{package}.JSONSchemaProps")
    assert schema.properties["properties"].additional is schema
    assert schema.properties["default"].preserve_unknown


def test_no_prose_is_taken_along_with_the_interface() -> None:
    path = Path(node_of.__code__.co_filename).parent / "schemas.json"
    assert "description" not in path.read_text().replace('"description":{"', "")
    described = {name for name, definition in definitions().items() if "description" in definition}
    assert {name.rsplit(".", 1)[-1] for name in described} == DISCOVERED.keys()


def test_every_reference_between_schemas_has_its_target() -> None:
    text = json.dumps(definitions())
    targets = {part.split('"', 1)[0] for part in text.split("#/components/schemas/")[1:]}
    assert targets <= definitions().keys()
