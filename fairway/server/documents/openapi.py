"""The served kinds as OpenAPI v3 documents, one per group and version, and the index of them.

Pure functions of Resources. `kubectl` reads the documents for `explain`, for client-side validation
and to learn which patches and parameters a kind accepts; generated clients and fuzzers read the
paths. The same Resources give the same documents, so clients may cache by the hash in the index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from fairway.resources.builtin.definitions import PREFIX, closure, reference, references
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.server.documents.openapi_paths import paths_of
from fairway.server.documents.openapi_traffic import traffic_paths

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
SCALE = "io.k8s.api.autoscaling.v1.Scale"
TOKEN_REQUEST = "io.k8s.api.authentication.v1.TokenRequest"  # noqa: S105 - the name of a type
_ALWAYS = {f"{META}.{name}" for name in ("Status", "DeleteOptions", "Patch", "WatchEvent")}
_KIND_EXTENSION = "x-kubernetes-group-version-kind"
_OBJECT_FIELDS: JsonObject = {
    "apiVersion": {"type": "string", "description": "The group and version of this object."},
    "kind": {"type": "string", "description": "The kind of this object."},
    "metadata": {
        "allOf": [reference(f"{META}.ObjectMeta")],
        "description": "Name, labels and what else every object has.",
    },
}


def path_of(resource: Resource) -> str:
    """The path under which a group and version is served: `api/v1`, `apis/apps/v1`."""
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def by_path(resources: Iterable[Resource]) -> dict[str, list[Resource]]:
    """The resources of each group and version, in order of path."""
    grouped: dict[str, list[Resource]] = {}
    for resource in resources:
        grouped.setdefault(path_of(resource), []).append(resource)
    return dict(sorted(grouped.items()))


def index(resources: Iterable[Resource]) -> JsonObject:
    """The document at `/openapi/v3`: the URL of the document of each group and version."""
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest(members)}"}
            for path, members in by_path(resources).items()
        }
    }


def digest(resources: Sequence[Resource]) -> str:
    """A hash of the document of these resources."""
    return hashlib.sha256(msgspec.json.encode(document(resources))).hexdigest().upper()


def document(resources: Sequence[Resource]) -> JsonObject:
    """The OpenAPI v3 document of the resources of one group and version."""
    paths: JsonObject = {}
    for resource in resources:
        paths.update(paths_of(resource, definition_name(resource), path_of(resource)))
        paths.update(traffic_paths(resource, path_of(resource)))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Fairway", "version": "v1"},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": schemas_of(resources),
            "securitySchemes": {"BearerToken": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"BearerToken": []}],
    }


def definition_name(resource: Resource) -> str:
    """The full name of a kind's definition: its group reversed, its version, its kind."""
    target = resource.openapi.get("$ref")
    if isinstance(target, str):
        return target.rsplit("/", 1)[-1]
    domain = ".".join(reversed(resource.group.split(".")))
    return ".".join(part for part in (domain, resource.version, resource.kind) if part)


def schemas_of(resources: Sequence[Resource]) -> JsonObject:
    """Every definition that these resources need, in order of name."""
    schemas: JsonObject = {}
    wanted = set(_ALWAYS)
    for resource in resources:
        name = definition_name(resource)
        if resource.scale is not None:
            wanted.add(SCALE)
        if resource.kind == "ServiceAccount" and not resource.group:
            wanted.add(TOKEN_REQUEST)
        if "$ref" in resource.openapi:
            wanted |= {name, f"{name}List"}
        else:
            schemas[name] = _custom(resource)
            schemas[f"{name}List"] = _custom_list(resource, name)
            wanted |= references(schemas[name]) | {f"{META}.ListMeta"}
    schemas.update(closure(wanted))
    return dict(sorted(schemas.items()))


def _custom(resource: Resource) -> JsonObject:
    schema = {**resource.openapi}
    schema.setdefault("type", "object")
    schema["properties"] = {**(schema.get("properties") or {}), **_OBJECT_FIELDS}
    schema[_KIND_EXTENSION] = [_kind(resource, resource.kind)]
    return schema


def _custom_list(resource: Resource, name: str) -> JsonObject:
    list_kind = resource.list_kind or f"{resource.kind}List"
    return {
        "type": "object",
        "description": f"A list of {resource.kind} objects.",
        "required": ["items"],
        "properties": {
            **_OBJECT_FIELDS,
            "metadata": {
                "allOf": [reference(f"{META}.ListMeta")],
                "description": "The version of the list and where it goes on.",
            },
            "items": {
                "type": "array",
                "description": "The objects.",
                "items": {"$ref": PREFIX + name},
            },
        },
        _KIND_EXTENSION: [_kind(resource, list_kind)],
    }


def _kind(resource: Resource, kind: str) -> JsonObject:
    return {"group": resource.group, "version": resource.version, "kind": kind}
