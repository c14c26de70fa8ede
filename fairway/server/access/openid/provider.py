"""Requests to a provider: its endpoints, its keys, and tokens for codes.

A provider that is unavailable affects only users who sign in with it. Endpoints and keys are
fetched by one request at a time, and concurrent callers wait for the same response. After any
response the hub pauses before it asks again: tokens with invented key ids cannot make it ask more
often. Known keys stay in use while the provider is unavailable, and are refreshed once an hour.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from fairway.client.access import Access
from fairway.client.errors import ClientError
from fairway.client.transport import Transport
from fairway.client.wire import JSON, Answer, Request
from fairway.clock import Clock
from fairway.server.access.openid.settings import SCOPES, Settings

_log = logging.getLogger(__name__)

_FORM = "application/x-www-form-urlencoded"
_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 10.0  # between two requests for keys
_FRESH_SECONDS = 3_600.0
_ANSWER_BYTES_MOST = 1 << 20
_KEYS_MOST = 100
_CONNECTIONS_MOST = 8
_ORIGINS_MOST = 8
_SHOWN_MOST = 300
_Form = TypeVar("_Form")


class ProviderFault(Exception):
    """The provider gave no valid response; the message is for people."""


class ProviderRefusal(ProviderFault):
    """The provider answered with a refusal."""


class Places(msgspec.Struct, frozen=True):
    """The fields of the provider's discovery document that are read."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str = ""
    revocation_endpoint: str = ""
    scopes_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class Granted(msgspec.Struct, frozen=True):
    """The response of the token endpoint."""

    id_token: str = ""
    refresh_token: str = ""


class _Refusal(msgspec.Struct, frozen=True):
    error: str = ""
    error_description: str = ""


class _KeySet(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]]


