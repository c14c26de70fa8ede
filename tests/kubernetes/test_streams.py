"""Pods of a real cluster behind a pull agent: their output, commands in them, ports of them.

The hub knows no way to the cluster. The cluster's API server asks the nodes, in the protocols that
kubelets speak.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairway.api.errors import Forbidden, NotFound
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import Member
from tests.kubernetes.hubs import HubRig, gang
from tests.kubernetes.test_join import Terminal, hub
from tests.kubernetes.test_join import edge as edge  # noqa: PLC0414 - a fixture
from tests.streams.talking import run, told

pytestmark = IN_THE_FLEET
ALLOWED = ("--allow", "exec,port-forward")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A hub with a cluster behind a pull agent, and who sits before it."""

    rig: HubRig
    terminal: Terminal
    log: Path


@asynccontextmanager
async def joined(edge: Member, folder: Path, *rights: str) -> AsyncIterator[Stage]:
    """The cluster has joined by pull, with the rights that its owner printed and applied."""
    async with hub(folder, edge) as (rig, terminal):
        kubeconfig = ("--kubeconfig", str(edge.plane.kubeconfig))
        words = ("join", "--print-rbac", *kubeconfig, "--mode", "Manage", *rights)
        printed = await terminal.fairway(*words)
        await rig.kubectl("edge", "apply", "--server-side", "-f", "-", given=printed)
        command = (await terminal.fairway("join", "--name", "edge", "--pull")).split()
        log = folder / "agent.log"
        # The agent acts with the account that was made for it, and not as an administrator.
        account = ("-n", "fairway-system", "create", "token", "fairway-agent")
        token = (await rig.kubectl("edge", *account)).strip()
        own = folder / "agent.kubeconfig"
        text = edge.plane.kubeconfig.read_text().replace("admin-token", token)
        own.write_text(text)
        words = (*command[1:], "--data", str(folder / "agent"), "--kubeconfig", str(own))
        async with terminal.staying(log, *words) as process:

            async def said() -> str:
                assert process.poll() is None, log.read_text()
                return log.read_text()

            await rig.until_so(said, lambda told: "--fingerprint" in told, "it to ask")
            await terminal.fairway("accept", "edge", "--yes", "--mode", "Manage")
            await rig.until_ready()
            await rig.until_so(said, lambda told: "stream to the hub is open" in told, "a stream")
            yield Stage(rig=rig, terminal=terminal, log=log)


async def test_output_commands_and_ports_from_behind_a_pull_agent(
    edge: Member, tmp_path: Path
) -> None:
    async with joined(edge, tmp_path, *ALLOWED) as stage:
        rig, terminal = stage.rig, stage.terminal
        await rig.apply(gang("train", "sh", "-c", "echo hello; sleep 600", gpus=2))
        await rig.until("train", "Running")
        pod = (await rig.pods("edge", "train"))[0]["metadata"]["name"]

        # Output, all of it and as it comes.
        assert await terminal.fairway("logs", "-n", "team", "train", "--tail", "1") == "hello\n"
        parts = rig.client.log("train", namespace="team", query={"follow": "true", "pod": pod})
        assert f"{pod} started".encode() in await anext(parts)
        await parts.aclose()
        with pytest.raises(NotFound, match="has no pod other"):
            await anext(rig.client.log("train", namespace="team", query={"pod": "other"}))

        # A command, with its input, both its outputs and its exit code.
        heard = await run(rig.client, "train", "sh", "-c", "echo $POD; echo bad >&2; exit 3")
        assert (heard.output, heard.exit_code) == (f"{pod}\n", 3)
        assert heard.by_channel[2] == b"bad\n"
        given = bytes(range(256)) * 1_000
        heard = await run(rig.client, "train", "sha256sum", given=given)
        done = subprocess.run(["sha256sum"], input=given, capture_output=True, check=True)
        assert heard.output == done.stdout.decode()
        words = ("exec", "-n", "team", "train", "-c", "main", "--", "echo", "by", "hand")
        assert await terminal.fairway(*words) == "by hand\n"

        await _ports(rig, terminal, tmp_path)
        assert "admin runs ('echo',) in pods of team.train" in stage.log.read_text()


async def _ports(rig: HubRig, terminal: Terminal, folder: Path) -> None:
    """Bytes go both ways through a port here, on several connections at once."""

    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while content := await reader.read(4096):
            writer.write(content.upper())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(shout, "127.0.0.1", 0)
    there = server.sockets[0].getsockname()[1]
    log = folder / "forward.log"
    words = ("port-forward", "-n", "team", "train", f":{there}")
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*terminal._command, *words],
            env={**terminal._environment, "PYTHONUNBUFFERED": "1"},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:

        async def said() -> str:
            assert process.poll() is None, log.read_text()
            return log.read_text()

        text = await rig.until_so(said, lambda told: "Forwarding" in told, "it to listen")
        here = int(text.split(":")[1].split()[0])
        content = b"to and fro " * 20_000

        async def through() -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", here)
            sending = asyncio.ensure_future(_send(writer, content))
            found = await reader.readexactly(len(content))
            await sending
            writer.close()
            return found

        found = await asyncio.gather(*(through() for _ in range(3)))
        assert found == [content.upper()] * 3
    finally:
        os.kill(process.pid, signal.SIGINT)
        await asyncio.to_thread(process.wait, 20)
        server.close()
    # Nobody listens there any more: whoever asks is told so.
    heard = await told(rig.client, "portforward", "train", port=str(there))
    assert "error forwarding port" in heard.status["message"]


async def _send(writer: asyncio.StreamWriter, content: bytes) -> None:
    writer.write(content)
    await writer.drain()


async def test_what_the_owners_of_a_cluster_did_not_allow_is_refused_there(
    edge: Member, tmp_path: Path
) -> None:
    async with joined(edge, tmp_path) as stage:
        rig = stage.rig
        await rig.apply(gang("train", "sh", "-c", "echo hello; sleep 600", gpus=2))
        await rig.until("train", "Running")
        assert "hello" in await stage.terminal.fairway("logs", "-n", "team", "train")
        for what, query in (("exec", {"command": "true"}), ("portforward", {"port": "80"})):
            heard = await told(rig.client, what, "train", **query)
            assert heard.status["reason"] == Forbidden.reason
            assert 'User "system:serviceaccount:team:fairway-tenant" cannot' in str(heard.status)
