"""The hub over HTTPS, with authentication, authorization and validation.

The load comes from a second process, as it would in life; it speaks plain HTTP/1.1 over TLS on kept
connections, so that most of what is measured is the hub. Both share this machine's cores.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import uvloop
import yaml

from bench import objects
from bench.figures import Report, percentile, resident_mib

WORKLOADS = "/apis/fairway.dev/v1alpha1/namespaces/default/workloads"
CONNECTIONS = 64


class Connection:
    """One kept connection: a request at a time."""

    def __init__(self, folder: Path, *, token: str | None = None, source: str = "") -> None:
        """As the administrator, unless a token is given; `source` is the client's own address."""
        config = yaml.safe_load((folder / "kubeconfig").read_text())
        cluster = config["clusters"][0]["cluster"]
        self._url = urlsplit(cluster["server"])
        self._token = config["users"][0]["user"]["token"] if token is None else token
        self._source = (source, 0) if source else None
        self._tls = ssl.create_default_context(cafile=str(folder / "tls" / "ca.crt"))

    async def open(self) -> Connection:
        self._reader, self._writer = await self.dial()
        return self

    async def dial(
        self, *, with_tls: bool = True
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            self._url.hostname,
            self._url.port,
            ssl=self._tls if with_tls else None,
            limit=1 << 26,
            local_addr=self._source,
        )

    async def call(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        self.send(method, path, body)
        return await self.receive()

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        shown = f"Authorization: Bearer {self._token}\r\n" if self._token else ""
        self._writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: hub\r\n{shown}"
            f"User-Agent: bench/1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )

    async def head(self) -> tuple[int, int]:
        """Status and length of the next answer; the length is -1 for a stream."""
        status, length, _ = await self._head()
        return status, length

    async def _head(self) -> tuple[int, int, bytes]:
        """The same, and all headers in lower case."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        lower = head.lower()
        place = lower.find(b"content-length:")
        length = int(lower[place + 15 : lower.index(b"\r\n", place)]) if place >= 0 else -1
        return status, length, lower

    async def exchange(self, method: str, path: str) -> tuple[int, bytes, bytes]:
        """Status, headers in lower case, and body of the answer to a request."""
        self.send(method, path)
        status, length, head = await self._head()
        return status, head, await self._reader.readexactly(length)

    async def receive(self) -> tuple[int, bytes]:
        status, length = await self.head()
        return status, await self._reader.readexactly(length)

    async def lines(self, count: int) -> None:
        """Reads a stream until so many events have come."""
        seen = 0
        while seen < count:
            chunk = await self._reader.read(1 << 16)
            if not chunk:
                raise ConnectionError("the watch ended early")
            seen += chunk.count(b'{"type":"')

    async def stream(self) -> AsyncIterator[bytes]:
        """The lines of a stream, one event each."""
        rest = b""
        while size := int((await self._reader.readline()).strip() or b"0", 16):
            chunk = await self._reader.readexactly(size + 2)
            *lines, rest = (rest + chunk[:-2]).split(b"\n")
            for line in lines:
                if line:
                    yield line

    def close(self) -> None:
        self._writer.close()


async def create(folder: Path, writers: int, count: int, first: int) -> dict[str, float]:
    numbers = iter(range(first, first + count))
    latencies: list[float] = []
    connections = [await Connection(folder).open() for _ in range(writers)]

    async def write(connection: Connection) -> None:
        for number in numbers:
            body = json.dumps(objects.workload(number)).encode()
            started = time.perf_counter()
            status, answer = await connection.call("POST", WORKLOADS, body)
            latencies.append(time.perf_counter() - started)
            if status != 201:
                raise RuntimeError(f"{status}: {answer[:300]!r}")

    started = time.perf_counter()
    await asyncio.gather(*(write(connection) for connection in connections))
    seconds = time.perf_counter() - started
    for connection in connections:
        connection.close()
    return {
        "rate": count / seconds,
        "p50_ms": percentile(latencies, 0.5) * 1000,
        "p99_ms": percentile(latencies, 0.99) * 1000,
    }


async def read_list(folder: Path) -> dict[str, float]:
    connection = await Connection(folder).open()
    taken = []
    for _ in range(5):
        started = time.perf_counter()
        status, body = await connection.call("GET", WORKLOADS)
        taken.append(time.perf_counter() - started)
        assert status == 200
    connection.close()
    return {"ms": percentile(taken, 0.5) * 1000, "mib": len(body) / (1 << 20)}


async def fan_out(folder: Path, watchers: int, count: int, first: int) -> dict[str, float]:
    writer = await Connection(folder).open()
    _, listing = await writer.call("GET", WORKLOADS + "?limit=1")
    version = json.loads(listing)["metadata"]["resourceVersion"]
    watches = [await Connection(folder).open() for _ in range(watchers)]
    for watch in watches:
        watch.send("GET", f"{WORKLOADS}?watch=true&resourceVersion={version}")
        status, _ = await watch.head()
        assert status == 200
    started = time.perf_counter()
    readers = asyncio.gather(*(watch.lines(count) for watch in watches))
    await create(folder, 16, count, first)
    await readers
    seconds = time.perf_counter() - started
    for connection in (*watches, writer):
        connection.close()
    return {"rate": watchers * count / seconds}


LOADS = {"create": create, "list": read_list, "watch": fan_out}


def load(folder: Path, name: str, *numbers: int) -> dict[str, float]:
    """Runs a load in a process of its own."""
    command = [sys.executable, "-m", "bench.http", str(folder), name, *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)


def run(report: Report, *, scale: float = 1.0) -> None:
    count = max(200, int(10_000 * scale))
    print("Hub over HTTPS (token, RBAC, validation; load from a second process)")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        hub = subprocess.Popen(
            [sys.executable, "-m", "fairway.cli.main", "up", "--data", scratch, "--port", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(folder / "kubeconfig", hub)
            load(folder, "create", CONNECTIONS, max(100, count // 10), 900_000)
            one = load(folder, "create", 1, max(100, count // 10), 0)
            report.add("creates/s, 1 client", one["rate"], "/s", p50_ms=one["p50_ms"])
            runs = [
                load(folder, "create", CONNECTIONS, count, 100_000 * (turn + 1))
                for turn in range(2)
            ]
            best = max(runs, key=lambda item: item["rate"])
            report.add(
                f"creates/s, {CONNECTIONS} clients",
                best["rate"],
                "/s",
                aim=1_500,
                p50_ms=best["p50_ms"],
                p99_ms=best["p99_ms"],
            )
            events = load(folder, "watch", 100, max(50, count // 50), 1_000_000)
            report.add("watch events/s delivered to 100 watchers", events["rate"], "/s")
            listed = load(folder, "list")
            total = len(json.loads(_listing(folder))["items"])
            report.add(f"list of {total:,} objects", listed["ms"], "ms", MiB=listed["mib"])
            report.add("memory of the hub", resident_mib(hub.pid), "MiB")
        finally:
            hub.terminate()
            hub.wait(20)


def _listing(folder: Path) -> bytes:
    async def fetch() -> bytes:
        connection = await Connection(folder).open()
        _, body = await connection.call("GET", WORKLOADS)
        connection.close()
        return body

    return asyncio.run(fetch())


def wait_for(path: Path, process: subprocess.Popen[bytes], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError("the hub did not start")
        time.sleep(0.05)


def main() -> None:
    folder, name, *numbers = sys.argv[1:]
    answer = uvloop.run(LOADS[name](Path(folder), *map(int, numbers)))
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
