"""A kind with every way of merging, for the tests of ownership and apply."""

from __future__ import annotations

from typing import Any

from fairway.schema.node import parse

TEXT = {"type": "string"}
NODE = parse(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "replicas": {"type": "integer"},
                    "note": {"type": "string", "nullable": True},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
                    "args": {"type": "array", "items": TEXT},
                    "ports": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "port": {"type": "integer"},
                                "protocol": {"type": "string", "default": "TCP"},
                                "name": TEXT,
                            },
                        },
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "options": {"type": "object", "additionalProperties": TEXT},
                    "selector": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "additionalProperties": TEXT,
                    },
                    "deep": {
                        "type": "object",
                        "properties": {
                            "inner": {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
                        },
                    },
                },
            },
            "status": {"type": "object", "properties": {"phase": TEXT}},
        },
    }
)
VERSION = "x.io/v1"
TIME = "2026-01-01T00:00:00Z"
LATER = "2026-01-02T00:00:00Z"


def thing(*, owners: list[Any] | None = None, labels: Any = None, **parts: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "t"}
    if labels is not None:
        metadata["labels"] = labels
    if owners is not None:
        metadata["managedFields"] = owners
    return {"apiVersion": VERSION, "kind": "Thing", "metadata": metadata, **parts}


def entry(
    manager: str,
    fields: Any,
    *,
    operation: str = "Update",
    time: str = TIME,
    subresource: str = "",
) -> dict[str, Any]:
    made = {
        "manager": manager,
        "operation": operation,
        "apiVersion": VERSION,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if not time:
        del made["time"]
    return made | ({"subresource": subresource} if subresource else {})


def port(number: int, **more: Any) -> dict[str, Any]:
    return {"port": number, "protocol": "TCP", **more}
