"""A journal whose end is lost: it is noticed, and no version is ever given twice."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from fairway.api.errors import Expired
from fairway.clock import VirtualClock
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey, WatchFrom, Write
from fairway.store.keys import NAMESPACES

CONFIG_MAPS = ResourceKey("", "v1", "configmaps")
YEARS = 10 * 365 * 86_400.0


def cut(path: Path) -> None:
    """Removes the last two writes."""
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "DELETE FROM log WHERE version IN (SELECT version FROM log ORDER BY 1 DESC LIMIT 2)"
        )


def remove(path: Path) -> None:
    path.unlink()


def opened(path: Path, clock: VirtualClock) -> EmbeddedStore:
    store = EmbeddedStore(SqliteJournal(path, is_inline=True), standard_catalogue(), clock=clock)
    store.start()
    return store


async def write(store: EmbeddedStore, *names: str) -> list[int]:
    given = []
    for name in names:
        body = {"metadata": {"name": name}}
        kept = await store.create(CONFIG_MAPS, body, namespace="default", write=Write())
        given.append(int(kept.object()["metadata"]["resourceVersion"]))
    return given


async def fill(path: Path, clock: VirtualClock) -> list[int]:
    store = opened(path, clock)
    await store.create(NAMESPACES, {"metadata": {"name": "default"}}, write=Write())
    given = await write(store, "a", "b", "c")
    await store.close()
    return given


@pytest.mark.parametrize("lose", [cut, remove])
@pytest.mark.parametrize("seconds", [1.0, -3600.0], ids=["later", "with the time set back"])
async def test_versions_of_lost_writes_are_never_given_again(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    lose: Callable[[Path], None],
    seconds: float,
) -> None:
    path, clock = tmp_path / "hub.db", VirtualClock()
    await fill(path, clock)
    assert (tmp_path / "hub.versions").stat().st_mode & 0o077 == 0
    await clock.advance(1)
    store = opened(path, clock)  # from here on, versions are derived from the time
    given = await write(store, "d", "e")
    await store.close()
    lose(path)
    clock.step(seconds)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "fairway.store"):
        store = opened(path, clock)
    assert f"and version {given[-1]} was written" in caplog.text
    assert int((await store.list(NAMESPACES)).version) > given[-1]
    with pytest.raises(Expired):
        await store.watch(CONFIG_MAPS, start=WatchFrom(version=str(given[-1])))
    if lose is remove:
        await store.create(NAMESPACES, {"metadata": {"name": "default"}}, write=Write())
    assert min(await write(store, "d", "e", "f")) > given[-1]
    await store.close()


async def test_a_start_far_ahead_that_wrote_nothing_is_remembered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "hub.db", VirtualClock()
    await fill(path, clock)
    clock.step(YEARS)
    store = opened(path, clock)
    told = int((await store.list(CONFIG_MAPS)).version)
    await store.close()
    clock.step(-YEARS)
    store = opened(path, clock)
    assert int((await store.list(CONFIG_MAPS)).version) > told
    assert min(await write(store, "d")) > told
    await store.close()
    assert "missing" not in caplog.text  # nothing was lost


async def test_an_unreadable_note_keeps_no_hub_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "hub.db", VirtualClock()
    before = await fill(path, clock)
    (tmp_path / "hub.versions").write_bytes(b"\xff\x00garbage")
    await clock.advance(1)
    store = opened(path, clock)
    assert "cannot be read" in caplog.text
    assert min(await write(store, "d")) > before[-1]
    await store.close()
