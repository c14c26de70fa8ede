"""`fairway backup`, `fairway restore` and `fairway rotate-key`, as a person uses them."""

from __future__ import annotations

import base64
import gzip
import os
import stat
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from cli_outcome import Fairway, Outcome

from fairway.agent.memory import Memory
from fairway.app import Hub, HubOptions, open_hub
from fairway.cli.main import run
from fairway.client import Client
from fairway.client.synchronous import LoopThread
from fairway.hub.encryption_keys import VARIABLE, KeySource
from fairway.sealing import Keyring

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "token", "namespace": "default"},
    "stringData": {"password": "hunter2"},
}
HEADER = (
    b'{"backup":{"store":"embedded","version":"1","takenAt":"2026-11-18T09:00:00Z",'
    b'"writtenBy":"0.4.0","format":1}}\n'
)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Fairway:
    def call(*words: str) -> Outcome:
        capsys.readouterr()
        code = run(list(words))
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


def hub_in(data: Path, keys: KeySource | None = None) -> Iterator[Hub]:
    async def running() -> AsyncGenerator[Hub, None]:
        options = HubOptions(data=data, port=0, has_controllers=False, keys=keys or KeySource())
        async with open_hub(options) as hub:
            yield hub

    loop = LoopThread()
    yield from loop.iterate(running())
    loop.stop()


def write_keys(path: Path, *keys: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_text("".join(base64.b64encode(key).decode() + "\n" for key in keys))
    return path


def password(hub: Hub) -> str:
    with Client.connect(str(hub.kubeconfig)) as client:
        held = client.get("secrets", "token", namespace="default")["data"]["password"]
    return base64.b64decode(held).decode()


def store_secret(hub: Hub) -> None:
    with Client.connect(str(hub.kubeconfig)) as client:
        client.create(SECRET)


def test_a_hub_is_backed_up_while_it_runs_and_restored_elsewhere(
    tmp_path: Path, call: Fairway
) -> None:
    first, second, file = tmp_path / "first", tmp_path / "second", tmp_path / "hub.backup"
    for hub in hub_in(first):
        store_secret(hub)
        kubeconfig = ("--kubeconfig", str(hub.kubeconfig))
        done = call("backup", "-o", str(file), *kubeconfig)
        assert done.code == 0
        assert "objects of" in done.err
        assert "It holds secrets in clear: keep it safe." in done.err
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        again = call("backup", "-o", str(file), *kubeconfig)
        assert (again.code, again.err) == (1, f"error: {file} exists; --force replaces it\n")
        assert call("backup", "-o", str(file), "--force", *kubeconfig).code == 0
        running = call("restore", str(file), "--data", str(first), "--force")
        assert running.code == 1
        assert running.err.startswith("error: another hub is using the data in")
        token = hub.token
    restored = call("restore", str(file), "--data", str(second))
    assert restored.code == 0
    assert f"are restored in {second}" in restored.err
    assert "opened and compared: sha256 " in restored.err
    for hub in hub_in(second):
        assert password(hub) == "hunter2"
        assert hub.token == token  # those who had access have it
    refused = call("restore", str(file), "--data", str(second))
    assert refused.code == 1
    assert "is not empty; --force replaces its store, and keeps it aside" in refused.err
    replaced = call("restore", str(file), "--data", str(second), "--force")
    assert replaced.code == 0
    assert "The store that was there is in" in replaced.err
    for hub in hub_in(second):
        assert password(hub) == "hunter2"


def test_a_key_encrypts_the_backup_too_and_is_changed_while_the_hub_runs(
    tmp_path: Path, call: Fairway, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, file = tmp_path / "hub", tmp_path / "hub.backup"
    old, new = os.urandom(32), os.urandom(32)
    keys = write_keys(tmp_path / "key", old)
    for hub in hub_in(data, KeySource(file=keys)):
        store_secret(hub)
        kubeconfig = ("--kubeconfig", str(hub.kubeconfig))
        assert "encrypted with the key" in call("backup", "-o", str(file), *kubeconfig).err
        write_keys(keys, new, old)
        rotated = call("rotate-key", *kubeconfig)
        assert rotated.code == 0
        assert "values were encrypted with the key" in rotated.err
        write_keys(keys, new)  # the old one is not needed any more
    for hub in hub_in(data, KeySource(file=keys)):
        assert password(hub) == "hunter2"
    second = ("--data", str(tmp_path / "second"))
    without = call("restore", str(file), *second)
    assert without.code == 1
    assert without.err.startswith("error: it is encrypted with the key")
    monkeypatch.setenv(VARIABLE, base64.b64encode(old).decode())
    assert call("restore", str(file), *second).code == 0
    command = f"{sys.executable} -c \"print('{base64.b64encode(old).decode()}')\""
    for hub in hub_in(tmp_path / "second", KeySource(command=command)):
        assert password(hub) == "hunter2"


def test_a_hub_that_lacks_the_key_of_what_agents_remember_says_so_and_starts_nothing(
    tmp_path: Path, call: Fairway
) -> None:
    memory = Memory(tmp_path / "hub" / "clusters" / "here", keys=Keyring([b"k" * 32]))
    memory.open()
    refused = call("up", "--data", str(tmp_path / "hub"), "--port", "0")
    assert refused.code == 1
    assert refused.err.endswith("works.log is encrypted, and no key was given\n")


def test_a_hub_without_a_key_has_none_to_change(fairway: Fairway) -> None:
    refused = fairway("rotate-key")
    assert refused.code == 1
    assert "this hub was started without a key" in refused.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"no archive", "it is not a backup of Fairway", id="another file"),
        pytest.param(gzip.compress(b"{}\n"), "it is not a backup of Fairway", id="other lines"),
        pytest.param(gzip.compress(b""), "it is empty", id="nothing"),
        pytest.param(gzip.compress(HEADER)[:-5], "its end is missing", id="cut"),
        pytest.param(gzip.compress(HEADER), "its end is missing", id="cut before it was packed"),
    ],
)
def test_what_is_no_backup_is_refused_in_one_line(
    tmp_path: Path, call: Fairway, content: bytes, said: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    refused = call("restore", str(file), "--data", str(tmp_path / "hub"))
    assert (refused.code, refused.err) == (1, f"error: {file} cannot be restored: {said}\n")
    assert not (tmp_path / "hub").exists()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        pytest.param(["--encryption-key-file", "{tmp}/none"], "cannot be read", id="no file"),
        pytest.param(["--encryption-key-file", "{tmp}/open"], "chmod 600", id="for all to read"),
        pytest.param(["--encryption-key-command", "false"], "failed with code 1", id="failure"),
        pytest.param(["--encryption-key-command", "no-such-one"], "cannot be run", id="no command"),
        pytest.param(["--encryption-key-command", "echo abc"], "not 32 bytes", id="no key"),
    ],
)
def test_a_key_that_cannot_be_had_is_said_in_one_line(
    tmp_path: Path, call: Fairway, source: list[str], said: str
) -> None:
    write_keys(tmp_path / "open", b"k" * 32).chmod(0o644)
    words = [word.format(tmp=tmp_path) for word in source]
    refused = call("up", "--data", str(tmp_path / "hub"), "--port", "0", *words)
    assert refused.code == 1
    assert refused.err.startswith("error: ")
    assert said in refused.err
    assert refused.err.count("\n") == 1
