"""Someone has a copy of a hub's folder, or may write to it, and does not have its key."""

from __future__ import annotations

import base64
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from fairway.app import HubOptions, open_hub
from fairway.client import AsyncClient
from fairway.hub.decision_log import read_segment
from fairway.hub.encryption_keys import KeySource
from fairway.sealing import KeyFault, Keyring
from fairway.store.embedded.journal import Row, SqliteJournal
from tests.waiting import followed

SECRET = b"hunter2-of-a-tenant"
WRITTEN = base64.b64encode(SECRET)
OURS = "fairway.dev/v1alpha1"
NODES = [{"name": "node", "count": 1, "shape": {"cpu": "16", "memory": "64Gi", "pods": "110"}}]
POD = {
    "restartPolicy": "Never",
    "containers": [
        {
            "name": "main",
            "image": "training",
            "envFrom": [{"secretRef": {"name": "token"}}],
            "resources": {"limits": {"cpu": "1"}},
        }
    ],
}


def secret(name: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"password": WRITTEN.decode()},
    }


JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {"template": {"spec": POD}},
}
OBJECTS: list[dict] = [
    {"apiVersion": OURS, "kind": "Queue", "metadata": {"name": "all"}, "spec": {}},
    {
        "apiVersion": OURS,
        "kind": "Cluster",
        "metadata": {"name": "here"},
        "spec": {"simulated": {"nodePools": NODES}},
    },
    secret("token"),
    {
        "apiVersion": OURS,
        "kind": "Workload",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"queue": "all", "template": {"manifests": [JOB, secret("inline")]}},
    },
]
OBJECTS[0]["spec"]["uncovered"] = "Unlimited"


def readable(folder: Path) -> list[str]:
    """The files from which the Secret can be read, also where they are compressed."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix in (".decisions", ".history"):
                content += b"\n".join(read_segment(path))
            if SECRET in content or WRITTEN in content:
                found.append(str(path.relative_to(folder)))
    return found


async def run_workload(options: HubOptions) -> None:
    """A workload runs that uses a Secret, and brings another."""
    async with open_hub(options) as hub, AsyncClient.connect(str(hub.kubeconfig)) as client:
        for body in OBJECTS:
            await client.create(body)
        await followed(client, "train", "Running", namespace="default")
        if options.keys.file is not None:
            assert readable(options.data) == []


def key_in(folder: Path) -> Path:
    folder.mkdir()
    path = folder / "key"
    path.touch(mode=0o600)
    path.write_bytes(base64.b64encode(os.urandom(32)))
    return path


async def test_no_secret_can_be_read_from_any_file_of_a_hub_with_a_key(tmp_path: Path) -> None:
    data = tmp_path / "data"
    keys = KeySource(file=key_in(tmp_path / "elsewhere"))
    await run_workload(HubOptions(data=data, port=0, keys=keys))
    assert readable(data) == []


async def test_nor_from_one_that_got_its_key_later(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await run_workload(HubOptions(data=data, port=0))
    assert readable(data)  # else this test sees nothing
    # Recorded by an earlier version, which did not leave Secrets out.
    (data / "decisions" / ".without-secrets").unlink(missing_ok=True)
    # Of a cluster that was deleted since.
    (data / "clusters" / "here").rename(data / "clusters" / "gone")
    keys = KeySource(file=key_in(tmp_path / "elsewhere"))
    async with open_hub(HubOptions(data=data, port=0, keys=keys, has_controllers=False)) as hub:
        assert readable(data) == []
        async with AsyncClient.connect(str(hub.kubeconfig)) as client:
            stored = await client.get("secrets", "token", namespace="default")
            assert stored["data"]["password"] == WRITTEN.decode()
    assert readable(data) == []


async def test_a_key_inside_the_folder_is_refused(tmp_path: Path) -> None:
    keys = KeySource(file=key_in(tmp_path / "keys"))
    with pytest.raises(KeyFault, match="keep it elsewhere"):
        async with open_hub(HubOptions(data=tmp_path, port=0, keys=keys)):
            pass


KEY = b"k" * 32


def row(version: int, name: str, text: bytes) -> Row:
    return Row(version, "", "secrets", "default", name, False, b'{"value":"%b"}' % text)


def swap(connection: sqlite3.Connection) -> None:
    """The Secret of another tenant under the name of one's own."""
    connection.execute(
        "UPDATE log SET value = (SELECT value FROM log WHERE name = 'theirs') WHERE name = 'own'"
    )


def move(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE log SET namespace = 'attacker' WHERE name = 'theirs'")


def put_back(connection: sqlite3.Connection) -> None:
    """An earlier value as if it were the newest: a password that was changed since."""
    connection.execute(
        "INSERT INTO log SELECT 9, api_group, plural, namespace, name, is_removed, value"
        " FROM log WHERE version = 1"
    )


def put_plain(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE log SET value = X'7B7D' WHERE name = 'own'")


def shorten(connection: sqlite3.Connection) -> None:
    shorter = "CAST(substr(value, 1, length(value) - 1) AS BLOB)"
    connection.execute(f"UPDATE log SET value = {shorter}")


async def read(path: Path) -> list[Row]:
    journal = SqliteJournal(path, is_inline=True, keys=Keyring([KEY]))
    try:
        return list(journal.load())
    finally:
        await journal.close()


@pytest.mark.parametrize("attack", [swap, move, put_back, put_plain, shorten])
async def test_a_value_that_was_moved_or_changed_is_refused(
    tmp_path: Path, attack: Callable[[sqlite3.Connection], None]
) -> None:
    path = tmp_path / "fairway.db"
    journal = SqliteJournal(path, is_inline=True, keys=Keyring([KEY]))
    await journal.append([row(1, "theirs", b"a"), row(2, "own", b"b"), row(3, "theirs", b"c")], ())
    await journal.close()
    with closing(sqlite3.connect(path)) as connection:
        attack(connection)
        connection.commit()
    with pytest.raises(KeyFault):
        await read(path)
