"""The embedded store: the interface over memory, with SQLite below.

Reads are served from memory and see only what is on disk. Writes are decided here, in one step
without waiting, against the newest state; then they wait for the disk (`writes`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from fairway.api.equality import same
from fairway.api.errors import BadRequest, Expired, TooLarge
from fairway.clock import Clock, SystemClock, timestamp
from fairway.resources.catalogue import Catalogue
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.store.backup_lines import Item
from fairway.store.embedded import grace, lists
from fairway.store.embedded.admission import applied_body, missing_version, patched_body
from fairway.store.embedded.collector import Collector
from fairway.store.embedded.history import Change, History
from fairway.store.embedded.identities import admission
from fairway.store.embedded.journal import Journal
from fairway.store.embedded.load import load
from fairway.store.embedded.refusals import (
    already_exists,
    check_identity,
    check_preconditions,
    lasting_object,
    no_namespace,
    not_found,
    terminating_namespace,
    too_large,
)
from fairway.store.embedded.selection import selects
from fairway.store.embedded.shelves import KindId, Name, Record, Shelves, json_text
from fairway.store.embedded.watches import EmbeddedWatch, Watches
from fairway.store.embedded.writes import Writer
from fairway.store.interface import (
    EVERYTHING,
    PLAIN_DELETION,
    WHOLE,
    Deletion,
    Listing,
    Page,
    Patch,
    ResourceKey,
    Selection,
    Stored,
    WatchEvent,
    WatchFrom,
    Write,
)
from fairway.submission.submissions import FOLLOWED, Submissions

DEFINITIONS: KindId = ("apiextensions.k8s.io", "customresourcedefinitions")
NAMESPACES: KindId = ("", "namespaces")
# Namespaces that may not be deleted, since everything else relies on them.
_LASTING_NAMESPACES = ("default", "kube-system", "kube-public")
BOOKMARK_SECONDS = 60.0
OBJECT_BYTES_MAX = 3 << 20
_FOLLOWED: dict[KindId, ResourceKey] = {(kind.group, kind.plural): kind for kind in FOLLOWED}


class EmbeddedStore:
    """Durable objects in one process. Open it with `open_store`."""

    def __init__(
        self,
        journal: Journal,
        catalogue: Catalogue,
        *,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        history: History | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.clock = clock or SystemClock()
        self._journal = journal
        self._shelves = Shelves()
        self._history = history or History()
        self._watches = Watches()
        self.writer = Writer(journal, self._shelves, self._history, self._watches)
        self._admission = admission(self.clock, chance)
        self._submissions = Submissions(self._present)
        self._tasks: set[asyncio.Task[None]] = set()
        self.followers: list[Callable[[Change], None]] = []  # called after each write on disk
        self.collector = Collector(self, self._shelves, self.clock)
        self.writer.on_change = self._change

    # Opening and closing.

    def start(self) -> None:
        """Loads the journal, and starts bookmarks and the collector."""
        loaded = load(self._journal, self._shelves, self._history, self.clock.now())
        self.writer.resume(loaded.version, loaded.start)
        for record in self._shelves.shelf(DEFINITIONS).records.values():
            self.catalogue.put_definition(record.body())
        for kind, followed in _FOLLOWED.items():
            for record in self._shelves.shelf(kind).records.values():
                self._submissions.note(followed, record.name, Stored(record.raw))
        self.run(self._bookmarks())
        self.collector.start()

    async def end_watches(self) -> None:
        await self._watches.close()

    async def close(self) -> None:
        """Ends watches and timers, and waits for the writes in flight."""
        await self.end_watches()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.writer.close()
        await self._journal.close()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a background task until the store closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def version(self) -> int:
        """The version of the newest decided write, which may not be on disk yet."""
        return self.writer.version

    def count(self) -> int:
        return self._shelves.count()

    def counts(self) -> dict[str, int]:
        """The number of objects of each kind, by `plural.group`."""
        return {
            ".".join(part for part in reversed(shelf.kind) if part): len(shelf.records)
            for shelf in self._shelves.all()
        }

    def bodies(self, kind: KindId) -> list[JsonObject]:
        """All objects of a kind, decoded."""
        return [record.body() for record in self._shelves.shelf(kind).records.values()]

    def moment(self) -> tuple[int, list[Item]]:
        """All objects as they are on disk now, in the order of their versions, and the newest."""
        records = [
            (record, shelf.kind)
            for shelf in self._shelves.all()
            for record in shelf.records.values()
        ]
        records.sort(key=lambda each: each[0].version)
        return self.writer.published, [
            Item(
                group=group,
                plural=plural,
                namespace=record.name[0],
                name=record.name[1],
                value=record.raw,
            )
            for record, (group, plural) in records
        ]

    async def reseal(self) -> int:
        """Encrypts everything with the key that is now the current one; returns how many rows."""
        return await self._journal.reseal()

    def uid_of(self, kind: KindId, name: Name) -> str | None:
        record = self._shelves.get(kind, name)
        return record.uid if record is not None else None

    def watch_count(self) -> int:
        return self._watches.count()

    # Reading.

    async def get(self, kind: ResourceKey, name: str, namespace: str = "") -> Stored:
        resource = self._resource(kind)
        return self._record(resource, (namespace, name)).as_stored(resource)

    async def list(
        self, kind: ResourceKey, selection: Selection = EVERYTHING, page: Page = WHOLE
    ) -> Listing:
        resource = self._resource(kind)
        return lists.answer(
            resource,
            selection,
            page,
            shelves=self._shelves,
            history=self._history,
            version=self.writer.published,
        )

    async def watch(
        self,
        kind: ResourceKey,
        selection: Selection = EVERYTHING,
        start: WatchFrom = WatchFrom(),  # noqa: B008 - frozen
    ) -> EmbeddedWatch:
        resource = self._resource(kind)
        watch = EmbeddedWatch(
            _kind_id(resource),
            resource=resource,
            selects=selects(selection, resource),
            on_close=self._watches.remove,
        )
        watch.wants_bookmarks = start.bookmarks
        self._begin_watch(watch, resource, selection, start)
        self._watches.add(watch)
        return watch

    def _begin_watch(
        self, watch: EmbeddedWatch, resource: Resource, selection: Selection, start: WatchFrom
    ) -> None:
        since = lists.parse_version(start.version)
        wants_present = start.initial_events or (start.initial_events is None and not since)
        if since > self.writer.published:
            raise too_large(since, self.writer.published)
        if wants_present:
            test = selects(selection, resource)
            present = lists.records(self._shelves.shelf(watch.kind), selection)
            watch.make_room(len(present))
            for record in present:
                if test(record):
                    stored = record.as_stored(resource)
                    watch.push(WatchEvent(type="ADDED", stored=stored, version=str(record.version)))
            if start.initial_events and start.bookmarks:
                watch.bookmark(self.writer.published, ends_initial=True)
            return
        if not since:
            return  # from now on, without the existing objects
        if not self._history.has(since):
            raise Expired(f"too old resource version: {since} ({self._history.floor})")
        missed = self._history.since(watch.kind, since)
        watch.make_room(len(missed))
        for change in missed:
            watch.offer(change)

    # Writing.

    async def create(
        self, kind: ResourceKey, body: JsonObject, *, namespace: str = "", write: Write
    ) -> Stored:
        resource = self._resource(kind)
        body = self._admission.create(resource, body, namespace=namespace, write=write)
        return await self._keep_new(resource, body, write)

    async def _keep_new(self, resource: Resource, body: JsonObject, write: Write) -> Stored:
        metadata = body["metadata"]
        name = (metadata.get("namespace", ""), metadata["name"])
        self._check_namespace(resource, name)
        self._submissions.take(resource, None, body, write)
        if self.writer.newest(_kind_id(resource), name) is not None:
            raise already_exists(resource, name[1])
        return await self._keep(resource, body, None, write)

    async def update(
        self,
        kind: ResourceKey,
        body: JsonObject,
        *,
        namespace: str = "",
        subresource: str = "",
        write: Write,
    ) -> Stored:
        resource = self._resource(kind)
        metadata = body.get("metadata") if isinstance(body, dict) else None
        name = metadata.get("name", "") if isinstance(metadata, dict) else ""
        old = self._newest(resource, (namespace, name))
        if isinstance(metadata, dict):
            given = metadata.get("resourceVersion")
            if not given and not resource.allows_blind_update:
                raise missing_version(resource, name)
            check_identity(resource, metadata, old)
        before, after = self._admission.update(
            resource, old, body, subresource=subresource, write=write
        )
        return await self._keep_next(resource, after, before, old, write)

    async def patch(
        self,
        kind: ResourceKey,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        write: Write,
    ) -> tuple[Stored, bool]:
        resource = self._resource(kind)
        place = (namespace if resource.namespaced else "", name)
        if patch.type == "apply":
            return await self._apply(resource, place, patch, subresource, write)
        old = self._newest(resource, place)
        body = patched_body(resource, old.body(), patch)
        if isinstance(body, dict) and isinstance(body.get("metadata"), dict):
            check_identity(resource, body["metadata"], old, may_conflict=False)
            given = body["metadata"].get("name", name)
            if given != name:
                raise BadRequest(
                    f"the name of the object ({given}) does not match the name on the URL ({name})"
                )
        before, after = self._admission.update(
            resource, old, body, subresource=subresource, write=write
        )
        return await self._keep_next(resource, after, before, old, write), False

    async def _apply(
        self, resource: Resource, name: Name, patch: Patch, subresource: str, write: Write
    ) -> tuple[Stored, bool]:
        old = self.writer.newest(_kind_id(resource), name)
        if old is None and subresource:
            raise not_found(resource, name[1])
        old = old.as_one_of(resource) if old is not None else None
        applied = applied_body(resource, name, patch.body)
        if old is not None:
            check_identity(resource, applied["metadata"], old)
        body = self._admission.apply(
            resource,
            old.body() if old is not None else None,
            applied,
            subresource=subresource,
            write=write,
            force=patch.force,
        )
        if old is None:
            body = self._admission.create_applied(resource, body, namespace=name[0], write=write)
            return await self._keep_new(resource, body, write), True
        before, after = self._admission.update(
            resource, old, body, subresource=subresource, write=write, is_applied=True
        )
        return await self._keep_next(resource, after, before, old, write), False

    async def delete(
        self,
        kind: ResourceKey,
        name: str,
        *,
        namespace: str = "",
        how: Deletion = PLAIN_DELETION,
        write: Write,
    ) -> tuple[Stored, bool]:
        resource = self._resource(kind)
        old = self._newest(resource, (namespace if resource.namespaced else "", name))
        check_preconditions(resource, old, how)
        if _kind_id(resource) == NAMESPACES and name in _LASTING_NAMESPACES:
            raise lasting_object(resource, name)
        body = old.body()
        if grace.is_granted(resource, body, how):
            if not grace.mark(body, how, self.clock.now()):
                return old.as_stored(resource), False
            return await self._keep(resource, body, old, write), False
        finalizers = self.collector.holders(resource, body, how)
        if not finalizers:
            await self._remove(resource, body, old, write)
            return old.as_stored(resource), True
        metadata = body["metadata"]
        is_new = "deletionTimestamp" not in metadata
        if is_new:
            metadata["deletionTimestamp"] = timestamp(self.clock.now())
            metadata["deletionGracePeriodSeconds"] = 0
            if "generation" in metadata:
                metadata["generation"] += 1
        elif finalizers == metadata.get("finalizers"):
            return old.as_stored(resource), False
        if finalizers != ["kubernetes"] or _kind_id(resource) != NAMESPACES:
            metadata["finalizers"] = finalizers
        self.collector.mark_terminating(resource, body)
        return await self._keep(resource, body, old, write), False

    # Storing.

    async def _keep_next(
        self,
        resource: Resource,
        after: JsonObject,
        before: JsonObject,
        old: Record,
        write: Write,
    ) -> Stored:
        self._submissions.take(resource, before, after, write)
        # An object stored in another API version is written again, as in Kubernetes.
        is_kept = old.kept_as.rpartition("/")[2] == _kept_version(resource)
        if is_kept and same(after, before):
            return old.as_stored(resource)
        metadata = after["metadata"]
        if metadata.get("deletionTimestamp") and not self.collector.is_held(resource, after):
            return await self._remove(resource, after, old, write)
        return await self._keep(resource, after, old, write)

    async def _keep(
        self, resource: Resource, body: JsonObject, previous: Record | None, write: Write
    ) -> Stored:
        version = self.writer.next_version()
        if write.dry_run:
            return _unkept(body, previous, resource)
        record = Record.of(_as_kept(resource, body), version)
        _confirm_size(record.raw)
        if record.api_version == resource.api_version:
            record.conforms_to = resource.schema
        change = Change(_kind_id(resource), record, previous, is_removed=False)
        await self.writer.stage(change)
        return record.as_stored(resource)

    async def _remove(
        self, resource: Resource, body: JsonObject, previous: Record, write: Write
    ) -> Stored:
        if write.dry_run:
            return previous.as_stored(resource)
        record = Record.of(_as_kept(resource, body), self.writer.next_version())
        await self.writer.stage(Change(_kind_id(resource), record, previous, is_removed=True))
        return record.as_stored(resource)

    def _change(self, change: Change) -> None:
        """Handles each write once it is on disk: updates the catalogue, collects dependents."""
        if change.kind == DEFINITIONS:
            name = change.record.name[1]
            if change.is_removed:
                self.catalogue.remove_definition(name)
            else:
                self.catalogue.put_definition(change.record.body())
        if change.kind in _FOLLOWED:
            stored = None if change.is_removed else Stored(change.record.raw)
            self._submissions.note(_FOLLOWED[change.kind], change.record.name, stored)
        self.collector.follow(change)
        for follower in self.followers:
            follower(change)

    # Finding.

    def _resource(self, kind: ResourceKey) -> Resource:
        return self.catalogue.find(kind.group, kind.version, kind.plural)

    def _record(self, resource: Resource, name: Name) -> Record:
        place = name if resource.namespaced else ("", name[1])
        record = self._shelves.get(_kind_id(resource), place)
        if record is None:
            raise not_found(resource, name[1])
        return record

    def _newest(self, resource: Resource, name: Name) -> Record:
        place = name if resource.namespaced else ("", name[1])
        record = self.writer.newest(_kind_id(resource), place)
        if record is None:
            raise not_found(resource, name[1])
        return record.as_one_of(resource)

    def _present(self, kind: ResourceKey, name: Name) -> Stored | None:
        record = self.writer.newest((kind.group, kind.plural), name)
        return Stored(record.raw) if record is not None else None

    def _check_namespace(self, resource: Resource, name: Name) -> None:
        if not resource.namespaced:
            return
        namespace = self.writer.newest(NAMESPACES, ("", name[0]))
        if namespace is None:
            raise no_namespace(name[0])
        if b'"deletionTimestamp"' in namespace.raw and namespace.body()["metadata"].get(
            "deletionTimestamp"
        ):
            raise terminating_namespace(resource, *name)

    async def _bookmarks(self) -> None:
        while True:
            await self.clock.sleep(BOOKMARK_SECONDS)
            self._watches.bookmark(self.writer.published)


def _kind_id(resource: Resource) -> KindId:
    return (resource.group, resource.plural)


def _as_kept(resource: Resource, body: JsonObject) -> JsonObject:
    """An object in the storage version of its kind."""
    if resource.to_stored is not None:
        return resource.to_stored({**body, "apiVersion": resource.api_version})
    version = _kept_version(resource)
    body["apiVersion"] = f"{resource.group}/{version}" if resource.group else version
    return body


def _kept_version(resource: Resource) -> str:
    return resource.storage_version or resource.version


def _unkept(body: JsonObject, previous: Record | None, resource: Resource) -> Stored:
    """The result of a dry run: the object as it would be, at its current resource version."""
    body["apiVersion"] = resource.api_version
    if previous is not None:
        body["metadata"]["resourceVersion"] = str(previous.version)
    raw = json_text(body)
    _confirm_size(raw)
    return Stored(raw)


def _confirm_size(raw: bytes) -> None:
    """Refuses an object that grew beyond what a request may have, by whatever way."""
    if len(raw) > OBJECT_BYTES_MAX:
        raise TooLarge(f"Request entity too large: limit is {OBJECT_BYTES_MAX}")
