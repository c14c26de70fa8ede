"""Garbage collection after a deletion.

Dependents are deleted after their last owner is gone (background) or before it (foreground), or
lose their owner reference and stay (orphan). A namespace is emptied before it is removed; so is a
custom kind. Events expire. All of it is ordinary deletion through the store, so finalizers apply,
and work interrupted by a crash is resumed at the next start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fairway.api.errors import ApiError
from fairway.clock import Clock, parse_timestamp
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.store.embedded.history import Change
from fairway.store.embedded.shelves import KindId, Name, Record, RecordKey, Shelves
from fairway.store.interface import Deletion, Patch, ResourceKey, Write

if TYPE_CHECKING:
    from fairway.store.embedded.store import EmbeddedStore

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
NAMESPACES: KindId = ("", "namespaces")
DEFINITIONS: KindId = ("apiextensions.k8s.io", "customresourcedefinitions")
EVENTS: KindId = ("", "events")
_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_COLLECTOR = Write(
    user="system:serviceaccount:kube-system:generic-garbage-collector", manager="fairway-collector"
)

_Keeps = Callable[[Any], bool]

EVENT_LIFE_SECONDS = 3600.0
_SWEEP_SECONDS = 30.0


class Collector:
    """Completes deletions."""

    def __init__(self, store: EmbeddedStore, shelves: Shelves, clock: Clock) -> None:
        self._store = store
        self._shelves = shelves
        self._clock = clock
        self._event_times: dict[Name, tuple[int, float]] = {}  # version, and when it was seen last

    def start(self) -> None:
        """Resumes what an earlier run left unfinished."""
        for uid in self._shelves.owner_uids():
            if not self._shelves.has_uid(uid):
                self._store.run(self._collect(uid))
        for shelf in self._shelves.all():
            for record in shelf.records.values():
                if b'"deletionTimestamp"' in record.raw:
                    self._continue(shelf.kind, record)
        self._store.run(self._expire_events())

    # What blocks a deletion.

    def holders(self, resource: Resource, body: JsonObject, how: Deletion) -> list[str]:
        """The finalizers that a deletion must wait for."""
        metadata = body["metadata"]
        finalizers = [
            finalizer
            for finalizer in metadata.get("finalizers") or []
            if finalizer not in (FOREGROUND, ORPHAN)
        ]
        had = set(metadata.get("finalizers") or ())
        kind = (resource.group, resource.plural)
        wants_orphan = how.propagation == "Orphan" or (not how.propagation and ORPHAN in had)
        wants_foreground = how.propagation == "Foreground" or (
            not how.propagation and FOREGROUND in had
        )
        if wants_orphan and self._shelves.dependents(metadata["uid"]):
            finalizers.append(ORPHAN)
        elif wants_foreground and self._blockers(metadata["uid"]):
            finalizers.append(FOREGROUND)
        if kind == NAMESPACES and self._contents(metadata["name"]):
            return [*finalizers, "kubernetes"]
        if kind == DEFINITIONS and self._instances(body) and _CLEANUP not in finalizers:
            finalizers.append(_CLEANUP)
        return finalizers

    def is_held(self, resource: Resource, body: JsonObject) -> bool:
        """Whether something still blocks the deletion of an object."""
        if (resource.group, resource.plural) == NAMESPACES and self._contents(
            body["metadata"]["name"]
        ):
            return True
        return bool(body["metadata"].get("finalizers"))

    def mark_terminating(self, resource: Resource, body: JsonObject) -> None:
        if (resource.group, resource.plural) == NAMESPACES:
            body.setdefault("status", {})["phase"] = "Terminating"

    # Following changes.

    def follow(self, change: Change) -> None:
        if change.is_removed:
            self._remove(change)
        elif change.previous is None or change.previous.owners != change.record.owners:
            self._check_owners(change)
        if not change.is_removed and b'"deletionTimestamp"' in change.record.raw:
            self._continue(change.kind, change.record)

    def _remove(self, change: Change) -> None:
        if self._shelves.dependents(change.record.uid):
            self._store.run(self._collect(change.record.uid))
        for owner in change.record.owners:
            self._store.run(self._release_foreground(owner))
        namespace = change.record.name[0]
        if namespace:
            record = self._shelves.get(NAMESPACES, ("", namespace))
            if record is not None and b'"Terminating"' in record.raw:
                self._store.run(self._finish_namespace(namespace))
        definition = f"{change.kind[1]}.{change.kind[0]}"
        record = self._shelves.get(DEFINITIONS, ("", definition))
        if record is not None and b'"deletionTimestamp"' in record.raw:
            self._store.run(self._finish_definition(record))

    def _check_owners(self, change: Change) -> None:
        """Collects an object whose owners are all gone."""
        owners = change.record.owners
        if owners and not any(self._shelves.has_uid(uid) for uid in owners):
            for uid in owners:
                self._store.run(self._collect(uid))

    def _continue(self, kind: KindId, record: Record) -> None:
        """Continues a deletion that something blocks."""
        body = record.body()
        metadata = body["metadata"]
        if not metadata.get("deletionTimestamp"):
            return
        finalizers = metadata.get("finalizers") or ()
        if kind == NAMESPACES:
            self._store.run(self._finish_namespace(metadata["name"]))
        if _CLEANUP in finalizers and kind == DEFINITIONS:
            self._store.run(self._finish_definition(record))
        if ORPHAN in finalizers:
            self._store.run(self._orphan((kind, record.name), metadata["uid"]))
        if FOREGROUND in finalizers:
            self._store.run(self._delete_first(metadata["uid"]))

    # Owners and dependents.

    async def _collect(self, uid: str) -> None:
        """Deletes dependents whose owners are all gone; others only lose this owner reference."""
        for place in self._shelves.dependents(uid):
            record = self._shelves.get(*place)
            if record is None:
                continue
            if any(self._shelves.has_uid(owner) for owner in record.owners):
                await self._drop_owner(place, uid)
            else:
                await self._delete(place, Deletion(uid=record.uid))

    async def _orphan(self, place: RecordKey, uid: str) -> None:
        for dependent in self._shelves.dependents(uid):
            await self._drop_owner(dependent, uid)
        await self._drop_finalizer(place, ORPHAN)

    async def _delete_first(self, uid: str) -> None:
        """Foreground: deletes dependents before their owner."""
        for place in self._shelves.dependents(uid):
            record = self._shelves.get(*place)
            if record is not None and b'"deletionTimestamp"' not in record.raw:
                await self._delete(place, Deletion(uid=record.uid, propagation="Foreground"))
        await self._release_foreground(uid)

    async def _release_foreground(self, uid: str) -> None:
        place = self._shelves.place(uid)
        if place is not None and not self._blockers(uid):
            record = self._shelves.get(*place)
            if record is not None and FOREGROUND.encode() in record.raw:
                await self._drop_finalizer(place, FOREGROUND)

    def _blockers(self, uid: str) -> list[RecordKey]:
        """The dependents that block the deletion of their owner (`blockOwnerDeletion`)."""
        return [
            place
            for place in self._shelves.dependents(uid)
            if (record := self._shelves.get(*place)) is not None
            and any(
                owner.get("uid") == uid and owner.get("blockOwnerDeletion")
                for owner in record.body()["metadata"].get("ownerReferences") or ()
            )
        ]

    # Namespaces and custom kinds.

    def _contents(self, namespace: str) -> list[RecordKey]:
        return [
            (shelf.kind, name)
            for shelf in self._shelves.all()
            for name in shelf.records
            if name[0] == namespace
        ]

    async def _finish_namespace(self, namespace: str) -> None:
        for place in self._contents(namespace):
            record = self._shelves.get(*place)
            if record is not None and b'"deletionTimestamp"' not in record.raw:
                await self._delete(place, Deletion(uid=record.uid))
        if not self._contents(namespace):
            await self._delete((NAMESPACES, ("", namespace)), Deletion())

    def _instances(self, definition: JsonObject) -> list[RecordKey]:
        spec = definition["spec"]
        kind = (spec["group"], spec["names"]["plural"])
        return [(kind, name) for name in self._shelves.shelf(kind).records]

    async def _finish_definition(self, record: Record) -> None:
        places = self._instances(record.body())
        for place in places:
            known = self._shelves.get(*place)
            if known is not None and b'"deletionTimestamp"' not in known.raw:
                await self._delete(place, Deletion(uid=known.uid))
        if not self._instances(record.body()):
            await self._drop_finalizer((DEFINITIONS, record.name), _CLEANUP)

    # Events.

    async def _expire_events(self) -> None:
        while True:
            for place in self._find_expired():
                await self._delete(place, Deletion())
            await self._clock.sleep(_SWEEP_SECONDS)

    def _find_expired(self) -> Iterable[RecordKey]:
        """Events that are old, or so far ahead that a clock must have been, and would never be."""
        oldest = self._clock.now() - EVENT_LIFE_SECONDS
        is_sure, newest = self._clock.is_sure(), self._clock.now() + EVENT_LIFE_SECONDS
        # Each version is decoded once: there may be many, and they are looked at all the time.
        known: dict[Name, tuple[int, float]] = {}
        for name, record in list(self._shelves.shelf(EVENTS).records.items()):
            before = self._event_times.get(name)
            if before is None or before[0] != record.version:
                before = (record.version, _event_time(record.body()))
            known[name] = before
            if known[name][1] < oldest or (is_sure and known[name][1] > newest):
                yield EVENTS, name
        self._event_times = known

    # Ordinary calls of the store; an object that is gone meanwhile is no error.

    async def _delete(self, place: RecordKey, how: Deletion) -> None:
        key = self._key(place[0])
        namespace, name = place[1]
        if key is not None:
            try:
                await self._store.delete(key, name, namespace=namespace, how=how, write=_COLLECTOR)
            except ApiError:
                return

    async def _drop_finalizer(self, place: RecordKey, finalizer: str) -> None:
        await self._change_list(place, "finalizers", lambda other: other != finalizer)

    async def _drop_owner(self, place: RecordKey, uid: str) -> None:
        await self._change_list(place, "ownerReferences", lambda owner: owner.get("uid") != uid)

    async def _change_list(self, place: RecordKey, field: str, keeps: _Keeps) -> None:
        key = self._key(place[0])
        record = self._shelves.get(*place)
        if key is None or record is None:
            return
        metadata = record.body()["metadata"]
        kept = [item for item in metadata.get(field) or () if keeps(item)]
        patch = Patch(
            type="merge", body={"metadata": {field: kept or None, "uid": metadata["uid"]}}
        )
        namespace, name = place[1]
        try:
            await self._store.patch(key, name, patch, namespace=namespace, write=_COLLECTOR)
        except ApiError:
            return  # gone, or replaced by another object of its name

    def _key(self, kind: KindId) -> ResourceKey | None:
        resource = self._store.catalogue.stored_version(*kind)
        if resource is None:
            return None
        return ResourceKey(resource.group, resource.version, resource.plural)


def _event_time(body: JsonObject) -> float:
    """When an event was seen last."""
    seen = [body["metadata"]["creationTimestamp"]]
    seen += [text for key in ("lastTimestamp", "eventTime") if (text := body.get(key))]
    return max(map(parse_timestamp, seen))
