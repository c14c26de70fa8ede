"""The sign-in of a person on the provider's page: authorization code flow with PKCE.

The browser is sent to the provider and returns with a code. The hub exchanges the code for a token,
so that the client secret never leaves the hub. Only the side that made the challenge can use the
code, and a token is accepted only with the nonce of this sign-in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode

from fairway.api.errors import TooManyRequests
from fairway.server.access.openid.claims import TokenRefused
from fairway.server.access.openid.id_tokens import Believed, IdTokens, same
from fairway.server.access.openid.provider import Provider
from fairway.server.access.openid.settings import Settings

_AT_A_TIME = 8
_WAITING_MOST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """The tokens of a person who signed in."""

    token: str = field(repr=False)
    refresh_token: str = field(repr=False)  # empty: the provider gave none
    believed: Believed


class Flow:
    """Signs people in, with a limited number of requests to the provider at a time."""

    def __init__(self, settings: Settings, provider: Provider, id_tokens: IdTokens) -> None:
        self._settings = settings
        self._provider = provider
        self._id_tokens = id_tokens
        self._asking = asyncio.Semaphore(_AT_A_TIME)
        self._waiting = 0

    @property
    def name(self) -> str:
        """The provider's name for people."""
        return self._settings.shown_name

    async def begin(self, *, redirect: str, state: str, nonce: str, challenge: str) -> str:
        """The URL to which a person who signs in is sent."""
        places = await self._provider.places()
        return _address(
            places.authorization_endpoint,
            {
                "response_type": "code",
                "client_id": self._settings.client_id,
                "redirect_uri": redirect,
                "scope": await self._provider.scopes(),
                "state": state,
                "nonce": nonce,
                "code_challenge": challenge,
                "code_challenge_method": "S256",
            },
        )

    async def exchange(self, *, redirect: str, code: str, verifier: str, nonce: str) -> SignedIn:
        """Exchanges the code that the browser brought back for a token."""
        session = await self._grant(
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": redirect,
                "code_verifier": verifier,
            }
        )
        if not same(session.believed.nonce, nonce):
            raise TokenRefused("the token is not for this sign-in: its nonce is another")
        return session

    async def renew(self, refresh_token: str, subject: str) -> SignedIn:
        """A new token for a person who is signed in."""
        session = await self._grant(
            {"grant_type": "refresh_token", "refresh_token": refresh_token}, refresh_token
        )
        if session.believed.subject != subject:
            raise TokenRefused("the new token belongs to another user")
        return session

    async def end(self, refresh_token: str, *, redirect: str) -> str:
        """The URL to which a person who signs out is sent; empty: the provider has none.

        No token is sent, since it would be part of the URL. The provider asks the person instead.
        """
        async with self._turn():
            if refresh_token:
                await self._provider.revoke(refresh_token)
            place = (await self._provider.places()).end_session_endpoint
        if not place.startswith("https://"):
            return ""
        return _address(
            place,
            {"client_id": self._settings.client_id, "post_logout_redirect_uri": redirect},
        )

    async def _grant(self, fields: Mapping[str, str], known: str = "") -> SignedIn:
        async with self._turn():
            granted = await self._provider.grant(fields)
            if not granted.id_token:
                raise TokenRefused(f"{self.name} gave no ID token; is the scope openid allowed?")
            return SignedIn(
                token=granted.id_token,
                refresh_token=granted.refresh_token or known,
                believed=await self._id_tokens.verify(granted.id_token),
            )

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._waiting >= _WAITING_MOST:
            raise TooManyRequests(
                "too many people sign in at this moment, try again in a moment",
                details={"retryAfterSeconds": 2},
            )
        self._waiting += 1
        try:
            async with self._asking:
                yield
        finally:
            self._waiting -= 1


def _address(place: str, query: Mapping[str, str]) -> str:
    return f"{place}{'&' if '?' in place else '?'}{urlencode(query)}"
