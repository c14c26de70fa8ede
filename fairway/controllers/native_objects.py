"""Natives: objects with a queue label become workloads, and get their status back.

A Job, Deployment or object of another known kind that names its queue, or is in a namespace with a
default queue, gets a Workload that stands for it. The object owns the Workload, so deleting the
object stops the workload. The status from the clusters is written to the object's status; once the
workload is over, an annotation says so, and the object never gets another (see `native_ends`). A
repository that keeps the object sees no difference.

Where the hub's objects are on a Kubernetes server, controllers beside the hub may know the same
kinds. An object that they would run too gets no workload (see `kinds.held_back`), and an object
that names only Kueue's queue is left to the Kueue that may be there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256

import msgspec

from fairway.api.equality import same
from fairway.api.errors import Forbidden, Invalid, NotFound
from fairway.api.meta import API_VERSION, JsonObject
from fairway.api.names import (
    FINISHED,
    SOURCE_HASH,
    native_workload_name,
    work_name,
)
from fairway.api.submission import CREATED_BY, HUB, SUBMITTED_BY
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.controllers import native_status
from fairway.controllers.context import Context
from fairway.controllers.glance import glance
from fairway.controllers.native_ends import has_ended, remember_end
from fairway.kinds.held_back import advice, is_held_back, means_of
from fairway.kinds.interface import Kind
from fairway.kinds.native import DEFAULT_QUEUE, QUEUE, as_workload, without_kueue
from fairway.kinds.plain import annotation
from fairway.kinds.suspension import is_suspended, suspended, suspension_path
from fairway.loops import Alarm, Loop
from fairway.store.interface import Deletion, Patch, Stored, Write
from fairway.store.keys import DEFINITIONS, NAMESPACES, WORKLOADS, WORKS, resource_of
from fairway.store.mirrors import Mirror, Name

_TAKEN_SECONDS = 60.0  # before an object whose workload's name is taken is tried again
_BUILT_IN = frozenset({"v1", "apps/v1", "batch/v1"})
_WRITE = Write(user=HUB, manager="fairway-natives")

_TAKEN = (
    "its workload would be {}, which is there already and does not stand for it;"
    " it runs once that one is gone, or by another name"
)

_ENDED = (
    "it has ended and does not run again; to run it again, recreate it, or, if its own status does"
    " not say that it has ended, remove the annotation {}"
)

_log = logging.getLogger(__name__)

# (apiVersion, kind, namespace, name)
Source = tuple[str, str, str, str]


class Natives:
    """The controller of native objects."""

    def __init__(self, context: Context, *, is_alone: bool = True) -> None:
        self._store = context.store
        self._is_alone = is_alone
        self._cache = context.cache
        self._roster = context.roster
        self._kinds = context.kinds
        self._clock = context.clock
        self._notes = context.notes
        self._loop: Loop[Source] = Loop(
            "natives", self._reconcile, clock=context.clock, forgets=True
        )
        self._mirrors: dict[tuple[str, str], Mirror] = {}
        self._namespaces = Mirror(context.store, NAMESPACES, clock=context.clock)
        self._definitions = Mirror(context.store, DEFINITIONS, clock=context.clock)
        self._served = Alarm(context.clock)  # marked when another kind may be served or known
        self._namespaces.followers.append(self._namespace_changed)
        self._definitions.followers.append(lambda name, stored: self._served.mark())
        context.kinds.followers.append(self._kinds_changed)
        # The object that each workload stands for, its phase, and whether it holds nothing.
        self._standing: dict[Name, tuple[Source, str, bool]] = {}
        context.cache.mirror(WORKLOADS).followers.append(self._workload_changed)
        context.cache.mirror(WORKS).followers.append(self._work_changed)

    async def run(self) -> None:
        """Watches every kind that is served and known, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._namespaces.run())
            tasks.create_task(self._definitions.run())
            # Objects watched by an earlier run are reconciled as they are now.
            tasks.create_task(self._loop.run(list(self._all_sources())))
            followed: set[tuple[str, str]] = set()
            while True:
                for pair in self._followable():
                    if pair not in followed:
                        followed.add(pair)
                        tasks.create_task(self._mirror(pair).run())
                await self._served.wait()

    def _followable(self) -> Iterator[tuple[str, str]]:
        yield from (pair for pair in self._kinds.names() if pair[0] in _BUILT_IN)
        for _, stored in self._definitions.items():
            yield from self._defined_kinds(stored.object())

    def _kinds_changed(self) -> None:
        self._served.mark()
        for source in self._all_sources():
            self._loop.mark(source)

    def _defined_kinds(self, definition: JsonObject) -> list[tuple[str, str]]:
        spec = definition["spec"]
        versions = {
            f"{spec['group']}/{version['name']}"
            for version in spec["versions"]
            if version.get("served")
        }
        kind = spec["names"]["kind"]
        known = [pair for pair in self._kinds.names() if pair[1] == kind and pair[0] in versions]
        return known[:1]  # the same objects are served in every version

    def _mirror(self, kind: tuple[str, str]) -> Mirror:
        if kind in self._mirrors:
            return self._mirrors[kind]
        mirror = Mirror(self._store, resource_of(*kind), clock=self._clock)
        mirror.followers.append(lambda name, _: self._loop.mark((*kind, *name)))
        self._mirrors[kind] = mirror
        return mirror

    def _all_sources(self) -> Iterator[Source]:
        for kind, mirror in self._mirrors.items():
            for namespace, name in mirror.names():
                yield (*kind, namespace, name)

    def _namespace_changed(self, name: Name, stored: Stored | None) -> None:
        for kind, mirror in self._mirrors.items():
            for namespace, value in mirror.names():
                if namespace == name[1]:
                    self._loop.mark((*kind, namespace, value))

    def _workload_changed(self, name: Name, stored: Stored | None) -> None:
        """Marks the object of a workload that is gone, or in another phase.

        The object may have been recreated before its old workload was gone; it needs a new one.
        """
        if stored is None:
            known = self._standing.pop(name, None)
            if known is not None:
                self._loop.mark(known[0])
            return
        seen = glance(stored)
        if seen is not None and seen.spec.source is not None:
            reference = seen.spec.source
            source = (reference.api_version, reference.kind, name[0], reference.name)
            standing = (source, seen.status.phase, seen.status.claim is None)
            if self._standing.get(name) != standing:
                self._standing[name] = standing
                self._loop.mark(source)  # the object says how it stands

    def _work_changed(self, name: Name, stored: Stored | None) -> None:
        work = self._cache.get(Work, name[1], name[0])
        if work is None:
            return
        reference = work.spec.workload
        workload = self._cache.get(Workload, reference.name, reference.namespace)
        if workload is not None and workload.spec.source is not None:
            source = workload.spec.source
            self._loop.mark(
                (source.api_version, source.kind, workload.metadata.namespace, source.name)
            )

    async def _reconcile(self, source: Source) -> float | None:
        api_version, kind, namespace, name = source
        mirror = self._mirrors.get((api_version, kind))
        stored = mirror.get((namespace, name)) if mirror is not None else None
        if stored is None:
            return None  # its workload is deleted with it
        result = {"apiVersion": api_version, "kind": kind, **stored.object()}
        known = self._kinds.of(result)
        if result["metadata"].get("deletionTimestamp") or known is None:
            return None  # removing a rule stops nothing
        try:
            wanted = as_workload(self._with_queue(result), self._kinds)
        except Invalid as fault:
            await self._notes.warn(result, "InvalidWorkload", str(fault))
            return None
        workload_name = native_workload_name(kind, name)
        if wanted is None:
            await self._drop(namespace, workload_name, result)
            return None
        existing = self._cache.get(Workload, workload_name, namespace)
        if existing is not None and not _stands_for(existing, result):
            await self._notes.warn(result, "NameTaken", _TAKEN.format(workload_name))
            return self._clock.now() + _TAKEN_SECONDS
        if existing is None and not self._may_be_run(result, known):
            await self._notes.warn(result, "NotHeldBack", advice(known))
            return None  # it is reconciled again when it changes
        if existing is None and await self._has_ended(result, known):
            return None
        await self._keep(wanted, workload_name, result, existing)
        if existing is not None and not annotation(result, FINISHED):
            await remember_end(self._store, existing)
        await self._write_status(result, workload_name, known)
        return None

    async def _has_ended(self, body: JsonObject, kind: Kind) -> bool:
        """Whether an object without a workload has ended, and must not run again.

        The workload may have gone a moment ago, so the object is read from the store: a watch may
        not have brought yet what was remembered before.
        """
        metadata = body["metadata"]
        resource = resource_of(body["apiVersion"], body["kind"])
        try:
            stored = await self._store.get(resource, metadata["name"], metadata["namespace"])
        except NotFound:
            return True  # it is gone, and so is its workload
        now = {**body, **stored.object()}
        if now["metadata"]["uid"] != metadata["uid"]:
            return True  # another object of the name, which is reconciled when it is seen
        if not has_ended(now, kind):
            return False
        await self._notes.say(now, "Ended", _ENDED.format(FINISHED))
        return True

    def _may_be_run(self, body: JsonObject, kind: Kind) -> bool:
        """Whether nothing else would run it, so that it can't run twice."""
        return self._is_alone or is_held_back(body, kind)

    def _with_queue(self, body: JsonObject) -> JsonObject:
        """The object, with the default queue of its namespace if it names none."""
        metadata = body["metadata"] if self._is_alone else without_kueue(body["metadata"])
        body = {**body, "metadata": metadata}
        labels = metadata.get("labels") or {}
        named = {**(metadata.get("annotations") or {}), **labels}
        namespace = self._namespaces.get(("", metadata.get("namespace", "")))
        if namespace is None or any(key in named for key in QUEUE):
            return body
        queue = (namespace.object()["metadata"].get("labels") or {}).get(DEFAULT_QUEUE)
        if not queue:
            return body
        return {**body, "metadata": {**metadata, "labels": {**labels, QUEUE[0]: queue}}}

    async def _keep(
        self, wanted: JsonObject, name: str, object_: JsonObject, existing: Workload | None
    ) -> None:
        """Makes the workload of an object match the object."""
        metadata = {
            key: value for key, value in wanted["metadata"].items() if key != "creationTimestamp"
        }
        # The store vouches for the submitter; what else the object says of users is not copied.
        submitter = annotation(object_, SUBMITTED_BY)
        metadata["annotations"] = {**metadata["annotations"], SUBMITTED_BY: submitter}
        owner = {
            "apiVersion": object_["apiVersion"],
            "kind": object_["kind"],
            "name": object_["metadata"]["name"],
            "uid": object_["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        digest = sha256(msgspec.json.encode([metadata, wanted["spec"]], order="sorted")).hexdigest()
        annotations = {**metadata["annotations"], SOURCE_HASH: digest[:16], CREATED_BY: HUB}
        if existing is not None and not await self._may_change(existing, owner["uid"]):
            return  # it is reconciled again once that workload is gone
        if existing is not None and existing.metadata.annotations.get(SOURCE_HASH) == digest[:16]:
            return
        version = {"resourceVersion": existing.metadata.resource_version} if existing else {}
        body = {
            "apiVersion": API_VERSION,
            "kind": "Workload",
            "metadata": {
                **metadata,
                **version,
                "name": name,
                "annotations": annotations,
                "ownerReferences": [owner],
            },
            "spec": wanted["spec"],
        }
        await self._store.patch(
            WORKLOADS,
            name,
            Patch(type="apply", body=body, force=True),
            namespace=metadata["namespace"],
            write=_WRITE,
        )

    async def _may_change(self, workload: Workload, uid: str) -> bool:
        """Whether a workload is not being deleted, nor stands for an earlier object of the name.

        A workload that stands for an earlier object is deleted.
        """
        metadata = workload.metadata
        if metadata.deletion_timestamp is not None:
            return False
        owners = metadata.owner_references
        if not owners or any(owner.uid == uid for owner in owners):
            return True
        await self._delete(workload)
        return False

    async def _delete(self, workload: Workload) -> None:
        metadata = workload.metadata
        with suppress(NotFound):  # already deleted
            await self._store.delete(
                WORKLOADS,
                metadata.name,
                namespace=metadata.namespace,
                how=Deletion(uid=metadata.uid),
                write=_WRITE,
            )

    async def _drop(self, namespace: str, name: str, body: JsonObject) -> None:
        """Stops the workload of an object whose queue was removed."""
        workload = self._cache.get(Workload, name, namespace)
        if workload is None or workload.metadata.deletion_timestamp is not None:
            return
        if any(
            owner.uid == body["metadata"]["uid"] for owner in workload.metadata.owner_references
        ):
            await self._delete(workload)

    async def _write_status(self, body: JsonObject, name: str, kind: Kind) -> None:
        """Writes to the object how it stands, if that changed: suspended or not, and its status."""
        workload = self._cache.get(Workload, name, body["metadata"]["namespace"])
        if workload is None or not _is_of(workload, body):
            return
        if await self._suspend(body, workload, kind):
            return  # the changed object is reconciled again
        works = [
            work
            for cluster in native_status.clusters_of(workload)
            if (work := self._work(workload, cluster)) is not None
        ]
        status = native_status.status_of(body, workload, works, kind)
        if status is None or same(status, body.get("status")):
            return
        try:
            await self._store.update(
                resource_of(body["apiVersion"], body["kind"]),
                {**body, "status": status},
                namespace=body["metadata"]["namespace"],
                subresource="status",
                write=_WRITE,
            )
        except Invalid as fault:
            _log.warning("the status of %s was refused: %s", body["metadata"]["name"], fault)

    async def _suspend(self, body: JsonObject, workload: Workload, kind: Kind) -> bool:
        """Suspends an object while it is queued, if its kind has a field for that.

        An object that is held back from controllers beside the hub by that field stays suspended.
        """
        wanted = native_status.is_queued(workload)
        path = suspension_path(kind)
        if not path or wanted is None or wanted == is_suspended(body, kind):
            return False
        if not self._is_alone and means_of(kind).path == path:
            return False
        metadata = body["metadata"]
        change = suspended(kind, to=wanted)
        change["metadata"] = {"resourceVersion": metadata["resourceVersion"]}
        try:
            await self._store.patch(
                resource_of(body["apiVersion"], body["kind"]),
                metadata["name"],
                Patch(type="merge", body=change),
                namespace=metadata["namespace"],
                write=_WRITE,
            )
        except Forbidden as fault:
            _log.warning("%s is not suspended: %s", metadata["name"], fault)
            return False
        return True

    def _work(self, workload: Workload, cluster: str) -> Work | None:
        metadata = workload.metadata
        return self._roster.work(cluster, work_name(metadata.namespace, metadata.name))


def _stands_for(workload: Workload, stands: JsonObject) -> bool:
    """Whether a workload says that it stands for an object, this one or an earlier one."""
    source = workload.spec.source
    if source is None or (source.kind, source.name) != (stands["kind"], stands["metadata"]["name"]):
        return False
    # The same object is served in several versions of its group.
    group: str = stands["apiVersion"].rpartition("/")[0]
    return source.api_version.rpartition("/")[0] == group


def _is_of(workload: Workload, body: JsonObject) -> bool:
    """Whether a workload stands for this very object, and not for an earlier one of its name."""
    source = workload.spec.source
    return source is not None and source.uid == body["metadata"]["uid"]
