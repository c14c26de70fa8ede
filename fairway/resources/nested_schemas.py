"""Schemas inside a custom resource definition that the definition's own schema does not cover.

`items` and `additionalProperties` may each be a schema or something else, so the published schema
of definitions leaves them, and everything below them, open. Here they are validated like any other
schema, and every pattern is compiled once, so later code can rely on valid types and patterns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairway.api.errors import FieldError, invalid, wrong_type
from fairway.resources.builtin.definitions import node_of
from fairway.schema.limits import compile_pattern
from fairway.schema.node import JsonObject
from fairway.schema.validation import Findings, conform

_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_OPEN = {"items": (dict, list), "additionalProperties": (dict, bool)}
_NAMED = ("properties", "patternProperties", "definitions")
_LISTED = ("allOf", "anyOf", "oneOf")


def nested_faults(definition: JsonObject) -> list[FieldError]:
    """Values of the wrong type in an open field or below, and invalid patterns."""
    faults: list[FieldError] = []
    for index, version in enumerate(definition.get("spec", {}).get("versions") or ()):
        openapi = (version.get("schema") or {}).get("openAPIV3Schema")
        if openapi is not None:
            path = f"spec.versions[{index}].schema.openAPIV3Schema"
            faults.extend(_below(openapi, path))
    return faults


def _below(schema: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _pattern_faults(schema, path)
    for key, allowed in _OPEN.items():
        part = schema.get(key)
        if part is None:
            continue
        if not isinstance(part, allowed):
            yield wrong_type(f"{path}.{key}", part, "object")
            continue
        for place, value in _schemas(part, f"{path}.{key}"):
            findings = Findings(checks_duplicates=False)
            conform(value, node_of(_SCHEMA), findings, path=place)
            yield from findings.faults
            if not findings.faults:
                yield from _below(value, place)
    for key in _NAMED:
        for name, part in (schema.get(key) or {}).items():
            yield from _below(part, f"{path}.{key}[{name}]")
    for key in _LISTED:
        for index, part in enumerate(schema.get(key) or ()):
            yield from _below(part, f"{path}.{key}[{index}]")
    if schema.get("not"):
        yield from _below(schema["not"], f"{path}.not")


def _pattern_faults(schema: JsonObject, path: str) -> Iterator[FieldError]:
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except Exception as fault:  # re2 raises its own error type for each sort of mistake
            yield invalid(f"{path}.pattern", schema["pattern"], f"must be a regex: {fault}")


def _schemas(part: Any, path: str) -> Iterator[tuple[str, JsonObject]]:
    """The schemas in an open field, each with its path."""
    if isinstance(part, dict):
        yield path, part
    elif isinstance(part, list):
        for index, value in enumerate(part):
            if isinstance(value, dict):
                yield f"{path}[{index}]", value
