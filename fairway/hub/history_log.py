"""A history on disk: segments of compressed lines, of which the last two are kept.

A segment begins with the whole history, so the one before it can go once the new one is complete.
It is written on its own thread: compression takes time that the hub does not have. A hub that is
killed loses only the lines on their way, no more than a moment.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from fairway.hub.background import Background, Task
from fairway.hub.decision_log import FileSink, read_segment, segments

_log = logging.getLogger(__name__)

_SEGMENT_BYTES = 8 << 20
_SEGMENTS_MOST = 2
_SUFFIX = ".history"


class HistoryFile:
    """Keeps lines in a folder. A disk that fails is tried again with the next moment."""

    def __init__(self, folder: Path, *, segment_bytes: int = _SEGMENT_BYTES) -> None:
        self._folder = folder
        self._sink = FileSink(
            folder, segment_bytes=segment_bytes, segments_most=_SEGMENTS_MOST, suffix=_SUFFIX
        )
        self._thread = Background("fairway-history")
        self._is_broken = False

    @property
    def is_full(self) -> bool:
        return self._is_broken or self._sink.is_full

    def read(self) -> Iterable[Iterable[bytes]]:
        for path in reversed(segments(self._folder, _SUFFIX)):
            yield _lines(path)

    def begin(self, whole: Iterator[bytes]) -> None:
        self._thread.hand_over(lambda: self._do(lambda: self._begin(whole)))

    def write(self, line: bytes) -> None:
        self._thread.hand_over(lambda: self._do(lambda: self._write(line)))

    def close(self) -> None:
        """Returns once everything is written."""
        self._thread.finish(lambda: self._do(self._sink.close))
        self._thread.close()

    def _begin(self, whole: Iterator[bytes]) -> None:
        self._is_broken = False
        try:
            self._sink.begin()
            for line in whole:
                self._sink.write(line)
        except OSError:
            self._sink.discard()
            raise
        self._sink.end_feed()

    def _write(self, line: bytes) -> None:
        if not self._is_broken:  # lines after a gap are useless
            self._sink.write(line)

    def _do(self, task: Task) -> None:
        try:
            task()
        except OSError as fault:
            self._is_broken = True
            _log.warning("the history could not be kept: %s", fault)


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a segment, as far as it can be read."""
    try:
        yield from read_segment(path)
    except (OSError, zlib.error) as fault:
        _log.warning("the history in %s ends early: %s", path.name, fault)