class Provider:
    """One provider: its endpoints and keys, and requests to it."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._transports: dict[str, Transport] = {}
        self._keys: tuple[dict[str, Any], ...] = ()
        self._places: Places | None = None
        self._learned_at = 0.0
        self._ask_after = 0.0
        self._fault = ""
        self._asking: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
        while self._transports:
            await self._transports.popitem()[1].close()

    async def keys(self, name: str) -> tuple[dict[str, Any], ...]:
        """The keys with an id, or all for ""; raises ProviderFault when they cannot be learned."""
        targets = self._named(name)
        if targets:
            is_old = self._clock.monotonic() - self._learned_at > _FRESH_SECONDS
            if is_old and self._may_ask:
                self._ask()  # the known keys serve meanwhile
            return targets
        await self._learn()
        targets = self._named(name)
        if not targets and self._fault:
            raise ProviderFault(self._fault)
        return targets

    async def places(self) -> Places:
        """Its endpoints."""
        if self._places is None:
            await self._learn()
        if self._places is None:
            raise ProviderFault(self._fault or f"{self._name} has not answered yet")
        return self._places

    async def scopes(self) -> str:
        """The scopes to ask for: those of the settings, else those of SCOPES that it supports."""
        if self._settings.scopes:
            return " ".join(self._settings.scopes)
        known = (await self.places()).scopes_supported
        return " ".join(
            scope for scope in SCOPES if known is None or scope in known or scope == "openid"
        )

    async def grant(self, fields: Mapping[str, str]) -> Granted:
        """Exchanges a code or a refresh token at the token endpoint."""
        answer = await self._post((await self.places()).token_endpoint, fields)
        if answer.status != 200:
            raise ProviderRefusal(f"{self._name} refused: {_say(answer)}")
        return _read(answer.body, Granted)

    async def revoke(self, token: str) -> None:
        """Revokes a refresh token, if the provider supports that."""
        place = (await self.places()).revocation_endpoint
        if place:
            await self._post(place, {"token": token, "token_type_hint": "refresh_token"})

    @property
    def _name(self) -> str:
        return self._settings.shown_name

    @property
    def _may_ask(self) -> bool:
        return self._clock.monotonic() >= self._ask_after

    def _named(self, name: str) -> tuple[dict[str, Any], ...]:
        return tuple(entry for entry in self._keys if not name or entry.get("kid") == name)

    async def _learn(self) -> None:
        """Waits for the request in flight, or for a new one when the pause is over."""
        asking = self._asking
        if asking is None and self._may_ask:
            asking = self._ask()
        if asking is not None:
            await asyncio.shield(asking)

    def _ask(self) -> asyncio.Task[None]:
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._asked())
        return self._asking

    async def _asked(self) -> None:
        """Fetches endpoints and keys; the outcome is kept, and logged once."""
        try:
            places = _read(await self._get(_described_at(self._settings.issuer)), Places)
            self._believe(places)
            key_set = _read(await self._get(places.jwks_uri), _KeySet)
            self._keys = tuple(key_set.keys[:_KEYS_MOST])
            self._places = places
            self._learned_at = self._clock.monotonic()
            if self._fault:
                _log.info("%s answers again", self._settings.issuer)
            self._fault = ""
        except (ProviderFault, ValueError) as fault:  # ValueError: from invalid URLs
            if str(fault) != self._fault:
                _log.warning("sign-in by %s: %s", self._settings.issuer, fault)
            self._fault = str(fault)
        finally:
            self._ask_after = self._clock.monotonic() + _PAUSE_SECONDS
            self._asking = None

    def _believe(self, places: Places) -> None:
        if places.issuer != self._settings.issuer:
            raise ProviderFault(
                f"it calls itself {places.issuer!r}; --oidc-issuer-url must be exactly that"
            )
        for place in (places.authorization_endpoint, places.token_endpoint, places.jwks_uri):
            if urlsplit(place).scheme != "https":
                raise ProviderFault(f"it is at {place!r}, which does not begin with https://")

    async def _get(self, url: str) -> bytes:
        transport, path = self._way(url)
        request = Request(method="GET", path=path, read_timeout_seconds=_PATIENCE_SECONDS)
        body = bytearray()
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                async for chunk in transport.stream(request):
                    if isinstance(chunk, Answer):
                        raise ProviderFault(f"{url} answered {chunk.status}")
                    body += chunk
                    if len(body) > _ANSWER_BYTES_MOST:
                        raise ProviderFault(f"{url} answered more than {_ANSWER_BYTES_MOST} bytes")
        except ClientError as error:
            raise ProviderFault(str(error)) from error
        except TimeoutError:
            raise ProviderFault(f"{url} did not answer in time") from None
        return bytes(body)

    async def _post(self, url: str, fields: Mapping[str, str]) -> Answer:
        transport, path = self._way(url)
        form, headers = self._show(fields)
        request = Request(
            method="POST",
            path=path,
            body=urlencode(form).encode(),
            content_type=_FORM,
            accept=JSON,
            headers=headers,
            read_timeout_seconds=_PATIENCE_SECONDS,
        )
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await transport.send(request)
        except ClientError as error:
            raise ProviderFault(f"{self._name} does not answer: {error}") from error
        except TimeoutError:
            raise ProviderFault(f"{self._name} did not answer in time") from None

    def _show(
        self, fields: Mapping[str, str]
    ) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
        """The form and headers that authenticate the client, by a method the provider supports."""
        client, secret = self._settings.client_id, self._settings.client_secret
        if not secret:
            return {**fields, "client_id": client}, ()
        ways = self._places.token_endpoint_auth_methods_supported if self._places else ()
        if "client_secret_basic" not in ways and "client_secret_post" in ways:
            return {**fields, "client_id": client, "client_secret": secret}, ()
        both = f"{quote(client, safe='')}:{quote(secret, safe='')}"
        return dict(fields), (
            ("Authorization", f"Basic {base64.b64encode(both.encode()).decode()}"),
        )

    def _way(self, url: str) -> tuple[Transport, str]:
        """The connection pool for the origin of a URL, and the rest of the URL."""
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.netloc:
            raise ProviderFault(f"{url!r} does not begin with https://")
        origin = f"https://{parts.netloc}"
        if origin not in self._transports:
            if len(self._transports) >= _ORIGINS_MOST:
                raise ProviderFault("it is at too many addresses")
            access = Access(server=origin, authority=self._settings.authority)
            self._transports[origin] = Transport(
                access, self._clock, connections_most=_CONNECTIONS_MOST
            )
        path = parts.path or "/"
        return self._transports[origin], f"{path}?{parts.query}" if parts.query else path


def _described_at(issuer: str) -> str:
    return f"{issuer.rstrip('/')}/.well-known/openid-configuration"


def _read(body: bytes, form: type[_Form]) -> _Form:
    try:
        return msgspec.json.decode(body, type=form)
    except msgspec.MsgspecError as error:
        raise ProviderFault(f"it answered what no provider answers: {error}") from error


def _say(answer: Answer) -> str:
    """The error of a response in one short line."""
    try:
        refusal = msgspec.json.decode(answer.body, type=_Refusal)
    except msgspec.MsgspecError:
        refusal = _Refusal()
    said = refusal.error_description or refusal.error or f"it answered {answer.status}"
    text = " ".join("".join(name if name.isprintable() else " " for name in said).split())
    return text if len(text) <= _SHOWN_MOST else f"{text[:_SHOWN_MOST]}…"
