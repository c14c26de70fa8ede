"""What keeps a pod from the hub and from other pods: a sandbox, made by bubblewrap.

A pod has user, mount, pid and IPC namespaces of its own. Of this machine's files it sees what
programs need, read-only: the system's programs and libraries, the hub's Python, and a few files of
/etc. It writes to its own folders, its own /tmp, and the folders that pods may use. Everything else
does not exist for it: the hub's data, other pods, home folders. Where the hub is root, pods are
another user. The network is that of the machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fairway

Plain = dict[str, Any]

POD_USER = 61000  # in a range that no distribution hands out
_PROGRAM = "bwrap"
_PROGRAMS = ("/usr", "/opt", "/sys")
_LINKED = ("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin")  # to /usr, on most systems
_SETTINGS = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "gai.conf",
    "group", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias",
    "localtime", "magic", "mime.types", "networks", "nsswitch.conf", "nvidia", "OpenCL",
    "os-release", "passwd", "pki/ca-trust", "pki/tls/certs", "protocols", "resolv.conf", "services",
    "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "vulkan",
)  # fmt: skip
_OF_THE_SYSTEM = ("/dev", "/proc", "/run", "/sys")  # pods have their own, or none
_DEVICES = ("nvidia*", "dri", "kfd")
_TRIAL_SECONDS_MAX = 30
_TRIAL = (
    "import json, sys; sys.path.append(sys.argv[1]); "
    "from fairway.agent.drivers.local.supervisor.sandbox import become; "
    "become(json.load(sys.stdin), 1)"
)


class NotIsolated(Exception):
    """Why this machine cannot isolate pods."""


class RefusedFolder(Exception):
    """Why pods may not use a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """How pods are isolated on this machine."""

    program: str
    user: int | None  # of pods; None: the hub's own
    hidden: tuple[Path, ...] = ()  # what no pod may see

    def sandbox(
        self,
        *,
        mark: Mapping[str, str],
        own: Sequence[Path] = (),
        tmp: Path | None = None,
        folders: Iterable[Path] = (),
    ) -> Plain:
        """The sandbox of a pod: with its `own` folders, and `folders` that all pods may use.

        Its processes, bubblewrap's included, have the `mark` in their environment.
        """
        outer = _outermost(path.resolve() for path in folders)
        return {
            "program": self.program,
            "user": self.user,
            "mark": dict(mark),
            "options": list(self._options(own, tmp, outer)),
        }

    def shows(self, path: Path, folders: Iterable[Path]) -> bool:
        """Whether every pod sees a path of the machine, if all may use `folders`."""
        everywhere = (*map(Path, (*_PROGRAMS, *_LINKED)), *_interpreter(), *folders)
        return str(path) in ("/", "/tmp") or _is_below(path, everywhere)  # noqa: S108 - its own

    def may_share(self, folder: Path) -> bool:
        """Whether an administrator's pod may use a folder; what is the hub's in it is covered."""
        if folder != folder.resolve() or folder == Path("/"):
            return False  # a link would lead nowhere in the sandbox
        return not _is_below(folder, (*map(Path, _OF_THE_SYSTEM), *self.hidden, *_of_the_hub()))

    def _options(
        self, own: Sequence[Path], tmp: Path | None, folders: Sequence[Path]
    ) -> Iterator[str]:
        seen = [Path(name) for name in _PROGRAMS]
        seen += [path for path in _interpreter() if not _is_below(path, seen)]
        yield from ("--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var")
        for pattern in _DEVICES:
            for device in sorted(Path("/dev").glob(pattern)):
                yield from ("--dev-bind", str(device), str(device))
        yield from _own_tmp(tmp, (*own, *seen, *folders))
        for name in _LINKED:
            if Path(name).is_symlink():
                yield from ("--symlink", str(Path(name).readlink()), name)
            else:
                yield from ("--ro-bind-try", name, name)
        for name in _SETTINGS:
            yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
        for path in seen:
            yield from ("--ro-bind-try", str(path), str(path))
        for path in folders:
            yield from ("--bind", str(path), str(path))
        yield from self._covers(seen, folders)
        for path in own:
            yield from ("--bind", str(path), str(path))
        yield from ("--remount-ro", "/")

    def _covers(self, seen: Sequence[Path], folders: Sequence[Path]) -> Iterator[str]:
        """What is the hub's in mounted folders is read-only, or hidden."""
        for path in _of_the_hub():
            if _is_below(path, folders):
                yield from ("--ro-bind-try", str(path), str(path))
        for path in self.hidden:
            if _is_below(path, (*seen, *folders)) and path.exists():
                nothing = ("--tmpfs",) if path.is_dir() else ("--ro-bind", os.devnull)
                yield from (*nothing, str(path))


