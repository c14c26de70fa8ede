"""A hub with a real member is restored to an earlier time: what runs there goes on, and once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fairway.app import HubOptions, open_hub
from fairway.cli.main import run
from fairway.client import AsyncClient
from fairway.store.keys import WORKS
from tests.kubernetes.fixtures import AT_THE_EDGE
from tests.kubernetes.fleet import Fleet, Member
from tests.kubernetes.hubs import HubRig, basics, clear, gang, runs_in
from tests.waiting import seen

pytestmark = AT_THE_EDGE


@asynccontextmanager
async def hub_in(data: Path, members: dict[str, Member]) -> AsyncIterator[HubRig]:
    """A hub that keeps its objects in a folder."""
    async with (
        open_hub(HubOptions(data=data, port=0)) as hub,
        AsyncClient.connect(str(hub.kubeconfig)) as client,
    ):
        yield HubRig(client, members)


async def fairway(*words: str) -> int:
    """The command, as an operator uses it."""
    return await asyncio.to_thread(run, list(words))


async def uids(hub: HubRig) -> set[str]:
    return {pod["metadata"]["uid"] for pod in await hub.pods("edge", "train")}


async def test_a_job_that_a_restored_hub_never_heard_of_goes_on_and_runs_once(
    fleet: Fleet, tmp_path: Path
) -> None:
    fleet.start("edge")
    members = {"edge": fleet.members["edge"]}
    data, file, train = tmp_path / "hub", tmp_path / "hub.backup", gang("train", gpus=2)
    try:
        async with hub_in(data, members) as hub:
            await hub.begin(basics(h100=0, a100=0))
            kubeconfig = ("--kubeconfig", str(data / "kubeconfig"))
            assert await fairway("backup", "-o", str(file), *kubeconfig) == 0
            since = hub.since
            await hub.apply(train)
            await hub.until("train", "Running")
            before = await uids(hub)
        assert await fairway("restore", str(file), "--data", str(data), "--force") == 0
        async with hub_in(data, members) as hub:
            # The agent brings back what it runs; its user submits the workload again.
            works = f"{WORKS.plural}.{WORKS.group}"
            await seen(
                lambda: hub.client.list(works),
                lambda listing: len(listing.items) == 1,
                "the work to be brought back",
            )
            assert await uids(hub) == before
            await hub.apply(train)
            await hub.until("train", "Running")
            assert await uids(hub) == before
            assert [run.work for run in runs_in(members, since)] == ["team.train"]
            await hub.cancel("train")
            await hub.until("train", "Cancelled")
    finally:
        await asyncio.to_thread(clear, members["edge"])
