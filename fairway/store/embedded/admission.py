"""The steps between a request and a stored object.

For each write, in this order: identity and metadata that only the store may set; the schema (prune,
default, limits); the checks of the kind; rules over several fields; managed fields. A write is
refused with all its faults at once, or comes out ready to be stored. Nothing here waits, and
nothing is stored here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from fairway.api.equality import same
from fairway.api.errors import (
    BadRequest,
    FieldError,
    Invalid,
    UnsupportedMediaType,
    forbidden,
    invalid,
    readable,
)
from fairway.api.meta import GROUP
from fairway.api.submission import CREATED_BY, HUB, SUBMITTED_BY
from fairway.api.taint_times import stamp
from fairway.clock import Clock, timestamp
from fairway.resources.metadata import metadata_faults, misshapen
from fairway.resources.resource import Resource
from fairway.schema import managed
from fairway.schema.cel.rules import check_rules
from fairway.schema.node import JsonObject, Node
from fairway.schema.patches import json_patch, merge_patch
from fairway.schema.strategic import strategic_merge
from fairway.schema.validation import Findings, conform, is_unchanged
from fairway.store.embedded.shelves import Name, Record
from fairway.store.interface import Patch, Write
from fairway.submission.submissions import keep_note

# The user who created an object; set by the store, never by a client.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_SYSTEM_FIELDS = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
_GENERATE_NAME_MAX = 58


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The steps of a write, with the clock and the randomness they need."""

    clock: Clock
    make_uid: Callable[[], str]
    make_suffix: Callable[[], str]

    def create(
        self, resource: Resource, body: JsonObject, *, namespace: str, write: Write
    ) -> JsonObject:
        """A new object, ready to be stored."""
        metadata = _identify(resource, body, namespace)
        if metadata.get("resourceVersion"):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        self._name(metadata)
        self._begin(resource, body, metadata)
        self._stamp(resource, body, None)
        self._conform(resource, body, None, write)
        # The writer does not own the status, whatever the kind initializes it with.
        written = {k: v for k, v in body.items() if k != "status" or not resource.has_status}
        entries = managed.after_update(None, written, **self._ownership(resource, write, ""))
        return self._create(body, entries, write)

    def create_applied(
        self, resource: Resource, body: JsonObject, *, namespace: str, write: Write
    ) -> JsonObject:
        """A new object from server-side apply, which already has its managed fields."""
        metadata = _identify(resource, body, namespace)
        if metadata.get("resourceVersion") or metadata.get("uid"):
            raise BadRequest("an object to be created by apply has no resourceVersion and no uid")
        entries = metadata.pop("managedFields", [])
        self._begin(resource, body, metadata)
        self._stamp(resource, body, None)
        self._conform(resource, body, None, write)
        return self._create(body, entries, write)

    def update(
        self,
        resource: Resource,
        record: Record,
        body: JsonObject,
        *,
        subresource: str,
        write: Write,
        is_applied: bool = False,
    ) -> tuple[JsonObject, JsonObject]:
        """An object before and after a write; equal if nothing changes."""
        old = record.body()
        metadata = _identify(resource, body, old["metadata"].get("namespace", ""))
        entries = metadata.get("managedFields") if is_applied else None
        # Only the field tracker looks at the managedFields that the writer sent.
        said = metadata.pop("managedFields", None)
        known = old if resource.is_custom and record.conforms_to is resource.schema else None
        # The steps below work in place, but never on what is known to conform. Everything else
        # that is kept comes from a separate copy.
        kept = old if known is not None and resource.prepare is None else record.body()
        body = _merged_with_old(resource, kept, body, subresource, write)
        if not subresource:
            self._stamp(resource, body, old)
        self._conform(resource, body, old, write, known=known)
        if not subresource:
            write.warn(str(field) for field in resource.deprecated_fields if field.is_in(body))
        _count_generation(resource, old, body)
        if entries is None:
            entries = managed.after_update(
                old,
                _saying(body, said),
                **self._ownership(resource, write, subresource),
            )
        _put_managed(body, entries)
        return old, body

    def _name(self, metadata: JsonObject) -> None:
        prefix = metadata.get("generateName")
        if not metadata.get("name") and isinstance(prefix, str) and prefix:
            metadata["name"] = prefix[:_GENERATE_NAME_MAX] + self.make_suffix()

    def _begin(self, resource: Resource, body: JsonObject, metadata: JsonObject) -> None:
        for field in (*_SYSTEM_FIELDS, "resourceVersion"):
            metadata.pop(field, None)
        metadata["uid"] = self.make_uid()
        metadata["creationTimestamp"] = timestamp(self.clock.now())
        if resource.counts_generations or resource.is_custom:
            metadata["generation"] = 1
        if resource.has_status:
            body.pop("status", None)

    def _stamp(self, resource: Resource, body: JsonObject, old: JsonObject | None) -> None:
        """Notes times that a writer may leave out: when a taint was added to a cluster."""
        if (resource.group, resource.plural) == (GROUP, "clusters"):
            stamp(body, old, timestamp(self.clock.now()))

    def _create(self, body: JsonObject, entries: list[JsonObject], write: Write) -> JsonObject:
        annotations = body["metadata"].setdefault("annotations", {})
        annotations[CREATED_BY] = write.user
        _put_managed(body, entries)
        return body

    def _conform(
        self,
        resource: Resource,
        body: JsonObject,
        old: JsonObject | None,
        write: Write,
        known: JsonObject | None = None,
    ) -> None:
        findings = Findings(checks_duplicates=resource.is_custom)
        conform(body, resource.schema, findings, known=known)
        faults: list[FieldError] = findings.faults
        _report_unknown(resource, findings, write)
        if not resource.is_custom:
            _refuse_wrong_types(resource, faults)
        if not faults:
            if resource.prepare is not None:
                resource.prepare(body, old)
            _drop_empty(body["metadata"])
            faults = metadata_faults(
                body, name_rule=resource.name_rule, is_built_in=not resource.is_custom
            )
            if resource.check is not None:
                faults.extend(resource.check(body, old))
            faults.extend(check_rules(body, old, resource.schema, is_update=old is not None))
        if faults and old is not None and resource.is_custom:
            # Faults that existed before and are not touched may stay.
            faults = [fault for fault in faults if not is_unchanged(fault, body, old)]
        if faults:
            name = body["metadata"].get("name", "")
            raise Invalid.of(resource.kind, resource.group, name, faults)

    def apply(
        self,
        resource: Resource,
        live: JsonObject | None,
        applied: JsonObject,
        *,
        subresource: str,
        write: Write,
        force: bool,
    ) -> JsonObject:
        """The result of server-side apply on an object, not yet checked."""
        ownership = self._ownership(resource, write, subresource)
        merged = managed.apply(live, applied, force=force, **ownership)
        if write.manager == "kubectl" and live is not None:
            _keep_last_applied(merged, applied)
        return merged

    def _ownership(self, resource: Resource, write: Write, subresource: str) -> dict[str, Any]:
        return {
            "node": resource.schema,
            "blank": None if resource.is_custom else _blank(resource.schema),
            "manager": write.manager,
            "api_version": resource.api_version,
            "subresource": subresource,
            "time": timestamp(self.clock.now()),
        }


