"""Which tokens of a provider are believed, and who they stand for."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from fairway.api.errors import Unavailable
from fairway.clock import VirtualClock
from fairway.server.access.identity import AUTHENTICATED
from fairway.server.access.openid.claims import TokenRefused
from fairway.server.access.openid.id_tokens import IdTokens
from fairway.server.access.openid.provider import Provider
from tests.openid.issuing import Issuer, Key, elliptic_key, issuing, rsa_key

FIRST, SECOND, THIRD = rsa_key("first"), rsa_key("second"), rsa_key("third")
SMALL, PROBABILISTIC = elliptic_key("small"), rsa_key("probabilistic", "PS256")
ISSUER = "ISSUER"  # stands for the address, which is known once the server runs


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def issuer(tmp_path: Path) -> AsyncIterator[Issuer]:
    async with issuing(tmp_path, FIRST, SECOND) as issuer:
        yield issuer


class Known:
    """What a hub with some settings knows of tokens; closed at the end."""

    def __init__(self, issuer: Issuer, clock: VirtualClock, **settings: Any) -> None:
        given = issuer.settings(**settings)
        self.provider = Provider(given, clock)
        self.tokens = IdTokens(given, self.provider, clock)

    async def __aenter__(self) -> IdTokens:
        return self.tokens

    async def __aexit__(self, *_: object) -> None:
        await self.provider.close()


def signed_by_hand(header: dict[str, Any], claims: dict[str, Any], secret: bytes | None) -> str:
    """A token as no library would make it."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(item).encode()).rstrip(b"=")
        for item in (header, claims)
    ]
    signed = b".".join(parts)
    made = hmac.digest(secret, signed, hashlib.sha256) if secret is not None else b""
    return b".".join((signed, base64.urlsafe_b64encode(made).rstrip(b"="))).decode()


@pytest.mark.parametrize(
    ("settings", "claims", "user", "groups"),
    [
        pytest.param({}, {}, f"{ISSUER}#ann", [], id="the issuer stands before a name"),
        pytest.param(
            {"username_claim": "email"},
            {"email": "ann@example.com", "email_verified": True},
            "ann@example.com",
            [],
            id="but not before an email address",
        ),
        pytest.param(
            {"username_claim": "email"},
            {"email": "ann@example.com"},
            "ann@example.com",
            [],
            id="an email address of which nobody says whether it was verified is taken",
        ),
        pytest.param({"username_prefix": "-"}, {}, "ann", [], id="a dash means no prefix"),
        pytest.param({"username_prefix": "corp:"}, {}, "corp:ann", [], id="a prefix of one's own"),
        pytest.param(
            {"username_prefix": "corp:", "username_claim": "email"},
            {"email": "ann@example.com"},
            "corp:ann@example.com",
            [],
            id="a prefix of one's own stands before an email address too",
        ),
        pytest.param(
            {"groups_claim": "groups", "groups_prefix": "corp:"},
            {"groups": ["research", "on-call"]},
            f"{ISSUER}#ann",
            ["corp:research", "corp:on-call"],
            id="groups with their prefix",
        ),
        pytest.param(
            {"groups_claim": "role"},
            {"role": "research"},
            f"{ISSUER}#ann",
            ["research"],
            id="one group as a text",
        ),
        pytest.param(
            {}, {"groups": ["research"]}, f"{ISSUER}#ann", [], id="groups nobody asked for"
        ),
        pytest.param(
            {"groups_claim": "groups"}, {}, f"{ISSUER}#ann", [], id="no groups where none are said"
        ),
        pytest.param(
            {"username_prefix": "corp:"},
            {"sub": "system:admin"},
            "corp:system:admin",
            [],
            id="a name that is Kubernetes' own is harmless behind a prefix",
        ),
        pytest.param(
            {"required_claims": {"hd": "example.com"}},
            {"hd": "example.com"},
            f"{ISSUER}#ann",
            [],
            id="a claim that is required and there",
        ),
        pytest.param(
            {}, {"aud": ["other", "fairway"]}, f"{ISSUER}#ann", [], id="one audience of several"
        ),
        pytest.param({}, {"nbf": 1_800_000_050}, f"{ISSUER}#ann", [], id="a clock ahead of ours"),
    ],
)
async def test_a_good_token_names_its_user(
    issuer: Issuer,
    clock: VirtualClock,
    settings: dict[str, Any],
    claims: dict[str, Any],
    user: str,
    groups: list[str],
) -> None:
    async with Known(issuer, clock, **settings) as tokens:
        found = await tokens.identity(issuer.token(clock.now(), **claims))
    assert found is not None
    assert found.user == user.replace(ISSUER, issuer.url)
    assert list(found.groups) == [*groups, AUTHENTICATED]


