"""The store's refusals, worded as a kube-apiserver words them."""

from __future__ import annotations

from fairway.api.errors import AlreadyExists, Conflict, Forbidden, NotFound, Timeout
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.store.embedded.shelves import Record
from fairway.store.interface import Deletion


def details(resource: Resource, name: str) -> JsonObject:
    found: JsonObject = {"name": name, "kind": resource.plural}
    if resource.group:
        found["group"] = resource.group
    return found


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


def terminating(resource: Resource, namespace: str, name: str) -> Forbidden:
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


def modified(resource: Resource, name: str, why: str = "") -> Conflict:
    why = why or (
        "the object has been modified; please apply your changes to the latest version and try"
        " again"
    )
    return Conflict(
        f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}',
        details=details(resource, name),
    )


def check_identity(resource: Resource, metadata: JsonObject, old: Record) -> None:
    """A write that names a version or an identity is meant for that one only."""
    given = metadata.get("resourceVersion")
    if given and given != str(old.version):
        raise modified(resource, old.name[1])
    uid = metadata.get("uid")
    if uid and uid != old.uid:
        raise _failed(resource, old, "UID", str(uid), old.uid)


def check_preconditions(resource: Resource, old: Record, how: Deletion) -> None:
    if how.uid and how.uid != old.uid:
        raise _failed(resource, old, "UID", how.uid, old.uid)
    if how.version and how.version != str(old.version):
        raise _failed(resource, old, "ResourceVersion", how.version, str(old.version))


def _failed(resource: Resource, old: Record, what: str, asked: str, found: str) -> Conflict:
    return modified(
        resource,
        old.name[1],
        f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}",
    )
