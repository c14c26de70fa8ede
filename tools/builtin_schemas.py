"""Makes the compact schemas of the built-in kinds from Kubernetes' published OpenAPI v3 documents.

Usage: python tools/builtin_schemas.py FOLDER_OF_OPENAPI_V3_DOCUMENTS

Only interface facts are kept: names, types, formats, required fields, defaults, list and map
types, patch strategies, group-version-kinds. No prose is taken; the few sentences that users see
are ours (fairway/resources/builtin/descriptions.py). Run it when the Kubernetes version followed
changes, and read the difference of the result.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "fairway/resources/builtin/schemas.json"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"

ROOTS: dict[str, tuple[str, ...]] = {
    "api__v1": tuple(
        f"io.k8s.api.core.v1.{kind}{suffix}"
        for kind in (
            "Namespace",
            "Pod",
            "Service",
            "ServiceAccount",
            "PersistentVolumeClaim",
            "Secret",
            "ConfigMap",
            "Event",
        )
        for suffix in ("", "List")
    )
    + tuple(f"{META}.{name}" for name in ("Status", "DeleteOptions", "Patch", "WatchEvent"))
    + ("io.k8s.api.authentication.v1.TokenRequest",),
    "apis__batch__v1": ("io.k8s.api.batch.v1.Job", "io.k8s.api.batch.v1.JobList"),
    "apis__apps__v1": (
        "io.k8s.api.apps.v1.Deployment",
        "io.k8s.api.apps.v1.DeploymentList",
        "io.k8s.api.apps.v1.StatefulSet",
        "io.k8s.api.apps.v1.StatefulSetList",
        "io.k8s.api.autoscaling.v1.Scale",
    ),
    "apis__autoscaling__v2": tuple(
        f"io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler{suffix}" for suffix in ("", "List")
    ),
    "apis__resource.k8s.io__v1": tuple(
        f"io.k8s.api.resource.v1.{kind}{suffix}"
        for kind in ("ResourceClaim", "ResourceClaimTemplate")
        for suffix in ("", "List")
    ),
    "apis__coordination.k8s.io__v1": (
        "io.k8s.api.coordination.v1.Lease",
        "io.k8s.api.coordination.v1.LeaseList",
    ),
    "apis__scheduling.k8s.io__v1": (
        "io.k8s.api.scheduling.v1.PriorityClass",
        "io.k8s.api.scheduling.v1.PriorityClassList",
    ),
    "apis__rbac.authorization.k8s.io__v1": tuple(
        f"io.k8s.api.rbac.v1.{kind}{suffix}"
        for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
        for suffix in ("", "List")
    ),
    "apis__apiextensions.k8s.io__v1": tuple(
        f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition{suffix}"
        for suffix in ("", "List")
    ),
    "apis__authorization.k8s.io__v1": tuple(
        f"io.k8s.api.authorization.v1.{kind}"
        for kind in (
            "SelfSubjectAccessReview",
            "SubjectAccessReview",
            "LocalSubjectAccessReview",
            "SelfSubjectRulesReview",
        )
    ),
    "apis__authentication.k8s.io__v1": (
        "io.k8s.api.authentication.v1.SelfSubjectReview",
        "io.k8s.api.authentication.v1.TokenReview",
    ),
}

# Types that are more, or less, than their published schema says. JSON and its relatives admit
# anything, which a structural schema must say aloud.
_APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
OVERRIDES: dict[str, dict[str, Any]] = {
    f"{META}.FieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    },
    f"{META}.Patch": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
} | {
    f"{_APIEXTENSIONS}.{name}": {"x-kubernetes-preserve-unknown-fields": True}
    for name in (
        "JSON",
        "JSONSchemaPropsOrArray",
        "JSONSchemaPropsOrBool",
        "JSONSchemaPropsOrStringArray",
    )
}

# Every group lists itself on these; only their own group and the core one matter.
_SHARED_BY_ALL_GROUPS = ("DeleteOptions", "WatchEvent")


def main(folder: Path) -> None:
    definitions: dict[str, dict[str, Any]] = {}
    for document, roots in ROOTS.items():
        content = json.loads((folder / f"{document}_openapi.json").read_text())
        collect(roots, content["components"]["schemas"], definitions)
    ordered = {name: definitions[name] for name in sorted(definitions)}
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(schema, separators=(',', ':'), sort_keys=True)}"
        for name, schema in ordered.items()
    )
    TARGET.write_text("{\n" + lines + "\n}\n")
    print(f"{TARGET}: {len(ordered)} definitions, {TARGET.stat().st_size} bytes")


def collect(
    roots: tuple[str, ...],
    published: dict[str, dict[str, Any]],
    definitions: dict[str, dict[str, Any]],
) -> None:
    """Adds the roots and all they refer to, compacted."""
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name in definitions:
            continue
        schema = OVERRIDES.get(name) or compact(published[name])
        if name.rsplit(".", 1)[-1] in _SHARED_BY_ALL_GROUPS:
            schema["x-kubernetes-group-version-kind"] = [
                item for item in schema["x-kubernetes-group-version-kind"] if item["group"] == ""
            ]
        definitions[name] = schema
        pending.extend(references(schema))


def compact(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without prose, with plain `$ref`s where nothing stands beside them."""
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "description":
            continue
        if key == "properties":
            result[key] = {name: compact(part) for name, part in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            # The zero value that Go would give an absent element: elements are never absent.
            result[key] = compact({k: v for k, v in value.items() if k != "default"})
        elif key in ("allOf", "oneOf", "anyOf"):
            result[key] = [compact(part) for part in value]
        else:
            result[key] = value
    if list(result) == ["allOf"] and len(result["allOf"]) == 1:
        return dict(result["allOf"][0])
    return result


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for part in value for name in references(part)]
    if not isinstance(value, dict):
        return []
    found = [name for part in value.values() for name in references(part)]
    reference = value.get("$ref")
    if isinstance(reference, str):
        found.append(reference.rsplit("/", 1)[-1])
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
