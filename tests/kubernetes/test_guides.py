"""What the guide to a fleet on Kubernetes says is done as it stands there.

No node of the tests starts containers: once the pods of the hub that was installed are said to run,
a process stands in for them, with the token of their account and no other right.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.endtoend.hubs import HubProcess
from tests.kubernetes.control_plane import kubeconfig_text
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import ROOT, Fleet, Member
from tests.kubernetes.guides import blocks_of, laptop_of
from tests.kubernetes.hubs import clear
from tests.kubernetes.test_join import MADE

pytestmark = IN_THE_FLEET
GUIDE = ROOT / "docs" / "guides" / "fleet-on-kubernetes.md"


@pytest.fixture
def bare(fleet: Fleet) -> Iterator[Fleet]:
    """Members that nobody has prepared for us, and that are left so."""
    fleet.start(*fleet.members, has_hub=False)
    for member in fleet.members.values():
        member.remove(*MADE)
    yield fleet
    for other in fleet.members.values():
        clear(other)
        other.remove(*MADE)
        other.prepared.clear()


@asynccontextmanager
async def installed_hub(member: Member, folder: Path) -> AsyncIterator[HubProcess]:
    """What the pods of the Deployment would do, once they run."""
    wait = ("--namespace=fairway-system", "--for=condition=Available", "--timeout=180s")
    await asyncio.to_thread(member.kubectl, "wait", "deployment/fairway-hub", *wait)
    words = ("create", "token", "fairway-hub", "--namespace=fairway-system")
    token = (await asyncio.to_thread(member.kubectl, *words)).strip()
    account = folder / "account.kubeconfig"
    account.write_text(
        kubeconfig_text(member.plane.url, token, member.plane.folder / "serving.crt")
    )
    hub = HubProcess(folder, "--store", "kubernetes", "--kubeconfig", str(account))
    try:
        await hub.start()
        yield hub
    finally:
        await hub.end()


async def test_the_guide_leads_to_a_fleet_on_kubernetes_and_back(
    bare: Fleet, tmp_path: Path
) -> None:
    members = bare.members
    laptop = laptop_of(
        tmp_path, {"hub": members["berlin"], "hz1": members["hangzhou"], "edge": members["edge"]}
    )
    first, *_, last = blocks_of(GUIDE)
    assert "fairway install" in first
    assert "fairway crds" in last
    await laptop.type(first)
    async with installed_hub(members["berlin"], tmp_path):
        await laptop.follow(GUIDE, agent_of="edge", typed=1)
    left = members["berlin"].kubectl("get", "crds,namespaces,clusterroles", "-o", "name")
    assert "fairway" not in left
