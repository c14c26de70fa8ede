"""Which records a list or a watch selects: by namespace, labels, fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairway.api.errors import BadRequest
from fairway.api.selectors import Requirement, Requirements, matches, parse_fields, parse_labels
from fairway.resources.resource import Resource
from fairway.schema.paths import dotted_get
from fairway.store.embedded.shelves import Record
from fairway.store.interface import Selection

# Fields whose name in a selector differs from that in the object.
_ALIASES = {"source": "source.component", "status.successful": "status.succeeded"}

Selects = Callable[[Record], bool]


def selects(selection: Selection, resource: Resource) -> Selects:
    """A test of records, as cheap as the selection allows."""
    namespace = selection.namespace
    labels = parse_labels(selection.labels)
    fields = parse_fields(selection.fields)
    _check_fields(fields, resource)
    names = [field for field in fields if field.key in ("metadata.name", "metadata.namespace")]
    others = tuple(field for field in fields if field not in names)

    def test(record: Record) -> bool:
        if namespace and record.name[0] != namespace:
            return False
        if labels and not matches(labels, record.labels):
            return False
        if names and not all(_name_holds(name, record) for name in names):
            return False
        return not others or _fields_hold(others, record.as_one_of(resource))

    return test


def _check_fields(fields: Requirements, resource: Resource) -> None:
    known = {"metadata.name", "metadata.namespace", *resource.selectable_fields}
    for requirement in fields:
        if requirement.key not in known:
            why = f"field label not supported: {requirement.key}"
            if not resource.is_custom and not resource.selectable_fields:
                why = (
                    f'"{requirement.key}" is not a known field selector: only "metadata.name",'
                    ' "metadata.namespace"'
                )
            # The message need not repeat the selector: clients show it themselves.
            raise BadRequest(why)


def _name_holds(requirement: Requirement, record: Record) -> bool:
    namespace, name = record.name
    value = name if requirement.key == "metadata.name" else namespace
    return (value in requirement.values) == (requirement.operator == "in")


def _fields_hold(requirements: Requirements, record: Record) -> bool:
    body = record.body()
    for requirement in requirements:
        value = dotted_get(body, _ALIASES.get(requirement.key, requirement.key))
        if (_text(value) in requirement.values) != (requirement.operator == "in"):
            return False
    return True


def _text(value: Any) -> str:
    """A value as text for a field selector; a missing value is empty text."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)
