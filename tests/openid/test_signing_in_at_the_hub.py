"""What the hub answers around signing in: to its own page, and to nobody else."""

from __future__ import annotations

import hashlib
import io
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from fairway.app import SignInOptions
from fairway.server.documents.page import SAFETY
from tests.openid.calling import (
    CHALLENGE,
    NONCE,
    STATE,
    TAB,
    VERIFIER,
    Browsing,
    hub_with,
)
from tests.openid.issuing import Issuer, issuing, rsa_key

KEY = rsa_key("first")
BEGIN = {"state": STATE, "nonce": NONCE, "challenge": CHALLENGE}
EXCHANGE = {"tab": TAB, "code": "the-code", "verifier": VERIFIER, "nonce": NONCE}


@pytest.fixture
async def issuer(tmp_path: Path) -> AsyncIterator[Issuer]:
    async with issuing(tmp_path, KEY) as issuer:
        yield issuer


@pytest.fixture
async def browsing(tmp_path: Path, issuer: Issuer) -> AsyncIterator[Browsing]:
    options = SignInOptions(
        openid=issuer.settings(username_prefix="-", groups_claim="groups", name="Example"),
        page_urls=("https://fleet.example.com/",),
    )
    async with hub_with(tmp_path / "hub", options) as browsing:
        yield browsing


def granted(issuer: Issuer, *, refresh: str = "refresh-1", **claims: Any) -> None:
    """What the provider is to give next."""
    token = issuer.token(time.time(), **{"nonce": NONCE, **claims})
    issuer.granted = {"id_token": token, "access_token": "x", "token_type": "Bearer"}
    if refresh:
        issuer.granted["refresh_token"] = refresh


async def test_an_id_token_is_a_bearer_token_like_any_other(
    browsing: Browsing, issuer: Issuer
) -> None:
    assert await browsing.user(issuer.token(time.time())) == "ann"
    assert await browsing.user(issuer.token(time.time(), aud="other")) == 401
    assert await browsing.user(browsing.hub.token) == "admin"


async def test_a_token_review_knows_id_tokens_as_well(browsing: Browsing, issuer: Issuer) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    body = {"spec": {"token": issuer.token(time.time(), groups=["research"])}}
    found = (await browsing.post(path, body, token=browsing.hub.token)).json["status"]
    assert found["authenticated"] is True
    assert found["user"]["username"] == "ann"
    assert "research" in found["user"]["groups"]
    other = {"spec": {**body["spec"], "audiences": ["somebody-else"]}}
    found = (await browsing.post(path, other, token=browsing.hub.token)).json["status"]
    assert "authenticated" not in found


async def test_a_provider_that_is_away_keeps_nobody_else_out(
    browsing: Browsing, issuer: Issuer
) -> None:
    issuer.is_away = True
    assert await browsing.user(issuer.token(time.time())) == 503
    assert await browsing.user(browsing.hub.token) == "admin"
    found = await browsing.post("/page/session/begin", BEGIN)
    assert (found.status, "Example cannot be asked" in found.json["message"]) == (503, True)


async def test_the_page_learns_what_it_may_offer_and_no_secret(browsing: Browsing) -> None:
    async with browsing.session.get(f"{browsing.hub.url}/page/settings.json") as response:
        assert await response.json() == {"oidc": {"name": "Example"}, "readOnly": False}
        assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("origin", [None, "https://fleet.example.com"], ids=["own", "told"])
async def test_the_browser_is_sent_to_the_provider_and_told_to_come_back_to_the_page(
    browsing: Browsing, issuer: Issuer, origin: str | None
) -> None:
    at = origin or browsing.hub.url
    found = await browsing.post("/page/session/begin", BEGIN, Origin=at)
    address = urlsplit(found.json["location"])
    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{issuer.url}/authorize"
    assert {name: values[0] for name, values in parse_qs(address.query).items()} == {
        "response_type": "code",
        "client_id": "fairway",
        "redirect_uri": f"{at}/page/",
        "scope": "openid email groups",
        "state": STATE,
        "nonce": NONCE,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    }


async def test_a_code_becomes_a_token_and_what_renews_it_stays_out_of_sight(
    browsing: Browsing, issuer: Issuer
) -> None:
    granted(issuer)
    found = await browsing.post("/page/session/exchange", EXCHANGE)
    assert (found.status, found.headers["Cache-Control"]) == (200, "no-store")
    assert found.json["token"] == issuer.granted["id_token"]
    assert found.json["isRenewable"] is True
    assert 590 < found.json["lastsSeconds"] <= 600
    assert "refresh-1" not in f"{found.json} {found.headers}"
    shown = found.headers["Set-Cookie"]
    assert re.fullmatch(
        r"__Secure-fairway-(\w{16})=[\w-]+; Path=/page/session/\1/; Secure; HttpOnly; "
        r"SameSite=Strict",
        shown,
    )
    assert issuer.posted == [
        {
            "grant_type": "authorization_code",
            "code": "the-code",
            "redirect_uri": f"{browsing.hub.url}/page/",
            "code_verifier": VERIFIER,
            "client_id": "fairway",
        }
    ]


