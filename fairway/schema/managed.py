"""Field ownership after a write, as recorded in `metadata.managedFields`.

Every write that is not an apply goes through `after_update`: the writer owns new and changed
fields, and removed fields lose their owners. It runs on each write of the server, so the common
cases (an object is created; no ownership changed) have a fast path.
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
    """The managedFields of `new` after `manager` has written it over `old` (None: created).

    `blank` is what a created object is compared with: nothing for custom kinds, and for built-in
    kinds the containers that always exist (`blank_of`).
    """
    given = _give(new)
    try:
        if old is None and not given and blank is None:
            owner = Owner.of(manager, UPDATE, api_version, subresource)
            return _create(new, node, owner, time)
        owners = _owners_before(old, given, subresource)
        if old is not None and not owners:
            # Untracked or reset ownership is tracked again from the next apply on.
            return []
        comparison = compare(old if old is not None else blank or {}, new, node)
    except ShapeError:
        # Fields that cannot be told apart have no owner; this does not refuse the write.
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
    """The fast path for a new object: one walk, which skips fields that no manager owns."""
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
    """The owners before a write.

    A writer may set managedFields by hand, and an empty list or a list of one empty entry resets
    them. If they are missing or malformed, or the write is to a subresource, those of the old
    object stay.
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
