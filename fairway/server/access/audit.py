"""The audit log: one JSON line for each write and each backup, after the response.

A line says who did what to which object, and the result; never the content of the object, and never
a token. Requests only append a line to a buffer. A task hands the buffer to a thread that writes
it, so the disk does not block the event loop. When the buffer is full, because the disk is slower
than the hub, the request writes the buffer itself and waits: lines matter more than speed. While
the hub runs, lines are lost only when the disk refuses a write; the hub's log then says how many.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import threading
from collections import deque
from pathlib import Path

import msgspec

from fairway.clock import micro_timestamp
from fairway.server.access.identity import Identity
from fairway.server.access.private_files import make_private_directory
from fairway.server.access.rbac_rules import Attributes
from fairway.server.access.redaction import redact

_log = logging.getLogger(__name__)
_BUFFERED_LINES_MAX = 16_384


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One write, or one backup."""

    time: str
    request_id: str = ""
    user: str
    groups: tuple[str, ...] = ()
    impersonated_by: str = ""
    verb: str
    api_group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""  # if it is not about an object
    code: int
    source_address: str = ""
    user_agent: str = ""
    dry_run: bool = False


def entry(
    wanted: Attributes,
    *,
    now: float,
    code: int,
    request_id: str = "",
    impersonated_by: Identity | None = None,
    source_address: str = "",
    user_agent: str = "",
    dry_run: bool = False,
) -> Entry:
    """The entry of one request; fields that a client chooses freely are redacted."""
    return Entry(
        time=micro_timestamp(now),
        request_id=redact(request_id),
        user=wanted.user,
        groups=wanted.groups,
        impersonated_by=impersonated_by.user if impersonated_by else "",
        verb=wanted.verb,
        api_group=redact(wanted.group),
        resource=redact(wanted.resource),
        subresource=redact(wanted.subresource),
        namespace=redact(wanted.namespace),
        name=redact(wanted.name),
        path=redact(wanted.path),
        code=code,
        source_address=source_address,
        user_agent=redact(user_agent),
        dry_run=dry_run,
    )


_encode = msgspec.json.Encoder().encode


def _line(entry: Entry) -> bytes:
    try:
        return _encode(entry) + b"\n"
    except UnicodeEncodeError:
        # Bytes from a client that are not valid text become question marks.
        text = json.dumps(msgspec.to_builtins(entry), ensure_ascii=False)
        return text.encode(errors="replace") + b"\n"


class RotatingFile:
    """A file of lines, rotated when it grows too large; at most `files_max` files are kept."""

    def __init__(self, path: Path, *, bytes_max: int, files_max: int) -> None:
        make_private_directory(path.parent)
        self._path = path
        self._bytes_max = bytes_max
        self._files_max = max(1, files_max)
        self._descriptor, self._size = -1, 0
        self._open()

    def append(self, lines: list[bytes]) -> None:
        """Writes lines; the lines for one file are written whole or not at all."""
        waiting: list[bytes] = []
        size = self._size
        for line in lines:
            if size and size + len(line) > self._bytes_max:
                self._write(waiting)
                waiting, size = [], 0
                self._rotate()
            waiting.append(line)
            size += len(line)
        self._write(waiting)

    def close(self) -> None:
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):
            os.fsync(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o600)
        self._size = os.fstat(self._descriptor).st_size

    def _write(self, lines: list[bytes]) -> None:
        if self._descriptor < 0:
            self._open()
        content = memoryview(b"".join(lines))
        try:
            while content:
                content = content[os.write(self._descriptor, content) :]
        except OSError:
            # A partial line would corrupt the next one.
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size = os.fstat(self._descriptor).st_size

    def _rotate(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1  # if opening fails, the next write tries again
        for number in range(self._files_max - 1, 0, -1):
            older = self._number(number)
            newer = self._number(number - 1)
            if newer.exists():
                newer.replace(older)
        if self._files_max == 1:
            self._path.unlink(missing_ok=True)
        self._open()

    def _number(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path


class AuditLog:
    """Buffers entries and writes them soon; all of them by the time it is closed."""

    def __init__(
        self, path: Path, *, bytes_max: int = 64 * 1024 * 1024, files_max: int = 8
    ) -> None:
        self._file = RotatingFile(path, bytes_max=bytes_max, files_max=files_max)
        self._lock = threading.Lock()  # guards the file, and taking lines out of the buffer
        self._buffer: deque[bytes] = deque()
        self._wake: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.lost_lines = 0

    def record(self, entry: Entry) -> None:
        """Buffers an entry. It is written soon after, or at once when the buffer is full."""
        if self._closed:
            self.lost_lines += 1
            _log.error("a request was answered after the audit log was closed")
            return
        self._buffer.append(_line(entry))
        if len(self._buffer) >= _BUFFERED_LINES_MAX:
            self.flush()
        elif self._wake is not None:
            self._wake.set()

    def start(self) -> None:
        """Starts to write in the background; without it, lines wait for `flush` or `close`."""
        self._wake = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._write_on(), name="audit log")

    def flush(self) -> None:
        """Writes the buffered lines, in their order."""
        with self._lock:
            # Lines added at the other end meanwhile stay for the next flush.
            taken = [self._buffer.popleft() for _ in range(len(self._buffer))]
            if not taken:
                return
            try:
                self._file.append(taken)
            except OSError as error:
                self.lost_lines += len(taken)
                _log.error(
                    "the audit log cannot be written, %d lines are lost: %s", len(taken), error
                )

    async def close(self) -> None:
        """Writes everything that was recorded and closes the file."""
        if self._closed:
            return
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self.flush()
        with self._lock:
            self._file.close()

    async def _write_on(self) -> None:
        assert self._wake is not None
        while True:
            await self._wake.wait()
            self._wake.clear()
            # A cancelled wait leaves the thread running; `close` then waits for its lock.
            await asyncio.to_thread(self.flush)
