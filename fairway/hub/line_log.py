"""Lines of JSON on disk, such as ended spans and decisions; the oldest are dropped now and then.

A line is flushed at once but not synced to disk: it is for looking back, not for recovery.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_LINES_MOST = 20_000
_BYTES_MOST = 8 << 20


class LineFile:
    """Keeps lines in a file; at twice the lines or bytes to keep, the file is rewritten."""

    def __init__(
        self, path: Path, *, lines_most: int = _LINES_MOST, bytes_most: int = _BYTES_MOST
    ) -> None:
        self._path = path
        self._lines_most = lines_most
        self._bytes_most = bytes_most
        self._file: BinaryIO | None = None
        self._count = 0
        self._bytes = 0
        self._broken = b""  # a truncated line at the end of the file

    def read(self) -> Iterable[bytes]:
        """The last lines; a truncated line is left out."""
        if not self._path.exists():
            return []
        content = self._path.read_bytes()
        *lines, self._broken = content.split(b"\n")
        lines = [line for line in lines if line]
        self._count, self._bytes = len(lines), len(content)
        return lines[self._first_kept(lines) :]

    def keep(self, line: bytes) -> None:
        if self._count >= 2 * self._lines_most or self._bytes >= 2 * self._bytes_most:
            self._shorten()
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.touch(mode=0o600)  # it says what all users ran
            self._file = self._path.open("ab")
        written = (b"\n" if self._broken else b"") + line + b"\n"
        try:
            self._file.write(written)
            self._file.flush()
        except OSError:
            self._broken = line  # a part of it may be there
            with suppress(OSError):  # it cannot write the rest either
                self.close()
            raise
        self._broken = b""
        self._count += 1
        self._bytes += len(written)

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _first_kept(self, lines: Sequence[bytes]) -> int:
        """The first of the last lines that are kept: as many as may be, and as many as fit."""
        first, size = len(lines), 0
        for line in reversed(lines[-self._lines_most :]):
            size += len(line) + 1
            if size > self._bytes_most:
                break
            first -= 1
        return first

    def _shorten(self) -> None:
        self.close()
        lines = list(self.read())
        written = self._path.with_suffix(".new")
        written.touch(mode=0o600)
        content = b"".join(line + b"\n" for line in lines)
        written.write_bytes(content)
        written.replace(self._path)
        self._count, self._bytes, self._broken = len(lines), len(content), b""
