"""Faults of CustomResourceDefinitions: names, versions, and schemas that are not structural.

A structural schema gives the type of everything it describes; only then can unknown fields be
pruned, defaults be set and applied fields be merged. CEL rules are compiled elsewhere.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

from fairway.api.errors import FieldError, forbidden, invalid, not_supported, required_field
from fairway.resources.builtin.names import service_fault, subdomain_fault
from fairway.resources.builtin.parts import members, objects, read, text, with_paths
from fairway.schema.node import JsonObject, Parser
from fairway.schema.validation import Findings, conform

_FREE_OF_TYPE = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_DEEPEST = 64
_MIXED_CASE = "may have mixed case, but should otherwise match: "
_COLUMN_FIELDS = {
    "name": "",
    "type": "must be one of boolean,date,integer,number,string",
    "jsonPath": "",
}
_FORBIDDEN_KEYS = (
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "id",
    "patternProperties",
    "readOnly",
    "writeOnly",
    "xml",
    "$ref",
)


def definition(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    spec = read(obj, "spec")
    faults = [*_name_faults(obj, spec), *_version_faults(spec)]
    if not faults:
        for path, version in with_paths(spec, "versions", "spec"):
            schema = read(version, "schema", "openAPIV3Schema")
            faults.extend(_root_faults(schema, f"{path}.schema.openAPIV3Schema"))
    if not faults:
        for path, version in with_paths(spec, "versions", "spec"):
            schema = read(version, "schema", "openAPIV3Schema")
            faults.extend(_default_faults(schema, f"{path}.schema.openAPIV3Schema"))
    if old is not None:
        faults.extend(_update_faults(obj, old))
    return faults


def _name_faults(obj: JsonObject, spec: JsonObject) -> Iterator[FieldError]:
    group, names = text(spec, "group"), read(spec, "names")
    name, wanted = text(obj, "metadata", "name"), f"{text(names, 'plural')}.{group}"
    if name != wanted:
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield required_field("spec.group")
    elif fault := subdomain_fault(group):
        yield invalid("spec.group", group, fault)
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        scope = spec.get("scope")
        path = "spec.scope"
        yield (
            not_supported(path, scope, ("Cluster", "Namespaced")) if scope else required_field(path)
        )
    for key in ("plural", "singular", "kind", "listKind"):
        value = text(names, key)
        if not value:
            yield required_field(f"spec.names.{key}")
            continue
        mixed = "" if key in ("plural", "singular") else _MIXED_CASE
        if fault := service_fault(value.lower() if mixed else value):
            yield invalid(f"spec.names.{key}", value, mixed + fault)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        message = "kind and listKind may not be the same"
        yield invalid("spec.names.listKind", names["listKind"], message)
    for index, short in enumerate(members(names, "shortNames")):
        if isinstance(short, str) and (fault := service_fault(short)):
            yield invalid(f"spec.names.shortNames[{index}]", short, fault)


def _version_faults(spec: JsonObject) -> Iterator[FieldError]:
    versions = objects(spec, "versions")
    names = [text(version, "name") for version in versions]
    for path, version in with_paths(spec, "versions", "spec"):
        name = text(version, "name")
        if fault := service_fault(name):
            yield invalid(f"{path}.name", name, fault)
        if not isinstance(read(version, "schema").get("openAPIV3Schema"), dict):
            yield required_field(f"{path}.schema.openAPIV3Schema")
        for at, column in with_paths(version, "additionalPrinterColumns", path):
            for key, message in _COLUMN_FIELDS.items():
                if not text(column, key):
                    yield required_field(f"{at}.{key}", message)
    if len(set(names)) != len(names):
        yield invalid("spec.versions", names, "must contain unique version names")
    if sum(version.get("storage") is True for version in versions) != 1:
        message = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", names, message)
    strategy = text(spec, "conversion", "strategy")
    if strategy not in ("None", ""):
        message = "conversion between versions by webhook is not offered"
        yield forbidden("spec.conversion.strategy", message)


def _root_faults(schema: JsonObject, path: str) -> Iterator[FieldError]:
    if text(schema, "type") != "object" and schema:
        if schema.get("type"):
            message = "must be object at the root"
            yield invalid(f"{path}.type", schema["type"], message)
        else:
            yield required_field(f"{path}.type", "must not be empty at the root")
        return
    if not schema:
        yield required_field(f"{path}.type", "must not be empty at the root")
        return
    metadata = read(schema, "properties", "metadata")
    allowed = {"type", "description", "properties"}
    if metadata.keys() - allowed:
        message = "must not specify anything other than name and generateName, but metadata is "
        yield forbidden(f"{path}.properties[metadata]", message + "implicitly specified")
    yield from _structural_faults(schema, path, 0)


def _structural_faults(schema: Any, path: str, depth: int) -> Iterator[FieldError]:
    if not isinstance(schema, dict):
        return
    if depth > _DEEPEST:
        yield forbidden(path, f"must not be nested deeper than {_DEEPEST}")
        return
    kind = text(schema, "type")
    if not kind:
        if not any(schema.get(key) is True for key in _FREE_OF_TYPE):
            message = "must not be empty for specified "
            word = "array items" if path.endswith(".items") else "object fields"
            yield required_field(f"{path}.type", message + word)
    elif kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    yield from _value_faults(schema, path, kind)
    for name, part in read(schema, "properties").items():
        yield from _structural_faults(part, f"{path}.properties[{name}]", depth + 1)
    further = schema.get("additionalProperties")
    if read(schema, "properties") and further not in (None, False):
        message = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", message)
    yield from _structural_faults(further, f"{path}.additionalProperties", depth + 1)
    yield from _structural_faults(schema.get("items"), f"{path}.items", depth + 1)


def _value_faults(schema: JsonObject, path: str, kind: str) -> Iterator[FieldError]:
    for key in _FORBIDDEN_KEYS:
        if schema.get(key):
            yield forbidden(f"{path}.{key}", f"{key} is not supported")
    if schema.get("uniqueItems") is True:
        message = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", message)
    if kind == "array" and schema.get("items") is None:
        yield required_field(f"{path}.items", "must be specified")
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") == "map" and not keys:
        message = "must not be empty if x-kubernetes-list-type is map"
        yield required_field(f"{path}.x-kubernetes-list-map-keys", message)


def _default_faults(schema: Any, path: str) -> Iterator[FieldError]:
    """Defaults that their own schema refuses; otherwise objects would get them and be refused."""
    if not isinstance(schema, dict):
        return
    if schema.get("default") is not None:
        bare = {key: part for key, part in schema.items() if key != "default"}
        node = Parser().parse({"type": "object", "properties": {"default": bare}})
        findings = Findings()
        conform({"default": copy.deepcopy(schema["default"])}, node, findings)
        for fault in findings.faults:
            message = fault.message.removeprefix("default")
            yield dataclasses.replace(fault, path=f"{path}.{fault.path}", message=message)
    for name, part in read(schema, "properties").items():
        yield from _default_faults(part, f"{path}.properties[{name}]")
    for name in ("additionalProperties", "items"):
        yield from _default_faults(schema.get(name), f"{path}.{name}")


def _update_faults(obj: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    spec, before = read(obj, "spec"), read(old, "spec")
    for name in ("group", "scope"):
        if spec.get(name) != before.get(name):
            yield invalid(f"spec.{name}", spec.get(name), "field is immutable")
    for name in ("plural", "kind"):
        value = read(spec, "names").get(name)
        if value != read(before, "names").get(name):
            yield invalid(f"spec.names.{name}", value, "field is immutable")
    names = [text(version, "name") for version in objects(spec, "versions")]
    for index, stored in enumerate(members(read(obj, "status"), "storedVersions")):
        if stored not in names:
            message = "must appear in spec.versions"
            yield invalid(f"status.storedVersions[{index}]", stored, message)
