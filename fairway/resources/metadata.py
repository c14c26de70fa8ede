"""What all objects share: the schema of `metadata`, and the rules for names and labels."""

from __future__ import annotations

import re
from typing import Any

from fairway.api.errors import (
    FieldError,
    invalid,
    required_field,
    too_long,
    too_many,
    wrong_type,
)
from fairway.api.selectors import is_label_key, is_label_value
from fairway.schema.node import JsonObject, Node

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_ANNOTATIONS_BYTES_MAX = 256 << 10
# Kubernetes has no such limits; tables, selectors and expressions look at all labels.
LABELS_MAX = 256
ANNOTATIONS_MAX = 1_024

_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
    " validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must"
    " start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for"
    " validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)

_TEXT = Node(type="string")
_TEXTS = Node(type="object", additional=_TEXT)
_FREE = Node(type="object", preserve_unknown=True)


def _reference() -> Node:
    fields = dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT)
    flags = {name: Node(type="boolean") for name in ("controller", "blockOwnerDeletion")}
    return Node(
        type="object",
        properties={**fields, **flags},
        required=("apiVersion", "kind", "name", "uid"),
        map_type="atomic",
    )


def _managed_entry() -> Node:
    texts = ("manager", "operation", "apiVersion", "time", "fieldsType", "subresource")
    return Node(type="object", properties={**dict.fromkeys(texts, _TEXT), "fieldsV1": _FREE})


def metadata_node(own: Node | None = None) -> Node:
    """The schema of `metadata`; a kind's own may only restrict names."""
    properties = {
        **dict.fromkeys(
            (
                "name",
                "generateName",
                "namespace",
                "selfLink",
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "deletionTimestamp",
            ),
            _TEXT,
        ),
        "generation": Node(type="integer"),
        "deletionGracePeriodSeconds": Node(type="integer"),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": Node(type="array", items=_TEXT, list_type="set"),
        "ownerReferences": Node(
            type="array", items=_reference(), list_type="map", list_map_keys=("uid",)
        ),
        "managedFields": Node(type="array", items=_managed_entry()),
    }
    node = Node(type="object", properties=properties)
    restricted = own.properties.get("name") if own is not None else None
    if restricted is not None:
        properties["name"] = restricted
    return node


def metadata_faults(
    body: JsonObject, *, name_rule: str = "subdomain", is_built_in: bool = False
) -> list[FieldError]:
    """What is wrong with the names, labels and annotations of an object."""
    metadata: dict[str, Any] = body["metadata"]
    faults: list[FieldError] = []
    name = metadata.get("name")
    if not name:
        faults.append(required_field("metadata.name", "name or generateName is required"))
    else:
        faults.extend(name_faults("metadata.name", name, name_rule))
    faults.extend(_label_faults(metadata.get("labels") or {}))
    faults.extend(_annotation_faults(metadata.get("annotations") or {}))
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        if not is_label_key(finalizer):
            message = "name part must consist of alphanumeric characters, '-', '_' or '.'"
            faults.append(invalid(f"metadata.finalizers[{index}]", finalizer, message))
        elif is_built_in and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            message = "name is neither a standard finalizer name nor is it fully qualified"
            faults.append(invalid(f"metadata.finalizers[{index}]", finalizer, message))
    faults.extend(_owner_faults(metadata.get("ownerReferences") or ()))
    return faults


def name_faults(path: str, name: str, rule: str) -> list[FieldError]:
    match rule:
        case "label":
            if len(name) > 63:
                return [invalid(path, name, "must be no more than 63 characters")]
            return [] if _LABEL.fullmatch(name) else [invalid(path, name, _LABEL_RULE)]
        case "path":
            if name in (".", "..") or "/" in name or "%" in name:
                return [invalid(path, name, "may not be '.' or '..' or contain '/' or '%'")]
            return []
        case _:
            if len(name) > 253:
                return [invalid(path, name, "must be no more than 253 characters")]
            return [] if _SUBDOMAIN.fullmatch(name) else [invalid(path, name, _SUBDOMAIN_RULE)]


def _label_faults(labels: dict[str, str]) -> list[FieldError]:
    if len(labels) > LABELS_MAX:
        return [too_many("metadata.labels", len(labels), LABELS_MAX)]
    faults: list[FieldError] = []
    for key, value in labels.items():
        if not is_label_key(key):
            message = (
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start"
                " and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or"
                " '123-abc', regex used for validation is"
                " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            )
            faults.append(invalid("metadata.labels", key, message))
        if not is_label_value(value):
            if len(value) > 63:
                message = "must be no more than 63 bytes"
            else:
                message = (
                    "a valid label must be an empty string or consist of alphanumeric characters,"
                    " '-', '_' or '.', and must start and end with an alphanumeric character (e.g."
                    " 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
                    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                )
            faults.append(invalid("metadata.labels", value, message))
    return faults


def _annotation_faults(annotations: dict[str, str]) -> list[FieldError]:
    if len(annotations) > ANNOTATIONS_MAX:
        return [too_many("metadata.annotations", len(annotations), ANNOTATIONS_MAX)]
    faults = [
        invalid(
            "metadata.annotations",
            key,
            "a valid annotation key is an optional DNS prefix and a name",
        )
        for key in annotations
        if not is_label_key(key.lower())
    ]
    size = sum(len(key) + len(value.encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_BYTES_MAX:
        faults.append(too_long("metadata.annotations", _ANNOTATIONS_BYTES_MAX))
    return faults


def _owner_faults(owners: Any) -> list[FieldError]:
    faults: list[FieldError] = []
    for index, owner in enumerate(owners):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                path = f"metadata.ownerReferences[{index}].{field}"
                faults.append(invalid(path, owner.get(field, ""), "must not be empty"))
    if sum(1 for owner in owners if owner.get("controller")) > 1:
        message = "Only one reference can have Controller set to true"
        faults.append(invalid("metadata.ownerReferences", list(owners), message))
    return faults


def misshapen(body: Any) -> FieldError | None:
    """Why a value is not an object at all."""
    if not isinstance(body, dict):
        return wrong_type("", body, "object")
    metadata = body.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return wrong_type("metadata", metadata, "object")
    return None
