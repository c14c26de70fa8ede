"""The page on a hub whose objects are on a real kube-apiserver, in a real browser.

People sign in with a token of that server; what they may see is what its RBAC objects give them.
Any replica of the hub serves the page, and answers questions itself, whether or not it leads.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from fairway.api.discretion import ANOTHER
from fairway.client import Client, load_access
from fairway.client.synchronous import LoopThread
from fairway.clock import SystemClock
from fairway.controllers import terms
from fairway.deploy.rights import roles_of_people
from fairway.kubeapi import KubeApi
from fairway.store.kubernetes.store import KubernetesStore
from tests.builders import H100, cluster, queue, workload
from tests.endtoend.hubs import HubProcess
from tests.kubernetes import binaries
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.demand import demand
from tests.kubernetes.sweeping import sweep
from tests.page import conftest as page_fixtures
from tests.page.looking import line, open_workload
from tests.page.signing import Watched, keep, look, signed_in
from tests.waiting import seen_at_last

pytestmark = pytest.mark.real
browser = page_fixtures.browser

OURS, THEIRS, WORD = "ours", "zebra-team", "zebra"
RBAC = "rbac.authorization.k8s.io"
MEMBER = {"kind": "ServiceAccount", "name": "member", "namespace": OURS}
WORKLOADS = "workloads.fairway.dev"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Replicas:
    """Two replicas of one hub, a client of its kube-apiserver, and the token of somebody."""

    client: Client
    token: str
    leader: str  # address
    other: str
    configs: tuple[str, ...]  # of administrators, at each replica


async def _hubs(plane: ControlPlane, folder: Path) -> AsyncGenerator[list[HubProcess], None]:
    store = KubernetesStore(KubeApi(load_access(str(plane.kubeconfig)), SystemClock()))
    words = ("--store", "kubernetes", "--kubeconfig", str(plane.kubeconfig))
    hubs = [HubProcess(folder / str(at), *words) for at in range(2)]
    try:
        await sweep(store)
        await asyncio.gather(*(hub.start() for hub in hubs))
        yield hubs
    finally:
        for hub in hubs:
            await hub.end()
        await sweep(store)
        await store.close()


@pytest.fixture(scope="module")
def replicas(
    real: ControlPlane, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Replicas]:
    kubectl = demand(binaries.newest_kubectl, request.config).path
    loop = LoopThread()
    for hubs in loop.iterate(_hubs(real, tmp_path_factory.mktemp("page"))):
        with Client.connect(str(real.kubeconfig)) as client:
            for object_ in _objects():
                client.apply(object_)
            _until(client, "zebra-runs", THEIRS, "Running")
            client.apply(_gang("mine-waits", OURS))
            _until(client, "mine-waits", OURS, "Waiting")
            addresses = {hub.pid: load_access(str(hub.data / "kubeconfig")).server for hub in hubs}
            leads = _holder(client)
            leader = next(at for pid, at in addresses.items() if leads.endswith(f"-{pid}"))
            other = next(at for at in addresses.values() if at != leader)
            configs = tuple(str(hub.data / "kubeconfig") for hub in hubs)
            yield Replicas(client, _token(real, kubectl), leader, other, configs)
    loop.stop()


def _holder(client: Client) -> str:
    found = client.get("leases", terms.NAME, namespace="fairway-system")
    return str(found["spec"]["holderIdentity"])


def _token(plane: ControlPlane, kubectl: Path) -> str:
    command = [str(kubectl), f"--kubeconfig={plane.kubeconfig}", "create", "token", "member"]
    return subprocess.check_output([*command, "-n", OURS], text=True, timeout=60).strip()


def _until(client: Client, name: str, namespace: str, phase: str) -> None:
    seen_at_last(
        lambda: client.get(WORKLOADS, name, namespace=namespace).get("status", {}).get("phase"),
        lambda found: found == phase,
        f"{name} to be {phase}",
    )


def _objects() -> list[Json]:
    """A fleet of one node, which the other team has, and the rights of somebody of ours."""
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in (OURS, THEIRS)
    ]
    account = {"apiVersion": "v1", "metadata": {"name": "member", "namespace": OURS}}
    return [
        *namespaces,
        {**account, "kind": "ServiceAccount"},
        *roles_of_people(),
        _bound("ClusterRoleBinding", "fairway-fleet-viewer"),
        _bound("RoleBinding", "fairway-view"),
        _bound("RoleBinding", "fairway-edit"),
        H100,
        queue("shared", 8),
        cluster("west", 8),
        _gang("zebra-runs", THEIRS),
    ]


def _bound(kind: str, role: str) -> Json:
    within = {"namespace": OURS} if kind == "RoleBinding" else {}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {"name": f"page-{role}", **within},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [MEMBER],
    }


def _gang(name: str, namespace: str) -> Json:
    made = workload(name, "shared", gpus=8, runSeconds={"estimate": 3600})
    return {**made, "metadata": {"name": name, "namespace": namespace}}


@pytest.fixture(params=["leader", "other"], ids=["of the leader", "of another replica"])
def watched(
    browser: Browser, replicas: Replicas, request: pytest.FixtureRequest
) -> Iterator[Watched]:
    """The page of a replica; whatever the console complains of fails the test."""
    found = signed_in(browser, getattr(replicas, request.param), replicas.token)
    yield found
    found.close()
    assert found.complaints == []


def test_the_page_shows_the_fleet_and_why_one_waits(watched: Watched) -> None:
    page = watched.page
    expect(page.get_by_text(f"system:serviceaccount:{OURS}:member")).to_be_visible()
    expect(page.locator("header").get_by_text(OURS, exact=True)).to_be_visible()
    expect(page.get_by_text("8 of 8 GPUs in use")).to_be_visible()
    look(page, "queues")
    expect(page.get_by_role("link", name="shared", exact=True).first).to_be_visible()
    open_workload(page, "mine-waits", OURS)
    expect(page.get_by_text("Why it waits")).to_be_visible()
    expect(page.get_by_text(ANOTHER).first).to_be_visible()
    assert WORD not in page.content()
    keep(page, "kubernetes-why")


def test_what_is_done_on_the_page_is_done_on_the_server_and_seen_live(
    watched: Watched, replicas: Replicas
) -> None:
    page, client = watched.page, replicas.client
    look(page, "workloads")
    expect(line(page, "mine-waits")).to_be_visible()
    client.apply(_gang("mine-second", OURS))
    expect(line(page, "mine-second")).to_be_visible()
    open_workload(page, "mine-second", OURS)
    page.get_by_role("button", name="Suspend").click()
    _until(client, "mine-second", OURS, "Held")
    expect(line(page, "mine-second")).to_contain_text("Held")
    look(page, "workloads")
    expect(page.get_by_role("heading", name="mine-second")).to_have_count(0)
    client.delete(WORKLOADS, "mine-second", namespace=OURS)
    expect(line(page, "mine-second")).to_have_count(0)


def test_each_replica_tells_what_was_decided_by_the_one_that_leads(replicas: Replicas) -> None:
    told = []
    for config in replicas.configs:
        with Client.connect(config) as client:
            told.append(client.ask("fleets.fairway.dev", "fleet", "decisions")["decisions"])
    steps = [step["workload"] for item in told[0] for step in item["steps"]]
    assert told[0] == told[1]
    assert f"{THEIRS}/zebra-runs" in steps
