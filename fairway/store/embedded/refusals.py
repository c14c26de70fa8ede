"""The store's errors, worded like those of a kube-apiserver."""

from __future__ import annotations

from fairway.api.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Timeout,
    invalid,
)
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.store.embedded.shelves import Record
from fairway.store.interface import Deletion
from fairway.submission.refusals import details


def not_found(resource: Resource, name: str) -> NotFound:
    return NotFound(f'{resource.qualified} "{name}" not found', details=details(resource, name))


def already_exists(resource: Resource, name: str) -> AlreadyExists:
    return AlreadyExists(
        f'{resource.qualified} "{name}" already exists', details=details(resource, name)
    )


def no_namespace(namespace: str) -> NotFound:
    return NotFound(
        f'namespaces "{namespace}" not found', details={"name": namespace, "kind": "namespaces"}
    )


def terminating_namespace(resource: Resource, namespace: str, name: str) -> Forbidden:
    return Forbidden(
        f'{resource.qualified} "{name}" is forbidden: unable to create new content in '
        f"namespace {namespace} because it is being terminated",
        details={
            **details(resource, name),
            "causes": [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {namespace} is being terminated",
                    "field": "metadata.namespace",
                }
            ],
        },
    )


def too_large(asked: int, current: int) -> Timeout:
    message = "Too large resource version"
    return Timeout(
        f"Timeout: {message}: {asked}, current: {current}",
        details={
            "retryAfterSeconds": 1,
            "causes": [{"reason": "ResourceVersionTooLarge", "message": message}],
        },
    )


def modified_object(resource: Resource, name: str, why: str = "") -> Conflict:
    why = why or (
        "the object has been modified; please apply your changes to the latest version and try"
        " again"
    )
    return Conflict(
        f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}',
        details=details(resource, name),
    )


def lasting_object(resource: Resource, name: str) -> Forbidden:
    return Forbidden(
        f'{resource.qualified} "{name}" is forbidden: this namespace may not be deleted',
        details=details(resource, name),
    )


def check_identity(
    resource: Resource, metadata: JsonObject, old: Record, *, may_conflict: bool = True
) -> None:
    """Refuses a write that names another resource version or uid than the object has.

    An update with another uid is a conflict; a patch that would change the uid is invalid.
    """
    given = metadata.get("resourceVersion")
    if given and given != str(old.version):
        raise modified_object(resource, old.name[1])
    uid = metadata.get("uid")
    if not uid or uid == old.uid:
        return
    if not may_conflict:
        fault = invalid("metadata.uid", uid, "field is immutable")
        raise Invalid.of(resource.kind, resource.group, old.name[1], [fault])
    raise modified_object(
        resource,
        old.name[1],
        f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}",
    )


def check_preconditions(resource: Resource, old: Record, how: Deletion) -> None:
    """Refuses a deletion whose preconditions on uid or resource version do not hold."""
    if how.uid and how.uid != old.uid:
        raise _unmet(resource, old, "UID", how.uid, old.uid, "deleted and then recreated")
    if how.version and how.version != str(old.version):
        result = str(old.version)
        raise _unmet(resource, old, "ResourceVersion", how.version, result, "modified")


def _unmet(
    resource: Resource, old: Record, what: str, asked: str, other: str, why: str
) -> Conflict:
    name = old.name[1]
    return Conflict(
        f'Operation cannot be fulfilled on {resource.kind} "{name}": the {what} in the precondition'
        f" ({asked}) does not match the {what} in record ({other})."
        f" The object might have been {why}",
        details={**details(resource, name), "kind": resource.kind},
    )
