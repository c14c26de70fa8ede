"""An agent of its own that loses its cluster, then its hub, with work that is to be stopped and
moved: whatever it loses, by the notes of the nodes nothing runs twice at the same time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kubernetes import lives
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import Fleet, Member
from tests.kubernetes.hubs import HubRig, basics, clear, cluster_of, gang, runs_in, secret_of
from tests.kubernetes.network import Network, network_to
from tests.kubernetes.test_join import edge as edge  # noqa: PLC0414 - a fixture
from tests.kubernetes.test_join import hub
from tests.waiting import seen

pytestmark = IN_THE_FLEET
HEALTH = {"heartbeatSeconds": 1, "unreadySeconds": 4, "lostSeconds": 8, "skewSeconds": 1}
MOVES = {
    "onClusterLost": "StopAndMove",
    "clusterLostSeconds": 0,
    "checkpoint": {"graceSeconds": 1},
}
SECONDS_TO_MOVE = 8 + 1 + 1  # what the agent bears, what clocks differ by, the time pods get to end


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A hub, a cluster behind an agent of its own, and the networks that this agent has."""

    rig: HubRig
    to_hub: Network
    to_cluster: Network

    async def cluster(self) -> dict[str, Any]:
        found: dict[str, Any] = await self.rig.client.get("clusters.fairway.dev", "edge")
        return dict(found["status"])

    async def until_phase(self, phase: str) -> dict[str, Any]:
        return await seen(self.cluster, lambda found: found["phase"] == phase, f"edge {phase}")

    async def copies(self) -> list[str]:
        """The members in which it runs, by the notes of their nodes."""
        runs = runs_in(self.rig.members, self.rig.since)
        return [item.member for item in runs if item.end == float("inf")]


@asynccontextmanager
async def joined(edge: Member, folder: Path) -> AsyncIterator[Stage]:
    """The cluster has joined by pull; its agent reaches cluster and hub by networks of its own."""
    async with (
        hub(folder, edge) as (rig, terminal),
        network_to(rig.client.access.server) as to_hub,
        network_to(edge.plane.url) as to_cluster,
    ):
        objects = basics(h100=0)
        objects[0]["spec"]["health"] = HEALTH
        await rig.apply(*objects)
        kubeconfig = ("--kubeconfig", str(edge.plane.kubeconfig), "--mode", "Manage")
        printed = await terminal.fairway("join", "--print-rbac", "--pull", *kubeconfig)
        await rig.kubectl("edge", "apply", "--server-side", "-f", "-", given=printed)
        invited = ("join", "--name", "edge", "--pull", "--hub-url", to_hub.url)
        command = (await terminal.fairway(*invited)).split()
        own = folder / "agent.kubeconfig"
        own.write_text(edge.plane.kubeconfig.read_text().replace(edge.plane.url, to_cluster.url))
        words = (*command[1:], "--data", str(folder / "agent"), "--kubeconfig", str(own))
        log = folder / "agent.log"
        async with terminal.staying(log, *words):

            async def said() -> str:
                return log.read_text()

            await seen(said, lambda told: "--fingerprint" in told, "it to ask")
            await terminal.fairway("accept", "edge", "--yes", "--mode", "Manage")
            await rig.until_ready()
            yield Stage(rig=rig, to_hub=to_hub, to_cluster=to_cluster)


async def throughout(
    seconds: float, look: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]
) -> None:
    """It is so now, and stays so for a while."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert holds(found := await look()), found
        await asyncio.sleep(0.2)


async def test_work_that_is_to_move_never_runs_twice_whichever_network_its_agent_loses(
    fleet: Fleet, edge: Member, tmp_path: Path
) -> None:
    berlin = fleet.members["berlin"]
    try:
        async with joined(edge, tmp_path) as stage:
            rig = stage.rig
            await rig.apply(gang("train", "sleep", "600", gpus=2, **MOVES))
            await rig.until("train", "Running")
            rig.members["berlin"] = berlin
            await rig.apply(secret_of(berlin), cluster_of(berlin))
            await rig.until_ready()

            # Its cluster does not answer it: it can stop nothing, says so, and is waited for.
            stage.to_cluster.cut("Refused")
            status = await stage.until_phase("Lost")
            (ready,) = [
                condition for condition in status["conditions"] if condition["type"] == "Ready"
            ]
            assert ready["message"] == "its agent lives, and the cluster does not answer it"
            await throughout(SECONDS_TO_MOVE, stage.copies, lambda where: where == ["edge"])
            stage.to_cluster.mend()
            await stage.until_phase("Ready")
            train = await rig.until("train", "Running")
            assert train.status.history == ()

            # Its hub does not answer it: it stops what it was told to, and the hub moves it then.
            stage.to_hub.cut("Refused")
            moved = await rig.until("train", lambda item: bool(item.status.history), "it to move")
            assert [item.reason for item in moved.status.history] == ["ClusterLost"]
            await seen(stage.copies, lambda where: where == ["berlin"], "it to run elsewhere")
            stage.to_hub.mend()
            await stage.until_phase("Ready")
            await throughout(2, stage.copies, lambda where: where == ["berlin"])
            assert lives.twice(runs_in(rig.members, rig.since)) == []
    finally:
        await asyncio.to_thread(clear, berlin)
