"""Someone has a backup without its key, changes one, or asks a hub for one without the right."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairway.api.errors import Forbidden, Unauthorized
from fairway.app import Hub, HubOptions, open_hub
from fairway.app.restore import restore_folder
from fairway.client import AsyncClient
from fairway.client.kubeconfig import load_access
from fairway.hub.encryption_keys import KeySource
from fairway.sealing import KeyFault, Keyring
from fairway.store.backup_lines import BackupFault, check
from tests.waiting import seen

SECRET = base64.b64encode(b"hunter2-of-a-tenant").decode()


async def lines_of(hub: Hub) -> list[bytes]:
    """The backup that an administrator gets."""
    async with AsyncClient.connect(str(hub.kubeconfig)) as client:
        for name in ("theirs", "own"):
            await client.create(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": name, "namespace": "default"},
                    "data": {"password": SECRET},
                }
            )
        chunks = [chunk async for chunk in client.back_up()]
    return b"".join(chunks).splitlines(keepends=True)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.touch(mode=0o600)
    path.write_bytes(base64.b64encode(os.urandom(32)))
    return path


@pytest.fixture
async def sealed(tmp_path: Path, key: Path) -> tuple[list[bytes], str]:
    """An encrypted backup, and the token of the administrator."""
    options = HubOptions(
        data=tmp_path / "hub", port=0, has_controllers=False, keys=KeySource(file=key)
    )
    async with open_hub(options) as hub:
        return await lines_of(hub), hub.token


def values(lines: list[bytes]) -> bytes:
    """Everything that can be read from a backup."""
    data = [json.loads(line).get("data") for line in lines]
    return b"".join(lines) + b"".join(base64.b64decode(value) for value in data if value)


async def test_neither_a_secret_nor_a_credential_can_be_read_without_the_key(
    sealed: tuple[list[bytes], str],
) -> None:
    lines, token = sealed
    content = values(lines)
    assert any(b'"tokens.csv"' in line for line in lines)  # else there is nothing to be read
    assert SECRET.encode() not in content
    assert token.encode() not in content
    assert b"PRIVATE KEY" not in content


def with_end(lines: list[bytes]) -> list[bytes]:
    """The lines with a last one that says what they are, as anyone can compute it."""
    end = json.loads(lines[-1])
    end["end"]["digest"] = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    places = [json.loads(line).get("place") for line in lines[:-1]]
    kinds = [f"{place[1]}.{place[0]}".rstrip(".") for place in places if place and place[1]]
    end["end"]["objects"] = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    return [*lines[:-1], json.dumps(end).encode() + b"\n"]


def secret_lines(lines: list[bytes]) -> tuple[int, int]:
    def at(name: bytes) -> int:
        return next(n for n, line in enumerate(lines) if b'"secrets","default","' + name in line)

    return at(b"theirs"), at(b"own")


def swap(lines: list[bytes]) -> list[bytes]:
    """The Secret of another tenant under the name of one's own."""
    theirs, own = secret_lines(lines)
    line = {**json.loads(lines[own]), "data": json.loads(lines[theirs])["data"]}
    return [*lines[:own], json.dumps(line).encode() + b"\n", *lines[own + 1 :]]


def leave_out(lines: list[bytes]) -> list[bytes]:
    theirs, _ = secret_lines(lines)
    return [*lines[:theirs], *lines[theirs + 1 :]]


def put_plain(lines: list[bytes]) -> list[bytes]:
    """A role for the attacker, written in clear."""
    _, own = secret_lines(lines)
    line = {"place": json.loads(lines[own])["place"], "object": {"metadata": {}}}
    return [*lines[:own], json.dumps(line).encode() + b"\n", *lines[own + 1 :]]


@pytest.mark.parametrize("attack", [swap, leave_out, put_plain])
async def test_an_encrypted_backup_that_was_changed_is_refused(
    tmp_path: Path,
    key: Path,
    sealed: tuple[list[bytes], str],
    attack: Callable[[list[bytes]], list[bytes]],
) -> None:
    lines = with_end(attack(sealed[0]))
    check(lines)  # without the key it looks whole
    keys = Keyring(KeySource(file=key).read())
    data = tmp_path / "restored"
    with pytest.raises((KeyFault, BackupFault)):
        await restore_folder(lambda: iter(lines), data, keys)
    assert not (data / "fairway.db").exists()


@pytest.mark.parametrize("path", ["../outside", "keys/../../outside", "/outside", "clusters/a"])
async def test_a_backup_writes_no_file_but_those_of_a_hub(tmp_path: Path, path: str) -> None:
    async with open_hub(HubOptions(data=tmp_path / "hub", port=0, has_controllers=False)) as hub:
        lines = await lines_of(hub)
    named = path if path != "/outside" else str(tmp_path / "outside")
    at = next(number for number, line in enumerate(lines) if b'"tokens.csv"' in line)
    lines[at] = lines[at].replace(b"tokens.csv", named.encode())
    with pytest.raises(BackupFault, match="not of a hub"):
        await restore_folder(lambda: iter(with_end(lines)), tmp_path / "restored", None)
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "restored" / "fairway.db").exists()


async def test_tenants_get_no_backup_and_who_asks_is_audited(tmp_path: Path) -> None:
    tenant_token = "tenant-token-of-ada"
    async with open_hub(HubOptions(data=tmp_path, port=0, has_controllers=False)) as hub:
        given = load_access(str(hub.kubeconfig))
        tokens = tmp_path / "tokens.csv"
        tokens.write_text(f"{tokens.read_text()}{tenant_token},ada,ada,\n")
        async with AsyncClient(given) as admin:
            for role in ("admin", "edit", "view", "fairway-fleet-viewer"):
                await admin.create(binding(role, "ada"))
            assert [chunk async for chunk in admin.back_up()]
        async with AsyncClient(replace(given, token=tenant_token)) as tenant:

            async def refused() -> bool:
                with pytest.raises((Forbidden, Unauthorized)) as fault:
                    await anext(tenant.back_up())
                return isinstance(fault.value, Forbidden)

            # Changed files of tokens are read again within a second.
            await seen(refused, bool, "the tenant to be known")
            with pytest.raises(Forbidden):
                await tenant.rotate_key()
        async with AsyncClient(replace(given, token="")) as nobody:
            with pytest.raises(Forbidden):
                await anext(nobody.back_up())
    written = (tmp_path / "audit.log").read_text().splitlines()
    asked = [entry for line in written if (entry := json.loads(line)).get("path")]
    assert {(entry["user"], entry["path"], entry["code"]) for entry in asked} >= {
        ("admin", "/upkeep/backup", 200),
        ("ada", "/upkeep/backup", 403),
        ("ada", "/upkeep/rotate-key", 403),
        ("system:anonymous", "/upkeep/backup", 403),
    }


def binding(role: str, user: str) -> dict:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{user}-{role}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
