"""Full disks, as distinct from other faults.

A full disk is the one disk fault that people can fix while everything runs, so errors name it and
the folder it concerns, and what waits for room continues once there is some.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from fairway.api.errors import InsufficientStorage

_FULL = (errno.ENOSPC, errno.EDQUOT)
_LEAST_BYTES = 1 << 20  # with less room the next batch of writes may fail


def is_full(fault: object) -> bool:
    """Whether a fault means a full disk, of this machine or of the hub."""
    if isinstance(fault, OSError):
        return fault.errno in _FULL
    return isinstance(fault, InsufficientStorage)


def has_room(folder: Path | str) -> bool:
    """Whether a disk can take more; also before anything has failed to be written."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return True  # that is another fault than a full disk
    return disk.f_bavail * disk.f_frsize >= _LEAST_BYTES


def no_room(folder: Path | str) -> OSError:
    """The error of a full disk, for a fault that is no OSError."""
    return OSError(errno.ENOSPC, "the disk is full", str(folder))


def refusal(folder: Path | str) -> InsufficientStorage:
    """The error for users whose writes cannot be stored."""
    return InsufficientStorage(
        f"the disk with {folder} is full: nothing can be written until there is room on it; what"
        " was written before is safe, and can be read"
    )
