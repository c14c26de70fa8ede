"""Disks that are full: how that is told apart from other faults.

It is the one fault of a disk that people can mend while everything runs, so it is named as such, by
the folder it concerns, and what waits for room goes on once there is some.
"""

from __future__ import annotations

import errno
from pathlib import Path

from fairway.api.errors import InsufficientStorage

_FULL = (errno.ENOSPC, errno.EDQUOT)


def is_full(fault: object) -> bool:
    """Whether a fault says that there is no room, on a disk of ours or on the hub's."""
    if isinstance(fault, OSError):
        return fault.errno in _FULL
    return isinstance(fault, InsufficientStorage)


def no_room(folder: Path | str) -> OSError:
    """A full disk, where something else than the system found out."""
    return OSError(errno.ENOSPC, "the disk is full", str(folder))


def refusal(folder: Path | str) -> InsufficientStorage:
    """What is told to people whose writes cannot be kept."""
    return InsufficientStorage(
        f"the disk with {folder} is full: nothing can be written until there is room on it; what"
        " was written before is safe, and can be read"
    )
