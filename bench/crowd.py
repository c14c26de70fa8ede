"""A hub in a crowd: what others notice while some flood it, or hold connections open for nothing.

The hub has 200 watchers of twenty users and an agent's share of writes. A user reads an object 50
times a second, over a kept connection and over new ones; that is measured, first in quiet, then
under each attack:

- two users and a stranger send requests on 64 connections each, as fast as they are answered, and
  pay no heed to Retry-After: the hub cannot answer as much as they send,
- 1,000 connections do nothing and 200 send their headers byte by byte, from two other addresses and
  then from the user's own.

Attackers, watchers and the user are processes of their own. All share this machine's cores with the
hub; those that are not measured get them last, since in life they are elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import uvloop

from bench import objects
from bench.figures import Report, percentile, resident_mib
from bench.http import WORKLOADS, Connection, wait_for

_READER = "reader"
_FLOODERS = ("flooder-1", "flooder-2")
_WATCHING = [f"watcher-{number}" for number in range(20)]
_WATCHES_EACH = 10
_CONNECTIONS = 64
_IDLE, _SLOW = 1_000, 200
_OBJECTS = 500
_MEMORY_MIB = 400
_READS_PER_SECOND = 50
_ROUNDS = 3


async def _connect(folder: Path, token: str, source: str = "127.0.0.1") -> Connection:
    return await Connection(folder, token=token, source=source).open()


async def read(folder: Path, seconds: int, source: int) -> dict[str, object]:
    """Reads an object at a steady rate, at times on a new connection."""
    kept: list[float] = []
    fresh: list[float] = []
    statuses: Counter[str] = Counter()
    address = f"127.0.0.{source}"
    connection = await _connect(folder, _READER, address)
    end = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < end:
        started = time.perf_counter()
        is_new = turn % 10 == 0
        try:
            if is_new:
                connection.close()
                connection = await _connect(folder, _READER, address)
            status, _ = await connection.call("GET", f"{WORKLOADS}/w0")
            statuses[str(status)] += 1
        except (OSError, asyncio.IncompleteReadError):
            statuses["no answer"] += 1
            connection = await _connect(folder, _READER, address)
        taken = time.perf_counter() - started
        (fresh if is_new else kept).append(taken)
        turn += 1
        await asyncio.sleep(max(0.0, 1 / _READS_PER_SECOND - taken))
    return {
        "p50": percentile(kept, 0.5) * 1e3,
        "p99": percentile(kept, 0.99) * 1e3,
        "new_p99": percentile(fresh, 0.99) * 1e3,
        "statuses": statuses,
    }


async def flood(folder: Path, seconds: int, who: int) -> dict[str, object]:
    """Sends requests on many connections, as fast as they are answered."""
    token = (*_FLOODERS, "")[who]
    statuses: Counter[str] = Counter()
    end = time.monotonic() + seconds

    async def one(number: int) -> None:
        connection = await _connect(folder, token, f"127.0.0.{10 + who}")
        paths = (f"{WORKLOADS}/w0", f"{WORKLOADS}?limit=100", f"{WORKLOADS}/missing")
        while time.monotonic() < end:
            status, headers, _ = await connection.exchange("GET", paths[number % len(paths)])
            is_told = status != 429 or b"retry-after: " in headers
            statuses[str(status) if is_told else "429 without Retry-After"] += 1
        connection.close()

    await asyncio.gather(*(one(number) for number in range(_CONNECTIONS)))
    return {"statuses": statuses}


async def watch(folder: Path, seconds: int, _: int) -> dict[str, object]:
    """Watchers that count events, and a writer whose writes they should see."""
    watches = [
        await _connect(folder, user, "127.0.0.30")
        for user in _WATCHING
        for _ in range(_WATCHES_EACH)
    ]
    writer = await Connection(folder).open()
    _, listing = await writer.call("GET", WORKLOADS + "?limit=1")
    version = json.loads(listing)["metadata"]["resourceVersion"]
    for connection in watches:
        connection.send("GET", f"{WORKLOADS}?watch=true&resourceVersion={version}")
        status, _ = await connection.head()
        assert status == 200, status
    (folder / "watching").touch()
    end, written = time.monotonic() + seconds, 0

    async def write() -> None:
        nonlocal written
        while time.monotonic() < end:
            body = json.dumps(objects.workload(1_000_000 + written)).encode()
            status, answer = await writer.call("POST", WORKLOADS, body)
            assert status == 201, answer
            written += 1
            await asyncio.sleep(0.2)

    await write()
    async with asyncio.timeout(10):
        await asyncio.gather(*(connection.lines(written) for connection in watches))
    return {"events": written * len(watches)}


async def hold(folder: Path, seconds: int, source: int) -> dict[str, object]:
    """Connections that do nothing, and others that send a header byte by byte."""
    end = time.monotonic() + seconds
    address = f"127.0.0.{source}"
    opened: Counter[str] = Counter()

    async def one(number: int) -> None:
        while time.monotonic() < end:
            with suppress(OSError):
                reader, writer = await Connection(folder, source=address).dial(
                    with_tls=number % 2 == 0
                )
                opened["connections"] += 1
                while time.monotonic() < end and not reader.at_eof():
                    if number >= _IDLE:
                        writer.write(b"G")
                    await asyncio.sleep(1)
                writer.transport.abort()
            await asyncio.sleep(0.2)

    await asyncio.gather(*(one(number) for number in range(_IDLE + _SLOW)))
    return {"opened": opened["connections"]}


LOADS = {"read": read, "flood": flood, "watch": watch, "hold": hold}


class _Load:
    """A load in a process of its own."""

    def __init__(self, folder: Path, name: str, seconds: int, number: int = 0) -> None:
        words = [str(folder), name, str(seconds), str(number)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.crowd", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def result(self) -> dict:
        told, faults = self._process.communicate()
        if self._process.returncode:
            raise RuntimeError(faults.decode()[-2000:])
        return json.loads(told)


@contextmanager
def _hub(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    tokens = folder / "tokens.csv"
    tokens.touch(mode=0o600)
    users = [_READER, *_FLOODERS, *_WATCHING]
    rows = ["root,admin,admin,system:masters", *(f"{user},{user},{user}" for user in users)]
    tokens.write_text("\n".join(rows) + "\n")
    with (folder / "hub.log").open("wb") as log:
        hub = subprocess.Popen(
            [sys.executable, "-m", "fairway.cli.main", "up", "--data", str(folder), "--port", "0"],
            stdout=log,
            stderr=log,
        )
        try:
            wait_for(folder / "kubeconfig", hub)
            asyncio.run(_prepare(folder, users))
            yield hub
        finally:
            hub.terminate()
            hub.wait(30)


async def _prepare(folder: Path, users: list[str]) -> None:
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "crowd"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "User", "name": user, "apiGroup": group} for user in users],
    }
    connection = await Connection(folder).open()
    made = [(f"/apis/{group}/v1/clusterrolebindings", binding)]
    for number in range(_OBJECTS):
        body = objects.workload(number)
        body["metadata"]["name"] = f"w{number}"
        made.append((WORKLOADS, body))
    for path, body in made:
        status, answer = await connection.call("POST", path, json.dumps(body).encode())
        if status != 201:
            raise RuntimeError(f"{status}: {answer[:300]!r}")
    connection.close()


def run(report: Report, *, scale: float = 1.0) -> None:
    seconds = max(3, int(20 * scale))
    print(f"A hub in a crowd ({len(_WATCHING) * _WATCHES_EACH} watchers; each for {seconds} s)")
    with tempfile.TemporaryDirectory() as scratch, _hub(Path(scratch)) as hub:
        folder = Path(scratch)
        watching = _Load(folder, "watch", 5 * seconds + 60)
        wait_for(folder / "watching", hub, 60)
        _report_ratio(report, folder, max(2, seconds // _ROUNDS))
        _report_flood(report, _flooded(folder, seconds, [0, 1, 2]))
        memory = [resident_mib(hub.pid)]
        for source, what in ((20, "other addresses"), (1, "one's own address")):
            holding = _Load(folder, "hold", seconds + 6, source)
            time.sleep(4)
            told = _Load(folder, "read", seconds, 1).result()
            memory.append(resident_mib(hub.pid))
            opened = holding.result()["opened"]
            name = f"{_IDLE:,} idle and {_SLOW} slow connections of {what}"
            _report_reads(report, name, told, opened=opened)
        events = watching.result()["events"]
        report.add("watch events delivered meanwhile", events, "events")
        report.add("memory of the hub, most", max(memory), "MiB", _MEMORY_MIB)


def _report_ratio(report: Report, folder: Path, seconds: int) -> None:
    """In quiet and under a flood by turns, the best of each: the machine has other loads too."""
    quiet, flooded = [], []
    for _ in range(_ROUNDS):
        quiet.append(_Load(folder, "read", seconds, 1).result())
        flooded.append(_flooded(folder, seconds, [0]).told)
    alone, beside = (min(item["p50"] for item in told) for told in (quiet, flooded))
    p99 = min(item["p99"] for item in quiet)
    report.add("ms to read, in quiet, p50", alone, "ms", p99=p99)
    report.add("p50 while one user floods, by that in quiet", beside / alone, "x", 2)


@dataclass
class _Flooded:
    """What a reader saw of a flood, and what those who flooded were answered, per second."""

    told: dict
    statuses: dict[str, float]


def _flooded(folder: Path, seconds: int, callers: list[int]) -> _Flooded:
    floods = [_Load(folder, "flood", seconds + 6, caller) for caller in callers]
    time.sleep(4)
    told = _Load(folder, "read", seconds, 1).result()
    total: Counter[str] = Counter()
    for load in floods:
        total.update(load.result()["statuses"])
    return _Flooded(told, {key: count / (seconds + 6) for key, count in total.items()})


def _report_flood(report: Report, flooded: _Flooded) -> None:
    known = ("200", "403", "404")
    answered = sum(flooded.statuses.get(status, 0) for status in known)
    refused = flooded.statuses.get("429", 0)
    report.add("requests/s of three who flood, answered", answered, "/s", refused=refused)
    errors = sum(flooded.statuses[key] for key in flooded.statuses.keys() - {*known, "429"})
    report.add("errors but 429 with Retry-After, of those who flood", errors, "errors", 0)
    _report_reads(report, "three who flood", flooded.told)


def _report_reads(report: Report, what: str, told: dict, **more: float) -> None:
    report.add(f"ms to read, {what}, p99", told["p99"], "ms", 200, p50=told["p50"], **more)
    report.add(f"ms to connect and read, {what}, p99", told["new_p99"], "ms")
    statuses = told["statuses"]
    errors = sum(count for status, count in statuses.items() if status != "200")
    report.add(f"reads that failed, {what}", errors, "errors", 0)


def main() -> None:
    folder, name, *numbers = sys.argv[1:]
    if name != "read":
        os.nice(15)
    answer = uvloop.run(LOADS[name](Path(folder), *map(int, numbers)))
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
