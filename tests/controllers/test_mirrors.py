"""Mirrors hold what the store holds, whatever happens to their watches."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Store, Stored, Watch, Write
from fairway.store.mirrors import Mirror, Name

CONFIGURATIONS = ResourceKey("", "v1", "configmaps")


async def _put(store: EmbeddedStore, name: str, value: str = "") -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"v": value},
    }
    patch = Patch(type="apply", body=body, force=True)
    await store.patch(CONFIGURATIONS, name, patch, namespace="default", write=Write())


class _Told:
    """What a follower was told."""

    def __init__(self, mirror: Mirror) -> None:
        self.of: list[tuple[str, str | None]] = []
        mirror.followers.append(self._follow)

    def _follow(self, name: Name, stored: Stored | None) -> None:
        self.of.append((name[1], stored.object()["data"]["v"] if stored else None))


@pytest.fixture
async def mirror(store: EmbeddedStore, clock: VirtualClock) -> Mirror:
    return Mirror(store, CONFIGURATIONS, clock=clock)


async def test_what_is_there_is_told_first_then_what_changes(
    store: EmbeddedStore, clock: VirtualClock, mirror: Mirror
) -> None:
    await _put(store, "one", "a")
    told = _Told(mirror)
    running = asyncio.ensure_future(mirror.run())
    await mirror.is_complete.wait()
    await _put(store, "two", "b")
    await _put(store, "one", "c")
    await store.delete(CONFIGURATIONS, "two", namespace="default", write=Write())
    await clock.advance(1)
    assert told.of == [("one", "a"), ("two", "b"), ("one", "c"), ("two", None)]
    assert mirror.names() == [("default", "one")]
    running.cancel()


class _Cut:
    """A store whose watches can be cut, as by a connection that breaks."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.list = store.list
        self._store = store
        self._watches: list[Watch] = []

    async def watch(self, *arguments: Any) -> Watch:
        self._watches.append(await self._store.watch(*arguments))
        return self._watches[-1]

    async def cut(self) -> None:
        for watch in self._watches:
            await watch.close()


async def test_a_mirror_whose_watch_ended_goes_on_where_it_was(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    cut = _Cut(store)
    mirror = Mirror(cast("Store", cut), CONFIGURATIONS, clock=clock)
    told = _Told(mirror)
    resumed: list[str] = []
    mirror.resumed.append(lambda: resumed.append("resumed"))
    running = asyncio.ensure_future(mirror.run())
    await mirror.is_complete.wait()
    await clock.advance(1)
    assert resumed == []
    await cut.cut()
    await _put(store, "one", "a")
    await clock.advance(30)
    assert told.of == [("one", "a")]
    assert resumed == ["resumed"]
    running.cancel()


async def test_what_was_missed_altogether_is_told_as_differences(
    store: EmbeddedStore, clock: VirtualClock, mirror: Mirror
) -> None:
    await _put(store, "stays", "a")
    await _put(store, "goes", "a")
    running = asyncio.ensure_future(mirror.run())
    await mirror.is_complete.wait()
    running.cancel()
    await clock.advance(1)
    await store.delete(CONFIGURATIONS, "goes", namespace="default", write=Write())
    await _put(store, "comes", "b")
    told = _Told(mirror)
    mirror._version = ""  # as after Expired
    running = asyncio.ensure_future(mirror.run())
    await clock.advance(1)
    assert told.of == [("comes", "b"), ("goes", None)]
    running.cancel()


class _Silent:
    """A watch that tells nothing until it is closed."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._closed = asyncio.Event()

    async def batch(self) -> list[Any]:
        await self._closed.wait()
        return []

    async def close(self) -> None:
        self._closed.set()
        await self._watch.close()


class _Behind:
    """A store whose watches tell nothing at first."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self._watches = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def watch(self, *arguments: Any) -> Any:
        self._watches += 1
        watch = await self._store.watch(*arguments)
        return _Silent(watch) if self._watches == 1 else watch


async def test_what_a_watch_has_not_told_yet_is_read_when_asked_for(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    mirror = Mirror(cast(Store, _Behind(store)), CONFIGURATIONS, clock=clock)
    told = _Told(mirror)
    running = asyncio.ensure_future(mirror.run())
    await mirror.is_complete.wait()
    await _put(store, "one", "a")
    await clock.advance(5)
    assert told.of == []
    await mirror.refresh()
    assert told.of == [("one", "a")]
    await _put(store, "one", "b")
    await clock.advance(1)
    assert told.of == [("one", "a"), ("one", "b")]
    running.cancel()


class _Ending:
    """A store whose watches end as soon as they begin."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.list = store.list
        self._store = store
        self.watched_at: list[float] = []
        self.clock: VirtualClock | None = None

    async def watch(self, *arguments: Any) -> Watch:
        assert self.clock is not None
        self.watched_at.append(self.clock.now())
        watch = await self._store.watch(*arguments)
        await watch.close()
        return watch


async def test_watches_that_end_at_once_are_begun_ever_more_seldom(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    ending = _Ending(store)
    ending.clock = clock
    mirror = Mirror(cast("Store", ending), CONFIGURATIONS, clock=clock)
    running = asyncio.ensure_future(mirror.run())
    await clock.advance(120)
    running.cancel()
    pauses = [
        after - before
        for before, after in zip(ending.watched_at, ending.watched_at[1:], strict=False)
    ]
    assert len(pauses) < 30
    assert pauses[0] == 0  # one that ended is taken up at once
    assert max(pauses[:6]) < 5 < min(pauses[-3:])
    assert all(pause <= 12.5 for pause in pauses)
    assert len({round(pause, 6) for pause in pauses[1:]}) == len(pauses) - 1  # never in step


async def test_one_who_fails_at_an_object_keeps_nobody_from_hearing_of_it_or_of_the_next(
    store: EmbeddedStore, clock: VirtualClock, mirror: Mirror
) -> None:
    def choke(name: Name, stored: Stored | None) -> None:
        if stored is not None and stored.object()["data"]["v"] == "bad":
            raise ValueError(name)

    mirror.followers.append(choke)
    told = _Told(mirror)
    running = asyncio.ensure_future(mirror.run())
    await mirror.is_complete.wait()
    await _put(store, "one", "bad")
    await _put(store, "two", "good")
    await clock.advance(1)
    assert told.of == [("one", "bad"), ("two", "good")]
    running.cancel()


SWEEPS = ResourceKey("sweeps.example.com", "v1", "sweeps")
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "sweeps.sweeps.example.com"},
    "spec": {
        "group": "sweeps.example.com",
        "scope": "Namespaced",
        "names": {"plural": "sweeps", "singular": "sweep", "kind": "Sweep", "listKind": "Sweeps"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


async def test_a_kind_that_is_not_served_has_no_objects_until_it_is(
    store: EmbeddedStore, clock: VirtualClock
) -> None:
    needed = Mirror(store, SWEEPS, clock=clock)
    mirror = Mirror(store, SWEEPS, clock=clock, may_be_missing=True)
    running = [asyncio.ensure_future(each.run()) for each in (needed, mirror)]
    await clock.advance(1)
    assert mirror.is_complete.is_set()
    assert not needed.is_complete.is_set()
    definitions = ResourceKey("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    await store.create(definitions, DEFINITION, write=Write())
    sweep = {"apiVersion": "sweeps.example.com/v1", "kind": "Sweep", "metadata": {"name": "rates"}}
    await store.create(SWEEPS, sweep, namespace="default", write=Write())
    await clock.advance(30)
    assert mirror.names() == needed.names() == [("default", "rates")]
    for task in running:
        task.cancel()
