"""The objects in memory, by kind.

A `Record` is one object at one version: its JSON text, and the few fields that lists, watches and
the collector need too often to decode the text each time. A `Shelf` holds the records of one kind;
`Shelves` holds all of them, with an index from owners to dependents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.schema.pruning import prune
from fairway.store.interface import Stored

Name = tuple[str, str]  # namespace, name
KindId = tuple[str, str]  # group, plural
RecordKey = tuple[KindId, Name]

_NO_LABELS: Mapping[str, str] = {}


class _Owner(msgspec.Struct):
    uid: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    owner_references: list[_Owner] = []


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_decode_head = msgspec.json.Decoder(_Head).decode
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_WHOLE_ENDS = (b".0,", b".0}", b".0]")  # how a whole number written as a fraction ends


def json_text(body: JsonObject) -> bytes:
    """The JSON text of an object; whole numbers have no fraction, as in a kube-apiserver."""
    raw = _encode(body)
    if any(chunk in raw for chunk in _WHOLE_ENDS):
        return _encode(_with_whole_numbers(body))
    return raw


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_whole_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Record:
    """One object at one version. Its content never changes."""

    __slots__ = (
        "api_version",
        "conforms_to",
        "kept_as",
        "labels",
        "name",
        "owners",
        "raw",
        "shown",
        "uid",
        "version",
    )

    def __init__(
        self,
        *,
        name: Name,
        version: int,
        raw: bytes,
        api_version: str,
        uid: str,
        labels: Mapping[str, str],
        owners: tuple[str, ...],
    ) -> None:
        self.name = name
        self.version = version
        self.raw = raw
        self.api_version = api_version
        self.uid = uid
        self.labels = labels
        self.owners = owners
        # The schema it was last checked against; None: unknown, as after reading it from disk.
        self.conforms_to: object = None
        self.kept_as = api_version  # the API version in which it is on disk
        # A schema, and the record without fields that the schema lacks; None: no such fields.
        self.shown: tuple[object, Record | None] = (None, None)

    @classmethod
    def of(cls, body: JsonObject, version: int) -> Record:
        """A record of an object about to be stored; sets its resourceVersion."""
        metadata = body["metadata"]
        metadata["resourceVersion"] = str(version)
        references = metadata.get("ownerReferences")
        return cls(
            name=(metadata.get("namespace", ""), metadata["name"]),
            version=version,
            raw=json_text(body),
            api_version=body["apiVersion"],
            uid=metadata["uid"],
            labels=metadata.get("labels") or _NO_LABELS,
            owners=tuple(reference["uid"] for reference in references) if references else (),
        )

    @classmethod
    def read(cls, raw: bytes, version: int) -> Record:
        """A record of an object read from disk."""
        head = _decode_head(raw)
        metadata = head.metadata
        return cls(
            name=(metadata.namespace, metadata.name),
            version=version,
            raw=raw,
            api_version=head.api_version,
            uid=metadata.uid,
            labels=metadata.labels or _NO_LABELS,
            owners=tuple(owner.uid for owner in metadata.owner_references),
        )

    def at(self, version: int) -> Record:
        """The same object under another version."""
        return Record.of(self.body(), version)

    def body(self) -> JsonObject:
        """A fresh, mutable copy of the object."""
        decoded: JsonObject = _decode(self.raw)
        return decoded

    def as_stored(self, resource: Resource) -> Stored:
        """The object in a given version of its kind."""
        if resource.api_version == self.api_version and self.version > resource.defined_at:
            return Stored(self.raw)
        return Stored(self.as_one_of(resource).raw)

    def as_one_of(self, resource: Resource) -> Record:
        """The same object at the same resource version, in a given version of its kind."""
        if resource.api_version != self.api_version:
            body = self._body_in(resource)
            if resource.is_custom:
                prune(body, resource.schema)
            return self._with_body(body, self.kept_as)
        if not resource.is_custom or self.conforms_to is resource.schema:
            return self
        if self.shown[0] is not resource.schema:
            body = self.body()
            # The disk has it in no API version exactly, so an update must always be written.
            record = self._with_body(body, "") if prune(body, resource.schema) else None
            self.shown = (resource.schema, record)
        return self.shown[1] or self

    def _with_body(self, body: JsonObject, kept_as: str) -> Record:
        record = Record.of(body, self.version)
        record.kept_as = kept_as
        return record

    def _body_in(self, resource: Resource) -> JsonObject:
        body = self.body()
        if resource.to_this is not None:
            return resource.to_this(body)
        return {**body, "apiVersion": resource.api_version}


class Shelf:
    """The records of one kind, listed in the order of their names."""

    __slots__ = ("_is_sorted", "_names", "kind", "records")

    def __init__(self, kind: KindId) -> None:
        self.kind = kind
        self.records: dict[Name, Record] = {}
        self._names: list[Name] = []
        self._is_sorted = True

    def put(self, record: Record) -> None:
        if record.name not in self.records:
            self._names.append(record.name)
            self._is_sorted = False
        self.records[record.name] = record

    def remove(self, name: Name) -> None:
        del self.records[name]
        self._is_sorted = False

    def names(self) -> list[Name]:
        """All names in order; sorting a nearly sorted list costs little."""
        if not self._is_sorted:
            # A name removed and added again is here twice until now.
            present = self.records
            self._names = [name for name in dict.fromkeys(self._names) if name in present]
            self._names.sort()
            self._is_sorted = True
        return self._names


class Shelves:
    """All records, with the index that the collector needs."""

    def __init__(self) -> None:
        self._shelves: dict[KindId, Shelf] = {}
        self._dependents: dict[str, set[RecordKey]] = {}  # owner uid to dependents
        self._uids: dict[str, RecordKey] = {}

    def shelf(self, kind: KindId) -> Shelf:
        shelf = self._shelves.get(kind)
        if shelf is None:
            shelf = self._shelves[kind] = Shelf(kind)
        return shelf

    def all(self) -> Iterator[Shelf]:
        return iter(list(self._shelves.values()))

    def get(self, kind: KindId, name: Name) -> Record | None:
        shelf = self._shelves.get(kind)
        return shelf.records.get(name) if shelf is not None else None

    def count(self) -> int:
        return len(self._uids)

    def put(self, kind: KindId, record: Record, previous: Record | None) -> None:
        self.shelf(kind).put(record)
        place = (kind, record.name)
        if previous is None:
            self._uids[record.uid] = place
        if previous is None or previous.owners != record.owners:
            self._forget_owners(place, previous)
            for owner in record.owners:
                self._dependents.setdefault(owner, set()).add(place)

    def remove(self, kind: KindId, record: Record) -> None:
        self.shelf(kind).remove(record.name)
        self._uids.pop(record.uid, None)
        self._forget_owners((kind, record.name), record)

    def _forget_owners(self, place: RecordKey, record: Record | None) -> None:
        for owner in record.owners if record is not None else ():
            dependents = self._dependents.get(owner)
            if dependents is not None:
                dependents.discard(place)
                if not dependents:
                    del self._dependents[owner]

    def dependents(self, uid: str) -> list[RecordKey]:
        """The dependents of an owner, in a stable order."""
        return sorted(self._dependents.get(uid, ()))

    def owner_uids(self) -> list[str]:
        return sorted(self._dependents)

    def has_uid(self, uid: str) -> bool:
        return uid in self._uids

    def place(self, uid: str) -> RecordKey | None:
        return self._uids.get(uid)
