"""From when on the server itself has recorded who created and who submitted an object.

On Kubernetes people use the server directly and may write any annotation, so what an object says of
its submitter counts only if the server's policies (`creators`, `submitters`) were in force when the
object was created: from then on they set these annotations on every write. What others may have
written is dropped when an object is read, so the rest of the hub relies on these annotations as on
those of the embedded store. An object without them is submitted by no user; only its namespace
counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import msgspec

from fairway.api.submission import CREATED_BY, HUB, SUBMITTED_BY, note_of
from fairway.clock import timestamp
from fairway.kinds.held_back import groups
from fairway.kinds.registry import built_in
from fairway.schema.node import JsonObject
from fairway.store.interface import ResourceKey, Stored, Write
from fairway.store.keys import WORKLOADS, resource_of
from fairway.store.kubernetes.trim import small

# The most that a replica of the server is behind another with a new policy.
_SPREAD_SECONDS = 5
_MARKS = tuple(f'"{key}":'.encode() for key in (SUBMITTED_BY, CREATED_BY))

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class _Metadata(msgspec.Struct, rename="camel"):
    creation_timestamp: str = ""
    owner_references: msgspec.Raw = msgspec.Raw(b"")


class _Head(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_read_head = msgspec.json.Decoder(_Head).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamps:
    """The times from which on objects are stamped; empty: they are not."""

    workloads_since: str = ""
    natives_since: str = ""

    def read(self, kind: ResourceKey, raw: bytes) -> Stored:
        """An object as the hub keeps it, with only those notes that the server wrote."""
        raw = small(raw)
        if not any(mark in raw for mark in _MARKS):
            return Stored(raw)
        head = _read_head(raw).metadata
        since = self._since(kind, is_owned=bool(head.owner_references))
        if since and head.creation_timestamp > since:
            return Stored(raw)
        # Of other kinds the creator is only shown.
        notes = (SUBMITTED_BY, CREATED_BY) if kind == WORKLOADS else (SUBMITTED_BY,)
        return Stored(_without(raw, notes))

    def _since(self, kind: ResourceKey, *, is_owned: bool) -> str:
        if kind != WORKLOADS:
            return self.natives_since if is_stamped(kind) else ""
        if not is_owned:
            return self.workloads_since
        # A workload that stands for a native object may say what that object said.
        both = (self.workloads_since, self.natives_since)
        return max(both) if all(both) else ""


def in_force_since(*objects: JsonObject) -> str:
    """The time from which on a policy is in force on the whole server, by it and its binding."""
    created = max(object_["metadata"]["creationTimestamp"] for object_ in objects)
    return timestamp(datetime.fromisoformat(created).timestamp() + _SPREAD_SECONDS)


@cache
def _stamped() -> frozenset[tuple[str, str]]:
    resources = (
        resource_of(*name)
        for group in groups(built_in())
        if group.means.is_possible
        for name in group.kinds
    )
    return frozenset((resource.group, resource.plural) for resource in resources)


def is_stamped(kind: ResourceKey) -> bool:
    """Whether the server's policies record who submits objects of a kind."""
    return kind == WORKLOADS or (kind.group, kind.plural) in _stamped()


def with_notes(kind: ResourceKey, body: JsonObject, write: Write) -> JsonObject:
    """An object to be created, with its creator, and if it may be a workload its submitter."""
    metadata = body["metadata"]
    annotations = {**(metadata.get("annotations") or {}), CREATED_BY: write.user}
    if write.user != HUB and is_stamped(kind):
        annotations[SUBMITTED_BY] = note_of(write.user, write.groups)
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def with_submitter(body: JsonObject, write: Write) -> JsonObject:
    """A change of an object, or part of one, with the user who makes it as the submitter.

    The policies accept that only if the change names another queue.
    """
    metadata = body.get("metadata", {})
    annotations = metadata.get("annotations", {}) if isinstance(metadata, Mapping) else None
    if not isinstance(annotations, Mapping):
        return body  # it removes all annotations, or the server says what is wrong
    noted = {**annotations, SUBMITTED_BY: note_of(write.user, write.groups)}
    return {**body, "metadata": {**metadata, "annotations": noted}}


def _without(raw: bytes, notes: tuple[str, ...]) -> bytes:
    body = _decode(raw)
    metadata = _decode(body["metadata"])
    if "annotations" not in metadata:
        return raw  # the mark is in some other field
    annotations = {
        key: value for key, value in _decode(metadata["annotations"]).items() if key not in notes
    }
    return _encode({**body, "metadata": {**metadata, "annotations": annotations}})
