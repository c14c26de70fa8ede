"""Processes of this machine, from /proc, and a time for them that does not jump."""

from __future__ import annotations

import contextlib
import os
import signal
import time

SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _monotonic() -> float:
    boot = getattr(time, "CLOCK_BOOTTIME", None)  # also counts while the machine sleeps
    return time.monotonic() if boot is None else time.clock_gettime(boot)


_OFFSET = time.time() - _monotonic()


def steady_time() -> float:
    """The time, on the course that it had when the pod started.

    A machine's time that is set forward must end no pod, nor one that is set back delay its end.
    """
    return _monotonic() + _OFFSET


def adopt_orphans() -> None:
    """Makes this process the parent of orphaned descendants, instead of init."""
    import ctypes  # noqa: PLC0415 - the only use

    if ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) != 0:  # PR_SET_CHILD_SUBREAPER
        raise OSError("this system cannot adopt orphaned processes")


def processes() -> dict[int, tuple[int, str]]:
    """The parent and the state of each process of the machine."""
    result = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - without pathlib, as above
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        result[int(name)] = (int(fields[1]), fields[0].decode())
    return result


def descendants(of: int, spare: set[int] | None = None) -> list[int]:
    """All descendants of a process, without dead ones and those in `spare` with their own."""
    children: dict[int, list[int]] = {}
    states = processes()
    for pid, (parent, _) in states.items():
        children.setdefault(parent, []).append(pid)
    result: list[int] = []
    ahead = list(children.get(of, ()))
    while ahead:
        pid = ahead.pop()
        if spare and pid in spare:
            continue
        ahead.extend(children.get(pid, ()))
        if states[pid][1] not in "ZX":
            result.append(pid)
    return result


def end_descendants(of: int, spare: set[int] | None = None) -> bool:
    """One pass of killing all descendants; returns whether there were none.

    All are stopped before the first is killed, so that none can fork when another dies.
    """
    left = descendants(of, spare)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in left:
            send(pid, number)
    return not left


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def start_of(pid: int) -> int:
    """When a process started, in kernel ticks; with the pid, it identifies the process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - without pathlib, as above
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return 0
