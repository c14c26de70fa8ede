"""The embedded store with a key: everything on disk is encrypted, and nothing is lost by that."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fairway.sealing import KeyFault, Keyring, keys_of
from fairway.store.embedded.journal import Row, SqliteJournal

OLD, NEW = b"o" * 32, b"n" * 32
SECRET = b"hunter2" * 700  # longer than a page of the file


def row(version: int, value: bytes = SECRET, name: str = "token") -> Row:
    text = b'{"value":"%b"}' % value
    return Row(version, "", "secrets", "default", name, False, text)


def journal_in(folder: Path, *keys: bytes) -> SqliteJournal:
    ring = Keyring(keys) if keys else None
    return SqliteJournal(folder / "fairway.db", is_inline=True, keys=ring)


async def write(folder: Path, *rows: Row, keys: tuple[bytes, ...] = ()) -> None:
    journal = journal_in(folder, *keys)
    for each in rows:
        await journal.append([each], ())
    await journal.close()


async def rows_in(folder: Path, *keys: bytes) -> list[Row]:
    journal = journal_in(folder, *keys)
    try:
        return list(journal.load())
    finally:
        await journal.close()


def bytes_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


async def test_what_is_written_with_a_key_is_read_with_it_and_is_nowhere_in_clear(
    tmp_path: Path,
) -> None:
    journal = journal_in(tmp_path, OLD)
    await journal.append([row(1), row(2, name="other")], ())
    assert b"hunter2" not in bytes_in(tmp_path)  # nor in what is not yet in the file itself
    await journal.close()
    assert b"hunter2" not in bytes_in(tmp_path)
    assert await rows_in(tmp_path, OLD) == [row(1), row(2, name="other")]


async def test_a_store_from_before_is_encrypted_and_keeps_nothing_of_the_plain_text(
    tmp_path: Path,
) -> None:
    journal = journal_in(tmp_path)
    for version in range(1, 40):
        # Rows are dropped too: what a page held before must go as well.
        await journal.append([row(version)], [version - 20] if version > 20 else [])
    left = list(journal.load())
    await journal.close()
    assert b"hunter2" in bytes_in(tmp_path)
    journal = journal_in(tmp_path, OLD)
    assert list(journal.load()) == left
    assert b"hunter2" not in bytes_in(tmp_path)
    await journal.close()
    assert b"hunter2" not in bytes_in(tmp_path)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        pytest.param((), "it is encrypted, and no key was given", id="no key"),
        pytest.param((NEW,), "which was not given", id="another key"),
    ],
)
async def test_without_its_key_a_store_is_refused_in_one_line_and_left_as_it_is(
    tmp_path: Path, keys: tuple[bytes, ...], said: str
) -> None:
    await write(tmp_path, row(1), keys=(OLD,))
    with pytest.raises(KeyFault, match=said) as refusal:
        journal_in(tmp_path, *keys)
    assert "\n" not in str(refusal.value)
    assert str(tmp_path / "fairway.db") in str(refusal.value)
    assert await rows_in(tmp_path, OLD) == [row(1)]


async def test_a_key_is_changed_while_others_write_and_the_old_one_can_go(tmp_path: Path) -> None:
    before = [row(version, name=f"n{version}") for version in range(1, 1201)]
    ring = Keyring([OLD])
    journal = SqliteJournal(tmp_path / "fairway.db", keys=ring)
    await journal.append(before, ())
    ring.use([NEW])
    resealing = asyncio.ensure_future(journal.reseal())
    since = [row(version, name=f"n{version}") for version in range(1201, 1301)]
    for each in since:
        await journal.append([each], ())
    assert await resealing == len(before)
    await journal.close()
    assert await rows_in(tmp_path, NEW) == [*before, *since]


async def test_a_start_with_a_new_key_above_the_old_one_changes_the_key(tmp_path: Path) -> None:
    await write(tmp_path, row(1), keys=(OLD,))
    assert await rows_in(tmp_path, NEW, OLD) == [row(1)]
    assert await rows_in(tmp_path, NEW) == [row(1)]


async def test_encryption_that_was_interrupted_goes_on_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(version, name=f"n{version}") for version in range(1, 1201)]
    journal = journal_in(tmp_path)
    await journal.append(rows, ())
    await journal.close()

    def fail(self: SqliteJournal) -> None:
        raise OSError("the machine went down")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteJournal, "_clean", fail)
        with pytest.raises(OSError, match="went down"):
            journal_in(tmp_path, OLD)
    with pytest.raises(KeyFault, match="no key was given"):
        journal_in(tmp_path)
    assert await rows_in(tmp_path, OLD) == rows
    assert b"hunter2" not in bytes_in(tmp_path)


async def test_a_hub_that_knows_no_encryption_refuses_the_file(tmp_path: Path) -> None:
    await write(tmp_path, row(1), keys=(OLD,))
    with closing(sqlite3.connect(tmp_path / "fairway.db")) as connection:
        (form,) = connection.execute("PRAGMA user_version").fetchone()
    assert form != 1  # the only one that Fairway 0.4 opens


@pytest.mark.parametrize(
    "text",
    ["", "not base64!", "c2hvcnQ=", "bm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm4=\nc2hvcnQ="],
    ids=["nothing", "no base64", "too short", "the second too short"],
)
def test_a_malformed_key_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(KeyFault) as refusal:
        keys_of(text, "the key file")
    assert "the key file" in str(refusal.value)
    assert "bm5u" not in str(refusal.value)


def test_no_two_values_are_sealed_alike(tmp_path: Path) -> None:
    rings = [Keyring([OLD]), Keyring([OLD])]
    sealed = {ring.seal(b"same", "place") for ring in rings for _ in range(100)}
    assert len(sealed) == 200
    nonces = {value[3:39] for value in sealed}  # key, salt and nonce
    assert len(nonces) == 200
