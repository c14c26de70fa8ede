"""On a machine without bubblewrap, a tenant would have the rights of the hub."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fairway.agent.drivers.interface import DriverFault
from fairway.agent.drivers.local.driver import LocalDriver
from fairway.app import HubOptions, open_hub
from fairway.app.local_clusters import LocalClusters
from fairway.client import AsyncClient
from fairway.clock import SystemClock
from fairway.hub.tenants import tenant_among
from fairway.kinds.registry import Kinds
from fairway.server.access.bootstrap_roles import bootstrap_objects
from fairway.server.access.identity import MASTERS, Identity
from fairway.server.access.rbac import Authorizer
from tests.agent.local.machines import cluster, pod
from tests.contracts.drivers import work
from tests.streams.rigs import fairway
from tests.waiting import seen

RBAC = "rbac.authorization.k8s.io"
LOCAL = fairway("Cluster", "here", local={"capacity": {"cpu": "4", "memory": "4Gi"}})


def binding(*subjects: dict[str, str], name: str = "team") -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": "default"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"},
        "subjects": list(subjects),
    }


ALICE = {"apiGroup": RBAC, "kind": "User", "name": "alice"}
ADMINS = {"apiGroup": RBAC, "kind": "Group", "name": MASTERS}
EVERYBODY = {"apiGroup": RBAC, "kind": "Group", "name": "system:authenticated"}
AGENT = {"kind": "ServiceAccount", "name": "fairway-agent", "namespace": "fairway-cluster-east"}
LOOKS_LIKE_AN_AGENT = {"kind": "ServiceAccount", "name": "fairway-agent", "namespace": "team"}


@pytest.mark.parametrize(
    ("users", "subjects", "is_shared"),
    [
        pytest.param([("admin", MASTERS)], [], False, id="an administrator is alone"),
        pytest.param([("admin", MASTERS), ("alice", "")], [], True, id="another has a token"),
        pytest.param([("admin", MASTERS)], [ALICE], True, id="another has rights"),
        pytest.param([("admin", MASTERS)], [ADMINS], False, id="administrators have rights"),
        pytest.param([("admin", MASTERS)], [EVERYBODY], True, id="everybody has rights"),
        pytest.param([("admin", MASTERS)], [AGENT], False, id="an agent submits nothing"),
        pytest.param([("admin", MASTERS)], [LOOKS_LIKE_AN_AGENT], True, id="a name proves nothing"),
    ],
)
def test_a_tenant_is_whoever_has_rights_and_is_no_administrator(
    users: list[tuple[str, str]], subjects: list[dict[str, str]], is_shared: bool
) -> None:
    identities = [Identity(user=user, groups=(group,)) for user, group in users]
    bound = Authorizer([*bootstrap_objects(), binding(*subjects)]).bound()
    assert bool(tenant_among(identities, bound)) == is_shared


@asynccontextmanager
async def hub(folder: Path, *objects: dict[str, Any], **options: Any) -> AsyncIterator[AsyncClient]:
    async with (
        open_hub(HubOptions(data=folder / "hub", port=0, **options)) as opened,
        AsyncClient.connect(str(opened.kubeconfig)) as client,
    ):
        for body in objects:
            await client.apply(body)
        yield client


async def until_logged(caplog: pytest.LogCaptureFixture, *words: str) -> None:
    async def messages() -> str:
        return "\n".join(record.getMessage() for record in caplog.records)

    await seen(messages, lambda text: all(word in text for word in words), f"a line with {words}")


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("no_bubblewrap")
async def test_a_local_cluster_of_a_hub_with_tenants_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with hub(tmp_path, binding(ALICE), LOCAL) as client:
        await until_logged(caplog, "cannot isolate pods", "User alice", "--trust-local")
        conditions = (await client.get("clusters.fairway.dev", "here"))["status"]["conditions"]
        assert {each["type"]: each["status"] for each in conditions}["Ready"] != "True"


@pytest.mark.usefixtures("no_bubblewrap")
@pytest.mark.parametrize(
    ("tenant", "is_trusting"),
    [
        pytest.param("", False, id="without tenants"),
        pytest.param("alice has rights", True, id="with tenants that are trusted"),
    ],
)
async def test_a_local_cluster_is_used_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, tenant: str, is_trusting: bool
) -> None:
    local = LocalClusters(is_trusting=is_trusting, find_tenant=lambda: tenant)
    here = cluster({"cpu": "4", "memory": "4Gi"})
    driver = local.driver(here, Kinds.of_code(), SystemClock(), folder=tmp_path / "local")
    assert "pods of the local cluster here are not isolated: bwrap" in caplog.text
    await driver.open()
    try:
        assert len((await driver.observe()).nodes) == 1
    finally:
        await driver.close()


async def test_pods_that_are_not_isolated_start_no_more_once_there_are_tenants(
    tmp_path: Path,
) -> None:
    tenants: list[str] = []
    driver = LocalDriver(
        cluster({"cpu": "4", "memory": "4Gi"}),
        Kinds.of_code().of,
        SystemClock(),
        folder=tmp_path / "local",
        isolation=None,
        why_not=lambda: "".join(tenants),
    )
    await driver.open()
    try:
        tenants.append("this hub has tenants")
        with pytest.raises(DriverFault, match="this hub has tenants"):
            await driver.apply(work("one", pod("one", "true")))
        assert not (await driver.observe()).works
    finally:
        await driver.close()
    with pytest.raises(DriverFault, match="this hub has tenants"):
        await driver.open()
