"""A local cluster for tests: real processes, in a folder of its own, waited for by what is seen.

Time is real here, since processes are. No test sleeps: it says what it waits for and fails with
that after a while. Pods are isolated where the machine can, and share a folder with the test.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fairway.agent.drivers.interface import Observation
from fairway.agent.drivers.local.driver import LocalDriver
from fairway.agent.drivers.local.isolation import Isolation, NotIsolated, find_isolation
from fairway.agent.drivers.local.plans import Limits
from fairway.agent.drivers.local.supervisor.processes import descendants, processes
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.work import Stop, Work
from fairway.clock import SystemClock
from fairway.kinds.registry import Kinds
from tests.waiting import observed

Plain = dict[str, Any]


def cluster(capacity: Mapping[str, Any]) -> Cluster:
    return decode(
        {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": "here", "uid": "1"},
            "spec": {"local": {"capacity": dict(capacity), "stopSeconds": 5}},
        },
        Cluster,
    )


@cache
def isolation(hidden: tuple[Path, ...] = ()) -> Isolation | None:
    """How pods of tests are isolated; where the machine cannot, they are not."""
    try:
        return find_isolation(hidden)
    except NotIsolated as why:
        if is_required():
            pytest.fail(f"pods cannot be isolated: {why}")
        return None


def is_required() -> bool:
    """Whether a machine that cannot isolate pods is a failure."""
    return os.environ.get("FAIRWAY_REQUIRE_ISOLATION", "") not in ("", "0")


def shared(folder: Path) -> Path:
    """A folder of the machine that pods and a test both use, whichever users they are."""
    made = folder / "shared"
    made.mkdir(parents=True, exist_ok=True)
    made.chmod(0o777)
    return made


class LocalRig:
    """This machine, under test."""

    quick_seconds = 0.05

    def __init__(
        self,
        folder: Path,
        capacity: Mapping[str, Any],
        limits: Limits,
        hidden: tuple[Path, ...] = (),
    ) -> None:
        self.folder = folder / "local"
        self._hidden = hidden
        self._capacity = capacity
        self._limits = replace(limits, host_roots=(shared(folder),))
        self.driver = self._new()

    def _new(self) -> LocalDriver:
        return LocalDriver(
            cluster(self._capacity),
            Kinds.of_code().of,
            SystemClock(),
            folder=self.folder,
            limits=self._limits,
            isolation=isolation(self._hidden),
        )

    def supervisor(self, one: Work) -> int:
        """The supervisor of a work's newest pod."""
        return supervisor(self.folder, one.metadata.name)

    def keeper(self, one: Work) -> int:
        """What keeps the only container of a work's newest pod."""
        above = self.supervisor(one)
        (keeper,) = (pid for pid in descendants(above) if _parent(pid) == above)
        return keeper

    def on_machine(self, one: Work, pid: int, pod: str = "*") -> int:
        return on_machine(self.folder, one.metadata.name, pid, pod)

    async def until(self, holds: Callable[[Observation], bool], what: str) -> Observation:
        return await observed(self.driver, holds, what)

    async def restart(self) -> None:
        await self.driver.close()
        self.driver = self._new()
        await self.driver.open()


QUICK = Limits(grace_seconds=5.0, leftover_seconds=0.5, backoff_seconds=(0.02, 0.1))


@asynccontextmanager
async def machine(
    folder: Path,
    *,
    capacity: Mapping[str, Any] | None = None,
    limits: Limits = QUICK,
    hidden: tuple[Path, ...] = (),
) -> AsyncIterator[LocalRig]:
    """A local cluster; whatever a test leaves running is ended after it."""
    rig = LocalRig(folder, capacity or {"cpu": "16", "memory": "8Gi"}, limits, hidden)
    await rig.driver.open()
    try:
        yield rig
    finally:
        for name in (await rig.driver.observe()).works:
            await rig.driver.stop(name, Stop(grace_seconds=0))
            await rig.driver.remove(name)
        await rig.until(lambda item: not item.works, "everything removed")
        await rig.driver.close()


def pod(
    name: str,
    *command: str,
    env: Mapping[str, str] | Sequence[Plain] = (),
    restart: str = "Never",
    resources: Mapping[str, Any] | None = None,
    container: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Plain:
    """A Pod of one container."""
    variables = (
        [{"name": key, "value": value} for key, value in env.items()]
        if isinstance(env, Mapping)
        else list(env)
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "restartPolicy": restart,
            "containers": [
                {
                    "name": "main",
                    "command": list(command),
                    "env": variables,
                    "resources": {"limits": dict(resources or {})},
                    **(container or {}),
                }
            ],
            **spec,
        },
    }


def supervisor(folder: Path, work: str, pod: str = "*") -> int:
    """The supervisor of the newest of some pods, by the folder of their driver."""
    *_, newest = sorted(folder.glob(f"works/{work}/pods/*/*/{pod}/state.json"))
    return int(json.loads(newest.read_text())["pid"])


def on_machine(folder: Path, work: str, pid: int, pod: str = "*") -> int:
    """A process that a pod knows by `pid`, as this machine numbers it."""
    below = descendants(supervisor(folder, work, pod))
    (process,) = (other for other in below if _status(other, "NSpid")[-1] == str(pid))
    return process


def running(word: str) -> list[int]:
    """The processes of this machine that have a word in their command."""
    found = []
    for pid in processes():
        with suppress(OSError):
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def _status(pid: int, field: str) -> list[str]:
    """A field of what the kernel says about a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1:] for line in lines if line.startswith(f"{field}:"))


def _parent(pid: int) -> int:
    return int(_status(pid, "PPid")[0])


def program(text: str) -> tuple[str, ...]:
    """A command that runs a Python program."""
    return (sys.executable, "-S", "-c", text)


def phase_of(observation: Observation, work: Work, pod: str = "") -> str:
    """The phase of a pod, or of the only one; empty where there is none."""
    found = observation.works.get(work.metadata.name)
    pods = [other for other in (found.pods if found else ()) if pod in ("", other.name)]
    return pods[0].phase if pods else ""
