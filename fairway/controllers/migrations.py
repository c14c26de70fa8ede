"""Migrations: objects stored in an earlier version of their kind are rewritten in the present one.

A store converts when it reads, so nothing waits for this. A migration runs in the background, a few
objects at a time, while clients read and write every version. Each object is written as it is,
against the version that was read; an object that was changed meanwhile is in the present version
already. Only when every object was seen does the definition say that no earlier version is stored.
An interrupted migration starts over: objects already written cost a read, no write.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable

from fairway.api.errors import ApiError, Conflict, Expired, NotFound
from fairway.api.kinds import KINDS, Kind
from fairway.api.meta import JsonObject
from fairway.clock import Clock
from fairway.store.interface import EVERYTHING, Page, Patch, ResourceKey, Store, Write
from fairway.store.keys import DEFINITIONS

_WRITE = Write(user="system:fairway", manager="fairway-migration")
_LOOK_SECONDS = 60.0
# How long the servers of one cluster may take until all of them write the new version.
_SETTLE_SECONDS = 10.0
_PAGE = 250
_PER_SECOND = 50.0

_log = logging.getLogger(__name__)


class Migrations:
    """Rewrites the objects of our kinds in the version in which they are to be stored."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        kinds: Iterable[Kind] = KINDS,
        per_second: float = _PER_SECOND,
    ) -> None:
        self._store = store
        self._clock = clock
        self._names = [kind.qualified for kind in kinds if kind.further]
        self._pause_seconds = 1 / per_second

    async def run(self) -> None:
        while True:
            for name in self._names:
                try:
                    await self._migrate(name)
                except (ApiError, OSError) as fault:
                    _log.warning("the objects of %s are not all migrated yet: %s", name, fault)
            await self._clock.sleep(_LOOK_SECONDS)

    async def _migrate(self, name: str) -> None:
        definition = await self._settle(name)
        if definition is None:
            return
        stored = _stored(definition)
        _log.info("the objects of %s are rewritten in version %s", name, stored)
        kind = ResourceKey(
            definition["spec"]["group"], stored, definition["spec"]["names"]["plural"]
        )
        count = 0
        async for body in self._objects(kind):
            count += await self._write(kind, body["metadata"])
            await self._clock.sleep(self._pause_seconds)
        await self._conclude(definition)
        _log.info("all objects of %s are kept in version %s; %d were written", name, stored, count)

    async def _settle(self, name: str) -> JsonObject | None:
        """The definition of objects that need rewriting, once all servers know it."""
        seen = None
        while True:
            definition = await self._definition(name)
            if definition is None or not _is_due(definition):
                return None
            if definition["metadata"]["generation"] == seen:
                return definition
            seen = definition["metadata"]["generation"]
            await self._clock.sleep(_SETTLE_SECONDS)

    async def _definition(self, name: str) -> JsonObject | None:
        try:
            return (await self._store.get(DEFINITIONS, name)).object()
        except NotFound:
            return None

    async def _objects(self, kind: ResourceKey) -> AsyncIterator[JsonObject]:
        """All objects, in pages; objects created meanwhile are stored in the present version."""
        page = Page(limit=_PAGE)
        while True:
            try:
                listing = await self._store.list(kind, EVERYTHING, page)
            except Expired:
                page = Page(limit=_PAGE)  # the list expired; written objects are not written again
                continue
            for stored in listing.items:
                yield stored.object()
            if not listing.continue_from:
                return
            page = Page(limit=_PAGE, continue_from=listing.continue_from)

    async def _write(self, kind: ResourceKey, metadata: JsonObject) -> int:
        """Writes an object as it is; returns how many were written."""
        seen = {"resourceVersion": metadata["resourceVersion"]}
        patch = Patch(type="merge", body={"metadata": seen})
        namespace = metadata.get("namespace", "")
        try:
            stored, _ = await self._store.patch(
                kind, metadata["name"], patch, namespace=namespace, write=_WRITE
            )
        except (Conflict, NotFound):
            return 0
        return int(stored.object()["metadata"]["resourceVersion"] != seen["resourceVersion"])

    async def _conclude(self, definition: JsonObject) -> None:
        """Records that no earlier version is stored, unless the definition changed meanwhile."""
        metadata = definition["metadata"]
        stored = {"storedVersions": [_stored(definition)]}
        version = {"resourceVersion": metadata["resourceVersion"]}
        patch = Patch(type="merge", body={"metadata": version, "status": stored})
        await self._store.patch(
            DEFINITIONS, metadata["name"], patch, subresource="status", write=_WRITE
        )


def _stored(definition: JsonObject) -> str:
    """The version in which objects are stored from now on."""
    return str(
        next(version["name"] for version in definition["spec"]["versions"] if version["storage"])
    )


def _is_due(definition: JsonObject) -> bool:
    kept = (definition.get("status") or {}).get("storedVersions") or []
    return bool(kept) and kept != [_stored(definition)]
