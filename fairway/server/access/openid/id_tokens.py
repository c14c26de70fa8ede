"""Whether a token is from the provider, for us, and valid now; and its identity.

The issuer is read from the token before any request or signature check, so tokens of other issuers
cost little. The hub allows the algorithm and the key must fit it; the token never chooses. A good
token is cached for at most a minute, so that a request costs a look-up, and a key that the provider
withdraws soon has no effect.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
import msgspec

from fairway.api.errors import Unavailable
from fairway.clock import Clock
from fairway.server.access.identity import Identity
from fairway.server.access.openid.claims import TokenRefused, identity_of
from fairway.server.access.openid.provider import Provider, ProviderFault
from fairway.server.access.openid.settings import Settings

_log = logging.getLogger(__name__)

_LENGTH_MOST = 16 << 10
_DOTS = 2
_HOLDS_SECONDS = 60.0
_REMEMBERED_MOST = 4_096
_LEEWAY_SECONDS = 60.0  # for a provider whose clock is ahead
_SAID_SECONDS = 60.0  # between two log lines with the same reason
_REASONS_MOST = 64
_TRIED_MOST = 8  # keys, for a token that names none
# The keys that fit an algorithm: type, and curve where there are several.
_FITS = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
}
_signatures = jwt.PyJWS(options={"enforce_minimum_key_length": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Believed:
    """The content of a valid token."""

    identity: Identity
    subject: str
    nonce: str
    expires: float


class IdTokens:
    """Verifies ID tokens."""

    def __init__(self, settings: Settings, provider: Provider, clock: Clock) -> None:
        self._settings = settings
        self._provider = provider
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, tuple[float, Believed]] = {}
        self._said: dict[str, float] = {}

    async def identity(self, token: str) -> Identity | None:
        """The identity of a token; None: the token is not of this provider, or is refused.

        Raises Unavailable when the provider is needed and does not answer.
        """
        try:
            return (await self.verify(token)).identity
        except TokenRefused as refused:
            self._say(str(refused))
            return None
        except ProviderFault as fault:
            raise Unavailable(
                f"the sign-in provider {self._settings.shown_name} cannot be asked: {fault}",
                details={"retryAfterSeconds": 5},
            ) from fault

    def is_ours(self, token: str) -> bool:
        """Whether a token claims to be from this provider."""
        if token.count(".") != _DOTS or len(token) > _LENGTH_MOST or not token.isascii():
            return False
        try:
            return _object(_unverified(token)["payload"]).get("iss") == self._settings.issuer
        except (TokenRefused, jwt.PyJWTError):
            return False

    async def verify(self, token: str) -> Believed:
        """The content of a valid token; raises TokenRefused for any other."""
        digest = hashlib.blake2b(
            token.encode(errors="surrogatepass"), digest_size=32, key=self._key
        ).digest()
        now, known = self._clock.now(), self._known.get(digest)
        if known is not None:
            until, believed = known
            if now < until:
                return believed
            del self._known[digest]
        if not self.is_ours(token):
            raise TokenRefused("it is not a token of this provider")
        claims = await self._verify(token)
        believed = self._read(claims, self._clock.now())
        if len(self._known) >= _REMEMBERED_MOST:
            del self._known[next(iter(self._known))]
        self._known[digest] = (min(now + _HOLDS_SECONDS, believed.expires), believed)
        return believed

    async def _verify(self, token: str) -> Mapping[str, Any]:
        """The claims of a token of this provider, once its signature is verified."""
        header = _unverified(token)["header"]
        algorithm = header.get("alg")
        if algorithm not in self._settings.algorithms:
            raise TokenRefused(
                f"it is signed by {algorithm!r}; allowed: {', '.join(self._settings.algorithms)}"
            )
        keys = await self._provider.keys(header.get("kid") or "")
        fitting = [entry for entry in keys if _fits(entry, algorithm)][:_TRIED_MOST]
        if not fitting:
            raise TokenRefused("it is signed by a key that the provider does not have")
        for key in fitting:
            try:
                payload = _signatures.decode(
                    token, key=jwt.PyJWK(key, algorithm), algorithms=[algorithm]
                )
            except jwt.PyJWTError:
                continue
            return _object(payload)
        raise TokenRefused("its signature is wrong")

    def _read(self, claims: Mapping[str, Any], now: float) -> Believed:
        """The content of the claims; raises TokenRefused unless they are for us and valid now."""
        audience = claims.get("aud")
        audiences = [audience] if isinstance(audience, str) else audience
        if not isinstance(audiences, list) or self._settings.client_id not in audiences:
            raise TokenRefused("it is for another audience than --oidc-client-id")
        expires, begins = _moment(claims, "exp"), _moment(claims, "nbf")
        if expires is None:
            raise TokenRefused("it does not say when it expires")
        if now >= expires:
            raise TokenRefused("it has expired")
        if begins is not None and now + _LEEWAY_SECONDS < begins:
            raise TokenRefused("it is not valid yet")
        if claims.get("iss") != self._settings.issuer:
            raise TokenRefused("it is of another issuer")
        return Believed(
            identity=identity_of(claims, self._settings),
            subject=str(claims.get("sub", "")),
            nonce=str(claims.get("nonce", "")),
            expires=expires,
        )

    def _say(self, reason: str) -> None:
        """Logs why a token was refused; the same reason at most once a minute."""
        now = self._clock.monotonic()
        if now < self._said.get(reason, 0.0):
            return
        if len(self._said) >= _REASONS_MOST:
            self._said.clear()
        self._said[reason] = now + _SAID_SECONDS
        _log.warning("a token of %s is refused: %s", self._settings.issuer, reason)


def same(name: str, other: str) -> bool:
    """Whether two secrets are equal, compared in constant time."""
    return hmac.compare_digest(name.encode(), other.encode())


def _fits(key: Mapping[str, Any], algorithm: str) -> bool:
    kind, curve = _FITS[algorithm]
    return (
        key.get("kty") == kind
        and (curve is None or key.get("crv") == curve)
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
    )


def _unverified(token: str) -> dict[str, Any]:
    """The header and payload of a token, without verification."""
    return _signatures.decode_complete(token, options={"verify_signature": False})


def _object(payload: bytes) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(payload, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise TokenRefused("what it claims cannot be read") from None


def _moment(claims: Mapping[str, Any], claim: str) -> float | None:
    known = claims.get(claim)
    if known is None:
        return None
    if isinstance(known, bool) or not isinstance(known, int | float):
        raise TokenRefused(f"the claim {claim} is no time")
    return float(known)
