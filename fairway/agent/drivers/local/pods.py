"""One pod on disk: its plan, its state, and the supervisor that runs the plan."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import fairway
from fairway.agent.drivers.interface import PodPhase, PodSeen
from fairway.agent.drivers.local.slots import Share
from fairway.agent.drivers.local.supervisor.processes import processes, send, start_of
from fairway.api.amounts import Amounts
from fairway.kinds.interface import PodPhase as KindPhase
from fairway.kinds.interface import PodState

Plain = dict[str, Any]

_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from fairway.agent.drivers.local.supervisor.pod import main; main(sys.argv[2])"
)
# Blocked until the supervisor listens, so that a pod can be stopped from its first moment on.
_HELD_BACK = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_PHASES: dict[str, PodPhase] = {
    "Starting": "Bound",
    "Ready": "Ready",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
}


class LocalPod:
    """A planned pod; its replacement after a failure is another LocalPod."""

    def __init__(self, folder: Path, plan: Plain) -> None:
        self.folder = folder
        self.plan = plan
        self.key: str = plan["key"]
        self.work: str = plan["work"]
        self.attempt: int = plan["attempt"]
        self.name: str = plan["pod"]
        self.pod_set: str = plan["pod_set"]
        self.owner: str = plan["owner"]  # the object it belongs to; empty for a placeholder
        self.remakes: int = plan["remakes"]  # how often the pod was replaced before
        self.state: Plain = {}
        self.pid = 0
        self.watched = -1  # a descriptor that signals the supervisor's end
        self.is_ending = (folder / "stop.json").exists()

    @classmethod
    def load(cls, folder: Path) -> LocalPod | None:
        """Loads a pod that was planned earlier; None if the plan is not complete."""
        plan = read_json(folder / "plan.json")
        if plan is None:
            return None
        pod = cls(folder, plan)
        pod.look()
        return pod

    @property
    def is_placeholder(self) -> bool:
        return not self.owner

    @property
    def is_over(self) -> bool:
        return self.state.get("finished_at") is not None

    @property
    def has_begun(self) -> bool:
        """Whether its supervisor ever ran."""
        return "pid" in self.state

    @property
    def is_ready(self) -> bool:
        return self.state.get("phase") == "Ready" and not self.is_ending

    @property
    def share(self) -> Share:
        return Share(
            amounts=Amounts(self.plan["amounts"]),
            devices={name: tuple(held) for name, held in self.plan["devices"].items()},
        )

    def look(self) -> bool:
        """Reads the state again; returns whether it changed."""
        decoded = read_json(self.folder / "state.json")
        if decoded is None or decoded == self.state:
            return False
        self.state = decoded
        self.pid = decoded.get("pid") or self.pid
        return True

    # The supervisor

    def start(self) -> None:
        """Starts the supervisor; it exits if another supervisor runs or has run the plan."""
        output = str(self.folder / "supervisor.log")
        arguments = [sys.executable, "-I", "-S", "-c", _PROGRAM, _root(), str(self.folder)]
        self.pid = os.posix_spawn(
            sys.executable,
            arguments,
            {"PATH": os.environ.get("PATH", os.defpath)},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=_HELD_BACK,
        )

    def is_supervised(self) -> bool:
        """Whether a supervisor is alive: it holds the lock from start to end."""
        try:
            lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(lock)
        return False

    def watch(self) -> int:
        """A descriptor that becomes readable when the supervisor ends; -1 if it has ended."""
        try:
            watched = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return -1
        expected = self.state.get("start")
        if expected is not None and start_of(self.pid) != expected:
            os.close(watched)  # another process has that pid now
            return -1
        self.watched = watched
        return watched

    def unwatch(self) -> None:
        if self.watched >= 0:
            os.close(self.watched)
            self.watched = -1

    def reap(self) -> None:
        """Reaps a supervisor that this process started and that has ended."""
        with suppress(ChildProcessError):  # then an earlier hub started it
            os.waitpid(self.pid, os.WNOHANG)

    def end(self, number: int, grace_seconds: float) -> None:
        """Records how the pod is to end, and signals the supervisor."""
        self.is_ending = True
        write_json(self.folder / "stop.json", {"signal": number, "grace_seconds": grace_seconds})
        self.ask_to_end()

    def ask_to_end(self) -> None:
        """Signals the supervisor to read how the pod is to end; idempotent."""
        if self.watched >= 0:
            with suppress(ProcessLookupError):  # it ended just now
                signal.pidfd_send_signal(self.watched, signal.SIGTERM)

    def conclude(self, now: float, *, reason: str, message: str) -> None:
        """Records the end of a pod whose supervisor cannot."""
        self.state = {
            **self.state,
            "phase": "Failed",
            "reason": reason,
            "message": message,
            "since": now,
            "finished_at": now,
        }
        write_json(self.folder / "state.json", self.state)

    def end_strays(self) -> bool:
        """Kills what is left of a pod without a supervisor; returns whether nothing was left."""
        strays = list(self._strays())
        for pid in strays:
            send(pid, signal.SIGKILL)
        return not strays

    def _strays(self) -> Iterator[int]:
        mark = b"FAIRWAY_CHECKPOINT_FILE=" + os.fsencode(self._checkpoint)
        argument = os.fsencode(self.folder)
        for pid, (_, state) in processes().items():
            if state in "ZX" or pid == os.getpid():
                continue
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in environment or (_PROGRAM.encode() in command and argument in command):
                yield pid

    # Reporting

    def observe(self, node: str) -> PodSeen:
        state = self.state
        phase = _PHASES[state.get("phase", "Starting")]
        if self.is_ending:
            phase = "Terminating"
        message = state.get("message") or ""
        return PodSeen(
            name=self.name,
            pod_set=self.pod_set,
            attempt=self.attempt,
            phase=phase,
            node=node,
            since=state.get("since") or self.plan["planned_at"],
            started_at=state.get("started_at"),
            finished_at=state.get("finished_at"),
            restarts=self.restarts,
            exit_code=state.get("exit_code") if self.is_over else None,
            reason=state.get("reason") or "",
            message=message or self.plan["note"],
            revision=self.plan.get("revision", ""),
            is_beside=self.plan.get("is_beside", False),
            containers=tuple(container["name"] for container in self.plan["containers"]),
        )

    def pod_state(self) -> PodState:
        """The pod as the controller of its kind sees it."""
        state = self.state
        phases: dict[str, KindPhase] = {
            "Starting": "Pending" if state.get("started_at") is None else "Running",
            "Ready": "Ready",
            "Succeeded": "Succeeded",
            "Failed": "Failed",
        }
        return PodState(
            name=self.name,
            pod_set=self.pod_set,
            index=self.plan["index"],
            phase=phases[state.get("phase", "Starting")],
            restarts=self.restarts,
            exit_code=state.get("exit_code") if self.is_over else None,
            started_at=state.get("started_at"),
            finished_at=state.get("finished_at"),
        )

    @property
    def restarts(self) -> int:
        return self.remakes + int(self.state.get("restarts") or 0)

    def checkpointed_at(self) -> float | None:
        """When the program last signalled that it saved its work."""
        try:
            return self._checkpoint.lstat().st_mtime  # the pod could have made it a link
        except OSError:
            return None

    @property
    def _checkpoint(self) -> Path:
        return Path(self.plan.get("checkpoint") or self.folder / "checkpoint")


@cache
def _root() -> str:
    return str(Path(fairway.__file__).parent.parent)


@cache
def boot() -> str:
    """The boot id of the machine: pids are valid within one boot only."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def read_json(path: Path) -> Plain | None:
    """Reads a file of this driver; None if it is missing, or damaged by a crash of the machine."""
    try:
        decoded = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return decoded if isinstance(decoded, dict) else None


def write_json(path: Path, value: Plain) -> None:
    """Replaces a file atomically, readable by its owner only."""
    beside = path.with_name(f".{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(value, file)
    beside.replace(path)