@pytest.mark.parametrize(
    ("settings", "claims", "why"),
    [
        pytest.param({}, {"aud": "other"}, "another audience", id="for somebody else"),
        pytest.param({}, {"aud": None}, "another audience", id="for nobody"),
        pytest.param({}, {"aud": 7}, "another audience", id="for a number"),
        pytest.param({}, {"exp": 1_800_000_000}, "expired", id="expired at this very moment"),
        pytest.param({}, {"exp": None}, "when it expires", id="without an end"),
        pytest.param({}, {"exp": "soon"}, "is no time", id="with an end that is a word"),
        pytest.param({}, {"nbf": 1_800_000_061}, "not valid yet", id="from the future"),
        pytest.param({}, {"iss": "https://other"}, "not a token of", id="of another issuer"),
        pytest.param({}, {"sub": None}, "claim sub", id="without a user"),
        pytest.param({}, {"sub": ""}, "claim sub", id="with an empty user"),
        pytest.param({}, {"sub": ["ann"]}, "claim sub", id="with a list of users"),
        pytest.param(
            {"username_prefix": "-"}, {"sub": "system:admin"}, "Kubernetes' own", id="of the system"
        ),
        pytest.param(
            {"groups_claim": "groups"},
            {"groups": ["research", "system:masters"]},
            "Kubernetes' own",
            id="of an administrator by group",
        ),
        pytest.param(
            {"groups_claim": "groups"}, {"groups": {"a": 1}}, "claim groups", id="odd groups"
        ),
        pytest.param(
            {"username_claim": "email"},
            {"email": "ann@example.com", "email_verified": False},
            "not verified",
            id="of an address that nobody verified",
        ),
        pytest.param(
            {"username_claim": "email"},
            {"email": "ann@example.com", "email_verified": "true"},
            "not verified",
            id="of an address that is verified in words",
        ),
        pytest.param(
            {"required_claims": {"hd": "example.com"}}, {}, "claim hd", id="without what is needed"
        ),
        pytest.param(
            {"required_claims": {"hd": "example.com"}},
            {"hd": "example.org"},
            "claim hd",
            id="with another value than is needed",
        ),
        pytest.param({"algorithms": ("ES256",)}, {}, "signed by 'RS256'", id="signed otherwise"),
    ],
)
async def test_a_token_that_is_wrong_is_refused_and_the_reason_is_known(
    issuer: Issuer, clock: VirtualClock, settings: dict[str, Any], claims: dict[str, Any], why: str
) -> None:
    token = issuer.token(clock.now(), **claims)
    async with Known(issuer, clock, **settings) as tokens:
        with pytest.raises(TokenRefused, match=why) as refused:
            await tokens.verify(token)
        assert await tokens.identity(token) is None
    assert token not in str(refused.value)


@pytest.mark.parametrize(
    ("header", "secret", "why"),
    [
        pytest.param({"alg": "none"}, None, "'none'", id="signed by nobody"),
        pytest.param({"alg": "None", "kid": "first"}, None, "'None'", id="signed by Nobody"),
        pytest.param({}, None, "signed by None", id="that does not say how it is signed"),
        pytest.param(
            {"alg": "HS256", "kid": "first"}, b"PUBLIC", "'HS256'", id="by the public key as secret"
        ),
        pytest.param({"alg": "RS256", "kid": "first"}, b"x", "signature", id="by anybody"),
        pytest.param(
            {"alg": "RS256", "kid": "first", "crit": ["exp"]}, b"x", "not a token", id="critical"
        ),
        pytest.param({"alg": "RS256", "kid": 7}, b"x", "not a token", id="by a key called 7"),
    ],
)
async def test_a_forged_token_is_refused(
    issuer: Issuer, clock: VirtualClock, header: dict[str, Any], secret: bytes | None, why: str
) -> None:
    if secret == b"PUBLIC":
        secret = FIRST.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    now = clock.now()
    claims = {"iss": issuer.url, "aud": "fairway", "sub": "ann", "exp": now + 60}
    async with Known(issuer, clock) as tokens:
        with pytest.raises(TokenRefused, match=why):
            await tokens.verify(signed_by_hand(header, claims, secret))


@pytest.mark.parametrize("key", [SMALL, PROBABILISTIC], ids=lambda item: item.algorithm)
async def test_other_algorithms_hold_where_they_are_allowed(
    issuer: Issuer, clock: VirtualClock, key: Key
) -> None:
    issuer.keys.append(key)
    token = issuer.token(clock.now(), key=key)
    async with Known(issuer, clock, algorithms=(key.algorithm,)) as tokens:
        assert await tokens.identity(token) is not None
    async with Known(issuer, clock) as tokens:
        assert await tokens.identity(token) is None


async def test_a_key_is_used_for_nothing_but_its_own_algorithm(
    issuer: Issuer, clock: VirtualClock
) -> None:
    token = issuer.token(clock.now(), key=replace(FIRST, algorithm="RS512"))
    async with Known(issuer, clock, algorithms=("RS256", "RS512")) as tokens:
        assert await tokens.identity(token) is None


