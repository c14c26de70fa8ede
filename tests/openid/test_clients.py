"""kubectl and the Python client with an ID token, and a hub whose objects are elsewhere."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fairway.api.errors import Forbidden
from fairway.app import SignInOptions
from fairway.client import AsyncClient
from fairway.clock import SystemClock
from fairway.server.access.identity import Identity, authenticated_identity
from fairway.server.access.token_review import Vouching
from fairway.server.wire.exchange import Request
from tests.kubernetes import binaries
from tests.kubernetes.demand import demand
from tests.openid.calling import WHO, Browsing, hub_with
from tests.openid.issuing import Issuer, issuing, rsa_key

KEY, OTHER = rsa_key("first"), rsa_key("other")
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
async def issuer(tmp_path: Path) -> AsyncIterator[Issuer]:
    async with issuing(tmp_path, KEY) as issuer:
        yield issuer


@pytest.fixture
async def browsing(tmp_path: Path, issuer: Issuer) -> AsyncIterator[Browsing]:
    settings = issuer.settings(
        username_claim="email", groups_claim="groups", groups_prefix="company:"
    )
    async with hub_with(tmp_path / "hub", SignInOptions(openid=settings)) as browsing:
        binding = {
            "metadata": {"name": "research"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "company:research"}],
        }
        path = f"/apis/{RBAC}/v1/clusterrolebindings"
        made = await browsing.call("POST", path, token=browsing.hub.token, body=binding)
        assert made.status == 201
        yield browsing


def kubeconfig_of(browsing: Browsing, token: str, folder: Path) -> Path:
    """The hub's kubeconfig with a token of the provider in it."""
    content = yaml.safe_load(browsing.hub.kubeconfig.read_text())
    content["users"][0]["user"] = {"token": token}
    written = folder / "kubeconfig-of-ann"
    written.write_text(yaml.safe_dump(content))
    return written


@pytest.mark.real
async def test_kubectl_has_the_rights_of_the_groups_in_an_id_token(
    browsing: Browsing, issuer: Issuer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kubectl = await asyncio.to_thread(demand, binaries.newest_kubectl, request.config)
    token = issuer.token(time.time(), email="ann@example.com", groups=["research"])
    kubeconfig = kubeconfig_of(browsing, token, tmp_path)

    async def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(kubectl.path), f"--kubeconfig={kubeconfig}", *words]
        return await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=120
        )

    who = (await call("auth", "whoami", "-o", "yaml")).stdout
    assert yaml.safe_load(who)["status"]["userInfo"] == {
        "username": "ann@example.com",
        "groups": ["company:research", "system:authenticated"],
    }
    assert (await call("get", "configmaps", "--all-namespaces")).returncode == 0
    refused = await call("create", "configmap", "mine")
    assert 'User "ann@example.com" cannot create resource "configmaps"' in refused.stderr


async def test_the_python_client_has_the_same(
    browsing: Browsing, issuer: Issuer, tmp_path: Path
) -> None:
    def with_groups(*groups: str) -> str:
        token = issuer.token(time.time(), email="ann@example.com", groups=list(groups))
        return str(kubeconfig_of(browsing, token, tmp_path))

    async with AsyncClient.connect(with_groups("research")) as client:
        await client.list("workloads.fairway.dev")
    async with AsyncClient.connect(with_groups("sales")) as client:
        with pytest.raises(Forbidden, match="cannot list"):
            await client.list("workloads.fairway.dev")


async def test_a_token_that_another_server_knows_is_taken_while_the_provider_is_away(
    browsing: Browsing, issuer: Issuer
) -> None:
    """As on a hub whose objects are on a kube-apiserver that has OpenID Connect of its own."""
    known = issuer.token(time.time(), key=OTHER, email="bob@example.com")

    async def vouch(token: str) -> Identity | None:
        return authenticated_identity("bob") if token == known else None

    api = replace(browsing.hub.api, vouching=Vouching(vouch, SystemClock()))

    async def status(token: str) -> int:
        headers = (("Authorization", f"Bearer {token}"), ("Content-Type", "application/json"))
        answer = await api.answer(Request(method="POST", path=WHO, headers=headers, body=b"{}"))
        return answer.status

    own = issuer.token(time.time(), email="ann@example.com")
    assert [await status(item) for item in (own, known, "a.b.c")] == [201, 201, 401]
    issuer.is_away = True
    unknown = issuer.token(time.time(), key=OTHER, email="eve@example.com")
    assert [await status(item) for item in (own, known, unknown)] == [201, 201, 401]