@lru_cache(maxsize=256)
def _blank(node: Node) -> JsonObject:
    """An object of a built-in kind before any field is set."""
    return managed.blank_of(node)


def _keep_last_applied(merged: JsonObject, applied: JsonObject) -> None:
    """Updates the annotation of client-side `kubectl apply` on a server-side apply.

    Otherwise a later client-side apply would revert changes that it did not know.
    """
    annotations = merged["metadata"].get("annotations") or {}
    if LAST_APPLIED not in annotations:
        return
    metadata = dict(applied["metadata"])
    if metadata.get("annotations"):
        kept = {k: v for k, v in metadata["annotations"].items() if k != LAST_APPLIED}
        metadata["annotations"] = kept
    note = msgspec.json.encode({**applied, "metadata": metadata}, order="sorted")
    annotations[LAST_APPLIED] = note.decode() + "\n"


def _identify(resource: Resource, body: Any, namespace: str) -> JsonObject:
    """Checks that a body is an object of this kind and namespace; returns its metadata."""
    fault = misshapen(body)
    if fault is not None:
        raise BadRequest(
            f"{resource.kind} in version {resource.version!r} cannot be handled as a "
            f"{resource.kind}: {fault}".replace("'", '"')
        )
    for field, want in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        got = body.setdefault(field, want)
        if got != want:
            word = "API version" if field == "apiVersion" else "kind"
            raise BadRequest(
                f"the {word} in the data ({got}) does not match the expected {word} ({want})"
            )
    if body.get("metadata") is None:
        body["metadata"] = {}
    metadata: JsonObject = body["metadata"]
    if not resource.namespaced:
        metadata.pop("namespace", None)
    elif metadata.setdefault("namespace", namespace) != namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return metadata


def _drop_empty(metadata: JsonObject) -> None:
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if field in metadata and not metadata[field]:
            del metadata[field]


