"""Files that hold secrets: written whole, with mode 0600, and refused when others can read them.

A file is written under another name and renamed, so that a reader or a crash never sees half of
one. The mode is set when the file is created, not afterwards: at no time can others open it.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class RefusedFile(Exception):
    """A file that the hub will not use; the message says which, why and what to do."""


def write_private(path: Path, content: bytes) -> None:
    """Replaces a file, readable by its owner only."""
    make_private_directory(path.parent)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _make_durable(path.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def read_private(path: Path) -> bytes:
    """The content of a file; raises RefusedFile when users other than its owner have access."""
    with path.open("rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & _OTHERS:
            raise RefusedFile(
                f"{path} holds secrets and has mode {mode:04o}, so that others on this machine "
                f"may use it; run: chmod 600 {path}"
            )
        return file.read()


def make_private_directory(path: Path) -> None:
    """Makes a folder that only its owner may enter; an existing one is left unchanged."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def _make_durable(folder: Path) -> None:
    """Makes the names in a folder durable by fsync."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
