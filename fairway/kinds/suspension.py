"""The field that suspends an object, for kinds that have one."""

from __future__ import annotations

from fairway.api.meta import JsonObject
from fairway.kinds.held_back import leaves
from fairway.kinds.interface import Kind
from fairway.kinds.job import Job
from fairway.kinds.jobset import JobSet
from fairway.kinds.plain import child, without
from fairway.kinds.rules.kind import RuleKind

_FIELD = "suspend"


def suspension_path(kind: Kind) -> tuple[str, ...]:
    """The path of the field, such as `spec.runPolicy.suspend`; empty if the kind has none."""
    if isinstance(kind, Job | JobSet):
        return ("spec", _FIELD)
    if not isinstance(kind, RuleKind) or kind.rule.spec.hold is None:
        return ()
    paths = [path for path, _ in leaves(kind.rule.spec.hold.held)]
    return paths[0] if len(paths) == 1 and paths[0][-1] == _FIELD else ()


def is_suspended(body: JsonObject, kind: Kind) -> bool:
    path = suspension_path(kind)
    return bool(path) and child(body, *path[:-1]).get(path[-1]) is True


def suspended(kind: Kind, *, to: bool) -> JsonObject:
    """A merge patch that suspends an object, or lets it go; empty if its kind has no field."""
    path = suspension_path(kind)
    patch: JsonObject = {path[-1]: to} if path else {}
    for key in reversed(path[:-1]):
        patch = {key: patch}
    return patch


def without_suspension(manifest: JsonObject, kind: Kind) -> JsonObject:
    """The manifest without the field: the queue sets it on the hub, and agents in clusters."""
    path = suspension_path(kind)
    return without(manifest, *path) if path else manifest