async def test_a_token_is_not_believed_past_its_end(issuer: Issuer, clock: VirtualClock) -> None:
    token = issuer.token(clock.now(), exp=clock.now() + 30)
    async with Known(issuer, clock) as tokens:
        assert await tokens.identity(token) is not None
        await clock.advance(29)
        assert await tokens.identity(token) is not None
        await clock.advance(1)
        assert await tokens.identity(token) is None


async def test_a_new_key_is_found_when_a_token_names_it(
    issuer: Issuer, clock: VirtualClock
) -> None:
    async with Known(issuer, clock) as tokens:
        assert await tokens.identity(issuer.token(clock.now())) is not None
        issuer.keys[:] = [THIRD]
        await clock.advance(10)
        assert await tokens.identity(issuer.token(clock.now(), key=THIRD)) is not None
        assert await tokens.identity(issuer.token(clock.now(), key=SECOND)) is None


async def test_made_up_keys_do_not_make_the_hub_ask_more_often(
    issuer: Issuer, clock: VirtualClock
) -> None:
    async with Known(issuer, clock) as tokens:
        for at in range(20):
            strange = Key(f"strange-{at}", THIRD.private)
            assert await tokens.identity(issuer.token(clock.now(), key=strange)) is None
        assert issuer.asked.count("/keys") == 1
        await clock.advance(10)
        for at in range(20):
            strange = Key(f"strange-{at}", THIRD.private)
            assert await tokens.identity(issuer.token(clock.now(), key=strange)) is None
        assert issuer.asked.count("/keys") == 2


async def test_a_key_that_was_withdrawn_is_worth_nothing_once_keys_were_looked_at_again(
    issuer: Issuer, clock: VirtualClock
) -> None:
    async with Known(issuer, clock) as tokens:
        token = issuer.token(clock.now(), exp=clock.now() + 10_000)
        assert await tokens.identity(token) is not None
        issuer.keys[:] = [SECOND]
        await clock.advance(3_601)
        assert await tokens.identity(token) is not None  # asks behind the scenes
        await tokens.identity(issuer.token(clock.now(), key=THIRD))  # waits for that answer
        await clock.advance(60)
        assert await tokens.identity(token) is None


async def test_while_the_provider_is_away_known_keys_serve_and_nobody_is_called_a_liar(
    issuer: Issuer, clock: VirtualClock
) -> None:
    async with Known(issuer, clock) as tokens:
        assert await tokens.identity(issuer.token(clock.now())) is not None
        issuer.is_away = True
        await clock.advance(7_200)
        for at in range(5):
            assert await tokens.identity(issuer.token(clock.now(), sub=f"bob-{at}")) is not None
            await clock.advance(1)
        assert len(issuer.asked) == 3  # description and keys at first, and once since
        with pytest.raises(Unavailable, match="cannot be asked"):
            await tokens.identity(issuer.token(clock.now(), key=THIRD))


async def test_a_provider_that_was_away_from_the_beginning_is_asked_again(
    issuer: Issuer, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.is_away = True
    token = issuer.token(clock.now())
    async with Known(issuer, clock) as tokens:
        for _ in range(5):
            with pytest.raises(Unavailable):
                await tokens.identity(token)
        assert len(issuer.asked) == 1
        # Hubs that other tests share may speak at any time, so only one logger is heard.
        (said,) = [record for record in caplog.records if record.name == Provider.__module__]
        assert "503" in said.getMessage()
        issuer.is_away = False
        await clock.advance(10)
        assert await tokens.identity(token) is not None


async def test_a_provider_that_calls_itself_otherwise_is_not_believed(
    issuer: Issuer, clock: VirtualClock
) -> None:
    issuer.calls_itself = "https://elsewhere.example.com"
    async with Known(issuer, clock) as tokens:
        with pytest.raises(Unavailable, match=r"calls itself 'https://elsewhere\.example\.com'"):
            await tokens.identity(issuer.token(clock.now()))


async def test_a_provider_with_another_authority_is_not_believed(
    issuer: Issuer, clock: VirtualClock
) -> None:
    async with Known(issuer, clock, authority=b"") as tokens:
        with pytest.raises(Unavailable, match="certificate is not trusted"):
            await tokens.identity(issuer.token(clock.now()))


@pytest.mark.parametrize(
    "token", ["", "a.b", "a.b.c", "é.é.é", "a.b." + "c" * 20_000, "..", "e30.W10.x"]
)
async def test_nobody_is_asked_about_what_cannot_be_a_token(
    issuer: Issuer, clock: VirtualClock, token: str
) -> None:
    async with Known(issuer, clock) as tokens:
        assert await tokens.identity(token) is None
    assert issuer.asked == []
