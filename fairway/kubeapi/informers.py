"""Informers: a cache of all objects of a kind, kept up to date by watches.

See the package for what an informer does. Memory is bounded by what `read` keeps of each existing
object: pages are read one by one, and a relist replaces objects as it goes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Generic

from fairway.api.errors import ApiError, Expired
from fairway.clock import Clock
from fairway.kubeapi.api import KubeApi
from fairway.kubeapi.parse import Head, Read, SeenEvent, T
from fairway.kubeapi.patience import spread
from fairway.loops import Alarm
from fairway.store.interface import EVERYTHING, ResourceKey, Selection, WatchFrom

Name = tuple[str, str]  # (namespace, name)

_log = logging.getLogger(__name__)

_BACK_OFF_SECONDS = 0.2
_BACK_OFF_SECONDS_MAX = 30.0


class Informer(Generic[T]):
    """The objects of one kind, reduced to what `read` keeps."""

    def __init__(
        self,
        api: KubeApi,
        kind: ResourceKey,
        *,
        read: Read[T],
        clock: Clock,
        selection: Selection = EVERYTHING,
    ) -> None:
        self.kind = kind
        self.followers: list[Callable[[Name, T | None], None]] = []
        self.listed: list[Callable[[], None]] = []  # called after each complete list
        self.is_complete = asyncio.Event()  # the first list has been read
        self.fault: ApiError | None = None  # why it cannot list or watch now
        self._api = api
        self._read = read
        self._clock = clock
        self._selection = selection
        self._objects: dict[Name, T] = {}
        self._heads: dict[Name, Head] = {}
        self._version = ""
        self._hurry = Alarm(clock)
        self.heard_at = float("-inf")  # when the server last sent anything, by the monotonic clock

    def get(self, name: Name) -> T | None:
        return self._objects.get(name)

    def head(self, name: Name) -> Head | None:
        return self._heads.get(name)

    def items(self) -> Iterator[tuple[Name, T]]:
        return iter(self._objects.items())

    def __len__(self) -> int:
        return len(self._objects)

    async def run(self) -> None:
        """Follows until cancelled."""
        failures = 0
        while True:
            try:
                if not self._version:
                    await self._list()
                    failures, self.fault = 0, None
                is_quiet = await self._watch()
                failures = failures + 1 if is_quiet else 0
            except Expired:
                self._version = ""
                failures += 1
            except ApiError as fault:
                failures += 1
                self.fault = fault
                _log.warning("cannot follow %s, trying again: %s", self.kind.plural, fault)
            if failures:
                # Watches that end at once must not be reopened in a tight loop either.
                longest = min(_BACK_OFF_SECONDS * 2.0 ** (failures - 1), _BACK_OFF_SECONDS_MAX)
                await self._hurry.wait(self._clock.now() + spread(longest))

    def hurry(self) -> None:
        """Skips the current backoff, since the server is known to answer."""
        self._hurry.mark()

    async def _list(self) -> None:
        result: set[Name] = set()
        version = ""
        async for page in self._api.pages(self.kind, self._selection, read=self._read):
            for seen in page.items:
                result.add((seen.head.namespace, seen.head.name))
                self._put(seen.head, seen.value)
            version = page.version
            self.heard_at = self._clock.monotonic()
            await asyncio.sleep(0)
        for name in [object_ for object_ in self._objects if object_ not in result]:
            self._drop(name)
        self._version = version
        self.is_complete.set()
        for tell in self.listed:
            tell()

    async def _watch(self) -> bool:
        """Follows one watch to its end; returns whether it brought no event at all."""
        start = WatchFrom(version=self._version, bookmarks=True)
        is_quiet = True
        watch = self._api.watch(self.kind, self._selection, start, read=self._read)
        async with aclosing(watch) as batches:
            async for batch in batches:
                is_quiet, self.fault = is_quiet and not batch, None
                self.heard_at = self._clock.monotonic()
                for event in batch:
                    self._take(event)
        return is_quiet

    def _take(self, event: SeenEvent[T]) -> None:
        self._version = event.head.resource_version
        if event.type == "DELETED":
            self._drop((event.head.namespace, event.head.name))
        elif event.type != "BOOKMARK":
            assert event.value is not None, "an object was read"
            self._put(event.head, event.value)

    def _put(self, head: Head, value: T) -> None:
        name = (head.namespace, head.name)
        before = self._heads.get(name)
        if before is not None and before.resource_version == head.resource_version:
            return  # followers know this version
        self._objects[name] = value
        self._heads[name] = head
        for follow in self.followers:
            follow(name, value)

    def _drop(self, name: Name) -> None:
        if self._objects.pop(name, None) is None and name not in self._heads:
            return
        self._heads.pop(name, None)
        for follow in self.followers:
            follow(name, None)
