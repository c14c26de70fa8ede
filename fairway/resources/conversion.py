"""Objects of a served kind in each of its versions, with their owners of fields.

What an object says is converted by `api.versions`; kinds of others have one shape in all versions,
as with Kubernetes' strategy None. An entry of managedFields names fields of its own version, so the
piece of the object that it is about is converted, and the fields of that piece are its fields.
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

# An object of any version of its kind as one of a certain version.
Convert = Callable[[JsonObject], JsonObject]


def converter(api_version: str, nodes: Mapping[str, Node]) -> Convert:
    """How objects of a kind get into a version; `nodes` are the schemas of its versions."""

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
    """An entry in another version; one that is of no version of the object stays as it is."""
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
