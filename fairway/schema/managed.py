"""Who owns which field after a write, as `metadata.managedFields` tells it.

Every write that is not an apply goes through `after_update`: fields that are new or changed belong
to the writer, and fields that are gone belong to nobody. It runs on each write of the server, so
the common cases (an object is created; nothing changed hands) take a short way through it.
"""

from __future__ import annotations

from typing import Any

from fairway.schema.apply import BEFORE_FIRST_APPLY, apply
from fairway.schema.compare import added_fields, compare
from fairway.schema.entries import (
    UPDATE,
    Owned,
    Owner,
    Owners,
    cap,
    read_owners,
    taken_from,
    write_entry,
    write_owners,
)
from fairway.schema.fieldset import union
from fairway.schema.node import JsonObject, Node
from fairway.schema.ownership import UNOWNED, blank_of, strip
from fairway.schema.structure import ShapeError, metadata_of

__all__ = ["BEFORE_FIRST_APPLY", "after_update", "apply", "blank_of"]

_NOT_CONTENT = frozenset(("apiVersion", "kind", "metadata"))


def after_update(
    old: JsonObject | None,
    new: JsonObject,
    *,
    node: Node,
    manager: str,
    api_version: str,
    subresource: str,
    time: str,
    blank: JsonObject | None = None,
) -> list[JsonObject]:
    """The managedFields of `new` after `manager` has written it over `old` (none: created).

    `blank` is what a created object is compared with: nothing for custom kinds, and for built-in
    kinds the containers that are always there (`blank_of`).
    """
    given = _give(new)
    try:
        if old is None and not given and blank is None:
            owner = Owner.of(manager, UPDATE, api_version, subresource)
            return _create(new, node, owner, time)
        owners = _owners_before(old, given, subresource)
        if old is not None and not owners:
            # Ownership that was never tracked, or was reset, is tracked again from an apply on.
            return []
        comparison = compare(old if old is not None else blank or {}, new, node)
    except ShapeError:
        # Fields that cannot be told apart have no owner; the write itself is not refused here.
        return []
    mine = strip(comparison.changed)
    owners = taken_from(owners, (comparison.changed, comparison.removed))
    if mine:
        owner = Owner.of(manager, UPDATE, api_version, subresource)
        before = owners.get(owner)
        fields = union(mine, before.fields) if before else mine
        owners[owner] = Owned(fields, api_version, time)
    return write_owners(cap(owners))


def _give(new: JsonObject) -> Any:
    return (new.get("metadata") or {}).get("managedFields")


def _create(new: JsonObject, node: Node, owner: Owner, time: str) -> list[JsonObject]:
    """The short way for a new object: one walk, and what no manager owns is never collected."""
    content = {key: value for key, value in new.items() if key not in _NOT_CONTENT}
    fields = added_fields(content, node)
    del fields["."]
    metadata = new.get("metadata")
    owned = metadata and {key: value for key, value in metadata.items() if key not in UNOWNED}
    if owned:
        branch = added_fields(owned, metadata_of(node))
        del branch["."]
        fields["f:metadata"] = branch
    if not fields:
        return []
    return [write_entry(owner, Owned(fields, owner.api_version, time))]


def _owners_before(old: JsonObject | None, given: Any, subresource: str) -> Owners:
    """The owners that a write starts from.

    A writer may set managedFields by hand, and an empty list or a list of one empty entry resets
    them; a writer who leaves them out, or breaks them, or writes through a subresource, keeps
    those of the old object.
    """
    kept = (old or {}).get("metadata", {}).get("managedFields")
    if not subresource and given is not None and given != kept:
        if given in ([], [{}]):
            return {}
        try:
            owners = read_owners(given, trusted=False)
        except (ValueError, AttributeError, TypeError):
            owners = {}
        if owners:
            return owners
    try:
        return read_owners(kept, trusted=True)
    except ValueError:
        return {}
