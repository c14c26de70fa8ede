"""Kinds described by custom resource definitions.

A definition becomes one Resource per served version. Its schema is used unchanged, except that
`metadata` gets the schema that all objects share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairway.api.errors import FieldError, forbidden, required_field
from fairway.api.governance import GOVERNANCE_GROUP
from fairway.api.meta import GROUP
from fairway.resources.conversion import converter
from fairway.resources.metadata import metadata_node
from fairway.resources.resource import Column, Resource, ScalePaths
from fairway.schema.cel.faults import compile_faults
from fairway.schema.deprecation import deprecated_fields
from fairway.schema.node import JsonObject, Node, parse

_AGE = Column(name="Age", type="date", path=".metadata.creationTimestamp")

# Groups whose objects are never pruned silently: unknown fields are refused.
STRICT_GROUPS = frozenset({GROUP, GOVERNANCE_GROUP})


def custom_resources(definition: JsonObject) -> list[Resource]:
    """One Resource per served version of a definition."""
    spec = definition["spec"]
    versions = spec["versions"]
    storage = next(
        (version["name"] for version in versions if version.get("storage")), versions[0]["name"]
    )
    group = spec["group"]
    nodes = {f"{group}/{version['name']}": root_node(_openapi(version)) for version in versions}
    defined_at = int(definition["metadata"].get("resourceVersion") or 0)
    return [
        replace(_resource(spec, version, storage, nodes), defined_at=defined_at)
        for version in versions
        if version.get("served")
    ]


def _openapi(version: JsonObject) -> JsonObject:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }


def _resource(
    spec: JsonObject, version: JsonObject, storage: str, nodes: Mapping[str, Node]
) -> Resource:
    names, group = spec["names"], spec["group"]
    api_version = f"{group}/{version['name']}"
    subresources = version.get("subresources") or {}
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or names["kind"] + "List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        namespaced=spec.get("scope") == "Namespaced",
        schema=nodes[api_version],
        openapi=_openapi(version),
        columns=_columns(version),
        has_status="status" in subresources,
        scale=_scale(subresources.get("scale")),
        is_custom=True,
        is_strict=spec["group"] in STRICT_GROUPS,
        storage_version=storage,
        to_this=converter(api_version, nodes),
        to_stored=converter(f"{group}/{storage}", nodes),
        deprecation=_deprecation(spec, version),
        deprecated_fields=deprecated_fields(nodes[api_version]),
        selectable_fields=tuple(
            field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ()
        ),
    )


def _deprecation(spec: JsonObject, version: JsonObject) -> str:
    if not version.get("deprecated"):
        return ""
    kind = f"{spec['group']}/{version['name']} {spec['names']['kind']}"
    return version.get("deprecationWarning") or f"{kind} is deprecated"


def root_node(openapi: JsonObject) -> Node:
    """The schema of a whole object, with the metadata schema that all objects share."""
    root = parse(openapi)
    root.type = "object"
    root.properties["apiVersion"] = Node(type="string")
    root.properties["kind"] = Node(type="string")
    own = root.properties.get("metadata")
    root.properties["metadata"] = metadata_node(own)
    return root


def _columns(version: JsonObject) -> tuple[Column, ...]:
    name = Column(name="Name", format="name", path=".metadata.name")
    given = version.get("additionalPrinterColumns")
    if not given:
        return (name, _AGE)
    return (
        name,
        *(
            Column(
                name=item["name"],
                type=item["type"],
                format=item.get("format", ""),
                description=item.get("description", ""),
                priority=item.get("priority", 0),
                path=item["jsonPath"],
            )
            for item in given
        ),
    )


def _scale(scale: Any) -> ScalePaths | None:
    if not scale:
        return None
    return ScalePaths(
        replicas=scale["specReplicasPath"],
        status_replicas=scale["statusReplicasPath"],
        selector=scale.get("labelSelectorPath", ""),
    )


def schema_faults(definition: JsonObject) -> list[FieldError]:
    """Why a definition's schemas cannot be served: not structural, or rules that don't compile."""
    faults: list[FieldError] = []
    spec = definition.get("spec") or {}
    for index, version in enumerate(spec.get("versions") or ()):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        openapi = (version.get("schema") or {}).get("openAPIV3Schema")
        if not isinstance(openapi, dict):
            faults.append(required_field(path, "schemas are required"))
            continue
        field_errors = list(_structural_faults(openapi, path))
        faults.extend(field_errors)
        if not field_errors:
            faults.extend(compile_faults(parse(openapi), path))
    return faults


def _structural_faults(schema: JsonObject, path: str) -> list[FieldError]:
    """Why a schema is not structural, at this level and below."""
    faults: list[FieldError] = []
    is_free = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get(
        "x-kubernetes-int-or-string"
    )
    if not schema.get("type") and not is_free:
        faults.append(
            required_field(f"{path}.type", "must not be empty for specified object fields")
        )
    if "$ref" in schema:
        faults.append(forbidden(f"{path}.$ref", "must not be set"))
    if schema.get("properties") and isinstance(schema.get("additionalProperties"), dict):
        faults.append(
            forbidden(f"{path}.additionalProperties", "must not be used together with properties")
        )
    for name, part in (schema.get("properties") or {}).items():
        if isinstance(part, dict) and not (path.endswith("openAPIV3Schema") and name == "metadata"):
            faults.extend(_structural_faults(part, f"{path}.properties[{name}]"))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            faults.extend(_structural_faults(schema[key], f"{path}.{key}"))
    return faults
