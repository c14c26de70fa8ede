"""`fairway up` as a process: files, signals, sudden death, and who may share what."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import stat
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from hub_calls import Caller, Json, Stream, calling, config_map

from fairway.app import HubOptions, open_hub
from fairway.server.access import certificates
from tests.waiting import PATIENCE_SECONDS, seen

PATH = "/api/v1/namespaces/default/configmaps"


@dataclass
class Process:
    """A hub of its own, and all it said."""

    process: asyncio.subprocess.Process
    data: Path
    said: list[str] = field(default_factory=list)

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubeconfig"

    async def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._read()
            return await self.process.wait()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.said.append(line.decode())

    async def until_up(self) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            while line := await self.process.stdout.readline():
                self.said.append(line.decode())
                if line.startswith(b"Stop with"):
                    return
        raise AssertionError("the hub did not come up: " + "".join(self.said))


async def start(data: Path, *words: str, port: int = 0) -> Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairway.cli.main", "up"),
        *("--data", str(data), "--port", str(port), *words),
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    return Process(process, data)


@asynccontextmanager
async def running(data: Path, *words: str, port: int = 0) -> AsyncIterator[Process]:
    hub = await start(data, *words, port=port)
    try:
        await hub.until_up()
        yield hub
    finally:
        await hub.end(signal.SIGKILL)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_secrets_are_written_for_their_owner_only(tmp_path: Path) -> None:
    data = tmp_path / "hub"
    async with running(data) as hub:
        assert mode(data) == 0o700
        async with calling(hub.kubeconfig) as call:
            assert (await call("POST", PATH, config_map("one"))).status == 201
            token = call.token
        files = [path for path in data.rglob("*") if path.is_file()]
        assert {"kubeconfig", "tokens.csv", "fairway.db", "audit.log"} <= {p.name for p in files}
        assert {path.name: oct(mode(path)) for path in files} == {
            path.name: oct(0o600) for path in files
        }
        assert await hub.end() == 0
    assert token not in "".join(hub.said)
    assert token not in (data / "audit.log").read_text()


async def test_a_hub_told_to_end_ends_its_streams_and_loses_nothing(tmp_path: Path) -> None:
    async with running(tmp_path / "hub") as hub, calling(hub.kubeconfig) as call:
        acknowledged: set[str] = set()

        async def write(task: int) -> None:
            for number in range(100_000):
                name = f"one-{task}-{number}"
                try:
                    answer = await call("POST", PATH, config_map(name))
                except aiohttp.ClientError:
                    return
                if answer.status != 201:
                    assert answer.status == 503
                    return
                acknowledged.add(name)

        writers = [asyncio.create_task(write(task)) for task in range(4)]
        async with call.watch(PATH) as stream:
            while len(acknowledged) < 100:
                await asyncio.sleep(0.005)
            assert await hub.end() == 0
            heard = [event["object"]["metadata"]["name"] for event in await stream.rest()]
        await asyncio.gather(*writers)
    assert "Stopping" in "".join(hub.said)
    assert "Traceback" not in "".join(hub.said)
    assert len(heard) == len(set(heard)) >= 100
    async with running(tmp_path / "hub") as again, calling(again.kubeconfig) as call:
        listed = (await call("GET", PATH)).json["items"]
    assert acknowledged <= {item["metadata"]["name"] for item in listed}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Heard:
    """What writers and a watcher were told, over all lives of a hub."""

    version_by_name: dict[str, int] = field(default_factory=dict)
    told: list[tuple[int, str]] = field(default_factory=list)

    async def write(self, call: Caller, task: str) -> None:
        for number in range(100_000):
            name = f"{task}-{number}"
            try:
                answer = await call("POST", PATH, config_map(name))
            except (aiohttp.ClientError, OSError):
                return
            assert answer.status == 201, answer.body
            self.version_by_name[name] = answer.version

    async def listen(self, stream: Stream) -> None:
        try:
            while (event := await stream.event()) is not None:
                self.take(event)
        except (aiohttp.ClientError, OSError, json.JSONDecodeError):
            return  # the end came in the middle of a line

    def take(self, event: Json) -> None:
        assert event["type"] == "ADDED", event
        metadata = event["object"]["metadata"]
        self.told.append((int(metadata["resourceVersion"]), metadata["name"]))


async def kill_in_the_middle(hub: Process, heard: Heard, turn: int) -> None:
    """Writers and a watcher at full speed, until the hub dies."""
    async with calling(hub.kubeconfig) as call:
        since = heard.told[-1][0] if heard.told else 1
        if not heard.told:
            since = (await call("GET", PATH)).version
        enough = len(heard.version_by_name) + 200
        async with call.watch(PATH, resourceVersion=since) as stream:
            work = [asyncio.create_task(heard.write(call, f"r{turn}-t{n}")) for n in range(6)]
            work.append(asyncio.create_task(heard.listen(stream)))
            while len(heard.version_by_name) < enough:
                await asyncio.sleep(0.002)
            await hub.end(signal.SIGKILL)
            await asyncio.gather(*work)


async def test_a_killed_hub_keeps_what_it_acknowledged_and_watchers_resume(
    tmp_path: Path,
) -> None:
    port, heard = free_port(), Heard()
    newest = 0
    for turn in range(2):
        async with running(tmp_path / "hub", port=port) as hub:
            await kill_in_the_middle(hub, heard, turn)
        newest = max(newest, *heard.version_by_name.values())
    async with running(tmp_path / "hub", port=port) as hub, calling(hub.kubeconfig) as call:
        listing = (await call("GET", PATH)).json
        found = {
            item["metadata"]["name"]: int(item["metadata"]["resourceVersion"])
            for item in listing["items"]
        }
        assert heard.version_by_name.items() <= found.items()
        assert int(listing["metadata"]["resourceVersion"]) >= newest
        missing = len(found) - len(heard.told)
        async with call.watch(PATH, resourceVersion=heard.told[-1][0]) as stream:
            for event in await stream.events(missing):
                heard.take(event)
        after = await call("POST", PATH, config_map("after"))
        assert after.version > max(found.values())
    versions = [version for version, _ in heard.told]
    assert versions == sorted(set(versions))
    assert {name: version for version, name in heard.told} == found


DECISIONS = "/apis/fairway.dev/v1alpha1/fleets/fleet/decisions"
_OURS = "/apis/fairway.dev/v1alpha1"
_POOL = {"name": "n", "count": 1, "shape": {"cpu": "8", "memory": "8Gi", "pods": "10"}}
_PODS = {"name": "main", "count": 1, "requests": {"cpu": "1"}}
FLEET: dict[str, Json] = {
    f"{_OURS}/fleets": {"metadata": {"name": "fleet"}, "spec": {}},
    f"{_OURS}/clusters": {
        "metadata": {"name": "here"},
        "spec": {"simulated": {"nodePools": [_POOL]}},
    },
    f"{_OURS}/queues": {"metadata": {"name": "q"}, "spec": {"uncovered": "Unlimited"}},
    f"{_OURS}/namespaces/default/workloads": {
        "metadata": {"name": "train"},
        "spec": {"queue": "q", "podSets": [_PODS]},
    },
}


async def test_a_killed_hub_knows_what_it_decided_when_it_is_started_again(tmp_path: Path) -> None:
    data = tmp_path / "hub"
    async with running(data) as hub, calling(hub.kubeconfig) as call:
        for path, body in FLEET.items():
            assert (await call("POST", path, body)).status == 201, path
        answer = await seen(
            lambda: call("GET", DECISIONS),
            lambda answer: bool(answer.status == 200 and answer.json["decisions"]),
            "a decision",
        )
        before = answer.json["decisions"]
        assert [step["workload"] for made in before for step in made["steps"]] == ["default/train"]
        await hub.end(signal.SIGKILL)
    async with running(data) as hub, calling(hub.kubeconfig) as call:
        again = await seen(
            lambda: call("GET", DECISIONS), lambda answer: answer.status == 200, "an answer"
        )
        assert again.json["decisions"] == before


async def test_a_folder_and_a_port_serve_one_hub(tmp_path: Path) -> None:
    async with running(tmp_path / "hub") as hub:
        async with calling(hub.kubeconfig) as call:
            port = int(call.url.rpartition(":")[2])
        before = hub.kubeconfig.read_bytes()
        second, other = await asyncio.gather(
            start(tmp_path / "hub"), start(tmp_path / "other", port=port)
        )
        assert (await second.end(0), await other.end(0)) == (1, 1)
        (line,) = second.said
        assert "another hub is using the data in" in line
        (line,) = other.said
        assert f"port {port} of 127.0.0.1 is taken" in line
        assert hub.kubeconfig.read_bytes() == before
        async with calling(hub.kubeconfig) as call:
            assert (await call("GET", "/readyz")).status == 200


async def test_another_address_has_a_certificate_that_names_it(tmp_path: Path) -> None:
    data = tmp_path / "hub"
    async with running(data, "--address", "127.0.0.2") as hub:
        async with calling(hub.kubeconfig) as call:
            assert call.url.startswith("https://127.0.0.2:")
            assert (await call("GET", "/version")).status == 200
            plain = call.url.replace("https", "http") + "/version"
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.get(plain)
    first = (data / "tls" / "server.crt").read_bytes()
    authority = (data / "tls" / "ca.crt").read_bytes()
    everywhere = HubOptions(data=data, port=0, address="0.0.0.0", host_names=("hub.example",))
    async with open_hub(everywhere) as again, calling(again.kubeconfig) as call:
        assert (await call("GET", "/version")).status == 200
    served = x509.load_pem_x509_certificate((data / "tls" / "server.crt").read_bytes())
    names = served.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "hub.example" in names.get_values_for_type(x509.DNSName)
    assert (data / "tls" / "server.crt").read_bytes() != first
    assert (data / "tls" / "ca.crt").read_bytes() == authority


class LongAgo:
    """A clock that stands at a moment of the past."""

    def __init__(self, days: float) -> None:
        self._days = days

    def now(self) -> float:
        return time.time() - self._days * 86400

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


async def test_a_certificate_near_its_end_is_renewed_at_the_start(tmp_path: Path) -> None:
    data = tmp_path / "hub"
    certificates.generate_certificate(data, ["127.0.0.1"], clock=LongAgo(340))
    made = x509.load_pem_x509_certificate((data / "tls" / "server.crt").read_bytes())
    authority = (data / "tls" / "ca.crt").read_bytes()
    async with (
        open_hub(HubOptions(data=data, port=0)) as hub,
        calling(hub.kubeconfig) as call,
    ):
        assert (await call("GET", "/version")).status == 200
    renewed = x509.load_pem_x509_certificate((data / "tls" / "server.crt").read_bytes())
    assert renewed.not_valid_after_utc > made.not_valid_after_utc
    assert (data / "tls" / "ca.crt").read_bytes() == authority


async def test_a_given_certificate_is_served(tmp_path: Path) -> None:
    given = certificates.generate_certificate(tmp_path / "given", ["hub.example"])
    words = ("--tls-cert", str(given.certificate), "--tls-key", str(given.key))
    async with running(tmp_path / "hub", *words) as hub:
        url = next(line.split()[1] for line in hub.said if line.strip().startswith("API"))
        port = int(url.rpartition(":")[2])
        assert given.authority is not None
        context = ssl.create_default_context(cadata=given.authority.decode())
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname="hub.example"
        )
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
    kept = x509.load_pem_x509_certificate(given.certificate.read_bytes())
    assert x509.load_der_x509_certificate(shown) == kept
    assert not (tmp_path / "hub" / "tls").exists()
