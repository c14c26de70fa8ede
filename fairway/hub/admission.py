"""Whether a write on a kube-apiserver is right, as far as the server cannot tell by itself.

The checks are those of the embedded store, made on the objects that this replica follows. They may
be some moments behind the server; the core checks again when a workload is decided.
"""

from __future__ import annotations

from functools import partial

from fairway.api.errors import Invalid, Unavailable
from fairway.api.meta import JsonObject, is_own_group
from fairway.api.submission import CREATED_BY, HUB, SUBMITTED_BY, Submission
from fairway.controllers.cache import Cache
from fairway.kinds.native import without_kueue
from fairway.resources.catalogue import Catalogue
from fairway.resources.resource import Resource
from fairway.schema.expressions import expression_faults
from fairway.schema.validation import is_unchanged
from fairway.server.wire.admissions import Asked
from fairway.store.interface import Write
from fairway.store.keys import NAMESPACES
from fairway.submission.submissions import FOLLOWED, READ, Submissions


class Admission:
    """Checks writes that a server asks about."""

    def __init__(self, cache: Cache, catalogue: Catalogue, *, own_name: str) -> None:
        self._mirrors = {kind: cache.mirror(kind) for kind in (*FOLLOWED, *READ)}
        self._catalogue = catalogue
        self._own_name = own_name  # by which the server knows this hub
        self._submissions = Submissions(lambda kind, name: self._mirrors[kind].get(name))
        for kind in FOLLOWED:
            self._mirrors[kind].followers.append(partial(self._submissions.note, kind))

    async def check(self, asked: Asked) -> list[str]:
        """Returns warnings; raises Forbidden or Invalid for a write that is not right."""
        if not all(mirror.is_complete.is_set() for mirror in self._mirrors.values()):
            raise Unavailable("the hub still reads what it needs to answer")
        namespaces = self._mirrors[NAMESPACES]
        if asked.namespace and namespaces.get(("", asked.namespace)) is None:
            await namespaces.refresh()  # it was created a moment ago
        before, after, write = asked.old_object, asked.object, self._write(asked)
        if is_own_group(asked.resource.group):
            resource = self._catalogue.find(
                asked.resource.group, asked.resource.version, asked.resource.resource
            )
            _check_expressions(resource, before, after)
        else:
            resource = _native_resource(asked)
            before = None if before is None else _left_by_kueue(before)
            after = _left_by_kueue(after)
        self._submissions.take(resource, before, after, write)
        return write.warnings

    def _write(self, asked: Asked) -> Write:
        """The write of the user, also if the hub creates an object for a user."""
        user = asked.user_info
        if user.username != self._own_name:
            return Write(user=user.username, groups=user.groups)
        annotations = asked.object["metadata"].get("annotations") or {}
        creator = annotations.get(CREATED_BY, HUB)
        if creator in (HUB, self._own_name):
            return Write(user=HUB)
        submission = Submission.read(
            namespace=asked.namespace,
            labels={},
            note=annotations.get(SUBMITTED_BY),
            creator=creator,
        )
        return Write(user=submission.user, groups=submission.groups)


def _check_expressions(resource: Resource, before: JsonObject | None, after: JsonObject) -> None:
    """Raises Invalid for expressions that do not compile, unless the object had them before."""
    faults = expression_faults(after, resource.schema)
    if before is not None:
        faults = [fault for fault in faults if not is_unchanged(fault, after, before)]
    if faults:
        raise Invalid.of(resource.kind, resource.group, after["metadata"].get("name", ""), faults)


def _native_resource(asked: Asked) -> Resource:
    """A kind that the hub need not serve; refusals name it."""
    return Resource(
        group=asked.resource.group,
        version=asked.resource.version,
        plural=asked.resource.resource,
        kind=str(asked.object.get("kind", "")),
    )


def _left_by_kueue(body: JsonObject) -> JsonObject:
    """An object that names no queue of Kueue's: a Kueue beside the hub looks after such objects."""
    return {**body, "metadata": without_kueue(body["metadata"])}
