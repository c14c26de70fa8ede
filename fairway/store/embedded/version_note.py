"""The highest versions, noted in a file beside the log.

The log cannot say that its own end is missing: that it was cut, or replaced by an older copy. The
note can. It is written in place after each batch, which needs no room on a full disk, and without
an fsync of its own: after a loss of power it may be a little behind the log, never ahead of it.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import NamedTuple

_log = logging.getLogger(__name__)

_DIGITS = 20  # of every number, so that a note is replaced by one as long


class Noted(NamedTuple):
    """The newest version that was in the log, and the newest that was given to readers."""

    kept: int = 0
    given: int = 0

    @property
    def highest(self) -> int:
        return max(self)


class VersionNote:
    """The file. A note that cannot be read or written is logged, and stops nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._is_failing = False
        self.noted = self._read()

    def _read(self) -> Noted:
        try:
            kept, given = map(int, self._path.read_text().split())
        except FileNotFoundError:
            return Noted()
        except (OSError, ValueError) as fault:
            _log.warning("the versions in %s cannot be read: %s", self._path, fault)
            return Noted()
        return Noted(kept, given)

    def write(self, noted: Noted) -> None:
        self.noted = noted
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(self._file, f"{noted.kept:0{_DIGITS}} {noted.given:0{_DIGITS}}\n".encode(), 0)
        except OSError as fault:
            if not self._is_failing:
                _log.warning("the versions cannot be noted in %s: %s", self._path, fault)
            self._is_failing = True
        else:
            self._is_failing = False

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
