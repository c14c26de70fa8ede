"""The store of the fleet, as a database that can be set back to an earlier backup.

A backup is the journal up to some write. Setting the database back is what an operator does: the
hub is stopped, its data replaced by the backup, and the hub started again. Agents keep running, and
keep what they know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairway.api.errors import Unavailable
from fairway.api.meta import JsonObject
from fairway.store.embedded.history import Change
from fairway.store.embedded.journal import Row
from fairway.store.embedded.memory import MemoryJournal
from fairway.store.embedded.shelves import KindId, Name
from fairway.store.embedded.store import EmbeddedStore
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
    Watch,
    WatchFrom,
    Write,
)


@dataclass(frozen=True, slots=True)
class Copy:
    """The data at one time."""

    rows: tuple[Row, ...]


class Database:
    """A store, behind which one life of the data follows another."""

    def __init__(
        self, rows: Sequence[Row], make_store: Callable[[MemoryJournal], EmbeddedStore]
    ) -> None:
        self._make_store = make_store
        self.followers: list[Callable[[Change], None]] = []  # called after each write on disk
        self._open(rows)

    def _open(self, rows: Sequence[Row]) -> None:
        self._journal = MemoryJournal(rows)
        self._store: EmbeddedStore | None = self._make_store(self._journal)
        self._store.followers.append(self._follow)
        self._store.start()

    def _follow(self, change: Change) -> None:
        for follower in self.followers:
            follower(change)

    def copy(self) -> Copy:
        return Copy(tuple(self._journal.rows))

    async def stop(self) -> None:
        """Closes the store; until it is opened again, every call fails."""
        store, self._store = self._live(), None
        await store.close()

    def restore(self, copy: Copy) -> None:
        """Opens a store that has what the copy has, and nothing else."""
        assert self._store is None, "the store is stopped before its data is replaced"
        self._open(copy.rows)

    def bodies(self, kind: KindId) -> list[JsonObject]:
        return self._live().bodies(kind)

    def has(self, kind: KindId, name: Name) -> bool:
        """Whether an object is there, even if it is not on disk yet."""
        return self._store is not None and self._store.writer.newest(kind, name) is not None

    def _live(self) -> EmbeddedStore:
        if self._store is None:
            raise Unavailable("the hub is stopped")
        return self._store

    # The interface of stores.

    async def get(self, kind: ResourceKey, name: str, namespace: str = "") -> Stored:
        return await self._live().get(kind, name, namespace)

    async def list(
        self, kind: ResourceKey, selection: Selection = EVERYTHING, page: Page = WHOLE
    ) -> Listing:
        return await self._live().list(kind, selection, page)

    async def watch(
        self,
        kind: ResourceKey,
        selection: Selection = EVERYTHING,
        start: WatchFrom = WatchFrom(),  # noqa: B008 - frozen
    ) -> Watch:
        return await self._live().watch(kind, selection, start)

    async def create(
        self, kind: ResourceKey, body: JsonObject, *, namespace: str = "", write: Write
    ) -> Stored:
        return await self._live().create(kind, body, namespace=namespace, write=write)

    async def update(
        self,
        kind: ResourceKey,
        body: JsonObject,
        *,
        namespace: str = "",
        subresource: str = "",
        write: Write,
    ) -> Stored:
        return await self._live().update(
            kind, body, namespace=namespace, subresource=subresource, write=write
        )

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
        return await self._live().patch(
            kind, name, patch, namespace=namespace, subresource=subresource, write=write
        )

    async def delete(
        self,
        kind: ResourceKey,
        name: str,
        *,
        namespace: str = "",
        how: Deletion = PLAIN_DELETION,
        write: Write,
    ) -> tuple[Stored, bool]:
        return await self._live().delete(kind, name, namespace=namespace, how=how, write=write)
