"""The audit log: who wrote what, and nothing secret."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import msgspec
import pytest

from fairway.server.access.audit import AuditLog, Entry, entry
from fairway.server.access.identity import authenticated_identity
from fairway.server.access.rbac_rules import Attributes
from tests.waiting import PATIENCE_SECONDS

WANTED = Attributes(
    user="bob",
    groups=("team",),
    verb="create",
    group="fairway.dev",
    resource="workloads",
    namespace="ns",
    name="x",
)


def line(number: int = 0) -> Entry:
    return entry(WANTED, now=1_800_000_000.0, code=201, request_id=str(number))


def numbers(*paths: Path) -> list[int]:
    """The request numbers in files, in order; each line must be whole."""
    lines = [line for path in paths for line in path.read_bytes().splitlines()]
    return [int(msgspec.json.decode(line)["requestId"]) for line in lines]


async def test_a_line_says_who_did_what_from_where_and_how_it_ended(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.record(
        entry(
            WANTED,
            now=1_800_000_000.25,
            code=201,
            request_id="r-1",
            impersonated_by=authenticated_identity("boss"),
            source_address="10.0.0.1",
            user_agent="kubectl/v1.36",
            dry_run=True,
        )
    )
    await log.close()
    assert msgspec.json.decode((tmp_path / "audit.log").read_bytes()) == {
        "time": "2027-01-15T08:00:00.250000Z",
        "requestId": "r-1",
        "user": "bob",
        "groups": ["team"],
        "impersonatedBy": "boss",
        "verb": "create",
        "apiGroup": "fairway.dev",
        "resource": "workloads",
        "namespace": "ns",
        "name": "x",
        "code": 201,
        "sourceAddress": "10.0.0.1",
        "userAgent": "kubectl/v1.36",
        "dryRun": True,
    }


async def test_a_token_in_what_a_client_sends_is_not_written(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.record(entry(WANTED, now=0, code=201, user_agent="curl Bearer abcdef123"))
    await log.close()
    assert "abcdef123" not in (tmp_path / "audit.log").read_text()


async def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    await log.close()
    assert stat.S_IMODE((tmp_path / "audit.log").stat().st_mode) == 0o600


async def test_lines_are_written_soon_without_being_asked_for(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.start()
    log.record(line(7))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (tmp_path / "audit.log").read_bytes():
            await asyncio.sleep(0)
    assert numbers(tmp_path / "audit.log") == [7]
    await log.close()


async def test_closing_loses_no_line_and_keeps_their_order(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.start()
    for number in range(5_000):
        log.record(line(number))
        if number % 50 == 0:
            await asyncio.sleep(0)
    await log.close()
    await log.close()
    assert numbers(tmp_path / "audit.log") == list(range(5_000))


async def test_a_full_buffer_is_written_at_once_rather_than_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.server.access.audit._BUFFERED_LINES_MAX", 10)
    log = AuditLog(tmp_path / "audit.log")
    for number in range(25):
        log.record(line(number))
    assert numbers(tmp_path / "audit.log") == list(range(20))
    await log.close()
    assert numbers(tmp_path / "audit.log") == list(range(25))


async def test_a_file_that_is_full_is_set_aside_and_only_so_many_are_kept(tmp_path: Path) -> None:
    size = len(msgspec.json.encode(line(1))) + 1
    log = AuditLog(tmp_path / "audit.log", bytes_max=3 * size, files_max=3)
    for number in range(10):
        log.record(line(number))
        log.flush()
    await log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "audit.log",
        "audit.log.1",
        "audit.log.2",
    ]
    kept = [tmp_path / name for name in ("audit.log.2", "audit.log.1", "audit.log")]
    assert numbers(*kept) == list(range(3, 10))
    assert all(path.stat().st_size <= 3 * size for path in kept)


async def test_one_batch_may_fill_several_files(tmp_path: Path) -> None:
    size = len(msgspec.json.encode(line(1))) + 1
    log = AuditLog(tmp_path / "audit.log", bytes_max=2 * size, files_max=9)
    for number in range(6):
        log.record(line(number))
    await log.close()
    paths = [tmp_path / name for name in ("audit.log.2", "audit.log.1", "audit.log")]
    assert numbers(*paths) == list(range(6))


async def test_a_restart_goes_on_in_the_same_file(tmp_path: Path) -> None:
    for number in range(2):
        log = AuditLog(tmp_path / "audit.log")
        log.record(line(number))
        await log.close()
    assert numbers(tmp_path / "audit.log") == [0, 1]


async def test_a_disk_that_refuses_costs_lines_and_says_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = AuditLog(tmp_path / "audit.log")
    real = os.write

    def refuse(descriptor: int, content: bytes) -> int:
        real(descriptor, bytes(content)[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", refuse)
        log.record(line(1))
        log.record(line(2))
        log.flush()
    log.record(line(3))
    await log.close()
    assert log.lost_lines == 2
    assert "2 lines are lost" in caplog.text
    assert numbers(tmp_path / "audit.log") == [3]


async def test_bytes_that_are_no_text_are_written_all_the_same(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.record(entry(WANTED, now=0, code=201, request_id="1", user_agent="odd \udcff agent"))
    await log.close()
    assert numbers(tmp_path / "audit.log") == [1]
