"""A store whose disk is full for a while: what is acknowledged stays, and it goes on by itself."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from fairway.api.errors import InsufficientStorage
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey, Write
from fairway.store.keys import NAMESPACES

CONFIG_MAPS = ResourceKey("", "v1", "configmaps")
WRITE = Write(user="ann")
PAGES_MOST = 60


def config_map(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": {"text": "x" * 20_000}}


def limit(journal: SqliteJournal, pages: int) -> None:
    """Lets the file grow no further, as a full disk would."""
    journal._connection.execute(f"PRAGMA max_page_count={pages}")


async def opened(path: Path) -> tuple[EmbeddedStore, SqliteJournal]:
    journal = SqliteJournal(path)
    store = EmbeddedStore(journal, standard_catalogue())
    store.start()
    return store, journal


async def fill(store: EmbeddedStore) -> list[str]:
    """Writes until it is refused; the names of what was acknowledged."""
    kept: list[str] = []
    while len(kept) < 1_000:
        name = f"one-{len(kept)}"
        try:
            await store.create(CONFIG_MAPS, config_map(name), namespace="default", write=WRITE)
        except InsufficientStorage:
            return kept
        kept.append(name)
    raise AssertionError("the disk is never full")


async def test_writes_are_refused_by_name_of_the_disk_and_kept_once_it_has_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, journal = await opened(tmp_path / "hub.db")
    await store.create(NAMESPACES, {"metadata": {"name": "default"}}, write=WRITE)
    limit(journal, PAGES_MOST)
    with caplog.at_level(logging.WARNING, "fairway.store"):
        kept = await fill(store)
        assert kept
        attempts = [
            store.create(
                CONFIG_MAPS, config_map(f"more-{number}"), namespace="default", write=WRITE
            )
            for number in range(50)
        ]
        for fault in await asyncio.gather(*attempts, return_exceptions=True):
            assert isinstance(fault, InsufficientStorage)
            assert fault.message.startswith(f"the disk with {tmp_path} is full: nothing can be")
        assert store.writer.full_disk
        assert len(caplog.records) == 1  # however many were refused
        limit(journal, 1_000_000)
        await store.create(CONFIG_MAPS, config_map("after"), namespace="default", write=WRITE)
    assert not store.writer.full_disk
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "writes are refused",
        "the disk has room again, and writes are kept",
    ]
    await store.close()
    store, _ = await opened(tmp_path / "hub.db")
    listing = await store.list(CONFIG_MAPS)
    names = {item.object()["metadata"]["name"] for item in listing.items}
    assert names == {*kept, "after"}
    await store.close()


async def test_what_has_left_the_history_is_dropped_after_a_full_disk(tmp_path: Path) -> None:
    store, journal = await opened(tmp_path / "hub.db")
    store.writer._dropped = [11, 12]
    limit(journal, 1)
    with pytest.raises(InsufficientStorage):
        await fill_namespaces(store)
    assert store.writer._dropped[:2] == [11, 12]
    await store.close()


async def fill_namespaces(store: EmbeddedStore) -> None:
    for number in range(2_000):
        body = {"metadata": {"name": f"n{number}", "annotations": {"text": "x" * 20_000}}}
        await store.create(NAMESPACES, body, write=WRITE)


def stuff_rest(folder: Path) -> None:
    """Leaves no room on a disk, as anybody else can who writes to it."""
    with suppress(OSError), (folder / "stuff").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


_ON_A_SMALL_DISK = """
import asyncio, os, sys
from pathlib import Path
from tests.store.test_full_disks import (
    CONFIG_MAPS, WRITE, config_map, fill, opened, stuff_rest
)
from fairway.store.keys import NAMESPACES

async def main(folder):
    store, _ = await opened(folder / "hub.db")
    await store.create(NAMESPACES, {"metadata": {"name": "default"}}, write=WRITE)
    (folder / "ballast").write_bytes(bytes(2 << 20))
    kept = await fill(store)
    assert kept and str(folder) in store.writer.full_disk
    assert not store.writer.has_room
    (folder / "ballast").unlink()
    await store.create(CONFIG_MAPS, config_map("after"), namespace="default", write=WRITE)
    assert not store.writer.full_disk
    await store.close()
    store, _ = await opened(folder / "hub.db")
    names = {one.object()["metadata"]["name"] for one in (await store.list(CONFIG_MAPS)).items}
    assert names == {*kept, "after"}, names
    assert store.writer.has_room
    stuff_rest(folder)
    assert not store.writer.has_room and not store.writer.full_disk  # before any write fails

asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    small = f"mount -t tmpfs -o size=4m none {tmp_path}"
    if subprocess.run([*mount, small], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    found = subprocess.run(
        [*mount, f'{small} && exec "$@"', "-", sys.executable, "-c", _ON_A_SMALL_DISK, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert found.returncode == 0, found.stderr
    assert found.stderr.count("writes are refused") == 1
