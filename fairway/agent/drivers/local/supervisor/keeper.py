"""Keeps one run of a container: starts the process, keeps its output, ends what it leaves behind.

A keeper is forked from its supervisor and adopts what the container leaves behind, so that a
container has ended only when nothing of it is left, daemons included. A keeper whose supervisor is
gone ends its container at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from typing import Any

from fairway.agent.drivers.local.supervisor.files import (
    Plain,
    close_all_but,
    read_signals,
    wake_pipe,
)
from fairway.agent.drivers.local.supervisor.processes import (
    SIGNALS,
    adopt_orphans,
    descendants,
    end_descendants,
    send,
    start_of,
    steady_time,
)
from fairway.agent.drivers.local.supervisor.sandbox import FAULT, become, has_begun, main_process

_PASS_SECONDS = 0.01
_OUTPUT_BYTES = 65536
_START_ERROR = 128  # the exit code of container runtimes for a process that did not start
_REASON_BYTES = 500


class Keeper:
    """Starts the process, keeps its output, and ends what it leaves behind."""

    def __init__(self, spec: Plain, control: int, result: int, log_bytes_max: int) -> None:
        self.spec = spec
        self.control = control
        self.result = result
        self.log = Log(f"logs/{spec['name']}.log", log_bytes_max)
        self.alarm = wake_pipe()
        self.output = -1
        self.status = -1  # where a sandbox reports; -1: there is none
        self.reported = b""
        self.first_output = b""
        self.main = 0
        self.init = 0  # of the sandbox, in which the main process runs
        self.exit_code: int | None = None
        self.asked: int | None = None  # the signal that ends the container
        self.is_signal_due = False
        self.kill_at: float | None = None
        self.pass_seconds = _PASS_SECONDS

    def run(self) -> None:
        if self.spec.get("note"):
            self.log.write(f"{self.spec['note']}\n".encode())
        self.main, self.output, self.status, fault = start_process(self.spec)
        if fault:
            self.log.write(f"{fault}\n".encode())
            os.waitpid(self.main, 0)
            self.say(exit_code=_START_ERROR, reason="StartError", message=fault)
            return
        if self.status < 0:
            self.say(pid=self.main, start=start_of(self.main))
        while True:
            self.reap()
            now = steady_time()
            if self.kill_at is not None and now >= self.kill_at and end_descendants(os.getpid()):
                break
            if self.exit_code is not None and not descendants(os.getpid()):
                break
            self.wait(now)
        self.reap()
        self.drain()
        self.say(**self.end())

    def end(self) -> Plain:
        """How the run ended."""
        code = self.exit_code if self.exit_code is not None else 137
        if self.status >= 0 and code == FAULT:
            self.read_status()
            if not has_begun(self.reported):  # so all output is bubblewrap's
                said = self.first_output.decode(errors="replace").strip()
                fault = f"cannot start {self.spec['argv'][0]}: {said}"
                return {"exit_code": _START_ERROR, "reason": "StartError", "message": fault}
        return {"exit_code": code, "reason": "Completed" if code == 0 else "Error"}

    def reap(self) -> None:
        """Reaps ended processes; once the main process has ended, signals the rest to end."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid != self.main:
                continue
            code = os.waitstatus_to_exitcode(status)
            self.exit_code = code if code >= 0 else 128 - code
            for left in descendants(os.getpid()):
                send(left, self.asked or signal.SIGTERM)
            if self.kill_at is None:
                self.kill_at = steady_time() + float(self.spec["leftover_seconds"])

    def wait(self, now: float) -> None:
        poll = select.poll()
        listened = [self.alarm, self.control, self.output]
        if not self.init and self.exit_code is None:
            listened.append(self.status)
        for descriptor in listened:
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(self.patience(now))}
        if self.output in ready:
            self.read_output()
        if self.status in ready:
            self.read_status()
        if self.alarm in ready:
            read_signals(self.alarm)
        if self.control in ready:
            self.obey(os.read(self.control, _OUTPUT_BYTES))
        if self.is_signal_due:
            self.pass_on()

    def patience(self, now: float) -> float | None:
        """Milliseconds until the next step that needs no event; None: never."""
        patience = None
        if self.kill_at is not None:
            patience = (self.kill_at - now) * 1000
            if patience <= 0:
                # A process that cannot be killed, such as another user's, is tried less and less.
                patience = self.pass_seconds * 1000
                self.pass_seconds = min(self.pass_seconds * 1.2, 1.0)
        if self.exit_code is not None:
            patience = min(patience or 1000.0, 1000.0)
        if self.is_signal_due:
            patience = _PASS_SECONDS * 1000
        return patience

    def obey(self, orders: bytes) -> None:
        if not orders:  # the supervisor is gone: nothing survives it
            os.close(self.control)
            self.control = -1
            self.kill_at = 0.0
            return
        for order in orders.decode().split("\n"):
            if order.startswith("s"):
                number, stop_by = order[1:].split(" ")
                self.asked, self.kill_at = int(number), float(stop_by)
                self.is_signal_due = True
            elif order.startswith("g"):
                self.kill_at = min(self.kill_at or float(order[1:]), float(order[1:]))

    def pass_on(self) -> None:
        """Sends the signal that ends the container, once its main process runs."""
        main = self.main
        if self.status >= 0:
            main = main_process(self.init) if self.init else 0
        if main and self.asked is not None:
            send(main, self.asked)
        self.is_signal_due = not main and self.exit_code is None

    def read_status(self) -> None:
        """Reads what the sandbox reports: first its init process, and at last the exit code."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.status, _OUTPUT_BYTES):
                self.reported += chunk
        line, is_whole, _ = self.reported.partition(b"\n")
        if is_whole and not self.init:
            self.init = int(json.loads(line)["child-pid"])
            self.say(pid=self.init, start=start_of(self.init))

    def read_output(self) -> bool:
        try:
            chunk = os.read(self.output, _OUTPUT_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            os.close(self.output)
            self.output = -1
            return False
        if len(self.first_output) < _REASON_BYTES:
            self.first_output += chunk[:_REASON_BYTES]
        self.log.write(chunk)
        return True

    def drain(self) -> None:
        """Reads the rest of the output, once all writers are gone."""
        while self.output >= 0 and self.read_output():
            pass

    def say(self, **facts: Any) -> None:
        # An error means that the supervisor is gone.
        with contextlib.suppress(OSError):
            os.write(self.result, json.dumps(facts).encode() + b"\n")


class Log:
    """Output in frames: a header line (`SECONDS LENGTH`) and that number of bytes.

    A full file replaces the older file, so that at most twice the limit is kept.
    """

    def __init__(self, path: str, bytes_max: int) -> None:
        self.path = path
        self.bytes_max = bytes_max
        self.size = 0
        self.file = self._open()

    def _open(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, chunk: bytes) -> None:
        if self.size and self.size + len(chunk) > self.bytes_max:
            os.rename(self.path, self.path + ".1")  # noqa: PTH104 - without pathlib, as above
            os.close(self.file)
            self.file, self.size = self._open(), 0
        frame = b"%.6f %d\n%b" % (time.time(), len(chunk), chunk)
        try:
            os.write(self.file, frame)
        except OSError:
            return  # a full disk loses output and nothing else
        self.size += len(frame)


def keep(spec: Plain, control: int, result: int, log_bytes_max: int) -> None:
    close_all_but({control, result})
    adopt_orphans()
    Keeper(spec, control, result, log_bytes_max).run()


def keep_previous_logs(name: str, *, is_first: bool) -> None:
    """Renames the logs of the last run, which stay readable, to make room for the next run."""
    if is_first:
        return
    for end in ("", ".1"):
        new, old = f"logs/{name}.log{end}", f"logs/{name}.previous.log{end}"
        try:
            os.rename(new, old)  # noqa: PTH104 - without pathlib, as above
        except FileNotFoundError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(old)  # noqa: PTH108 - as above


def start_process(spec: Plain) -> tuple[int, int, int, str]:
    """Starts the process: its pid, its output, its sandbox's status, and why it did not start."""
    output, written = os.pipe()
    trouble, troubled = os.pipe()
    status, reported = os.pipe() if spec.get("sandbox") else (-1, -1)
    pid = os.fork()
    if pid == 0:
        try:
            _become(spec, written, reported)
        except BaseException as fault:
            os.write(troubled, str(fault).encode())
        os._exit(_START_ERROR)
    said = b""
    for descriptor in (written, troubled, reported):
        if descriptor >= 0:
            os.close(descriptor)
    while chunk := os.read(trouble, 4096):
        said += chunk
    os.close(trouble)
    for descriptor in (output, status):
        if descriptor >= 0:
            os.set_blocking(descriptor, False)
    why = f"cannot start {spec['argv'][0]}: {said.decode(errors='replace')}" if said else ""
    return pid, output, status, why


def _become(spec: Plain, output: int, status: int) -> None:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.umask(0o022)
    for signal_number in (*SIGNALS, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signal_number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if spec.get("sandbox"):
        become(spec, status)
    os.chdir(spec["cwd"])
    os.execvpe(spec["argv"][0], spec["argv"], spec["env"])  # noqa: S606 - no shell is the point
