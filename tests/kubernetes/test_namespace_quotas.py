"""ResourceQuotas of real clusters: a hub starts nothing that they would refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fairway.agent.drivers.kubernetes import rights
from tests.kubernetes.driving import prepare
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import Fleet, Member
from tests.kubernetes.hubs import Json, gang, hub_of
from tests.waiting import PATIENCE_SECONDS

pytestmark = IN_THE_FLEET
GPUS = "requests.nvidia.com/gpu"
JOBS = "count/jobs.batch"
COUNTED = f"--timeout={PATIENCE_SECONDS}s"


HERE = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "PlacementPolicy",
    "metadata": {"name": "here", "namespace": "team"},
    "spec": {"groups": [{"name": "here", "selector": {"names": ["hangzhou"]}}]},
}


def quota(most: int, of: str = GPUS) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "compute", "namespace": "team"},
        "spec": {"hard": {of: str(most)}},
    }


@asynccontextmanager
async def limited(member: Member, most: int, of: str = GPUS) -> AsyncIterator[None]:
    """A member whose namespace `team` has a quota for a while."""

    def begin() -> None:
        member.apply(rights.namespace_of_tenant("team", member.name))
        prepare(member, "team")
        member.apply(quota(most, of))
        path = of.replace(".", "\\.")
        counted = f"--for=jsonpath={{.status.hard.{path}}}={most}"
        member.kubectl("wait", "resourcequota/compute", "--namespace=team", counted, COUNTED)

    await asyncio.to_thread(begin)
    try:
        yield
    finally:
        await asyncio.to_thread(
            member.kubectl, "delete", "resourcequota", "compute", "--namespace=team"
        )


async def test_a_gang_goes_where_the_quota_of_its_namespace_holds_it(
    fleet: Fleet, tmp_path: Path
) -> None:
    fleet.start("hangzhou", "berlin")
    async with (
        limited(fleet.members["hangzhou"], 8),
        hub_of(fleet, tmp_path, "hangzhou", "berlin") as hub,
    ):
        await hub.apply(gang("large", pods=2))
        await hub.until("large", "Running")
        assert len(await hub.pods("berlin", "large")) == 2
        await hub.apply(gang("small"))
        await hub.until("small", "Running")
        assert len(await hub.pods("hangzhou", "small")) == 1
        await hub.apply(HERE, gang("next", policy="here"))
        waiting = await hub.until("next", lambda item: bool(item.status.reason), "a reason")
        assert waiting.status.reason == "NamespaceQuotaExceeded"
        assert await hub.pods("hangzhou", "next") == []
        await asyncio.to_thread(hub.members["hangzhou"].apply, quota(16))
        await hub.until("next", "Running")
        assert len(await hub.pods("hangzhou", "next")) == 1


async def test_a_job_that_a_quota_of_jobs_refuses_goes_elsewhere_and_says_why_if_it_cannot(
    fleet: Fleet, tmp_path: Path
) -> None:
    fleet.start("hangzhou", "berlin")
    async with (
        limited(fleet.members["hangzhou"], 0, JOBS),
        hub_of(fleet, tmp_path, "hangzhou", "berlin") as hub,
    ):
        await hub.apply(HERE, gang("full", policy="here"))
        refused = await hub.until(
            "full",
            lambda item: item.status.phase == "Waiting" and bool(item.status.history),
            "the refusal",
        )
        assert refused.status.reason == "TemplateRefused"
        assert f"exceeded quota: compute, requested: {JOBS}=1" in refused.status.message
        assert refused.status.claim is None
        assert refused.status.requeue is not None
        assert refused.status.requeue.count == 0  # no failure of its own
        assert "TemplateAccepted" in [item.type for item in refused.status.conditions]
        await hub.apply(gang("either"))
        await hub.until("either", "Running")
        assert len(await hub.pods("berlin", "either")) == 1