def _merged_with_old(
    resource: Resource, old: JsonObject, body: JsonObject, subresource: str, write: Write
) -> JsonObject:
    """The body, with the old value of everything that this write may not change."""
    if subresource == "status":
        merged = {key: value for key, value in old.items() if key != "status"}
        merged["metadata"] = {
            key: value for key, value in old["metadata"].items() if key != "managedFields"
        }
        if "status" in body:
            merged["status"] = body["status"]
        return merged
    was, metadata = old["metadata"], body["metadata"]
    for field in _SYSTEM_FIELDS:
        metadata.pop(field, None)
        if field in was:
            metadata[field] = was[field]
    creator = (was.get("annotations") or {}).get(CREATED_BY)
    if creator is not None:
        if not isinstance(metadata.get("annotations"), dict):
            metadata["annotations"] = {}
        metadata["annotations"][CREATED_BY] = creator
    if write.user != HUB:
        keep_note(body, (was.get("annotations") or {}).get(SUBMITTED_BY))
    if resource.has_status:
        body.pop("status", None)
        if "status" in old:
            body["status"] = old["status"]
    _refuse_new_finalizers(resource, old, body)
    return body


def _refuse_new_finalizers(resource: Resource, old: JsonObject, body: JsonObject) -> None:
    if not old["metadata"].get("deletionTimestamp"):
        return
    had = old["metadata"].get("finalizers") or []
    new = [
        finalizer for finalizer in body["metadata"].get("finalizers") or [] if finalizer not in had
    ]
    if new:
        listed = ", ".join(f'"{item}"' for item in new)
        fault = forbidden(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, found new finalizers"
            f" []string{{{listed}}}",
        )
        raise Invalid.of(resource.kind, resource.group, body["metadata"].get("name", ""), [fault])


def _report_unknown(resource: Resource, findings: Findings, write: Write) -> None:
    if not findings.unknown or write.field_validation == "Ignore":
        return
    said = [str(field) for field in sorted(findings.unknown, key=lambda other: other.path)]
    if write.field_validation == "Strict":
        raise BadRequest(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: strict decoding error: {', '.join(said)}"
        )
    if resource.is_strict:
        findings.faults.extend(
            forbidden(field.path, str(field).replace(f' "{readable(field.path)}"', "", 1))
            for field in findings.unknown
        )
    else:
        write.warn(said)


def _refuse_wrong_types(resource: Resource, faults: Sequence[FieldError]) -> None:
    """Raises BadRequest: an object of a built-in kind with a wrong type cannot be decoded."""
    wrong = [fault for fault in faults if fault.type == "FieldValueTypeInvalid"]
    if wrong:
        raise BadRequest(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {'; '.join(fault.message for fault in wrong)}"
        )


def _count_generation(resource: Resource, old: JsonObject, body: JsonObject) -> None:
    if not (resource.counts_generations or resource.is_custom):
        return
    apart = (
        {"metadata", "status"} if resource.has_status or not resource.is_custom else {"metadata"}
    )
    before = {key: value for key, value in old.items() if key not in apart}
    after = {key: value for key, value in body.items() if key not in apart}
    generation = old["metadata"].get("generation", 1)
    body["metadata"]["generation"] = generation + (not same(before, after))


def _saying(body: JsonObject, said: Any) -> JsonObject:
    """The body with the managedFields that its writer sent, so that the tracker sees a reset."""
    if said is None:
        return body
    return {**body, "metadata": {**body["metadata"], "managedFields": said}}


def _put_managed(body: JsonObject, entries: list[JsonObject]) -> None:
    if entries:
        body["metadata"]["managedFields"] = entries
    else:
        body["metadata"].pop("managedFields", None)


def patched_body(resource: Resource, before: JsonObject, patch: Patch) -> Any:
    """An object as a patch changes it, not yet checked."""
    match patch.type:
        case "json":
            return json_patch(before, patch.body)
        case "merge":
            return merge_patch(before, patch.body)
        case "strategic" if not resource.is_custom:
            return strategic_merge(before, patch.body, resource.schema)
        case _:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, "
                "application/apply-patch+yaml"
            )


def applied_body(resource: Resource, name: Name, body: Any) -> JsonObject:
    """The body of an apply, with name and namespace from the request's path."""
    if not isinstance(body, dict):
        raise BadRequest("an apply needs an object")
    if body.get("apiVersion") != resource.api_version or body.get("kind") != resource.kind:
        raise BadRequest(
            f"the object's apiVersion and kind must be {resource.api_version} and {resource.kind}"
        )
    metadata = body.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise BadRequest("metadata must be an object")
    if metadata.setdefault("name", name[1]) != name[1]:
        raise BadRequest(
            f"the name of the object ({metadata['name']}) does not match the name on the URL"
            f" ({name[1]})"
        )
    if resource.namespaced:
        metadata.setdefault("namespace", name[0])
    return body


def missing_version(resource: Resource, name: str) -> Invalid:
    """The error of an update without a resource version."""
    fault = invalid("metadata.resourceVersion", 0, "must be specified for an update")
    return Invalid.of(resource.kind, resource.group, name, [fault])
