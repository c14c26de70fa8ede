"""Mirrors: local copies of the objects of a kind, kept current by a watch.

A mirror lists once and then watches. A watch that ends is resumed where it stopped; one that has
expired starts again with a list, whose differences are delivered like events. A follower gets the
name and the current object, never the event: a repeat is harmless, and nothing depends on order.

A follower that fails at one object still gets the next: only that follower skips the object it
cannot read.

A mirror holds the JSON text of its objects, as the store does; it is bounded by what the store
admits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from zlib import crc32

import msgspec

from fairway.api.errors import ApiError, Expired, Forbidden, NotFound
from fairway.clock import Clock
from fairway.store.interface import (
    EVERYTHING,
    Listing,
    ResourceKey,
    Selection,
    Store,
    Stored,
    Watch,
    WatchEvent,
    WatchFrom,
)

Name = tuple[str, str]  # (namespace, name); the namespace is empty for fleet-scoped kinds
Follower = Callable[[Name, Stored | None], None]

_log = logging.getLogger(__name__)

_SLICE = 200  # objects that are handled without a pause
_BACK_OFF_SECONDS = 0.1
_BACK_OFF_SECONDS_MAX = 10.0
_SHORT_SECONDS = 1.0  # a watch that ends sooner counts as failed


class Mirror:
    """The objects of one kind."""

    def __init__(
        self,
        store: Store,
        kind: ResourceKey,
        *,
        clock: Clock,
        selection: Selection = EVERYTHING,
        may_be_missing: bool = False,
        counts: Callable[[Name, Stored], bool] = lambda _name, _stored: True,
    ) -> None:
        """With `may_be_missing`, a kind that the store does not serve or allow has no objects.

        What does not count is as if it were not there.
        """
        self.kind = kind
        self.followers: list[Follower] = []
        self.is_complete = asyncio.Event()  # the first list has been read
        self.listed: list[Callable[[], None]] = []  # called after each complete list
        self.resumed: list[Callable[[], None]] = []  # called when a watch goes on without a list
        self.is_listing = False  # what goes now is missing from a list, and may never have been
        self._store = store
        self._clock = clock
        self._selection = selection
        self._may_be_missing = may_be_missing
        self._counts = counts
        self._objects: dict[Name, Stored] = {}
        self._versions: dict[Name, str] = {}
        self._version = ""
        self._open: Watch | None = None
        self._asked: list[asyncio.Future[None]] = []  # callers waiting for a new list

    def get(self, name: Name) -> Stored | None:
        return self._objects.get(name)

    def items(self) -> Iterator[tuple[Name, Stored]]:
        return iter(self._objects.items())

    def names(self) -> list[Name]:
        return sorted(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    async def run(self) -> None:
        """Mirrors the store until cancelled."""
        futile = 0  # attempts in a row that failed
        while True:
            has_failed = False
            began = self._clock.monotonic()
            try:
                is_resumed = bool(self._version) and not self._asked
                if not is_resumed:
                    await self._list()
                began = self._clock.monotonic()
                await self._watch(is_resumed=is_resumed)
            except Expired:
                self._version = ""
            except (ApiError, OSError) as fault:
                has_failed = True
                is_missing = self._may_be_missing and isinstance(fault, NotFound | Forbidden)
                if is_missing:
                    self._give_up()
                if not is_missing or not futile:
                    _log.warning("cannot follow %s, trying again: %s", self.kind.plural, fault)
            if self._clock.monotonic() - began >= _SHORT_SECONDS:
                futile = 0
            if (has_failed or futile) and not self._asked:  # a watch that ended is resumed at once
                await self._clock.sleep(self._back_off(futile))
            futile += 1

    def _back_off(self, futile: int) -> float:
        """Exponential backoff with jitter by kind, so that mirrors do not retry at once."""
        seconds = min(_BACK_OFF_SECONDS * 2.0 ** min(futile, 16), _BACK_OFF_SECONDS_MAX)
        return seconds * (0.75 + crc32(f"{self.kind.plural} {futile}".encode()) % 1000 / 2000)

    async def refresh(self) -> None:
        """Returns once the mirror is at least as new as the store at the time of the call."""
        read: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.append(read)
        if self._open is not None:
            await _close(self._open)  # a watch may be behind
        await read

    async def _list(self) -> None:
        asked = list(self._asked)
        listing = await self._store.list(self.kind, self._selection)
        self.is_listing = True
        try:
            await self._take_list(listing)
        finally:
            self.is_listing = False
        self._version = listing.version
        self.is_complete.set()
        for read in asked:
            self._asked.remove(read)
            if not read.done():
                read.set_result(None)
        for tell in self.listed:
            tell()

    async def _take_list(self, listing: Listing) -> None:
        result: set[Name] = set()
        for number, stored in enumerate(listing.items):
            if number % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)  # lets other tasks run
            name, version = _identity(stored)
            result.add(name)
            self._put(name, version, stored)
        for name in [object_ for object_ in self._objects if object_ not in result]:
            self._drop(name)

    def _give_up(self) -> None:
        """There are no objects, as far as can be known."""
        for name in list(self._objects):
            self._drop(name)
        self._version = ""
        self.is_complete.set()
        asked, self._asked = self._asked, []
        for read in asked:
            if not read.done():
                read.set_result(None)

    async def _watch(self, *, is_resumed: bool) -> None:
        watch: Watch = await self._store.watch(
            self.kind, self._selection, WatchFrom(version=self._version, bookmarks=True)
        )
        self._open = watch
        try:
            for tell in self.resumed if is_resumed else ():
                tell()
            while not self._asked and (events := await watch.batch()):
                for number, event in enumerate(events):
                    if number % _SLICE == _SLICE - 1:
                        await asyncio.sleep(0)
                    self._take(event)
        finally:
            self._open = None
            await _close(watch)

    def _take(self, event: WatchEvent) -> None:
        self._version = event.version
        if event.type == "BOOKMARK":
            return
        name, version = _identity(event.stored)
        if event.type == "DELETED":
            self._drop(name)
        else:
            self._put(name, version, event.stored)

    def _put(self, name: Name, version: str, stored: Stored) -> None:
        if self._versions.get(name) == version:
            return  # already delivered
        if not self._counts(name, stored):
            self._drop(name)
            return
        self._objects[name] = stored
        self._versions[name] = version
        self._tell(name, stored)

    def _drop(self, name: Name) -> None:
        if self._objects.pop(name, None) is None:
            return
        self._versions.pop(name, None)
        self._tell(name, None)

    def _tell(self, name: Name, stored: Stored | None) -> None:
        for follow in self.followers:
            try:
                follow(name, stored)
            except Exception:
                _log.exception("%s %s is set aside by one who follows", self.kind.plural, name)


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str
    namespace: str = ""


class _Head(msgspec.Struct):
    """The part of an object that identifies it."""

    metadata: _Metadata


_head = msgspec.json.Decoder(_Head).decode


def _identity(stored: Stored) -> tuple[Name, str]:
    metadata = _head(stored.raw).metadata
    return (metadata.namespace, metadata.name), metadata.resource_version


def version_of(stored: Stored) -> str:
    """The resource version of an object, without decoding the rest."""
    return _head(stored.raw).metadata.resource_version


def is_newer(stored: Stored, other: Stored) -> bool:
    """Whether an object is at a later version; versions that are not numbers only differ."""
    versions = [version_of(each) for each in (stored, other)]
    if all(each.isdecimal() for each in versions):
        return int(versions[0]) > int(versions[1])
    return versions[0] != versions[1]


async def _close(watch: Watch) -> None:
    with suppress(ApiError, OSError):
        await watch.close()


async def refresh(mirrors: Sequence[Mirror]) -> None:
    """Returns once every mirror is at least as new as the store is now."""
    async with asyncio.TaskGroup() as tasks:
        for mirror in mirrors:
            tasks.create_task(mirror.refresh())


async def complete(mirrors: Sequence[Mirror]) -> None:
    """Returns once every mirror has read its first list."""
    for mirror in mirrors:
        await mirror.is_complete.wait()
