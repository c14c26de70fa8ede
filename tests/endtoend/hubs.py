"""A hub as a process of its own that may be killed, and what a user does with it over HTTPS.

Time is real here, since processes are. Nothing sleeps for a fixed time: a wait is for a line, an
event of a watch or a stamp, and fails with what it waited for after a while.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import yaml

from fairway.api.workload import Workload
from fairway.client import AsyncClient
from tests.agent.local.machines import on_machine, shared
from tests.ports import own_ports
from tests.waiting import PATIENCE_SECONDS, followed

ROOT = Path(__file__).parents[2]

HERE = """
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: here}
spec: {local: {capacity: {cpu: "%d", memory: 8Gi}, stopSeconds: 5}}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec: {uncovered: Unlimited}
"""


class HubProcess:
    """One hub over all its lives: same folder, same port."""

    def __init__(self, folder: Path, *options: str, folders: Sequence[Path] = ()) -> None:
        """Pods use the folder `shared`, and `folders`."""
        self.data = folder / "hub"
        self.shared = shared(folder)
        used = [("--local-folder", str(each)) for each in (self.shared, *folders)]
        self._options = (*options, *(word for option in used for word in option))
        self.said: list[str] = []
        self._process: asyncio.subprocess.Process | None = None
        self._port = own_ports(1)[0]
        self._client: AsyncClient | None = None
        self._reading: asyncio.Task[None] | None = None

    async def launch(self) -> None:
        """Begins a life, and does not wait for anything."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fairway.cli.main", "up"),
            *("--data", str(self.data), "--port", str(self._port)),
            *self._options,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def start(self) -> None:
        """Begins a life; waits until it says where it is."""
        await self.launch()
        await self.until_up()

    async def until_up(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while line := await self._line():
                if line.startswith("Stop with"):
                    assert self._process is not None
                    self._reading = asyncio.ensure_future(self._read_on(self._process))
                    return
        raise AssertionError("the hub did not come up: " + "".join(self.said))

    @property
    def pid(self) -> int:
        """Of the process of this life."""
        assert self._process is not None
        return self._process.pid

    async def kill(self) -> None:
        """As by `kill -9`: no goodbye."""
        await self.end(signal.SIGKILL)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self._client is not None:
            await self._client.close()
            self._client = None
        process, self._process = self._process, None
        if process is None:
            return 0
        with suppress(ProcessLookupError):
            process.send_signal(number)
        async with asyncio.timeout(PATIENCE_SECONDS):
            reading, self._reading = self._reading, None
            await (reading or self._read_on(process))
            return await process.wait()

    async def _read_on(self, process: asyncio.subprocess.Process) -> None:
        """Takes in what it says, since nobody who is not heard can go on speaking."""
        assert process.stdout is not None
        while line := await process.stdout.readline():
            self.said.append(line.decode())

    async def _line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        self.said.append(line)
        return line

    def kill_worker(self, workload: str, pod: str, run: str) -> None:
        """Kills a process that says of itself `PID@TIME`, as the machine's administrator could."""
        pods = self.data / "clusters" / "here" / "pods"
        pid = on_machine(pods, f"default.{workload}", int(run.partition("@")[0]), pod)
        os.kill(pid, signal.SIGKILL)

    @property
    def client(self) -> AsyncClient:
        """Calls to the hub of this life."""
        if self._client is None:
            self._client = AsyncClient.connect(str(self.data / "kubeconfig"))
        return self._client

    async def apply(self, text: str) -> None:
        for body in yaml.safe_load_all(text):
            await self.client.apply(body)

    async def until(
        self, name: str, is_so: Callable[[Workload], bool] | str, what: str = ""
    ) -> Workload:
        return await followed(self.client, name, is_so, what, namespace="default")

    async def log(self, name: str, pod: str = "") -> str:
        """All that a pod has written, as the API tells it."""
        parts = [part async for part in self.client.log(name, query={"pod": pod} if pod else {})]
        return b"".join(parts).decode()

    async def line_of(self, name: str, pod: str, start: str) -> str:
        """The first line that begins so, as soon as it is written."""
        told = ""
        query = {"pod": pod, "follow": "true"}
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            aclosing(self.client.log(name, query=query)) as chunks,
        ):
            async for part in chunks:
                told += part.decode()
                for line in told.splitlines(keepends=True):
                    if line.startswith(start) and line.endswith("\n"):
                        return line.rstrip()
        raise AssertionError(f"{pod} ended without a line that begins with {start}: {told}")


@asynccontextmanager
async def hub_process(
    folder: Path, *, cpus: int = 16, folders: Sequence[Path] = ()
) -> AsyncIterator[HubProcess]:
    """A hub with a local cluster; whatever a test leaves running is ended after it."""
    hub = HubProcess(folder, folders=folders)
    try:
        await hub.start()
        await hub.apply(HERE % cpus)
        yield hub
    finally:
        await hub.kill()
        for pid in processes_of(hub.data):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def processes_of(data: Path) -> list[int]:
    """Processes that bear the folder of a hub in their command or environment."""
    mark = str(data).encode()
    return [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdecimal()
        and int(path.name) != os.getpid()
        and any(mark in _read(path / part) for part in ("cmdline", "environ"))
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it ended meanwhile, or is somebody else's
