"""A kind with every way of merging, for the tests of ownership and apply."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

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


_leaves = st.sampled_from([True, False, 0, 1, 1.0, 1.5, "", "1"])
json_values = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)
_ALIKE = ((True, 1, 1.0), (False, 0, 0.0))


@st.composite
def alike(draw: st.DrawFn, value: Any) -> Any:
    """A value that Python takes for the same: true may stand for 1, and false for 0."""
    if isinstance(value, dict):
        return {key: draw(alike(part)) for key, part in value.items()}
    if isinstance(value, list):
        return [draw(alike(part)) for part in value]
    return draw(st.sampled_from(next((item for item in _ALIKE if value in item), (value,))))


def stored_text(value: Any) -> str:
    """JSON text that is the same for all ways to write a value: keys in order, 1.0 as 1."""
    return json.dumps(_with_whole_numbers(value), sort_keys=True)


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_whole_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