async def test_a_sign_in_is_renewed_by_its_own_tab_with_the_newest_that_renews_it(
    browsing: Browsing, issuer: Issuer
) -> None:
    granted(issuer)
    first = await browsing.post("/page/session/exchange", EXCHANGE)
    granted(issuer, refresh="refresh-2", nonce=None)
    second = await browsing.post("/page/session/renew", {"tab": TAB}, cookie=first.cookie)
    assert await browsing.user(second.json["token"]) == "ann"
    granted(issuer, refresh="", nonce=None)
    third = await browsing.post("/page/session/renew", {"tab": TAB}, cookie=second.cookie)
    assert third.json["isRenewable"] is True
    assert [item.get("refresh_token") for item in issuer.posted] == [None, "refresh-1", "refresh-2"]


async def test_tabs_of_one_browser_do_not_weigh_on_each_other(
    browsing: Browsing, issuer: Issuer
) -> None:
    """A browser keeps what renews sign-ins for weeks, and a header holds but a few of them."""
    tabs = [f"{TAB}-{number}" for number in range(40)]
    jar = aiohttp.CookieJar(unsafe=True)  # of a hub at an address
    connector = browsing.session.connector
    async with aiohttp.ClientSession(
        connector=connector, connector_owner=False, cookie_jar=jar
    ) as session:
        browser = Browsing(browsing.hub, session)
        for tab in tabs:
            granted(issuer, refresh="r" * 2_000)
            found = await browser.post(f"{_place(tab)}/exchange", {**EXCHANGE, "tab": tab})
            assert found.json["isRenewable"] is True
        granted(issuer, refresh="r" * 2_000, nonce=None)
        for tab in (tabs[0], tabs[-1]):
            assert (await browser.post(f"{_place(tab)}/renew", {"tab": tab})).status == 200
        assert (await browser.post(f"{_place(tabs[0])}/renew", {"tab": tabs[1]})).status == 401


def _place(tab: str) -> str:
    return f"/page/session/{hashlib.sha256(tab.encode()).hexdigest()[:16]}"


@pytest.mark.parametrize(
    ("tab", "has_cookie"),
    [
        pytest.param("another-tab-of-the-same-browser", True, id="another tab"),
        pytest.param(TAB, False, id="a tab without the cookie"),
        pytest.param("", True, id="nobody in particular"),
    ],
)
async def test_nobody_else_renews_a_sign_in(
    browsing: Browsing, issuer: Issuer, tab: str, has_cookie: bool
) -> None:
    granted(issuer)
    first = await browsing.post("/page/session/exchange", EXCHANGE)
    # A cookie of one tab under the name of another's is as worthless.
    value = first.cookie.partition("=")[2]
    name = first.cookie.partition("=")[0] if tab == "" else cookie_name(tab)
    cookie = f"{name}={value}" if has_cookie else ""
    found = await browsing.post("/page/session/renew", {"tab": tab}, cookie=cookie)
    assert found.status == 401
    assert len(issuer.posted) == 1


def cookie_name(tab: str) -> str:
    from fairway.server.access.sign_in import _cookie  # noqa: PLC0415 - the name is the hub's own

    return _cookie(tab)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        pytest.param({"nonce": "other"}, "nonce", id="for another sign-in"),
        pytest.param({"nonce": None}, "nonce", id="for no sign-in in particular"),
        pytest.param({"aud": "other"}, "audience", id="for another client"),
        pytest.param({"sub": "system:admin"}, "Kubernetes' own", id="of the system"),
    ],
)
async def test_a_token_that_the_hub_would_not_take_is_not_handed_on(
    browsing: Browsing, issuer: Issuer, claims: dict[str, Any], why: str
) -> None:
    granted(issuer, **claims)
    found = await browsing.post("/page/session/exchange", EXCHANGE)
    assert (found.status, why in found.json["message"]) == (401, True)
    assert "Set-Cookie" not in found.headers