def give(folders: Iterable[Path], sandbox: Plain | None) -> None:
    """Makes the user of a sandbox the owner of folders and of everything in them."""
    user = None if sandbox is None else sandbox["user"]
    if user is None:
        return
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)


def find_isolation(hidden: Iterable[Path] = ()) -> Isolation:
    """How pods are isolated here; NotIsolated if this machine cannot."""
    program = shutil.which(_PROGRAM)
    if program is None:
        raise NotIsolated(f"{_PROGRAM} (bubblewrap) is not installed")
    made = Isolation(
        program=program,
        user=POD_USER if os.geteuid() == 0 else None,
        hidden=tuple(path.resolve() for path in hidden),
    )
    _try(made)
    return made


def check_folders(folders: Iterable[Path], hidden: Iterable[Path]) -> None:
    """RefusedFolder if pods could reach what is the hub's through a folder that they may use."""
    own = [*hidden, *_of_the_hub()]
    for folder in folders:
        if not folder.is_dir():
            raise RefusedFolder(f"{folder} is not a folder")
        if _is_below(folder.resolve(), map(Path, _OF_THE_SYSTEM)):
            raise RefusedFolder(f"pods may not use {folder}: it is the system's own")
        for path in own:
            here, there = folder.resolve(), path.resolve()
            if there.is_relative_to(here) or here.is_relative_to(there):
                raise RefusedFolder(f"pods may not use {folder}: {path} is the hub's own")


def _try(isolation: Isolation) -> None:
    """Runs a program in a sandbox as a keeper would; NotIsolated if that fails."""
    spec = {
        "argv": ["true"],
        "env": {"PATH": os.defpath},
        "cwd": "/",
        "sandbox": isolation.sandbox(mark={}),
    }
    try:
        done = subprocess.run(  # noqa: S603 - a program of our own
            [sys.executable, "-I", "-S", "-c", _TRIAL, str(Path(fairway.__file__).parents[1])],
            input=json.dumps(spec),
            capture_output=True,
            text=True,
            timeout=_TRIAL_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as fault:
        raise NotIsolated(f"{_PROGRAM} does not end") from fault
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"])[-1]
        raise NotIsolated(f"{_PROGRAM} does not work here: {why}")


def _own_tmp(tmp: Path | None, mounts: Sequence[Path]) -> Iterator[str]:
    """A /tmp of its own: on disk, unless there are `mounts` below it.

    Where those go must not be up to the pod, which could have put links there in an earlier run.
    """
    common, other = "/tmp", "/var/tmp"  # noqa: S108 - its own in the sandbox
    if tmp is None or any(_is_below(path, [Path(common)]) for path in mounts):
        yield from ("--tmpfs", common)
    else:
        yield from ("--bind", str(tmp), common)
    if any(_is_below(path, [Path(other)]) for path in mounts):
        yield from ("--tmpfs", other)
    else:
        yield from ("--symlink", common, other)


def _interpreter() -> tuple[Path, ...]:
    """Where the hub's Python is."""
    given = [Path(sys.prefix), Path(sys.base_prefix)]
    return _outermost([*given, *(path.resolve() for path in given)])


def _of_the_hub() -> tuple[Path, ...]:
    """Programs that the hub runs: whoever changes them is the hub."""
    return _outermost([*_interpreter(), Path(fairway.__file__).parent.resolve()])


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Paths without those that are below others of them."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda item: (len(item.parts), item)):
        if not _is_below(path, kept):
            kept.append(path)
    return tuple(kept)


def _is_below(path: Path, roots: Iterable[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
