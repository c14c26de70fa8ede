"""The served kinds as one Swagger 2.0 document, which older versions of `kubectl` read.

It has the schemas and paths of the v3 documents, without what Swagger 2.0 cannot express. Where a
schema cannot be expressed exactly, it is widened (to any value), never narrowed: a client that
validates by it must not refuse what the server accepts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairway.resources.builtin.definitions import PREFIX
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.server.documents import openapi
from fairway.server.documents.openapi_wire import encode_document

# What clients accept, and what the response says: `@` is not legal in a media type, and clients
# that check would refuse it in the response.
PROTOBUF_ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_DEFINITIONS = "#/definitions/"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_SIMPLE: dict[str, JsonObject] = {
    _QUANTITY: {"type": "string"},
    _INT_OR_STRING: {"type": "string", "format": "int-or-string"},
}
_UNSAID = ("oneOf", "anyOf", "not", "nullable", "x-kubernetes-validations")
_SHAPE = ("type", "properties", "items", "additionalProperties", "required", "format")
_METHODS = ("get", "put", "post", "delete", "patch")


def document(resources: Sequence[Resource]) -> JsonObject:
    """The Swagger 2.0 document of all served kinds."""
    definitions: JsonObject = {}
    paths: JsonObject = {}
    for members in openapi.by_path(resources).values():
        whole = openapi.document(members)
        for name, schema in whole["components"]["schemas"].items():
            if name not in definitions:
                definitions[name] = _SIMPLE.get(name) or schema_v2(schema)
        for path, item in whole["paths"].items():
            paths[path] = _path_item(item)
    return {
        "swagger": "2.0",
        "info": {"title": "Fairway", "version": "v1"},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def protobuf(resources: Sequence[Resource]) -> bytes:
    """The same document in the binary form that `kubectl` asks for."""
    return encode_document(document(resources))


def schema_v2(schema: JsonObject) -> JsonObject:
    """One schema in Swagger 2.0, at least as wide as the original."""
    target = _target(schema)
    if target:
        result: JsonObject = {"$ref": _DEFINITIONS + target}
        if schema.get("description"):
            result["description"] = schema["description"]
        result.update({key: part for key, part in schema.items() if key.startswith("x-")})
        return result
    dropped = set(_UNSAID)
    if _is_open(schema):
        dropped.update(_SHAPE)
    result = {key: part for key, part in schema.items() if key not in dropped}
    result.pop("allOf", None)
    if isinstance(result.get("properties"), dict):
        result["properties"] = {
            name: schema_v2(part) for name, part in result["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = schema_v2(result[key])
    return result


def _is_open(schema: JsonObject) -> bool:
    """Whether a schema accepts more than a type of Swagger 2.0 can express."""
    return bool(
        schema.get("x-kubernetes-int-or-string")
        or schema.get("x-kubernetes-preserve-unknown-fields")
        or schema.get("nullable")
    )


def _target(schema: JsonObject) -> str:
    whole = schema.get("$ref")
    parts = schema.get("allOf") or []
    if whole is None and len(parts) == 1:
        whole = parts[0].get("$ref")
    return whole.removeprefix(PREFIX) if isinstance(whole, str) else ""


def _path_item(item: JsonObject) -> JsonObject:
    result: JsonObject = {method: _operation(item[method]) for method in _METHODS if method in item}
    result["parameters"] = [_parameter(parameter) for parameter in item["parameters"]]
    return result


def _operation(operation: JsonObject) -> JsonObject:
    content: JsonObject = operation.get("requestBody", {}).get("content", {})
    result: JsonObject = {
        "tags": operation["tags"],
        "description": operation["description"],
        "operationId": operation["operationId"],
        "consumes": list(content) or ["*/*"],
        "produces": ["application/json", "application/yaml"],
        "parameters": [_parameter(parameter) for parameter in operation["parameters"]],
        "responses": {
            code: _response(response) for code, response in operation["responses"].items()
        },
    }
    if content:
        first: Any = next(iter(content.values()))["schema"]
        body: JsonObject = {"name": "body", "in": "body", "schema": schema_v2(first)}
        if operation["requestBody"].get("required"):
            body["required"] = True
        result["parameters"].append(body)
    result.update({key: part for key, part in operation.items() if key.startswith("x-")})
    return result


def _parameter(parameter: JsonObject) -> JsonObject:
    kept = {key: part for key, part in parameter.items() if key != "schema"}
    return {**kept, **parameter["schema"]}


def _response(response: JsonObject) -> JsonObject:
    result: JsonObject = {"description": response["description"]}
    content = response.get("content")
    if content:
        result["schema"] = schema_v2(content["application/json"]["schema"])
    return result
