"""Converts objects of a served kind between its versions, with their field ownership.

The content of an object is converted by `api.versions`; foreign kinds have one shape in all
versions, as with Kubernetes' strategy None. An entry of managedFields names fields of its own
version, so the part of the object that it covers is converted, and the entry gets the fields of the
converted part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairway.api import versions
from fairway.schema.compare import fields_of
from fairway.schema.merge import only
from fairway.schema.node import JsonObject, Node
from fairway.schema.ownership import strip
from fairway.schema.structure import ShapeError

# Converts an object from any version of its kind to one version.
Convert = Callable[[JsonObject], JsonObject]


def converter(api_version: str, nodes: Mapping[str, Node]) -> Convert:
    """Returns a converter of a kind's objects to a version; `nodes` are its versions' schemas."""

    def convert(body: JsonObject) -> JsonObject:
        was = str(body.get("apiVersion", ""))
        if was == api_version:
            return body
        result = versions.convert(body, api_version)
        entries = body["metadata"].get("managedFields")
        if entries and was in nodes and versions.has_versions(*_name(body)):
            owned = [_entry(entry, body, api_version, nodes) for entry in entries]
            result["metadata"] = {**result["metadata"], "managedFields": owned}
        return result

    return convert


def _name(body: JsonObject) -> tuple[str, str]:
    return str(body["apiVersion"]).rpartition("/")[0], str(body["kind"])


def _entry(entry: Any, body: JsonObject, to: str, nodes: Mapping[str, Node]) -> Any:
    """An entry in another version; an entry that is not in the object's version stays as it is."""
    was = body["apiVersion"]
    if not isinstance(entry, dict) or entry.get("apiVersion") != was:
        return entry
    try:
        piece = only(body, entry.get("fieldsV1") or {}, nodes[was])
        named = {"apiVersion": was, "kind": body["kind"], **piece}
        fields = strip(fields_of(versions.convert(named, to), nodes[to]).tree)
    except ShapeError:
        return entry
    return {**entry, "apiVersion": to, "fieldsV1": fields}
