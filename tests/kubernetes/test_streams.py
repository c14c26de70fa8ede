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
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fairway.api.errors import Forbidden, NotFound, Unauthorized
from fairway.app import HubOptions, open_hub
from fairway.client import AsyncClient
from fairway.client.kubeconfig import load_access
from fairway.clock import SystemClock
from fairway.hub.on_kubernetes import OnKubernetes
from fairway.kubeapi import KubeApi
from fairway.store.kubernetes.store import KubernetesStore
from tests.endtoend.hubs import HubProcess
from tests.kubernetes import binaries
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.fixtures import AT_THE_EDGE
from tests.kubernetes.fleet import Fleet, Member
from tests.kubernetes.hubs import HubRig, basics, gang
from tests.kubernetes.sweeping import sweep
from tests.kubernetes.test_join import Terminal, hub
from tests.kubernetes.test_join import edge as edge  # noqa: PLC0414 - a fixture
from tests.streams.talking import run, told
from tests.waiting import seen

pytestmark = AT_THE_EDGE
ALLOWED = ("--allow", "exec,port-forward")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A hub with a cluster behind a pull agent, and who sits before it."""

    rig: HubRig
    terminal: Terminal
    log: Path
    asked: Path  # the kubeconfig of the hub's own address


# A hub, a terminal before what keeps its objects, its own kubeconfig, and what agents are told.
Opened = tuple[HubRig, Terminal, Path, tuple[str, ...]]


@asynccontextmanager
async def hub_on(plane: ControlPlane, folder: Path, edge: Member) -> AsyncIterator[Opened]:
    """A hub that keeps its objects on a kube-apiserver; people submit there, and ask the hub."""
    access = OnKubernetes(kubeconfig=str(plane.kubeconfig))
    options = HubOptions(data=folder / "hub", port=0, kubernetes=access)
    store = KubernetesStore(KubeApi(load_access(str(plane.kubeconfig)), SystemClock()))
    try:
        async with (
            open_hub(options) as opened,
            AsyncClient.connect(str(plane.kubeconfig)) as client,
        ):
            rig = HubRig(client, {edge.name: edge})
            team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
            await rig.apply(team, *basics(h100=0, a100=0))
            authority = folder / "authority.pem"
            authority.write_bytes(load_access(str(opened.kubeconfig)).authority)
            words = ("--stream-url", opened.url, "--stream-authority", str(authority))
            yield rig, Terminal(plane.kubeconfig), opened.kubeconfig, words
    finally:
        await sweep(store)
        await store.close()


@asynccontextmanager
async def embedded(folder: Path, edge: Member) -> AsyncIterator[Opened]:
    async with hub(folder, edge) as (rig, terminal):
        yield rig, terminal, folder / "hub" / "kubeconfig", ()


@asynccontextmanager
async def joined(
    edge: Member, folder: Path, *rights: str, plane: ControlPlane | None = None
) -> AsyncIterator[Stage]:
    """The cluster has joined by pull, with the rights that its owner printed and applied."""
    opening = embedded(folder, edge) if plane is None else hub_on(plane, folder, edge)
    async with opening as (rig, terminal, asked, streams):
        kubeconfig = ("--kubeconfig", str(edge.plane.kubeconfig))
        words = ("join", "--print-rbac", *kubeconfig, "--mode", "Manage", *rights)
        printed = await terminal.fairway(*words)
        await rig.kubectl("edge", "apply", "--server-side", "-f", "-", given=printed)
        command = (await terminal.fairway("join", "--name", "edge", "--pull", *streams)).split()
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

            await seen(said, lambda told: "--fingerprint" in told, "it to ask")
            await terminal.fairway("accept", "edge", "--yes", "--mode", "Manage")
            await rig.until_ready()
            await seen(said, lambda told: "stream to the hub is open" in told, "a stream")
            yield Stage(rig=rig, terminal=terminal, log=log, asked=asked)


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

        text = await seen(said, lambda told: "Forwarding" in told, "it to listen")
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


async def test_an_agent_of_a_hub_on_kubernetes_calls_the_hub_with_its_token_of_the_server(
    fleet: Fleet, edge: Member, tmp_path: Path
) -> None:
    async with joined(edge, tmp_path, *ALLOWED, plane=fleet.hub) as stage:
        await stage.rig.apply(gang("train", "sh", "-c", "echo hello; sleep 600", gpus=2))
        await stage.rig.until("train", "Running")
        asking = Terminal(stage.asked)
        assert await asking.fairway("logs", "-n", "team", "train", "--tail", "1") == "hello\n"
        async with AsyncClient.connect(str(stage.asked)) as client:
            heard = await run(client, "train", "sh", "-c", "cat; exit 4", given=b"to and fro")
        assert (heard.output, heard.exit_code) == ("to and fro", 4)
        # An account of the server signs in at the hub with its token there, and has its own rights.
        for words in (("serviceaccount", "nobody"), ("token", "nobody")):
            made = ("-n", "team", "create", *words)
            token = await asyncio.to_thread(kubectl_of, fleet.hub, *made)
        access = replace(load_access(str(stage.asked)), token=token.strip())
        async with AsyncClient(access) as nobody:
            with pytest.raises(Forbidden, match="system:serviceaccount:team:nobody"):
                await anext(nobody.log("train", namespace="team"))
        with pytest.raises(Unauthorized):
            async with AsyncClient(replace(access, token="a.b.c")) as stranger:
                await stranger.fetch("/apis/fairway.dev/v1alpha1/clusters")


async def test_any_replica_of_a_hub_reaches_what_called_another(
    fleet: Fleet, edge: Member, tmp_path: Path
) -> None:
    second = HubProcess(
        tmp_path / "second", "--store", "kubernetes", "--kubeconfig", str(fleet.hub.kubeconfig)
    )
    async with joined(edge, tmp_path, *ALLOWED, plane=fleet.hub) as stage:
        await stage.rig.apply(gang("train", "sh", "-c", "echo hello; sleep 600", gpus=2))
        await stage.rig.until("train", "Running")
        try:
            await second.start()
            # The agent has called the first, and knows of no other.
            asking = Terminal(second.data / "kubeconfig")
            words = ("logs", "-n", "team", "train", "--tail", "1")
            assert await asking.fairway(*words) == "hello\n"
            given = bytes(range(256)) * 4_000
            heard = await run(second.client, "train", "sh", "-c", "cat; exit 4", given=given)
            assert (heard.by_channel[1], heard.exit_code) == (given, 4)
            # Rights are looked at where the question was asked, by who asks there.
            access = load_access(str(second.data / "kubeconfig"))
            for made in (("serviceaccount", "stranger"), ("token", "stranger")):
                token = await asyncio.to_thread(
                    kubectl_of, fleet.hub, "-n", "team", "create", *made
                )
            async with AsyncClient(replace(access, token=token.strip())) as nobody:
                with pytest.raises(Forbidden, match="system:serviceaccount:team:stranger"):
                    await anext(nobody.log("train", namespace="team"))
            assert "admin runs ('sh',) in pods of team.train" in stage.log.read_text()
        finally:
            await second.end()


def kubectl_of(plane: ControlPlane, *words: str) -> str:
    command = [str(binaries.program("kubectl")), f"--kubeconfig={plane.kubeconfig}", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
