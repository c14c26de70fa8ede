"""Ended spans on disk: lines of JSON; the oldest are dropped now and then.

A line is flushed at once but not synced to disk: it is for looking back, not for recovery.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

_LINES_MOST = 20_000


class SpanFile:
    """Keeps spans in a file; at twice the lines to keep, the file is rewritten."""

    def __init__(self, path: Path, *, lines_most: int = _LINES_MOST) -> None:
        self._path = path
        self._most = lines_most
        self._file: BinaryIO | None = None
        self._count = 0
        self._broken = b""  # a truncated line at the end of the file

    def read(self) -> Iterable[bytes]:
        """The last lines; a truncated line is left out."""
        if not self._path.exists():
            return []
        *lines, self._broken = self._path.read_bytes().split(b"\n")
        self._count = len(lines)
        return lines[-self._most :]

    def keep(self, line: bytes) -> None:
        if self._count >= 2 * self._most:
            self._shorten()
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.touch(mode=0o600)  # it says what all users ran
            self._file = self._path.open("ab")
        self._file.write((b"\n" if self._broken else b"") + line + b"\n")
        self._file.flush()
        self._broken = b""
        self._count += 1

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _shorten(self) -> None:
        self.close()
        lines = list(self.read())
        written = self._path.with_suffix(".new")
        written.touch(mode=0o600)
        written.write_bytes(b"".join(line + b"\n" for line in lines))
        written.replace(self._path)
        self._count = len(lines)
