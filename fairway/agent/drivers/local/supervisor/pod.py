"""Runs one pod: init containers in order, sidecars beside them, then the rest together.

    python -I -S -c "... main(FOLDER)"

It reads FOLDER/plan.json, holds FOLDER/lock, and writes FOLDER/state.json at every change. SIGTERM
ends the pod as FOLDER/stop.json says: the signal to each container's main process, after the grace
period SIGKILL to everything that is left, until nothing is.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import time

from fairway.agent.drivers.local.supervisor.files import (
    Plain,
    hear_signals,
    read_json,
    read_signals,
    wake_pipe,
    write_json,
)
from fairway.agent.drivers.local.supervisor.keeper import keep, keep_previous_logs
from fairway.agent.drivers.local.supervisor.processes import (
    SIGNALS,
    adopt_orphans,
    end_descendants,
    start_of,
    steady_time,
)

_PASS_SECONDS = 0.01  # between two passes of ending what is left
_RUN_SECONDS_TO_FORGIVE = 600.0  # a run of this length resets the backoff, as in Kubernetes


def main(folder: str) -> None:
    os.umask(0o077)
    os.chdir(folder)
    lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # another supervisor runs this plan
    if os.path.exists("state.json"):  # noqa: PTH110 - pathlib would double the start-up time
        return  # the plan was run before; nothing runs twice
    adopt_orphans()
    Supervisor(read_json("plan.json")).run()


class Container:
    """One container of the pod, over all its runs."""

    def __init__(self, spec: Plain) -> None:
        self.name: str = spec["name"]
        self.role: str = spec["role"]  # init, sidecar or main
        self.restart: str = spec["restart"]
        self.spec = spec
        self.state = "waiting"  # waiting, running, ended
        self.keeper = 0
        self.control = -1  # orders to the keeper
        self.result = -1  # results from the keeper
        self.heard = b""
        self.record: Plain = {}
        self.restarts = 0
        self.failures = 0  # in a row, for the backoff
        self.not_before = 0.0

    @property
    def is_running(self) -> bool:
        return self.state == "running"

    @property
    def has_failed(self) -> bool:
        return self.state == "ended" and self.record.get("exit_code") != 0

    def restarts_again(self) -> bool:
        """Whether the restart policy requires another run."""
        if self.restart == "Always":
            return True
        return self.restart == "OnFailure" and self.record.get("exit_code") != 0

    def report(self) -> Plain:
        return {"state": self.state, "restarts": self.restarts, "role": self.role, **self.record}


class Supervisor:
    """The pod: init containers in order, sidecars beside them, then the rest together."""

    def __init__(self, plan: Plain) -> None:
        self.plan = plan
        self.containers = [Container(container) for container in plan["containers"]]
        self.phase = "Starting"
        self.begun_at = self.since = steady_time()
        for container in self.containers:
            container.not_before = self.begun_at + plan["start_at"] - plan["planned_at"]
        self.started_at: float | None = None
        self.finished_at: float | None = None
        self.reason = ""
        self.message = ""
        self.signal = signal.SIGTERM
        self.stop_by: float | None = None  # end of the grace period; None while not stopping
        self.last_written: Plain = {}
        self.wake_is_due = False
        self.alarm = wake_pipe()

    def run(self) -> None:
        self.write()
        hear_signals(SIGNALS)
        if os.path.exists("stop.json"):  # noqa: PTH110 - as above
            self.stop()
        while True:
            self.step()
            if self.finished_at is not None:
                break
            self.write()
            self.wait()
        self.clear()
        self.write(is_last=True)

    def clear(self) -> None:
        """Removes the pod's scratch folders."""
        import shutil  # noqa: PLC0415 - needed once, at the very end

        for folder in self.plan["scratch"]:
            shutil.rmtree(folder, ignore_errors=True)

    # Steps

    def step(self) -> None:
        now = steady_time()
        deadline = self.deadline()
        if deadline is not None and now >= deadline and self.stop_by is None:
            self.reason = "DeadlineExceeded"
            self.message = "the pod was active longer than its activeDeadlineSeconds"
            self.begin_stop(signal.SIGTERM, float(self.plan["grace_seconds"]))
        if self.stop_by is not None:
            self.end(now)
            return
        mains = [container for container in self.containers if container.role == "main"]
        if self.prepare(now):
            for other in mains:
                self.start_if_due(other, now)
            if all(container.state == "ended" for container in mains):
                self.begin_stop(signal.SIGTERM, float(self.plan["grace_seconds"]))
                self.end(now)
                return
        elif any(
            container.role == "init" and container.has_failed for container in self.containers
        ):
            self.begin_stop(signal.SIGTERM, float(self.plan["grace_seconds"]))
            self.end(now)
            return
        self.judge(mains, now)

    def prepare(self, now: float) -> bool:
        """Runs init containers and sidecars; returns whether the main containers may start."""
        for container in self.containers:
            if container.role == "main":
                continue
            self.start_if_due(container, now)
            if container.role == "init" and not (
                container.state == "ended" and not container.has_failed
            ):
                return False
            if (
                container.role == "sidecar"
                and container.restarts == 0
                and container.state == "waiting"
            ):
                return False
        return True

    def start_if_due(self, container: Container, now: float) -> None:
        if container.state == "waiting" and now >= container.not_before:
            self.start(container, now)

    def judge(self, mains: list[Container], now: float) -> None:
        waiting = [container for container in mains if container.state == "waiting"]
        if not waiting and self.started_at is not None:
            self.turn("Ready")
            self.reason = self.message = ""
        elif any(
            container.not_before > now
            for container in self.containers
            if container.state == "waiting"
        ):
            self.turn("Starting")
            self.reason = "CrashLoopBackOff"
            self.message = "it failed, and waits before it is started again"
        else:
            self.reason = self.message = ""

    def turn(self, phase: str) -> None:
        if phase != self.phase:
            self.phase = phase
            self.since = steady_time()

    def deadline(self) -> float | None:
        seconds = self.plan.get("deadline_seconds")
        return None if seconds is None else float(self.begun_at + seconds)

    # The end

    def stop(self) -> None:
        """Ends the pod as requested; of several requests, the shortest grace period counts."""
        how = {"signal": int(signal.SIGTERM), "grace_seconds": self.plan["grace_seconds"]}
        if os.path.exists("stop.json"):  # noqa: PTH110 - as above
            how = read_json("stop.json")
        if self.stop_by is None:
            self.reason, self.message = "Stopped", "the pod was asked to end"
        self.begin_stop(int(how["signal"]), float(how["grace_seconds"]))

    def begin_stop(self, number: int, grace: float) -> None:
        stop_by = steady_time() + grace
        if self.stop_by is None or number != self.signal:
            self.tell(f"s{number} {stop_by}")
        elif stop_by < self.stop_by:
            self.tell(f"g{stop_by}")
        self.signal = signal.Signals(number)
        self.stop_by = stop_by if self.stop_by is None else min(self.stop_by, stop_by)

    def tell(self, order: str) -> None:
        for container in self.containers:
            if container.is_running:
                # An error means that the keeper is gone, which its result shows.
                with contextlib.suppress(OSError):
                    os.write(container.control, order.encode() + b"\n")

    def end(self, now: float) -> None:
        """Waits for running containers, then records how the pod ended."""
        if any(container.is_running for container in self.containers):
            return
        if not end_descendants(os.getpid()):
            return  # processes of a killed keeper are left; try again in a moment
        mains = [container for container in self.containers if container.role == "main"]
        counted = [container for container in self.containers if container.role != "sidecar"]
        failed = next((container for container in counted if container.has_failed), None)
        is_done = all(container.state == "ended" for container in mains) and failed is None
        self.finished_at = now
        if is_done and self.reason not in ("DeadlineExceeded", "Stopped"):
            self.turn("Succeeded")
            self.reason = "Completed"
        else:
            self.turn("Failed")
            self.blame(failed)

    def blame(self, failed: Container | None) -> None:
        if failed is not None and self.reason != "DeadlineExceeded":
            self.message = failed.record.get("message") or (
                f"container {failed.name} ended with code {failed.record.get('exit_code')}"
            )
            if self.reason != "Stopped":
                self.reason = failed.record.get("reason") or "Error"

    # Keepers

    def start(self, container: Container, now: float) -> None:
        control, container.control = os.pipe()
        container.result, result = os.pipe()
        keep_previous_logs(container.name, is_first="started_at" not in container.record)
        keeper = os.fork()
        if keeper == 0:
            code = 1
            try:
                keep(container.spec, control, result, int(self.plan["log_bytes_max"]))
                code = 0
            finally:
                os._exit(code)
        os.close(control)
        os.close(result)
        if self.started_at is None and container.role != "init":
            self.started_at = now
        container.keeper, container.state, container.heard = keeper, "running", b""
        container.record = {"started_at": now}

    def wait(self) -> None:
        poll = select.poll()
        poll.register(self.alarm, select.POLLIN)
        listened = {
            container.result: container for container in self.containers if container.is_running
        }
        for descriptor in listened:
            poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(self.patience())}
        if self.alarm in ready and signal.SIGTERM in read_signals(self.alarm):
            self.stop()
        for descriptor in ready & listened.keys():
            self.hear(listened[descriptor])

    def patience(self) -> float | None:
        """Milliseconds until the next step that needs no event; None: never."""
        due = [
            container.not_before for container in self.containers if container.state == "waiting"
        ]
        deadline = self.deadline()
        if deadline is not None:
            due.append(deadline)
        now = steady_time()
        if self.stop_by is not None:
            due = [now + (_PASS_SECONDS if not self._any_running() else 3600.0)]
        if self.wake_is_due:
            due.append(now + 1.0)
        waits = [max(0.0, moment - now) for moment in due if moment]
        return min(waits) * 1000 + 1 if waits else None

    def _any_running(self) -> bool:
        return any(container.is_running for container in self.containers)

    def hear(self, container: Container) -> None:
        """Reads from a keeper; end of file means that the run is over."""
        said = os.read(container.result, 65536)
        container.heard += said
        *lines, container.heard = container.heard.split(b"\n")
        for line in lines:
            container.record.update(json.loads(line))
        if said:
            return
        os.close(container.result)
        os.close(container.control)
        os.waitpid(container.keeper, 0)
        if "exit_code" not in container.record:
            # The keeper was killed; its processes are now children of the supervisor, and end.
            while not end_descendants(os.getpid(), spare={c.keeper for c in self.containers}):
                time.sleep(_PASS_SECONDS)
            container.record.update(exit_code=137, reason="Lost", message="its keeper was killed")
        container.record.setdefault("finished_at", steady_time())
        self.settle(container)

    def settle(self, container: Container) -> None:
        """Decides whether and when another run follows one that is over."""
        container.state, container.keeper = "ended", 0
        if self.stop_by is not None or not container.restarts_again():
            return
        ran = container.record["finished_at"] - container.record["started_at"]
        container.failures = 0 if ran >= _RUN_SECONDS_TO_FORGIVE else container.failures
        first, most = self.plan["backoff_seconds"]
        container.not_before = steady_time() + min(first * 2**container.failures, most)
        container.failures = min(container.failures + 1, 30)
        container.restarts += 1
        container.state = "waiting"

    # Reporting

    def write(self, *, is_last: bool = False) -> None:
        state = self.report()
        if state == self.last_written and not self.wake_is_due:
            return
        if state != self.last_written:
            write_json("state.json", state, is_durable=is_last)
            self.last_written = state
        self.wake()

    def report(self) -> Plain:
        codes = [
            container.record.get("exit_code")
            for container in self.containers
            if container.role != "sidecar"
        ]
        known = [code for code in codes if code is not None]
        return {
            "pid": os.getpid(),
            "start": start_of(os.getpid()),
            "phase": self.phase,
            "since": self.since,
            "reason": self.reason,
            "message": self.message,
            "is_stopping": self.stop_by is not None,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "restarts": sum(container.restarts for container in self.containers),
            "exit_code": next((code for code in known if code), known[0] if known else None),
            "containers": {container.name: container.report() for container in self.containers},
        }

    def wake(self) -> None:
        """Notifies the driver, if there is one; if its pipe is full, again in a second."""
        self.wake_is_due = False
        try:
            pipe = os.open(self.plan["wake"], os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return  # no driver listens; the next one reads the state
        try:
            os.write(pipe, self.plan["key"].encode() + b"\n")
        except OSError:
            self.wake_is_due = True
        finally:
            os.close(pipe)
