"""Server-side apply: a field manager applies the fields that it wants, and owns exactly those.

The applied fields are merged over the live object. Fields that the manager applied before and no
longer applies are removed, unless another manager owns them. Changing a field of another manager is
a conflict, unless the manager forces it.
"""

from __future__ import annotations

from typing import Any

from fairway.api.equality import same
from fairway.api.errors import BadRequest, Conflict
from fairway.schema.applicable import check_applicable
from fairway.schema.compare import compare, fields_of
from fairway.schema.entries import (
    APPLY,
    UPDATE,
    Owned,
    Owner,
    Owners,
    read_owners,
    taken_from,
    write_owners,
)
from fairway.schema.fieldset import (
    FieldSet,
    Tree,
    difference,
    intersection,
    show_path,
    union,
)
from fairway.schema.merge import merge, remove, with_named_fields
from fairway.schema.node import JsonObject, Node
from fairway.schema.ownership import reconcile, strip
from fairway.schema.structure import ShapeError

BEFORE_FIRST_APPLY = "before-first-apply"


def apply(  # noqa: PLR0913 - the facts of one apply, each of them named
    live: JsonObject | None,
    applied: JsonObject,
    *,
    node: Node,
    manager: str,
    api_version: str,
    subresource: str,
    time: str,
    force: bool,
    blank: JsonObject | None = None,
) -> JsonObject:
    """The live object (None: created) with the configuration applied and its owners updated.

    Defaults are not filled in here: fill them in afterwards, so that no manager owns them. `blank`
    is as for `after_update`.
    """
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    check_applicable(applied, node)
    owner = Owner.of(manager, APPLY, api_version, subresource)
    base = _without_entries(live or {})
    try:
        owners = _owners_of(live, node)
        if live is not None and not owners:
            first = Owner.of(BEFORE_FIRST_APPLY, UPDATE, api_version, subresource)
            owners = _unclaimed(base, blank or {}, node, Owned({}, api_version, time), first)
        stated = fields_of(applied, node).tree
        before = owners.get(owner)
        owners[owner] = Owned(stated, api_version, before.time if before else "")
        merged = merge(base, applied, node)
        if before is not None:
            merged = _prune(merged, owners, stated, before.fields, node)
            # An empty list of items has no owner, but was applied, so it must stay.
            merged = merge(merged, applied, node)
        comparison = compare(base, merged, node)
    except ShapeError as error:
        raise BadRequest(f"failed to merge the configuration: {error}") from None
    if not force:
        _refuse_conflicts(owners, comparison.changed, owner)
    owners = taken_from(owners, (comparison.changed, comparison.removed), besides=owner)
    changed_at = None if same(merged, base) else time
    return _with_entries(merged, owners, owner, strip(stated), changed_at)


def _owners_of(live: JsonObject | None, node: Node) -> Owners:
    try:
        owners = read_owners((live or {}).get("metadata", {}).get("managedFields"), trusted=True)
    except ValueError as error:
        raise BadRequest(f"failed to decode managed fields: {error}") from None
    return {
        owner: Owned(reconcile(owned.fields, node), owned.api_version, owned.time)
        for owner, owned in owners.items()
    }


def _unclaimed(
    live: JsonObject, blank: JsonObject, node: Node, owned: Owned, owner: Owner
) -> Owners:
    """One owner for all fields that an object had before ownership was tracked."""
    fields = strip(compare(blank, live, node).changed)
    return {owner: Owned(fields, owned.api_version, owned.time)} if fields else {}


def _without_entries(live: JsonObject) -> JsonObject:
    metadata = live.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return live
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**live, "metadata": kept}


def _with_entries(
    merged: JsonObject, owners: Owners, owner: Owner, fields: Tree, time: str | None
) -> JsonObject:
    """The object with its owners; the applier's time changes only if the object changed."""
    mine = owners.pop(owner)
    if fields:
        owners[owner] = Owned(fields, mine.api_version, mine.time if time is None else time)
    metadata = {**(merged.get("metadata") or {})}
    entries = write_owners(owners)
    if entries:
        metadata["managedFields"] = entries
    return {**merged, "metadata": metadata}


def _prune(
    merged: JsonObject, owners: Owners, stated: Tree, before: Tree, node: Node
) -> JsonObject:
    """Removes what the manager applied before and no manager applies now."""
    if not difference(before, stated):
        return merged
    last = with_named_fields(before, node)
    owned: Tree = {}
    for other in owners.values():
        owned = union(owned, other.fields)
    owned = with_named_fields(owned, node)
    everything = with_named_fields(fields_of(merged, node).tree, node)
    left = with_named_fields(fields_of(remove(merged, last, node), node).tree, node)
    pruned = remove(merged, difference(everything, union(left, owned)), node)
    # Removing a container also removed its content. Fields that the manager never owned stay, and
    # so does an owned container whose content can have no owner.
    remaining = union(with_named_fields(fields_of(pruned, node).tree, node), owned)
    gone = intersection(difference(everything, remaining), last)
    return remove(merged, gone, node)


def _refuse_conflicts(owners: Owners, changed: Tree, mine: Owner) -> None:
    conflicts: dict[Owner, list[str]] = {}
    for owner, owned in sorted(owners.items()):
        shared = intersection(owned.fields, changed)
        if owner != mine and shared:
            conflicts[owner] = [show_path(path) for path in FieldSet(shared).paths()]
    if conflicts:
        raise _conflict(conflicts)


def _conflict(conflicts: dict[Owner, list[str]]) -> Conflict:
    causes: list[dict[str, Any]] = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {owner}", "field": path}
        for owner, paths in conflicts.items()
        for path in paths
    ]
    if len(causes) == 1:
        only = causes[0]
        message = f"Apply failed with 1 conflict: {only['message']}: {only['field']}"
    else:
        lines: list[str] = []
        for owner, paths in conflicts.items():
            lines += [f"conflicts with {owner}:", *(f"- {path}" for path in paths)]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return Conflict(message, details={"causes": causes})


__all__ = ["BEFORE_FIRST_APPLY", "apply"]
