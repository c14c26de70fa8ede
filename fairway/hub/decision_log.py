"""The record of decisions on disk: segments of compressed lines; the oldest are dropped.

Every entry is flushed to the file at once, so a hub that is killed leaves a record that ends with
its last whole entry. It is not synced to disk: the record is for analysis, not for recovery.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import BinaryIO

from fairway.hub.background import Background, Task

_log = logging.getLogger(__name__)

_SEGMENT_BYTES = 32 << 20
_SEGMENTS_MOST = 8
_CHUNK_BYTES = 1 << 16
_TIMES_FED = 5
_AGAIN_SECONDS = 60.0  # before a disk that failed is tried again
DECISIONS = ".decisions"


class FileSink:
    """Writes a record into a folder."""

    def __init__(
        self,
        folder: Path,
        *,
        segment_bytes: int = _SEGMENT_BYTES,
        segments_most: int = _SEGMENTS_MOST,
        suffix: str = DECISIONS,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._segments_most = segments_most
        self._suffix = suffix
        self._written = 0
        self._most = segment_bytes
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._compressor = zlib.compressobj(1)

    @property
    def is_full(self) -> bool:
        return self._written >= self._most

    def begin(self) -> None:
        """Begins a segment, and drops the oldest if there are too many."""
        self._path = None
        self.close()
        known = segments(self._folder, self._suffix)
        number = int(known[-1].stem) + 1 if known else 1
        for old in known[: max(0, len(known) + 1 - self._segments_most)]:
            old.unlink(missing_ok=True)
        path = self._folder / f"{number:08d}{self._suffix}"
        path.touch(mode=0o600)  # it says what workloads hold
        self._path = path
        self._file = path.open("wb")
        self._compressor = zlib.compressobj(1)
        self._written = 0
        self._most = self._segment_bytes

    def end_feed(self) -> None:
        """Raises the segment's limit to several times what it began with, however large the fleet.

        Each new segment begins with all objects again.
        """
        self._most = max(self._segment_bytes, _TIMES_FED * self._written)

    def write(self, entry: bytes) -> None:
        assert self._file is not None, "a segment has begun"
        packed = self._compressor.compress(entry + b"\n")
        packed += self._compressor.flush(zlib.Z_SYNC_FLUSH)
        self._file.write(packed)
        self._file.flush()
        self._written += len(packed)

    def discard(self) -> None:
        """Deletes the segment that was begun last: those before it are worth more."""
        with suppress(OSError):
            self.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the segment; a failed write of its end is not retried."""
        file, self._file = self._file, None
        if file is not None:
            with file:
                file.write(self._compressor.flush())


class BackgroundSink:
    """Lets a sink write on its own thread: compression takes time that the hub does not have.

    Waiting entries are bounded: when the queue is full, `write` waits for the oldest. Decisions are
    made whether or not they can be recorded: a disk error ends the segment, and another segment is
    tried a while later.
    """

    def __init__(self, sink: FileSink, *, now: Callable[[], float] = monotonic) -> None:
        self._sink = sink
        self._now = now
        self._thread = Background("fairway-record")
        self._broken_at: float | None = None

    @property
    def is_full(self) -> bool:
        if self._broken_at is not None:
            return self._now() >= self._broken_at + _AGAIN_SECONDS
        return self._sink.is_full

    def begin(self) -> None:
        self._thread.finish(self._begin)

    def end_feed(self) -> None:
        self._thread.hand_over(lambda: self._do(self._sink.end_feed))

    def write(self, entry: bytes) -> None:
        self._thread.hand_over(lambda: self._do(lambda: self._sink.write(entry)))

    def close(self) -> None:
        """Returns once everything is written."""
        self._thread.finish(lambda: self._do(self._sink.close))
        self._thread.close()

    def _begin(self) -> None:
        self._broken_at = None
        with suppress(OSError):
            self._sink.close()  # the segment may lack its end
        self._do(self._sink.begin)

    def _do(self, task: Task) -> None:
        if self._broken_at is not None:
            return  # entries after a gap are useless
        try:
            task()
        except OSError as fault:
            self._broken_at = self._now()
            _log.warning("decisions are not recorded: %s", fault)


def segments(folder: Path, suffix: str = DECISIONS) -> list[Path]:
    """The segments of a record, the oldest first."""
    return sorted(folder.glob(f"*{suffix}"))


def read_segment(path: Path) -> Iterator[bytes]:
    """The entries of a segment; a truncated entry is left out."""
    decompressor = zlib.decompressobj()
    rest = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            *lines, rest = (rest + decompressor.decompress(chunk)).split(b"\n")
            yield from (line for line in lines if line)
