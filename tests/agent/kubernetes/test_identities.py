"""Under which identity a driver makes objects, reads logs, and does what is its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from fairway.agent.drivers.interface import LogQuery, PodSeen
from fairway.agent.drivers.kubernetes import marks
from fairway.agent.drivers.kubernetes.open_driver import Opened
from fairway.agent.drivers.kubernetes.pods import NO_USE, OwnPod
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.clock import SystemClock
from fairway.kinds.registry import built_in
from fairway.store.keys import NAMESPACES, PODS
from tests.client.scripted_server import Answer, Script, says, serving, streams

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team"}}
TENANT = "system:serviceaccount:team:fairway-tenant"
SEEN = OwnPod(
    seen=PodSeen(name="p", pod_set="pod", attempt=1, phase="Ready"),
    work=marks.label("one"),
    namespace="team",
    uid="u",
    use=NO_USE,
    containers=("main",),
)


@asynccontextmanager
async def opened(
    settings: dict[str, str], *answers: Answer
) -> AsyncIterator[tuple[Opened, Script]]:
    """A driver with these settings, on a server that gives these answers in turn."""
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "here"},
        "spec": {"kubernetes": settings},
    }
    async with serving(*answers) as script:
        driver = Opened(
            decode(body, Cluster),
            built_in().of,
            SystemClock(),
            access=script.access,
            changed=lambda: None,
        )
        try:
            yield driver, script
        finally:
            await driver.end()


CASES: dict[str, tuple[dict[str, str], list[str | None]]] = {
    "objects are the tenant's": ({}, [TENANT, TENANT, None]),
    "objects are the agent's": ({"actAs": "Agent"}, [None, None, None]),
    "the agent is somebody else": ({"impersonate": "robot"}, [TENANT, TENANT, "robot"]),
    "objects are somebody else's": (
        {"actAs": "Agent", "impersonate": "robot"},
        ["robot", "robot", "robot"],
    ),
}


@pytest.mark.parametrize(("settings", "users"), CASES.values(), ids=CASES.keys())
async def test_the_user_that_the_cluster_sees(
    settings: dict[str, str], users: list[str | None]
) -> None:
    answers = says(POD, status=201), streams(b"hello\n"), says({}, status=201)
    async with opened(settings, *answers) as (driver, script):
        await driver.hands.create(PODS, POD, "team", None)
        driver.picture.take_pod(("team", "p"), SEEN)
        assert b"".join([part async for part in driver.streaming.logs(LogQuery(work="one"))])
        await driver.hands.make_own(NAMESPACES, {"metadata": {"name": "more"}})
        seen = [request.headers.get("Impersonate-User") for request in script.seen]
    assert seen == users


MISSING = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}
ACCOUNT = [
    "GET clusterroles/fairway-tenant",
    "PATCH clusterroles/fairway-tenant",
    "POST serviceaccounts",
    "POST rolebindings",
]


@pytest.mark.parametrize(
    ("identity", "prepared"), [("Tenant", ACCOUNT), ("Agent", [])], ids=["Tenant", "Agent"]
)
async def test_a_new_namespace_gets_a_service_account_if_tenants_make_objects(
    identity: str, prepared: list[str]
) -> None:
    missing, made = says(MISSING, status=404), says(POD, status=201)
    roles = [missing, made, made, made] if prepared else []
    answers = [missing, missing, made, *roles, made]
    async with opened({"actAs": identity}, *answers) as (driver, script):
        await driver.hands.create(PODS, POD, "team", None)
        calls = [_call(request) for request in script.seen]
    assert calls == ["POST pods", "GET namespaces/team", "POST namespaces", *prepared, "POST pods"]


def _call(request: web.Request) -> str:
    """The verb, and the path without group, version and namespace."""
    path = request.path.partition("/v1/")[2]
    return f"{request.method} {path.removeprefix('namespaces/team/')}"
