"""Objects as JSON, YAML, names, or through a JSONPath template."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fairway.api.codec import to_yaml
from fairway.cli.session import Failure
from fairway.client.wire import Object
from fairway.schema import jsonpath


def to_json(value: Any) -> str:
    return json.dumps(value, indent=4, ensure_ascii=False)


def in_order(obj: Object) -> Object:
    """The same object with its fields in the order that people expect."""
    first = ("apiVersion", "kind", "metadata", "spec")
    head = {key: obj[key] for key in first if key in obj}
    tail = {key: value for key, value in obj.items() if key not in first and key != "status"}
    status = {"status": obj["status"]} if "status" in obj else {}
    return {**head, **tail, **status}


def without_managed_fields(obj: Object) -> Object:
    """Removes managedFields, which are long and seldom what a reader looks for."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**obj, "metadata": kept}


def to_documents(objects: Sequence[Object]) -> str:
    """Objects as YAML documents that can be applied."""
    return "---\n".join(to_yaml(in_order(object_)) for object_ in objects).rstrip("\n")


def as_list(objects: list[Object]) -> Object:
    return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects}


def render(form: str, objects: list[Object], *, is_single: bool) -> str:
    """Objects in a machine-readable format; a single named object is not put in a list."""
    shown = [in_order(obj) for obj in objects]
    whole: Object = shown[0] if is_single and len(shown) == 1 else as_list(shown)
    if form == "json":
        return to_json(whole)
    if form == "yaml":
        return to_yaml(whole).rstrip("\n")
    try:
        return jsonpath.render(form.removeprefix("jsonpath="), whole)
    except jsonpath.PathError as error:
        raise Failure(f"in the JSONPath template: {error}") from error
