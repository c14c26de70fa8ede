"""Starts a process in the sandbox of its plan, by bubblewrap.

bubblewrap itself runs outside the sandbox. So it gets its options in a file that no other user can
read, and nothing of the pod's environment, in which a pod could name a library to load.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
from collections.abc import Mapping, Sequence

from fairway.agent.drivers.local.supervisor.files import Plain
from fairway.agent.drivers.local.supervisor.processes import processes, start_of

_NEW_USER = 0x10000000  # CLONE_NEWUSER
_OWNER_OF_NAMESPACE = 0xB701  # NS_GET_USERNS
FAULT = 1  # the exit code of bubblewrap if it could not start the process
_FIRST_PID = 2  # of the main process in its own namespace; 1 is bubblewrap, which reaps


def command(
    sandbox: Plain, argv: Sequence[str], env: Mapping[str, str], options: Sequence[str]
) -> tuple[list[str], int]:
    """The command that runs `argv` in a sandbox, and the file with its options."""
    given = [*options, *sandbox["options"], "--clearenv"]
    for name, value in env.items():
        given += ("--setenv", name, value)
    if any("\0" in word for word in given):  # would be an option of its own
        raise ValueError("embedded null byte")
    file = os.memfd_create("options")
    with os.fdopen(os.dup(file), "wb") as written:
        written.write(b"".join(os.fsencode(word) + b"\0" for word in given))
    os.lseek(file, 0, os.SEEK_SET)
    return [sandbox["program"], "--args", str(file), "--", *argv], file


def become(spec: Plain, status: int) -> None:
    """Turns this process into bubblewrap, which runs the container and reports on `status`."""
    sandbox = spec["sandbox"]
    space = _new_user_namespace(sandbox)
    own = ["--unshare-user"] if space < 0 else ["--userns", str(space)]
    options = [*own, "--unshare-pid", "--unshare-ipc", "--json-status-fd", str(status)]
    options += ("--chdir", spec["cwd"], "--cap-drop", "ALL")
    words, file = command(sandbox, spec["argv"], spec["env"], options)
    for descriptor in (file, status, space):
        if descriptor >= 0:
            os.set_inheritable(descriptor, True)
    os.chdir("/")
    drop_rights(sandbox)
    os.execve(words[0], words, sandbox["mark"])  # noqa: S606 - no shell is the point


def drop_rights(sandbox: Plain) -> None:
    """Becomes the user of pods, if this process is root."""
    user = sandbox["user"]
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


def _new_user_namespace(sandbox: Plain) -> int:
    """A user namespace of the user of pods; -1 if pods run as the hub's own user.

    Root is mapped too, so that bubblewrap can reach the pod's folders through folders that only
    root may enter. The pod has no capabilities, so that gives it nothing.
    """
    user = sandbox["user"]
    if user is None:
        return -1
    is_made, made = os.pipe()
    is_done, done = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(done)
            drop_rights(sandbox)
            if ctypes.CDLL(None).unshare(_NEW_USER) == 0:
                os.write(made, b"1")
                os.read(is_done, 1)
        finally:
            os._exit(0)
    os.close(made)
    os.close(is_done)
    try:
        if not os.read(is_made, 1):
            raise OSError("this system permits no user namespaces")
        for kind in ("uid", "gid"):
            with open(f"/proc/{child}/{kind}_map", "w") as file:  # noqa: PTH123 - without pathlib
                file.write(f"0 0 1\n{user} {user} 1\n")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    finally:
        os.close(is_made)
        os.close(done)
        os.waitpid(child, 0)


def join_options(init: int, start: int) -> tuple[list[str], list[int]]:
    """The options to run beside the processes of a sandbox, and the descriptors these name.

    `start` is when its init process started: another process may have that pid by now.
    """
    pids = os.open(f"/proc/{init}/ns/pid", os.O_RDONLY)
    users = os.open(f"/proc/{init}/ns/user", os.O_RDONLY)
    # The namespace in which bubblewrap made the mounts; the pod itself may be in one below it.
    owner = fcntl.ioctl(pids, _OWNER_OF_NAMESPACE)
    options = ["--userns", str(owner), "--pidns", str(pids), "--die-with-parent"]
    if os.fstat(owner).st_ino != os.fstat(users).st_ino:
        options += ("--userns2", str(users))
    if start_of(init) != start:
        for descriptor in (pids, users, owner):
            os.close(descriptor)
        raise ProcessLookupError("it has ended")
    return options, [pids, users, owner]


def has_begun(status: bytes) -> bool:
    """Whether the process of a sandbox that has ended was ever started, by the sandbox's status."""
    return b"exit-code" in status


def main_process(init: int) -> int:
    """The main process of a sandbox, as this machine numbers it; 0 if it does not run."""
    for pid, (parent, _) in processes().items():
        if parent == init and _pid_inside(pid) == _FIRST_PID:
            return pid
    return 0


def _pid_inside(pid: int) -> int:
    """The pid of a process in its own namespace."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123 - without pathlib
            for line in file:
                if line.startswith(b"NSpid:"):
                    return int(line.split()[-1])
    except OSError:
        pass
    return 0
