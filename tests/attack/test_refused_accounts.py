"""Nothing runs as an account that a work was refused.

The objects of a work were once made one by one: where a service account was refused, the Job beside
it was made, and ran as the account of that name which the cluster had.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairway.agent.drivers.kubernetes import rights
from fairway.api.work import Manifest, Work
from fairway.client import Scope
from tests.contracts.drivers import config_map, job, seen, work
from tests.kubernetes.driving import KubernetesRig, driven
from tests.kubernetes.fixtures import AT_THE_EDGE
from tests.kubernetes.fleet import Fleet, Member

pytestmark = AT_THE_EDGE
Json = dict[str, Any]


@pytest.fixture
def member(fleet: Fleet) -> Member:
    return fleet.members["edge"]


@pytest.fixture
async def rig(member: Member) -> AsyncIterator[KubernetesRig]:
    async with driven(member) as opened:
        yield opened


def account(name: str, namespace: str = "default") -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def runs_as(name: str, namespace: str = "default") -> Json:
    body = job("thief")
    body["metadata"]["namespace"] = namespace
    body["spec"]["template"]["spec"]["serviceAccountName"] = name
    return body


async def refusals(rig: KubernetesRig, attempt: Work) -> str:
    await rig.driver.apply(attempt)
    looked_at = seen(await rig.driver.observe(), attempt)
    assert looked_at is not None
    return "; ".join(looked_at.faults.values())


def names_in(member: Member, kind: str, namespace: str = "default") -> set[str]:
    found = member.client.list(kind, scope=Scope(namespace=namespace)).items
    return {item["metadata"]["name"] for item in found}


@pytest.mark.parametrize("is_first", [True, False], ids=["before the job", "after the job"])
async def test_a_job_does_not_run_as_an_account_that_was_refused_beside_it(
    rig: KubernetesRig, member: Member, is_first: bool
) -> None:
    await asyncio.to_thread(member.apply, account("powerful"))
    brought = Manifest(object=account("powerful"), update="CreateOnly", deletion="Orphan")
    others = [config_map("beside"), runs_as("powerful")]
    manifests = [brought, *others] if is_first else [*others, brought]
    said = await refusals(rig, work("thief", *manifests))
    assert "ServiceAccount powerful is there already, and may have rights of its own" in said
    assert "thief" not in names_in(member, "jobs")
    assert "beside" not in names_in(member, "configmaps")
    member.kubectl("delete", "serviceaccount", "powerful")


async def test_an_account_that_is_only_looked_at_is_not_brought(
    rig: KubernetesRig, member: Member
) -> None:
    await asyncio.to_thread(member.apply, account("powerful"))
    looked_at = Manifest(object=account("powerful"), update="ReadOnly")
    said = await refusals(rig, work("thief", looked_at, runs_as("powerful")))
    assert "the service account powerful of the cluster is not permitted" in said
    assert "thief" not in names_in(member, "jobs")
    member.kubectl("delete", "serviceaccount", "powerful")


async def test_the_account_of_tenants_is_not_taken_over_in_a_new_namespace(
    rig: KubernetesRig, member: Member
) -> None:
    """The agent makes this account, with rights, while it makes the objects of the first work."""
    own = account(rights.TENANT, "new-thief")
    attempt = work("thief", own, runs_as(rights.TENANT, "new-thief"))
    try:
        assert "already exists" in await refusals(rig, attempt)
        assert names_in(member, "jobs", "new-thief") == set()
        await rig.driver.apply(attempt)
        assert names_in(member, "jobs", "new-thief") == set()
    finally:
        await rig.driver.remove(attempt.metadata.name)
        await asyncio.to_thread(member.remove, "namespace/new-thief")
