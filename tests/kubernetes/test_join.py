"""Clusters join by what a platform engineer types, and jobs run there."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.agent.join.token_renewal import Renewing, claims_of
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.app import HubOptions, open_hub
from fairway.client import AsyncClient
from fairway.client.kubeconfig import access_of_text, load_access
from fairway.clock import Clock, SystemClock
from fairway.kubeapi import KubeApi
from tests.kubernetes.fixtures import AT_THE_EDGE
from tests.kubernetes.fleet import ROOT, Fleet, Member
from tests.kubernetes.guides import laptop_of
from tests.kubernetes.hubs import HubRig, basics, clear, gang
from tests.waiting import PATIENCE_SECONDS, seen

pytestmark = AT_THE_EDGE
MADE = (
    "clusterrolebinding/fairway-agent",
    "clusterrole/fairway-agent",
    "clusterrole/fairway-tenant",
    "namespace/fairway-system",
    "namespace/team",
)


class Terminal:
    """A terminal of somebody whose usual kubeconfig is the hub's."""

    def __init__(self, kubeconfig: Path) -> None:
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
        }
        self._command = [sys.executable, "-m", "fairway.cli.main"]

    async def fairway(self, *words: str) -> str:
        """What a command prints; it must do well."""
        done = await asyncio.to_thread(
            subprocess.run,
            [*self._command, *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"fairway {' '.join(words)}: {done.stderr}"
        return done.stdout

    @asynccontextmanager
    async def staying(self, log: Path, *words: str) -> AsyncIterator[subprocess.Popen[bytes]]:
        """A command that goes on until the context ends, without the hub's kubeconfig."""
        environment = {key: self._environment[key] for key in ("PATH", "PYTHONPATH")}
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*self._command, *words],
                env={**environment, "HOME": str(log.parent)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
            try:
                yield process
            finally:
                process.terminate()
                await asyncio.to_thread(process.wait, PATIENCE_SECONDS)


@asynccontextmanager
async def hub(
    folder: Path, member: Member, *, clock: Clock | None = None
) -> AsyncIterator[tuple[HubRig, Terminal]]:
    """A hub, which at first has no cluster yet."""
    async with (
        open_hub(HubOptions(data=folder / "hub", port=0), clock=clock) as opened,
        AsyncClient.connect(str(opened.kubeconfig)) as client,
    ):
        rig = HubRig(client, {member.name: member})
        team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        await rig.apply(team, *basics(h100=0, a100=0))
        yield rig, Terminal(opened.kubeconfig)


@pytest.fixture
def edge(fleet: Fleet) -> Iterator[Member]:
    """A member that nobody has prepared for us, and that is left so."""
    member = fleet.members["edge"]
    member.remove(*MADE)
    yield member
    clear(member)
    member.remove(*MADE)
    member.prepared.clear()


async def spec_of(rig: HubRig, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (await rig.client.get("clusters.fairway.dev", name))["spec"]
    return found


async def test_a_cluster_joins_by_push_looks_only_and_then_runs_jobs(
    edge: Member, tmp_path: Path
) -> None:
    member = ("--name", "edge", "--kubeconfig", str(edge.plane.kubeconfig))
    async with hub(tmp_path, edge) as (rig, terminal):
        told = await terminal.fairway("join", *member, "--discover")
        assert "NVIDIA-L4" in told
        assert "cluster.fairway.dev/edge joined, mode Observe" in told
        await rig.until_ready()
        spec = await spec_of(rig, "edge")
        assert spec["mode"] == "Observe"
        assert [level["name"] for level in spec["topology"]] == ["node"]
        drafted = await rig.client.get("flavors.fairway.dev", "nvidia-l4")
        assert drafted["spec"]["nodes"]["labels"] == {"nvidia.com/gpu.product": "NVIDIA-L4"}
        # Looking is all that the hub's account there may do.
        who = "--as=system:serviceaccount:fairway-system:fairway-agent"
        assert edge.asked("auth", "can-i", "list", "nodes", who).strip() == "yes"
        for verb, what in (
            ("create", "pods"),
            ("impersonate", "serviceaccounts"),
            ("get", "secrets"),
        ):
            assert edge.asked("auth", "can-i", verb, what, who).strip() == "no"
        await rig.apply(gang("train", "sh", "-c", "echo hello; sleep 1", gpus=2))
        await rig.until("train", lambda item: bool(item.status.reason), "a reason to wait")
        assert await rig.phase("train") == "Waiting"

        await terminal.fairway("join", *member, "--mode", "Manage")
        await rig.until("train", "Succeeded")
        told_by_pods = [part async for part in rig.client.log("train", namespace="team")]
        assert b"hello" in b"".join(told_by_pods)


async def test_what_is_printed_as_rights_is_what_is_made(edge: Member, tmp_path: Path) -> None:
    async with hub(tmp_path, edge) as (_, terminal):
        member = ("--kubeconfig", str(edge.plane.kubeconfig), "--mode", "Manage")
        printed = yaml.safe_load_all(await terminal.fairway("join", "--print-rbac", *member))
        await terminal.fairway("join", "--name", "edge", *member)
        for wanted in (item for item in printed if item["kind"] in ("ClusterRole", "Role")):
            where = ("-n", wanted["metadata"].get("namespace", "default"))
            words = (wanted["kind"], wanted["metadata"]["name"], "-o", "yaml", *where)
            assert yaml.safe_load(edge.kubectl("get", *words))["rules"] == wanted["rules"]


class Later(SystemClock):
    """The machine's own time, some days on: tokens of a month are due, and good still."""

    def now(self) -> float:
        return super().now() + 5 * 24 * 3600


async def token_for(rig: HubRig, cluster: str) -> str:
    """The token by which a hub reaches a cluster."""
    where = {"namespace": f"fairway-cluster-{cluster}"}
    secret = await rig.client.get("secrets", "fairway-kubeconfig", **where)
    text = base64.b64decode(secret["data"]["kubeconfig"]).decode()
    return access_of_text(text, source="the Secret").token


async def test_the_hub_renews_its_token_with_the_rights_of_its_own_account(
    edge: Member, tmp_path: Path
) -> None:
    async with hub(tmp_path, edge) as (rig, terminal):
        kubeconfig = ("--kubeconfig", str(edge.plane.kubeconfig))
        await terminal.fairway("join", "--name", "edge", *kubeconfig)
        await rig.until_ready()
        before = await token_for(rig, "edge")
        joined = await spec_of(rig, "edge")
        who = "--as=system:serviceaccount:fairway-system:fairway-agent"
        for account, namespace, answer in (
            ("fairway-agent", "fairway-system", "yes"),
            ("default", "fairway-system", "no"),
            ("fairway-agent", "default", "no"),
        ):
            asked = ("create", f"serviceaccounts/{account}", "--subresource=token", "-n", namespace)
            assert edge.asked("auth", "can-i", *asked, who).strip() == answer
    async with hub(tmp_path, edge, clock=Later()) as (rig, _):
        after = await seen(lambda: token_for(rig, "edge"), lambda now: now != before, "a new token")
        told, earlier = claims_of(after), claims_of(before)
        assert told is not None
        assert earlier is not None
        assert told.sub == earlier.sub == "system:serviceaccount:fairway-system:fairway-agent"
        assert told.exp > earlier.exp
        await rig.until_ready()
        # Nothing else of the cluster changed, so its agent went on as it was.
        assert await spec_of(rig, "edge") == joined
    # Whoever starts next takes up what was written down.
    async with hub(tmp_path, edge) as (rig, _):
        await rig.until_ready()
        assert await token_for(rig, "edge") == after


async def test_a_token_of_somebody_who_joined_it_anew_is_taken_up_and_kept(
    edge: Member, tmp_path: Path
) -> None:
    options = HubOptions(data=tmp_path / "hub", port=0, has_controllers=False)
    async with open_hub(options) as opened, AsyncClient.connect(str(opened.kubeconfig)) as client:
        rig, terminal = HubRig(client, {"edge": edge}), Terminal(opened.kubeconfig)
        kubeconfig = ("--kubeconfig", str(edge.plane.kubeconfig))
        await terminal.fairway("join", "--name", "edge", *kubeconfig)
        kept = await token_for(rig, "edge")
        cluster = decode(await client.get("clusters.fairway.dev", "edge"), Cluster)
        renewing = Renewing(opened.store, cluster, SystemClock())
        access = replace(load_access(str(edge.plane.kubeconfig)), token=kept)
        api = KubeApi(access, SystemClock())
        try:
            assert await renewing.renew(api, "one of before") == kept
            assert await token_for(rig, "edge") == kept
            renewed = await renewing.renew(api, kept)
            assert renewed not in (kept, "one of before")
            assert await token_for(rig, "edge") == renewed
        finally:
            await api.close()


@pytest.mark.parametrize(
    "token",
    ["", "admin-token", "a.b.c", "a.e30.c", "a.bm8gSlNPTg.c"],
    ids=["none", "of a file", "of no text", "that says nothing", "that is no JSON"],
)
def test_a_token_that_is_not_ours_to_renew_is_known_as_such(token: str) -> None:
    claims = claims_of(token)
    assert claims is None or not claims.sub


async def test_an_agent_of_its_own_joins_is_accepted_and_runs_jobs(
    edge: Member, tmp_path: Path
) -> None:
    async with hub(tmp_path, edge) as (rig, terminal):
        kubeconfig = ("--kubeconfig", str(edge.plane.kubeconfig))
        rights = await terminal.fairway("join", "--print-rbac", *kubeconfig, "--mode", "Manage")
        await rig.kubectl("edge", "apply", "--server-side", "-f", "-", given=rights)
        command = (await terminal.fairway("join", "--name", "edge", "--pull")).split()
        assert command[:3] == ["fairway", "agent", "--join"]
        log = tmp_path / "agent.log"
        words = (*command[1:], "--data", str(tmp_path / "agent"), *kubeconfig)
        async with terminal.staying(log, *words) as process:

            async def said() -> str:
                assert process.poll() is None, log.read_text()
                return log.read_text()

            text = await seen(said, lambda told: "--fingerprint" in told, "it to ask")
            key = text.split("--fingerprint ")[1].split()[0]
            assert (await spec_of(rig, "edge"))["accepted"] is False
            await terminal.fairway("accept", "edge", "--fingerprint", key, "--mode", "Manage")
            await rig.until_ready()
            # The hub itself knows no way to the cluster.
            assert "kubeconfig" not in (await spec_of(rig, "edge"))["kubernetes"]
            await rig.apply(gang("train", "sh", "-c", "echo hello; sleep 1", gpus=2))
            await rig.until("train", "Running")
            assert len(await rig.pods("edge", "train")) == 1
            await rig.until("train", "Succeeded")
            assert ("Forbidden" in log.read_text()) is False, log.read_text()
        # One that starts again needs no invitation.
        async with terminal.staying(log, *words[:1], *words[3:]):
            await rig.apply(gang("again", "sleep", "0.1", gpus=2))
            await rig.until("again", "Succeeded")


GUIDE = ROOT / "docs" / "guides" / "join.md"


async def test_the_guide_leads_to_a_fleet_of_two(
    fleet: Fleet, edge: Member, tmp_path: Path
) -> None:
    hangzhou = fleet.members["hangzhou"]
    hangzhou.remove(*MADE)
    try:
        async with open_hub(HubOptions(data=tmp_path / "hub", port=0)) as opened:
            laptop = laptop_of(tmp_path, {"hz1": hangzhou, "edge": edge})
            laptop.know_hub(opened.kubeconfig)
            await laptop.follow(GUIDE, agent_of="edge")
    finally:
        clear(hangzhou)
        hangzhou.remove(*MADE)
        hangzhou.prepared.clear()
