"""A store whose data was replaced by a backup: whoever has seen later writes lists again."""

from __future__ import annotations

import pytest

from fairway.api.errors import Expired
from fairway.clock import VirtualClock
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import Row
from fairway.store.embedded.memory import MemoryJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Page, ResourceKey, WatchFrom, Write

CONFIG_MAPS = ResourceKey("", "v1", "configmaps")


def opened(rows: list[Row], clock: VirtualClock) -> tuple[EmbeddedStore, MemoryJournal]:
    journal = MemoryJournal(rows)
    store = EmbeddedStore(journal, standard_catalogue(), clock=clock)
    store.start()
    return store, journal


async def write(store: EmbeddedStore, *names: str) -> str:
    for name in names:
        body = {"metadata": {"name": name}}
        await store.create(CONFIG_MAPS, body, namespace="default", write=Write())
    return (await store.list(CONFIG_MAPS)).version


async def test_a_version_of_writes_that_a_restored_store_has_lost_is_expired() -> None:
    clock = VirtualClock()
    store, journal = opened([], clock)
    namespace = {"metadata": {"name": "default"}}
    await store.create(ResourceKey("", "v1", "namespaces"), namespace, write=Write())
    known = await write(store, "a")
    backup = list(journal.rows)
    lost = await write(store, "b", "c")
    await store.close()
    await clock.advance(1)
    restored, journal = opened(backup, clock)
    await write(restored, "d", "e", "f")  # more than were lost
    with pytest.raises(Expired):
        await restored.watch(CONFIG_MAPS, start=WatchFrom(version=lost))
    with pytest.raises(Expired):
        await restored.list(CONFIG_MAPS, page=Page(version=lost, match="Exact"))
    watch = await restored.watch(CONFIG_MAPS, start=WatchFrom(version=known))
    names = [event.stored.object()["metadata"]["name"] for event in await watch.batch()]
    assert names == ["d", "e", "f"]
    await restored.close()
    # The next start still knows which versions were never given.
    await clock.advance(1)
    again, _ = opened(list(journal.rows), clock)
    with pytest.raises(Expired):
        await again.watch(CONFIG_MAPS, start=WatchFrom(version=lost))
    watch = await again.watch(CONFIG_MAPS, start=WatchFrom(version=known))
    assert len(await watch.batch()) == 3
    await again.close()
