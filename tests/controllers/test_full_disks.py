"""Records and histories on a disk that is full for a while."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairway.hub.decision_log import BackgroundSink, FileSink, read_segment, segments
from fairway.hub.history_log import HistoryFile

NOISE = [os.urandom(2_000).hex().encode() for _ in range(4)]


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may be longer than a little."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_record_goes_on_once_there_is_room_again(tmp_path: Path) -> None:
    sink = FileSink(tmp_path)
    sink.begin()
    with full_disk():
        for _ in range(3):
            with pytest.raises(OSError, match="large"):
                sink.write(NOISE[0])
            with pytest.raises(OSError, match="large"):
                sink.begin()
            sink.begin()
    sink.begin()
    for line in NOISE:
        sink.write(line)
    sink.close()
    assert list(read_segment(segments(tmp_path)[-1])) == NOISE


def test_a_history_that_was_kept_outlives_a_full_disk(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path)
    file.begin(iter(NOISE))
    file.close()
    file = HistoryFile(tmp_path)
    with full_disk():
        for _ in range(5):
            file.begin(iter(NOISE[:1]))
            file.write(NOISE[1])
        file.close()
    assert NOISE in [list(item) for item in HistoryFile(tmp_path).read()]


def test_a_history_goes_on_once_there_is_room_again(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path)
    file.begin(iter(()))
    with full_disk():
        for _ in range(5):
            file.write(NOISE[0])
            file.begin(iter(NOISE))
        file.close()
    file = HistoryFile(tmp_path)
    file.begin(iter(NOISE))
    file.close()
    assert list(next(iter(file.read()))) == NOISE


def test_decisions_are_made_though_they_cannot_be_recorded(tmp_path: Path) -> None:
    now = [0.0]
    sink = BackgroundSink(FileSink(tmp_path), now=lambda: now[0])
    sink.begin()
    with full_disk():
        for _ in range(200):
            sink.write(NOISE[0])
        sink._thread.finish(lambda: None)
        assert not sink.is_full  # another segment is asked for a while later
        now[0] += 60
        assert sink.is_full
        sink.begin()
        sink.write(NOISE[0])
        sink._thread.finish(lambda: None)
        assert not sink.is_full
    now[0] += 60
    assert sink.is_full
    sink.begin()
    for line in NOISE:
        sink.write(line)
    sink.close()
    assert not sink.is_full
    assert list(read_segment(segments(tmp_path)[-1])) == NOISE
