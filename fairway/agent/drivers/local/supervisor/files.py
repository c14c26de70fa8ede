"""Files that are replaced atomically, and signals that arrive on a pipe."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterable
from typing import Any

Plain = dict[str, Any]


def read_json(path: str) -> Plain:
    with open(path, "rb") as file:  # noqa: PTH123 - without pathlib, as above
        read: Plain = json.load(file)
        return read


def write_json(path: str, value: Plain, *, is_durable: bool) -> None:
    """Replaces a file atomically: a reader sees the old or the new content, never half of it."""
    beside = f"{path}.new"
    with open(beside, "w") as file:  # noqa: PTH123 - without pathlib, as above
        json.dump(value, file)
        if is_durable:
            file.flush()
            os.fsync(file.fileno())
    os.rename(beside, path)  # noqa: PTH104 - as above


def wake_pipe() -> int:
    """A pipe on which signal numbers arrive, to be polled with other descriptors."""
    read, written = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    return read


def hear_signals(numbers: Iterable[signal.Signals]) -> None:
    """Unblocks signals, now that their numbers arrive on the pipe."""
    for number in numbers:
        signal.signal(number, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def read_signals(alarm: int) -> set[int]:
    result: set[int] = set()
    while True:
        try:
            chunk = os.read(alarm, 4096)
        except BlockingIOError:
            return result
        result.update(chunk)


def close_all_but(kept: set[int]) -> None:
    """Closes what a keeper inherits from its supervisor, so that each sees the other's end."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - without pathlib, as above
        descriptor = int(name)
        if descriptor > 2 and descriptor not in kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)
