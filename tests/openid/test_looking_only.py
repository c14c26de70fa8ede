"""Sign-ins for looking only: whatever rights somebody has, nothing is changed with them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairway.app import SignInOptions
from tests.openid.calling import NONCE, TAB, VERIFIER, Browsing, hub_with
from tests.openid.issuing import Issuer, issuing, rsa_key

KEY = rsa_key("first")
LOOK_ONLY = "/page/session/look-only"
EXCHANGE = {"tab": TAB, "code": "the-code", "verifier": VERIFIER, "nonce": NONCE}
ROOM = "/api/v1/namespaces/default"
OURS = "/apis/fairway.dev/v1alpha1"
REVIEWS = "/apis/authorization.k8s.io/v1"
MAY = {"spec": {"resourceAttributes": {"verb": "list", "resource": "configmaps"}}}


@pytest.fixture
async def issuer(tmp_path: Path) -> AsyncIterator[Issuer]:
    async with issuing(tmp_path, KEY) as issuer:
        yield issuer


@pytest.fixture
async def browsing(tmp_path: Path, issuer: Issuer) -> AsyncIterator[Browsing]:
    options = SignInOptions(openid=issuer.settings(username_prefix="-"))
    async with hub_with(tmp_path / "hub", options) as browsing:
        yield browsing


async def traded(browsing: Browsing, token: str, **more: str) -> str:
    found = await browsing.post(LOOK_ONLY, {}, token=token, **more)
    assert found.status == 200
    return str(found.json["token"])


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("POST", f"{ROOM}/configmaps", {"metadata": {"name": "a"}}, id="make"),
        pytest.param("PATCH", "/api/v1/namespaces/default", {"metadata": {}}, id="patch"),
        pytest.param("PUT", "/api/v1/namespaces/default", {"metadata": {}}, id="replace"),
        pytest.param("DELETE", f"{ROOM}/configmaps/a", None, id="delete"),
        pytest.param("DELETE", f"{ROOM}/configmaps", None, id="delete many"),
        pytest.param("GET", f"{OURS}/namespaces/default/workloads/a/exec", None, id="exec"),
        pytest.param("GET", f"{OURS}/namespaces/default/workloads/a/portforward", None, id="port"),
        pytest.param("GET", f"{OURS}/clusters/a/stream", None, id="be an agent"),
        pytest.param("POST", f"{ROOM}/serviceaccounts/default/token", {"spec": {}}, id="a token"),
        pytest.param("GET", f"{ROOM}/secrets", None, id="list secrets"),
        pytest.param("GET", f"{ROOM}/secrets/a", None, id="read a secret"),
        pytest.param("GET", f"{OURS}/works", None, id="list works, which carry secrets"),
        pytest.param("GET", f"{OURS}/namespaces/a/works/b", None, id="read a work"),
        pytest.param("GET", f"{OURS}/watch/works", None, id="watch works"),
        pytest.param("POST", "/upkeep/backup", None, id="a backup, which has everything"),
        pytest.param("POST", "/upkeep/rotate-key", None, id="another key"),
        pytest.param("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {}, id="try tokens"),
        pytest.param("POST", "/healthz", {}, id="post to a plain path"),
    ],
)
async def test_an_administrator_who_only_looks_may_not(
    browsing: Browsing, method: str, path: str, body: Any
) -> None:
    token = await traded(browsing, browsing.hub.token)
    found = await browsing.call(method, path, token=token, body=body)
    assert found.status == 403
    assert found.json["message"].startswith("this sign-in is for looking only")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        pytest.param("GET", f"{ROOM}/configmaps", None, 200, id="list"),
        pytest.param("GET", "/api/v1/namespaces/default", None, 200, id="read"),
        pytest.param("GET", "/apis", None, 200, id="see what there is"),
        pytest.param("POST", f"{REVIEWS}/selfsubjectaccessreviews", MAY, 201, id="ask for rights"),
        # This hub decides nothing, and says so: the question itself was let through.
        pytest.param("POST", f"{OURS}/fleets/fleet/whatif", {}, 503, id="ask what if"),
    ],
)
async def test_an_administrator_who_only_looks_may(
    browsing: Browsing, method: str, path: str, body: Any, status: int
) -> None:
    token = await traded(browsing, browsing.hub.token)
    assert (await browsing.call(method, path, token=token, body=body)).status == status


async def test_acting_as_somebody_else_changes_nothing_either(browsing: Browsing) -> None:
    token = await traded(browsing, browsing.hub.token)
    found = await browsing.post(
        f"{ROOM}/configmaps", {"metadata": {"name": "a"}}, token=token, Impersonate_User="admin"
    )
    assert found.status == 403
    assert found.json["message"].startswith("this sign-in is for looking only")


async def test_the_token_within_cannot_be_had_back(browsing: Browsing) -> None:
    token = await traded(browsing, browsing.hub.token)
    assert browsing.hub.token not in token
    assert await traded(browsing, token) == token
    spoilt = token[:-2] + ("AA" if token[-2:] != "AA" else "BB")
    assert await browsing.user(spoilt) == 401
    assert await browsing.user("look-only.") == 401
    assert await browsing.user("look-only.e30") == 401


async def test_a_token_that_the_hub_does_not_know_is_not_traded(browsing: Browsing) -> None:
    assert (await browsing.post(LOOK_ONLY, {}, token="unknown")).status == 401
    assert (await browsing.post(LOOK_ONLY, {})).status == 401


async def test_whoever_looks_is_told_that_they_only_look(browsing: Browsing) -> None:
    token = await traded(browsing, browsing.hub.token)
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    found = (await browsing.post(path, {}, token=token)).json["status"]["userInfo"]
    assert (found["username"], found["extra"]) == ("admin", {"fairway.dev/look-only": ["true"]})


def granted(issuer: Issuer, **claims: Any) -> None:
    token = issuer.token(time.time(), **claims)
    issuer.granted = {"id_token": token, "refresh_token": "refresh-1"}


async def test_a_sign_in_by_the_provider_stays_for_looking_when_it_is_renewed(
    browsing: Browsing, issuer: Issuer
) -> None:
    granted(issuer, nonce=NONCE)
    first = await browsing.post("/page/session/exchange", EXCHANGE)
    body = {"tab": TAB}
    second = await browsing.post(LOOK_ONLY, body, token=first.json["token"], cookie=first.cookie)
    granted(issuer)
    third = await browsing.post("/page/session/renew", body, cookie=second.cookie)
    assert (third.status, third.json["isLookOnly"]) == (200, True)
    assert issuer.granted["id_token"] not in third.json["token"]
    assert await browsing.user(third.json["token"]) == "ann"
    path = f"{ROOM}/configmaps"
    refused = await browsing.call("POST", path, token=third.json["token"], body={})
    assert refused.json["message"].startswith("this sign-in is for looking only")


async def test_a_page_for_looking_only_hands_out_nothing_else(
    tmp_path: Path, issuer: Issuer
) -> None:
    options = SignInOptions(openid=issuer.settings(username_prefix="-"), is_page_read_only=True)
    async with hub_with(tmp_path / "hub", options) as browsing:
        async with browsing.session.get(f"{browsing.hub.url}/page/settings.json") as response:
            assert (await response.json())["readOnly"] is True
        granted(issuer, nonce=NONCE)
        found = await browsing.post("/page/session/exchange", EXCHANGE)
        assert found.json["isLookOnly"] is True
        again = await browsing.post("/page/session/renew", {"tab": TAB}, cookie=found.cookie)
        for item in (found, again):
            assert issuer.granted["id_token"] not in str(item.json)
            assert await browsing.user(item.json["token"]) == "ann"
        # Programs with tokens of their own are not concerned.
        assert await browsing.user(issuer.granted["id_token"]) == "ann"


async def test_a_hub_that_was_restarted_still_opens_what_it_sealed(tmp_path: Path) -> None:
    async with hub_with(tmp_path / "hub", SignInOptions()) as browsing:
        token = await traded(browsing, browsing.hub.token)
    async with hub_with(tmp_path / "hub", SignInOptions()) as browsing:
        assert await browsing.user(token) == "admin"
    async with hub_with(tmp_path / "another", SignInOptions()) as browsing:
        assert await browsing.user(token) == 401
