"""The scale subresource: the replica count of an object, in one form for every kind."""

from __future__ import annotations

from typing import Any

from fairway.api.errors import BadRequest, Invalid, invalid
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.schema.patches import json_patch, merge_patch
from fairway.schema.paths import dotted_get
from fairway.store.interface import Patch


def read_scale(resource: Resource, body: JsonObject) -> JsonObject:
    """The Scale of an object."""
    assert resource.scale is not None
    metadata = body["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: JsonObject = {"replicas": dotted_get(body, resource.scale.status_replicas) or 0}
    selector = dotted_get(body, resource.scale.selector) if resource.scale.selector else None
    if selector is not None:
        status["selector"] = _selector_text(selector)
    spec: JsonObject = {}
    replicas = dotted_get(body, resource.scale.replicas)
    if replicas:
        spec["replicas"] = replicas
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": spec,
        "status": status,
    }


def write_scale(resource: Resource, scale: Any) -> Patch:
    """The patch of an object that a Scale asks for."""
    assert resource.scale is not None
    if not isinstance(scale, dict) or scale.get("kind", "Scale") != "Scale":
        raise BadRequest("the body of the request must be a Scale")
    spec, metadata = _part(scale, "spec"), _part(scale, "metadata")
    replicas = spec.get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise BadRequest("spec.replicas must be an integer")
    if replicas < 0:
        fault = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise Invalid.of("Scale", "autoscaling", str(metadata.get("name", "")), [fault])
    change: JsonObject = {}
    place = change
    *path, last = resource.scale.replicas.removeprefix(".").split(".")
    for part in path:
        place = place.setdefault(part, {})
    place[last] = replicas
    for key in ("resourceVersion", "uid"):
        if metadata.get(key):
            change.setdefault("metadata", {})[key] = metadata[key]
    return Patch(type="merge", body=change)


def _part(scale: JsonObject, name: str) -> JsonObject:
    part = scale.get(name)
    if part is None:
        return {}
    if not isinstance(part, dict):
        raise BadRequest(f"{name} must be an object")
    return part


def patched_scale(scale: JsonObject, patch: Patch) -> Any:
    """A Scale with a patch applied; a Scale has no lists, so all merges are alike."""
    if patch.type == "json":
        return json_patch(scale, patch.body)
    return merge_patch(scale, patch.body)


def _selector_text(selector: Any) -> str:
    if isinstance(selector, str):
        return selector
    if not isinstance(selector, dict):
        return ""
    labels = selector.get("matchLabels") or {}
    terms = [(key, f"{key}={value}") for key, value in labels.items()]
    for expression in selector.get("matchExpressions") or ():
        terms.append((expression["key"], _expression_text(expression)))
    return ",".join(text for _, text in sorted(terms))


def _expression_text(expression: JsonObject) -> str:
    key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
    match expression.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return str(key)
