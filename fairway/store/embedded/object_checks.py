"""What a hub would refuse of objects that nobody writes, by the checks that it makes of writes.

`fairway plan` and a hub's what-if check the objects that they are given.

An object that a hub has stored already is not checked again: it is read as a hub reads it, and a
field that this version does not know is left out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from copy import deepcopy

from fairway.api import crds
from fairway.api.errors import ApiError
from fairway.api.meta import is_own_group
from fairway.clock import SystemClock
from fairway.resources.catalogue import Catalogue, standard_catalogue
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.store.embedded.admission import Admission
from fairway.store.embedded.identities import admission
from fairway.store.embedded.shelves import Record
from fairway.store.interface import Write

_DEFINITION = "CustomResourceDefinition"


def object_faults(objects: Iterable[tuple[str, JsonObject]]) -> list[str]:
    """A line for each fault: the place of the object, its kind and name, the field, and why.

    Each object comes with its place: a line of a file, or its position in a question.
    """
    check = _Check()
    # Definitions come first: other objects may be of the kinds that they define.
    ordered = sorted(objects, key=lambda placed: placed[1].get("kind") != _DEFINITION)
    return [
        f"{place}: {_name(value)}: {fault}"
        for place, value in ordered
        for fault in check.faults(value)
    ]


class _Check:
    """The checks of a hub that serves the built-in kinds, and those that the objects define."""

    def __init__(self) -> None:
        self._admission: Admission = admission(SystemClock(), None)
        self._catalogue: Catalogue = standard_catalogue()
        for definition in crds.definitions():
            self._catalogue.put_definition(definition)

    def faults(self, value: JsonObject) -> Iterator[str]:
        if _is_stored(value):
            return
        missing = [key for key in ("apiVersion", "kind") if not isinstance(value.get(key), str)]
        if missing:
            yield from (f"{key}: Required value" for key in missing)
            return
        group, _, version = value["apiVersion"].rpartition("/")
        resource = self._catalogue.of_kind(group, version, value["kind"])
        if resource is None:
            if is_own_group(group):
                yield self._unknown_kind(value)
            return
        try:
            admitted = self._write(resource, deepcopy(value))
        except ApiError as refusal:
            yield from _sentences(refusal)
            return
        if resource.kind == _DEFINITION:
            self._catalogue.put_definition(admitted)

    def _write(self, resource: Resource, value: JsonObject) -> JsonObject:
        """The object as a hub would store it: written, and then its status."""
        # A group that is strict by itself names each unknown field together with other faults.
        write = Write(user="plan", field_validation="Warn" if resource.is_strict else "Strict")
        status = value.get("status")
        metadata = value.get("metadata")
        namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
        admitted = self._admission.create(
            resource, value, namespace=str(namespace or "default"), write=write
        )
        if resource.has_status and status is not None:
            record = Record.of(deepcopy(admitted), 1)
            body = {**admitted, "status": status}
            self._admission.update(resource, record, body, subresource="status", write=write)
        return admitted

    def _unknown_kind(self, value: JsonObject) -> str:
        said = f"{value['apiVersion']} {value['kind']}"
        served = [
            f"{resource.api_version} {resource.kind}"
            for resource in self._catalogue
            if is_own_group(resource.group)
        ]
        close = difflib.get_close_matches(said, served, n=1)
        hint = f", did you mean {close[0]}?" if close else ""
        return f"there is no kind {said}{hint}"


def _is_stored(value: JsonObject) -> bool:
    """Whether a hub gave the object its identity."""
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("uid"))


def _sentences(refusal: ApiError) -> Iterator[str]:
    causes = refusal.details.get("causes")
    if not causes:
        yield refusal.message
        return
    for cause in causes:
        is_whole = cause["field"] == "<nil>"  # a rule over the whole object
        yield cause["message"] if is_whole else f"{cause['field']}: {cause['message']}"


def _name(value: JsonObject) -> str:
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = str(metadata.get("name") or metadata.get("generateName") or "without a name")
    namespace = metadata.get("namespace")
    kind = value.get("kind") or "an object"
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
