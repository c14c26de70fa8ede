"""The traffic feed in OpenAPI: load balancers and meshes read it, so its schema is stable."""

from __future__ import annotations

from typing import Any

from fairway.api.meta import GROUP
from fairway.resources.builtin.definitions import reference
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject

_STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
_SENTENCES = {
    "workloads": "How the load of a service should be shared by its clusters now.",
    "fleets": "How the load of every service should be shared by its clusters now.",
}


def _whole(what: str) -> JsonObject:
    return {"type": "integer", "minimum": 0, "description": what}


def _text(what: str) -> JsonObject:
    return {"type": "string", "description": what}


def _object(properties: JsonObject) -> JsonObject:
    return {"type": "object", "required": sorted(properties), "properties": properties}


FEED = _object(
    {
        "now": {"type": "number", "description": "When this was so, in seconds since 1970."},
        "services": {
            "type": "array",
            "description": "Services in order of namespace and name.",
            "items": _object(
                {
                    "namespace": _text("Namespace of the workload."),
                    "name": _text("Name of the workload."),
                    "clusters": {
                        "type": "array",
                        "description": "Its clusters in order of name.",
                        "items": _object(
                            {
                                "cluster": _text("Name of the cluster."),
                                "weight": _whole("Its share, in thousandths of all."),
                                "ready": _whole("Replicas there that are ready."),
                            }
                        ),
                    },
                }
            ),
        },
    }
)


def traffic_paths(resource: Resource, base: str) -> JsonObject:
    """The paths of the feed, for a kind that has one."""
    if resource.group != GROUP or resource.plural not in _SENTENCES:
        return {}
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    names = ["name", *(["namespace"] if resource.namespaced else [])]
    operation: dict[str, Any] = {
        "tags": ["traffic"],
        "description": _SENTENCES[resource.plural],
        "operationId": f"read{resource.kind}Traffic",
        "parameters": [],
        "responses": {
            "200": {"description": "OK", "content": {"application/json": {"schema": FEED}}},
            "401": {"description": "Unauthorized"},
            "default": {
                "description": "Refused",
                "content": {"application/json": {"schema": reference(_STATUS)}},
            },
        },
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]
    path = f"/{base}{scope}/{resource.plural}/{{name}}/traffic"
    return {path: {"get": operation, "parameters": parameters}}
