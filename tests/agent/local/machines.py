"""A local cluster for tests: real processes, in a folder of its own, waited for by what is seen.

Time is real here, since processes are. No test sleeps: it says what it waits for and fails with
that after a while.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fairway.agent.drivers.interface import Observation
from fairway.agent.drivers.local.driver import LocalDriver
from fairway.agent.drivers.local.plans import Limits
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


class LocalRig:
    """This machine, under test."""

    quick_seconds = 0.05

    def __init__(self, folder: Path, capacity: Mapping[str, Any], limits: Limits) -> None:
        self.folder = folder
        self._capacity = capacity
        self._limits = limits
        self.driver = self._new()

    def _new(self) -> LocalDriver:
        return LocalDriver(
            cluster(self._capacity),
            Kinds.of_code().of,
            SystemClock(),
            folder=self.folder,
            limits=self._limits,
        )

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
) -> AsyncIterator[LocalRig]:
    """A local cluster; whatever a test leaves running is ended after it."""
    rig = LocalRig(folder / "local", capacity or {"cpu": "16", "memory": "8Gi"}, limits)
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


def program(text: str) -> tuple[str, ...]:
    """A command that runs a Python program."""
    return (sys.executable, "-S", "-c", text)


def phase_of(observation: Observation, work: Work, pod: str = "") -> str:
    """The phase of a pod, or of the only one; empty where there is none."""
    found = observation.works.get(work.metadata.name)
    pods = [other for other in (found.pods if found else ()) if pod in ("", other.name)]
    return pods[0].phase if pods else ""
