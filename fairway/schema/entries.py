"""The entries of `metadata.managedFields`: which field manager owns which fields, since when.

An owner is a manager's name with the operation, and for plain updates the API version, and the
subresource of the write. On the wire an owner is one entry; here it is a key of a mapping.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairway.schema.fieldset import Tree, difference, parse, union
from fairway.schema.node import JsonObject

APPLY, UPDATE = "Apply", "Update"
_UPDATE_OWNERS_MAX = 10
_BUCKET = "ancient-changes"


class Owner(NamedTuple):
    """An owner of fields; an applier is the same owner in every version."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @classmethod
    def of(cls, manager: str, operation: str, api_version: str, subresource: str) -> Owner:
        version = "" if operation == APPLY else api_version
        return cls(manager or "unknown", operation, version, subresource)

    def __str__(self) -> str:
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


@dataclass(frozen=True, slots=True)
class Owned:
    """The fields of an owner, the version they were written in, and when (empty if not known)."""

    fields: Tree
    api_version: str
    time: str


Owners = dict[Owner, Owned]


def read_owners(entries: Any, *, trusted: bool) -> Owners:
    """The owners in these entries; ValueError if they are malformed.

    Entries that this server wrote itself are trusted, and their field sets are not checked.
    """
    owners: Owners = {}
    for entry in entries or ():
        operation, api_version = entry.get("operation"), entry.get("apiVersion")
        if operation not in (APPLY, UPDATE):
            raise ValueError("operation must be `Apply` or `Update`")
        if not api_version:
            raise ValueError("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise ValueError("fieldsType must be FieldsV1")
        fields = entry.get("fieldsV1") or {}
        owner = Owner(
            entry.get("manager", ""),
            operation,
            "" if operation == APPLY else api_version,
            entry.get("subresource", ""),
        )
        owners[owner] = Owned(
            fields if trusted else parse(fields), api_version, entry.get("time") or ""
        )
    return owners


def write_owners(owners: Owners) -> list[JsonObject]:
    """The entries of owners, in storage order."""
    if len(owners) > 1:
        return [write_entry(owner, owned) for owner, owned in sorted(owners.items(), key=_order)]
    return [write_entry(owner, owned) for owner, owned in owners.items()]


def write_entry(owner: Owner, owned: Owned) -> JsonObject:
    entry: JsonObject = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": owned.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields,
    }
    if owned.time:
        entry["time"] = owned.time
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def _order(pair: tuple[Owner, Owned]) -> tuple[str, ...]:
    owner, owned = pair
    return owner.operation, owned.time, owner.manager, owned.api_version, owner.subresource


def taken_from(owners: Owners, fields: Iterable[Tree], *, besides: Owner | None = None) -> Owners:
    """The owners after fields are taken from all of them; owners left without fields go."""
    out: Owners = {}
    for owner, owned in owners.items():
        left = owned.fields
        if owner != besides:
            for tree in fields:
                left = difference(left, tree)
        if left is owned.fields:
            out[owner] = owned
        elif left:
            out[owner] = Owned(left, owned.api_version, owned.time)
    return out


def cap(owners: Owners) -> Owners:
    """If there are many owners, merges the oldest plain updates of each version into one."""
    updaters = [pair for pair in owners.items() if pair[0].operation == UPDATE]
    surplus = len(updaters) - _UPDATE_OWNERS_MAX
    if surplus <= 0:
        return owners
    out = dict(owners)
    first_of_version: dict[str, Owner] = {}
    for owner, owned in sorted(updaters, key=lambda pair: (pair[1].time, *pair[0])):
        if surplus <= 0:
            break
        version = owned.api_version
        first = first_of_version.setdefault(version, owner)
        if first == owner:
            continue
        bucket = Owner.of(_BUCKET, UPDATE, version, "")
        if bucket not in out:
            out[bucket] = out.pop(first)
        merged = union(owned.fields, out[bucket].fields)
        # The bucket has the time of its latest entry.
        out[bucket] = Owned(merged, version, owned.time)
        if owner != bucket:
            del out[owner]
        surplus -= 1
    return out
