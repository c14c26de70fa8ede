"""Killed at full speed, the store loses nothing that it acknowledged.

A child process writes from eight tasks and reports each acknowledgement; it is killed with SIGKILL
in the middle, three times over on the same data. After each death: every acknowledged write is
there, versions have not gone back, and a watch from any version that the store still knows tells
every change after it, in order and without a gap.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fairway.api.errors import Expired
from fairway.app import open_store
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import WatchFrom
from tests.store.crash_writer import CONFIG_MAPS

ACKNOWLEDGED_BEFORE_DEATH = 600
ROUNDS = 3


@dataclass
class Said:
    """What the writer was told, over all its lives."""

    step_by_name: dict[str, str] = field(default_factory=dict)
    version_by_name: dict[str, int] = field(default_factory=dict)
    versions: list[int] = field(default_factory=list)

    def hear(self, line: str) -> None:
        step, name, version = line.split()
        self.step_by_name[name] = step
        self.version_by_name[name] = int(version)
        self.versions.append(int(version))


def write_until_killed(folder: Path, turn: int, said: Said) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.store.crash_writer", str(folder), str(turn)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout is not None
    for count, line in enumerate(child.stdout):
        said.hear(line)
        if count == ACKNOWLEDGED_BEFORE_DEATH:
            os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()


async def check(store: EmbeddedStore, said: Said) -> None:
    listing = await store.list(CONFIG_MAPS)
    found = {item.object()["metadata"]["name"]: item.object() for item in listing.items}
    for name, step in said.step_by_name.items():
        if step == "deleted":
            assert name not in found, f"{name} was deleted and is back"
        else:
            # It may have been written once more without anybody hearing of it.
            if name not in found:
                assert name.rpartition("-")[2].isdigit()
                assert int(name.rpartition("-")[2]) % 3 == 2, f"{name} is lost"
                continue
            version = int(found[name]["metadata"]["resourceVersion"])
            assert version >= said.version_by_name[name]
            if version == said.version_by_name[name]:
                assert found[name]["data"]["step"] == step
    assert store.writer.published >= max(said.versions)


async def check_watch(store: EmbeddedStore, said: Said) -> None:
    since = sorted(said.versions)[len(said.versions) // 2]
    watch = await store.watch(CONFIG_MAPS, start=WatchFrom(version=str(since)))
    events = await watch.batch()
    versions = [int(event.version) for event in events]
    assert versions == sorted(set(versions))
    heard = set(versions)
    for name, version in said.version_by_name.items():
        if version > since and said.step_by_name[name] != "deleted":
            assert version in heard, f"the watch missed {name} at {version}"
    await watch.close()
    # A version of another history is refused rather than answered with a gap.
    if store._history.floor > 1:
        with pytest.raises(Expired):
            await store.watch(CONFIG_MAPS, start=WatchFrom(version="1"))


def test_a_killed_store_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    said = Said()
    for turn in range(ROUNDS):
        write_until_killed(tmp_path, turn, said)

        async def look() -> None:
            store = open_store(tmp_path)
            await check(store, said)
            await check_watch(store, said)
            await store.close()

        asyncio.run(look())
    assert len(said.versions) >= ROUNDS * ACKNOWLEDGED_BEFORE_DEATH


def test_a_second_hub_on_the_same_data_is_refused(tmp_path: Path) -> None:
    async def try_twice() -> None:
        store = open_store(tmp_path)
        with pytest.raises(Exception, match="another hub"):
            open_store(tmp_path)
        await store.close()

    asyncio.run(try_twice())
