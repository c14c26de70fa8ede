"""Output of containers, read from the frames that keepers write.

Each run of a container has at most two files, of which the older is full. Reading goes from the
older to the newer, and can follow until the run is over.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_READ_BYTES = 1 << 20

Frame = tuple[float, bytes]


class Output:
    """The output of one run of a container."""

    def __init__(self, folder: Path, container: str, *, is_previous: bool = False) -> None:
        name = f"{container}.{'previous.' if is_previous else ''}log"
        self._path = folder / "logs" / name
        self._older = folder / "logs" / f"{name}.1"
        self._file: _Frames | None = None

    def lines(self, *, since: float | None = None, tail_lines: int | None = None) -> list[bytes]:
        """What was written so far, since a time and at most the last `tail_lines` lines."""
        frames: list[Frame] = []
        if self._older.exists():
            with self._older.open("rb") as file:
                frames += _Frames(file).read()
        frames += self._read()
        parts = [data for moment, data in frames if since is None or moment >= since]
        if tail_lines is None:
            return parts
        return list(deque(b"".join(parts).splitlines(keepends=True), maxlen=tail_lines))

    def more(self) -> list[bytes] | None:
        """What was written since the last read; None once another run has begun."""
        result = [data for _, data in self._read()]
        if self._file is None or _inode(self._path) in (self._file.identity, 0):
            return result
        if _inode(self._older) != self._file.identity:
            return result or None
        self.close()  # the file was full, and a new one has begun
        return result + [data for _, data in self._read()]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self) -> list[Frame]:
        if self._file is None:
            try:
                self._file = _Frames(self._path.open("rb"))
            except FileNotFoundError:
                return []
        return list(self._file.read())


class _Frames:
    """Reads whole frames of one file; a partly written frame comes with a later read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._rest = b""

    @property
    def identity(self) -> int:
        return os.fstat(self._file.fileno()).st_ino

    def read(self) -> Iterator[Frame]:
        while chunk := self._file.read(_READ_BYTES):
            self._rest += chunk
            yield from self._whole()

    def close(self) -> None:
        self._file.close()

    def _whole(self) -> Iterator[Frame]:
        while True:
            header, newline, body = self._rest.partition(b"\n")
            moment, _, length = header.partition(b" ")
            if not newline or len(body) < int(length):
                return
            self._rest = body[int(length) :]
            yield float(moment), body[: int(length)]


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
