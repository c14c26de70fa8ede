"""The way of a person through the provider's own page and back, by code and PKCE.

The browser is sent to the provider and comes back with a code; the hub turns the code into a token,
so that a secret of the client never leaves the hub. Only who made the challenge can use the code,
and a token is taken only with the nonce that was sent along.
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
    """What somebody has who signed in."""

    token: str = field(repr=False)
    refresh_token: str = field(repr=False)  # empty: the provider gave none
    believed: Believed


class Flow:
    """Signs people in; the provider is asked by a few at a time."""

    def __init__(self, settings: Settings, provider: Provider, id_tokens: IdTokens) -> None:
        self._settings = settings
        self._provider = provider
        self._id_tokens = id_tokens
        self._asking = asyncio.Semaphore(_AT_A_TIME)
        self._waiting = 0

    @property
    def name(self) -> str:
        """The provider, as people call it."""
        return self._settings.shown_name

    async def begin(self, *, redirect: str, state: str, nonce: str, challenge: str) -> str:
        """Where to send somebody who wants to sign in."""
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
        """A token for the code with which somebody came back."""
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
        """A new token for somebody who is signed in."""
        session = await self._grant(
            {"grant_type": "refresh_token", "refresh_token": refresh_token}, refresh_token
        )
        if session.believed.subject != subject:
            raise TokenRefused("the new token is somebody else's")
        return session

    async def end(self, refresh_token: str, *, redirect: str) -> str:
        """Where to send somebody who signs out; empty: the provider has no such place.

        No token goes along: it would stand in an address. The provider asks instead.
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
                believed=await self._id_tokens.believed(granted.id_token),
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
