"""Where the keys come from that encrypt what a hub keeps on disk.

They are outside the data folder: in a file, in the environment, or printed by a command that asks
a key management service. Each gives one or more keys; see `fairway.sealing.keys_of`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fairway.sealing import KeyFault, Keyring, keys_of
from fairway.server.access.private_files import RefusedFile, read_private

VARIABLE = "FAIRWAY_ENCRYPTION_KEY"
_COMMAND_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySource:
    """Where the keys are; nowhere unless one of these is given."""

    file: Path | None = None
    command: str = ""
    is_from_environment: bool = False

    def read(self) -> list[bytes]:
        """The keys as they are now; none if nothing gives any."""
        if self.file is not None:
            return keys_of(_content(self.file), str(self.file))
        if self.command:
            return keys_of(_printed(self.command), "what the key command printed")
        if self.is_from_environment and VARIABLE in os.environ:
            return keys_of(os.environ[VARIABLE], f"the variable {VARIABLE}")
        return []

    def keyring(self, *, outside: Path) -> Keyring | None:
        """The keys, of which none may be in the folder that they encrypt."""
        if self.file is not None and self.file.resolve().is_relative_to(outside.resolve()):
            raise KeyFault(
                f"the key {self.file} is in the folder that it encrypts: keep it elsewhere"
            )
        keys = self.read()
        return Keyring(keys) if keys else None


def _content(path: Path) -> str:
    try:
        return read_private(path).decode()
    except OSError as fault:
        raise KeyFault(f"the key {path} cannot be read: {fault.strerror}") from fault
    except RefusedFile as fault:
        raise KeyFault(str(fault)) from fault
    except UnicodeDecodeError as fault:
        raise KeyFault(f"the key {path} is not text: it needs to be in base64") from fault


def _printed(command: str) -> str:
    try:
        result = subprocess.run(  # noqa: S603 - the operator's own command
            shlex.split(command),
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired as fault:
        raise KeyFault(f"the key command gave no key in {_COMMAND_SECONDS:.0f} seconds") from fault
    except (OSError, ValueError) as fault:
        raise KeyFault(f"the key command cannot be run: {fault}") from fault
    if result.returncode != 0:
        said = (result.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise KeyFault(f"the key command failed with code {result.returncode}: {said}")
    return result.stdout
