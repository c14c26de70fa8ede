"""The OpenAPI definitions of the built-in kinds, loaded at first use.

Kept in two forms: as served (OpenAPI v3, with our descriptions), and as Nodes for validation and
merging. Both are shared by all callers and must not be changed.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from fairway.resources.builtin.descriptions import DESCRIPTIONS
from fairway.schema.node import JsonObject, Node, Parser

PREFIX = "#/components/schemas/"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

# Types whose Nodes must be more specific than the published schema.
_NODES: dict[str, JsonObject] = {
    _QUANTITY: {"format": "quantity", "anyOf": [{"type": "string"}, {"type": "number"}]},
    _INT_OR_STRING: {"x-kubernetes-int-or-string": True},
}


# Fields whose absence the kinds' own checks report, in Kubernetes' words.
_CHECKED_ELSEWHERE = {
    "io.k8s.api.core.v1.PodSpec": "containers",
    "io.k8s.api.apps.v1.DeploymentSpec": "selector",
    "io.k8s.api.apps.v1.StatefulSetSpec": "selector",
    "io.k8s.api.rbac.v1.PolicyRule": "verbs",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec": (
        "versions"
    ),
}


@cache
def definitions() -> dict[str, JsonObject]:
    """Every definition by its full name, as served."""
    content = files("fairway.resources.builtin").joinpath("schemas.json").read_bytes()
    loaded: dict[str, JsonObject] = msgspec.json.decode(content)
    for name, schema in loaded.items():
        sentences = DESCRIPTIONS.get(name.rsplit(".", 1)[-1])
        if sentences and "x-kubernetes-group-version-kind" in schema:
            _describe(schema, sentences)
    return loaded


def _describe(schema: JsonObject, sentences: tuple[str, str, str]) -> None:
    schema["description"] = sentences[0]
    for name, sentence in zip(("spec", "status"), sentences[1:], strict=True):
        part = schema["properties"].get(name)
        if part is None or not sentence:
            continue
        if "$ref" in part:
            # A plain `$ref` would hide its siblings.
            part = schema["properties"][name] = {"allOf": [part]}
        part["description"] = sentence


@cache
def _parser() -> Parser:
    known = {**definitions(), **_NODES}
    for name, field in _CHECKED_ELSEWHERE.items():
        kept = [item for item in known[name]["required"] if item != field]
        known[name] = {**known[name], "required": kept}
    return Parser(known)


def node_of(name: str) -> Node:
    """The Node of a definition; parts are shared between kinds."""
    return _parser().definition(name)


def reference(name: str) -> JsonObject:
    return {"$ref": PREFIX + name}


def references(value: Any) -> set[str]:
    """The names of the definitions that a schema refers to directly."""
    if isinstance(value, list):
        return {name for part in value for name in references(part)}
    if not isinstance(value, dict):
        return set()
    result = {name for part in value.values() for name in references(part)}
    if isinstance(value.get("$ref"), str):
        result.add(value["$ref"].rsplit("/", 1)[-1])
    return result


def closure(names: set[str]) -> dict[str, JsonObject]:
    """These definitions and all that they refer to, sorted by name."""
    known = definitions()
    result: set[str] = set()
    pending = [name for name in names if name in known]
    while pending:
        name = pending.pop()
        if name not in result:
            result.add(name)
            pending.extend(references(known[name]) & known.keys())
    return {name: known[name] for name in sorted(result)}