async def test_what_the_provider_says_is_passed_on_in_its_words(
    browsing: Browsing, issuer: Issuer
) -> None:
    issuer.granted = {"error": "invalid_grant", "error_description": "the code was used before"}
    found = await browsing.post("/page/session/exchange", EXCHANGE)
    assert found.status == 401
    assert found.json["message"] == "Example refused: the code was used before"


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        pytest.param({"Origin": "https://evil.example.com"}, BEGIN, 403, id="another origin"),
        pytest.param({"Origin": ""}, BEGIN, 403, id="no origin"),
        pytest.param({"Origin": "null"}, BEGIN, 403, id="a page without an origin"),
        pytest.param({"Sec_Fetch_Site": "cross-site"}, BEGIN, 403, id="another site"),
        pytest.param({"Sec_Fetch_Site": "same-site"}, BEGIN, 403, id="a neighbour"),
        pytest.param({"Content_Type": "text/plain"}, BEGIN, 415, id="a form"),
        pytest.param({}, {}, 400, id="nothing"),
        pytest.param({}, {**BEGIN, "state": "short"}, 400, id="a state that can be guessed"),
        pytest.param({}, {**BEGIN, "state": "&x=" * 20}, 400, id="a state that is none"),
        pytest.param({}, [], 400, id="a list"),
        pytest.param({}, {**BEGIN, "nonce": "n" * 100_000}, 400, id="far too much"),
    ],
)
async def test_nobody_but_the_page_begins(
    browsing: Browsing, headers: dict[str, str], body: Any, status: int
) -> None:
    found = await browsing.post("/page/session/begin", body, **headers)
    assert found.status == status


async def test_who_comes_too_often_is_asked_to_wait(browsing: Browsing) -> None:
    found = [await browsing.post("/page/session/begin", BEGIN) for _ in range(400)]
    assert {item.status for item in found} == {200, 429}
    assert found[-1].headers["Retry-After"] == "1"
    assert await browsing.user(browsing.hub.token) == "admin"


async def test_signing_out_ends_at_the_provider_and_no_token_is_in_the_address(
    browsing: Browsing, issuer: Issuer
) -> None:
    granted(issuer)
    first = await browsing.post("/page/session/exchange", EXCHANGE)
    found = await browsing.post("/page/session/end", {"tab": TAB}, cookie=first.cookie)
    address = urlsplit(found.json["location"])
    assert parse_qs(address.query) == {
        "client_id": ["fairway"],
        "post_logout_redirect_uri": [f"{browsing.hub.url}/page/"],
    }
    assert "Max-Age=0" in found.headers["Set-Cookie"]


async def test_who_signs_out_is_let_go_even_if_the_provider_is_away(
    browsing: Browsing, issuer: Issuer
) -> None:
    granted(issuer)
    first = await browsing.post("/page/session/exchange", EXCHANGE)
    issuer.is_away = True
    found = await browsing.post("/page/session/end", {"tab": TAB}, cookie=first.cookie)
    assert (found.status, "Max-Age=0" in found.headers["Set-Cookie"]) == (200, True)


async def test_a_client_with_a_secret_shows_it_to_the_provider_alone(
    tmp_path: Path, issuer: Issuer
) -> None:
    options = SignInOptions(openid=issuer.settings(client_secret="s3cret", username_prefix="-"))
    async with hub_with(tmp_path / "hub", options) as browsing:
        granted(issuer)
        found = await browsing.post("/page/session/exchange", EXCHANGE)
        assert found.status == 200
        assert "s3cret" not in f"{found.json} {found.headers} {options}"
    assert issuer.authorizations == ["Basic ZmFpcndheTpzM2NyZXQ="]
    assert "client_id" not in issuer.posted[0]


async def test_a_hub_without_a_provider_says_so(tmp_path: Path) -> None:
    async with hub_with(tmp_path / "hub", SignInOptions()) as browsing:
        assert (await browsing.post("/page/session/begin", BEGIN)).status == 404
        async with browsing.session.get(f"{browsing.hub.url}/page/settings.json") as response:
            assert await response.json() == {"oidc": None, "readOnly": False}


@pytest.mark.parametrize(
    ("method", "path", "size", "status"),
    [
        pytest.param("GET", "/page/", 2, 200, id="the page"),
        pytest.param("GET", "/page/none.js", 2, 404, id="no such file"),
        pytest.param("POST", "/page/session/renew", 2, 401, id="nothing to renew by"),
        pytest.param("GET", "/page/session/renew", 2, 405, id="another method"),
        pytest.param("DELETE", "/page/", 2, 403, id="a write"),
        pytest.param("POST", "/page/session/begin", 4 << 20, 413, id="too much"),
    ],
)
async def test_whatever_the_page_is_answered_comes_with_its_policy(
    browsing: Browsing, method: str, path: str, size: int, status: int
) -> None:
    body, kind = io.BytesIO(b"{}".ljust(size)), {"Content-Type": "application/json"}
    url = browsing.hub.url + path
    async with browsing.session.request(method, url, data=body, headers=kind) as found:
        assert found.status == status
        assert SAFETY.items() <= dict(found.headers).items()


async def test_no_browser_guesses_what_the_api_answers(browsing: Browsing) -> None:
    found = await browsing.call("GET", "/apis", token=browsing.hub.token)
    assert found.headers["X-Content-Type-Options"] == "nosniff"
