"""A backup is one moment of a store that goes on, and a restored store is that moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairway.api.errors import Expired, NotFound, Unavailable
from fairway.app.restore import restore_folder
from fairway.clock import VirtualClock
from fairway.resources.catalogue import standard_catalogue
from fairway.sealing import KeyFault, Keyring
from fairway.store.backup_lines import BackupFault, check, read_items
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, WatchFrom, Write
from tests.store.backups import back_up, restore

CONFIG_MAPS = ResourceKey("", "v1", "configmaps")
NAMESPACES = ResourceKey("", "v1", "namespaces")
KEYS = Keyring([b"k" * 32])


@asynccontextmanager
async def opened(
    folder: Path, clock: VirtualClock, keys: Keyring | None = None
) -> AsyncIterator[EmbeddedStore]:
    folder.mkdir(exist_ok=True)
    journal = SqliteJournal(folder / "fairway.db", is_inline=True, keys=keys)
    store = EmbeddedStore(journal, standard_catalogue(), clock=clock)
    store.start()
    try:
        yield store
    finally:
        await store.close()


async def write(store: EmbeddedStore, *names: str) -> None:
    for name in names:
        body = {"metadata": {"name": name}, "data": {"text": "ä\u2028" * 3}}
        await store.create(CONFIG_MAPS, body, namespace="default", write=Write())


async def change(store: EmbeddedStore, name: str) -> None:
    patch = Patch(type="merge", body={"metadata": {"labels": {"changed": "yes"}}})
    await store.patch(CONFIG_MAPS, name, patch, namespace="default", write=Write())


async def state(store: EmbeddedStore) -> list[bytes]:
    return [stored.raw for stored in (await store.list(CONFIG_MAPS)).items]


@pytest.fixture(params=[None, KEYS], ids=["plain", "encrypted"])
def keys(request: pytest.FixtureRequest) -> Keyring | None:
    return request.param


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def lines(tmp_path: Path, clock: VirtualClock, keys: Keyring | None) -> list[bytes]:
    async with opened(tmp_path / "first", clock, keys) as store:
        await store.create(NAMESPACES, {"metadata": {"name": "default"}}, write=Write())
        await write(store, "a", "b", "c")
        return await back_up(store, keys)


async def test_a_restored_store_is_what_was_backed_up_to_the_byte(
    tmp_path: Path, clock: VirtualClock, keys: Keyring | None
) -> None:
    async with opened(tmp_path / "first", clock, keys) as store:
        await store.create(NAMESPACES, {"metadata": {"name": "default"}}, write=Write())
        await asyncio.gather(*(write(store, str(number)) for number in range(600)))
        await change(store, "7")
        await store.delete(CONFIG_MAPS, "8", namespace="default", write=Write())
        before = await state(store)
        backup = await back_up(store, keys)
        await change(store, "9")  # it goes on
    await restore(backup, tmp_path / "second", keys)
    async with opened(tmp_path / "second", clock, keys) as restored:
        assert await state(restored) == before


async def test_a_backup_is_one_moment_while_others_write(
    tmp_path: Path, clock: VirtualClock
) -> None:
    async with opened(tmp_path / "first", clock) as store:
        await store.create(NAMESPACES, {"metadata": {"name": "default"}}, write=Write())

        async def pairs() -> None:
            for number in range(40):
                await write(store, f"first-{number}")
                await write(store, f"then-{number}")

        writing = asyncio.ensure_future(pairs())
        backups = []
        while not writing.done():
            backups.append(await back_up(store))
            await asyncio.sleep(0)
        await writing
    seen = [{item.name for item in read_items(backup, None)} for backup in backups]
    assert any(10 < len(names) < 70 for names in seen)  # else it never wrote meanwhile
    for names in seen:
        for name in names:
            kind, _, number = name.partition("-")
            # What came later is never there without what came before.
            assert kind != "then" or f"first-{number}" in names


async def test_versions_go_on_above_all_that_were_handed_out(
    tmp_path: Path, clock: VirtualClock, lines: list[bytes], keys: Keyring | None
) -> None:
    async with opened(tmp_path / "first", clock, keys) as store:
        await change(store, "a")
        await write(store, "lost")
        lost = store.version
    # The clock does not help: it shows an earlier time than when the lost writes were made.
    await restore(lines, tmp_path / "first", keys)
    async with opened(tmp_path / "first", VirtualClock(0), keys) as restored:
        with pytest.raises(NotFound):
            await restored.get(CONFIG_MAPS, "lost", "default")
        await change(restored, "b")
        assert restored.version > lost
        for version in (lost, lost - 1, lost - 2, 1):
            with pytest.raises(Expired):
                await restored.watch(CONFIG_MAPS, start=WatchFrom(version=str(version)))


async def test_a_used_folder_keeps_its_newer_files_and_its_store_aside(
    tmp_path: Path, clock: VirtualClock, lines: list[bytes], keys: Keyring | None
) -> None:
    folder = tmp_path / "first"
    (folder / "clusters" / "here").mkdir(parents=True)
    (folder / "clusters" / "here" / "works.log").write_text("what an agent knows")
    async with opened(folder, clock, keys) as store:
        await write(store, "later")
    await restore(lines, folder, keys)
    assert (folder / "clusters" / "here" / "works.log").read_text() == "what an agent knows"
    async with opened(folder / "aside", clock, keys) as old:
        assert len(await state(old)) == 4
    async with opened(folder, clock, keys) as restored:
        assert len(await state(restored)) == 3


async def test_the_folder_of_a_running_hub_is_refused_and_left_alone(
    tmp_path: Path, clock: VirtualClock, lines: list[bytes], keys: Keyring | None
) -> None:
    async with opened(tmp_path / "first", clock, keys) as store:
        with pytest.raises(Unavailable, match="another hub is using"):
            await restore(lines, tmp_path / "first", keys)
        await write(store, "later")
        assert len(await state(store)) == 4
    names = {path.name for path in (tmp_path / "first").iterdir()}
    assert names == {"fairway.db", "fairway.versions"}


def cut(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def cut_amid(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[2][:40]]


def leave_out(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], *lines[3:]]


def change_byte(lines: list[bytes]) -> list[bytes]:
    line = bytearray(lines[2])
    line[len(line) // 2] ^= 1
    return [*lines[:2], bytes(line), *lines[3:]]


def nothing(lines: list[bytes]) -> list[bytes]:
    return []


def something_else(lines: list[bytes]) -> list[bytes]:
    return [b'{"kind": "List"}\n']


def from_later(lines: list[bytes]) -> list[bytes]:
    header = json.loads(lines[0])
    header["backup"]["format"] = 2
    return [json.dumps(header).encode() + b"\n", *lines[1:]]


@pytest.mark.parametrize(
    "spoil", [cut, cut_amid, leave_out, change_byte, nothing, something_else, from_later]
)
async def test_what_is_not_a_whole_backup_is_refused_before_anything_is_touched(
    tmp_path: Path,
    lines: list[bytes],
    keys: Keyring | None,
    spoil: Callable[[list[bytes]], list[bytes]],
) -> None:
    check(lines)
    spoilt = spoil(lines)
    with pytest.raises(BackupFault):
        check(spoilt)
    with pytest.raises(BackupFault):
        await restore_folder(lambda: iter(spoilt), tmp_path / "second", keys)
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize("keys", [KEYS])
async def test_an_encrypted_backup_needs_its_key(tmp_path: Path, lines: list[bytes]) -> None:
    for others in (None, Keyring([b"x" * 32])):
        with pytest.raises(KeyFault, match="with the key"):
            await restore(lines, tmp_path / "second", others)
        assert not any((tmp_path / "second").iterdir())
