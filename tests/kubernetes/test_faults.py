"""A hub of two replicas on a kube-apiserver, three members, and what breaks amid the work.

Whatever breaks: every workload succeeds in the end, and by the notes of the nodes none ran twice at
the same time, nor succeeded twice.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from math import inf
from pathlib import Path

import pytest

from fairway.api.codec import decode
from fairway.api.workload import Workload
from fairway.client.asynchronous import WORKLOADS
from fairway.client.wire import Scope
from tests.endtoend.hubs import HubProcess
from tests.kubernetes import lives
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import L4, Fleet
from tests.kubernetes.hubs import HubRig, Json, basics, gang, hub_of, replicas_of, runs_in
from tests.kubernetes.network import Cut, network_to
from tests.waiting import PATIENCE_SECONDS, seen

pytestmark = IN_THE_FLEET
JOBS = 16  # of four GPUs each, which is more than there are


class Broken:
    """A hub with its replicas, of which something is to break."""

    def __init__(self, fleet: Fleet, rig: HubRig, replicas: list[HubProcess]) -> None:
        self.fleet = fleet
        self.rig = rig
        self.replicas = replicas

    async def term(self) -> Json:
        found = await self.rig.client.get("leases", "fairway-term", namespace="fairway-system")
        spec: Json = found["spec"]
        return spec

    async def leader(self) -> HubProcess:
        holder = int((await self.term())["holderIdentity"].rpartition("-")[2])
        return next(replica for replica in self.replicas if replica.pid == holder)

    async def until_another_leads(self, before: Json) -> None:
        await seen(
            self.term,
            lambda now: now.get("holderIdentity") not in (None, before["holderIdentity"]),
            "another replica to lead",
        )


@asynccontextmanager
async def broken(fleet: Fleet, folder: Path) -> AsyncIterator[Broken]:
    objects = basics(h100=32, a100=16, l4=4)
    names = ("hangzhou", "berlin", "edge")
    async with replicas_of(fleet, folder, *names, objects=objects) as (rig, replicas):
        yield Broken(fleet, rig, replicas)


async def until_all(
    rig: HubRig, count: int, is_so: Callable[[Workload], bool], what: str
) -> dict[str, Workload]:
    """Follows all workloads until so many are so."""
    found: dict[str, Workload] = {}
    try:
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            aclosing(rig.client.watch(WORKLOADS, scope=Scope(namespace="team"))) as events,
        ):
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    workload = decode(event.object, Workload)
                    found[workload.metadata.name] = workload
                    if sum(is_so(item) for item in found.values()) >= count:
                        return found
    except TimeoutError:
        left = {name: value.status for name, value in found.items() if not is_so(value)}
        raise AssertionError(f"waited in vain until {count} {what}: {left}") from None
    raise AssertionError("a watch never ends")


async def the_leader_is_killed(all_of_it: Broken) -> None:
    before = await all_of_it.term()
    await (await all_of_it.leader()).kill()
    await all_of_it.until_another_leads(before)


async def the_leader_is_paused_until_another_leads(all_of_it: Broken) -> None:
    before, leader = await all_of_it.term(), await all_of_it.leader()
    os.kill(leader.pid, signal.SIGSTOP)
    try:
        await all_of_it.until_another_leads(before)
    finally:
        os.kill(leader.pid, signal.SIGCONT)


async def the_leader_is_asked_to_end(all_of_it: Broken) -> None:
    before = await all_of_it.term()
    await (await all_of_it.leader()).end()
    await all_of_it.until_another_leads(before)


async def etcd_of_the_hub_is_killed(all_of_it: Broken) -> None:
    all_of_it.fleet.hub.restart("etcd")


async def the_server_of_the_hub_is_killed(all_of_it: Broken) -> None:
    all_of_it.fleet.hub.restart("kube-apiserver")
    await asyncio.to_thread(all_of_it.fleet.hub.wait_until_ready)


async def a_member_is_killed(all_of_it: Broken) -> None:
    member = all_of_it.fleet.members["berlin"]
    member.kill()
    member.bring_back()  # by this very thread, with which its processes live


async def every_replica_is_killed(all_of_it: Broken) -> None:
    for replica in all_of_it.replicas:
        await replica.kill()
    await all_of_it.replicas[0].start()


FAULTS: dict[str, Callable[[Broken], Awaitable[None]]] = {
    item.__name__.replace("_", " "): item
    for item in (
        the_leader_is_killed,
        the_leader_is_paused_until_another_leads,
        the_leader_is_asked_to_end,
        every_replica_is_killed,
        etcd_of_the_hub_is_killed,
        the_server_of_the_hub_is_killed,
        a_member_is_killed,
    )
}


def has_claim(workload: Workload) -> bool:
    return workload.status.claim is not None or bool(workload.status.history)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_nothing_is_lost_and_nothing_runs_twice_when(
    fault: Callable[[Broken], Awaitable[None]], fleet: Fleet, tmp_path: Path
) -> None:
    async with broken(fleet, tmp_path) as all_of_it:
        rig = all_of_it.rig
        jobs = [gang(f"train-{at}", "sleep", "1.5", gpus=4) for at in range(JOBS)]
        await asyncio.gather(*(rig.client.create(job) for job in jobs))
        await until_all(rig, 1, has_claim, "are claimed")  # amid the plan: most are not yet
        await fault(all_of_it)
        done = await until_all(rig, JOBS, lambda job: job.status.phase == "Succeeded", "succeeded")
        assert [past.reason for item in done.values() for past in item.status.history].count(
            "Succeeded"
        ) == JOBS
        runs = runs_in(rig.members, rig.since)
        assert lives.done_more_than_once(runs) == []
        assert len({item.work for item in runs if item.code == 0}) == JOBS


@pytest.mark.parametrize("how", ["Refused", "Silent"])
async def test_what_runs_goes_on_while_the_network_to_its_member_is_cut(
    how: Cut, fleet: Fleet, tmp_path: Path
) -> None:
    async with network_to(fleet.members["edge"].plane.url) as network:
        urls = {"edge": network.url}
        objects = basics(h100=0)
        objects[0]["spec"]["health"] |= {"heartbeatSeconds": 1, "unreadySeconds": 6}
        names = ("berlin", "edge")
        async with hub_of(fleet, tmp_path, *names, objects=objects, urls=urls) as rig:
            there = {"nodeSelector": {"nvidia.com/gpu.product": L4}}
            await rig.apply(gang("train", "sleep", "90", gpus=2, pod=there))
            await rig.apply(gang("ends-unseen", "sleep", "5", gpus=2, pod=there))
            await rig.until("train", "Running")
            await rig.until("ends-unseen", "Running")
            network.cut(how)

            async def phase() -> str:
                found = await rig.client.get("clusters.fairway.dev", "edge")
                return str(found["status"]["phase"])

            await seen(phase, lambda told: told != "Ready", "the member to be missed")
            # Nothing new goes there, and what was there is waited for.
            await rig.apply(gang("elsewhere", "sleep", "0.1", gpus=2))
            await rig.until("elsewhere", "Succeeded")
            assert len(await rig.pods("berlin", "elsewhere")) == 1
            assert await rig.phase("train") == "Running"
            network.mend()
            await seen(phase, lambda told: told == "Ready", "the member to be back")
            done = await rig.until("ends-unseen", "Succeeded")
            assert [item.reason for item in done.status.history] == ["Succeeded"]
            train = await rig.until("train", "Running")
            assert train.status.history == ()
            assert len([item for item in runs_in(rig.members, rig.since) if item.end == inf]) == 1
