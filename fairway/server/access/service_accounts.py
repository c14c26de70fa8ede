"""Tokens of service accounts: signed here, verified here.

A token is a JSON web token signed with ES256 by a key in the data folder. It names its service
account by name and uid: when the account is deleted, or created again under the same name, the
token is invalid. A token may be bound to a Pod or a Secret in the same way.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fairway.api.errors import BadRequest, FieldError, Invalid, NotFound, invalid
from fairway.clock import Clock, SystemClock, timestamp
from fairway.server.access.identity import (
    Identity,
    authenticated_identity,
    service_account_groups,
    service_account_user,
)
from fairway.server.access.private_files import RefusedFile, read_private, write_private

# The uid of the object of a kind ("ServiceAccount", "Pod", "Secret"), namespace and name; None
# when there is none.
FindUid = Callable[[str, str, str], str | None]

ISSUER = "https://fairway.default.svc"
_KEY_FILE = "service-accounts.key"
_LIFETIME_SECONDS = 3600
_LIFETIME_SECONDS_MIN = 600
_LIFETIME_SECONDS_MAX = 1 << 32
_TOKEN_LENGTH_MAX = 16_384
_EXTRA = "authentication.kubernetes.io/"
_ALGORITHM = "ES256"  # chosen here, never by the token


class _Named(msgspec.Struct, frozen=True):
    name: str
    uid: str


class _Claims(msgspec.Struct, frozen=True):
    namespace: str
    serviceaccount: _Named
    pod: _Named | None = None
    secret: _Named | None = None


class _Payload(msgspec.Struct, frozen=True):
    iss: str
    sub: str
    aud: list[str]
    exp: int
    nbf: int
    kubernetes: _Claims = msgspec.field(name="kubernetes.io")
    jti: str = ""


class _BoundTo(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = "v1"
    name: str = ""
    uid: str = ""


class _RequestSpec(msgspec.Struct, frozen=True, rename="camel"):
    audiences: list[str] | None = None
    expiration_seconds: int | None = None
    bound_object_ref: _BoundTo | None = None


_decode_payload = msgspec.json.Decoder(_Payload).decode
_signatures = jwt.PyJWS()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A token whose signature is valid, and what must be checked at each use."""

    identity: Identity
    audiences: tuple[str, ...]
    begins: float
    expires: float
    bound_to: tuple[tuple[str, str, str, str], ...]  # kind, namespace, name, uid


class ServiceAccountTokens:
    """Makes and verifies the tokens of service accounts."""

    def __init__(
        self,
        directory: Path,
        find_uid: FindUid,
        *,
        issuer: str = ISSUER,
        clock: Clock | None = None,
    ) -> None:
        self._key = _load_key(directory / "keys" / _KEY_FILE)
        self._public = self._key.public_key()
        self._find_uid = find_uid
        self._clock = clock or SystemClock()
        self.issuer = issuer
        self._header = {"kid": _key_id(self._public)}

    def answer(self, request: Mapping[str, Any], namespace: str, name: str) -> dict[str, Any]:
        """The response to a TokenRequest for an existing service account."""
        spec = _request_spec(request)
        seconds = _lifetime(spec)
        audiences = spec.audiences or [self.issuer]
        now = int(self._clock.now())
        claims = self._claims(namespace, name, spec.bound_object_ref)
        payload = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "iss": self.issuer,
            "jti": secrets.token_hex(16),
            "kubernetes.io": claims,
            "nbf": now,
            "sub": service_account_user(namespace, name),
        }
        given = request.get("spec") or {}
        answered_spec = {**given, "audiences": audiences, "expirationSeconds": seconds}
        status = {"token": self._sign(payload), "expirationTimestamp": timestamp(now + seconds)}
        metadata = {"name": name, "namespace": namespace, "creationTimestamp": timestamp(now)}
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": metadata,
            "spec": answered_spec,
            "status": status,
        }

    def verify(self, token: str, audiences: tuple[str, ...] = ()) -> Verified | None:
        """The content of a token signed here for one of the audiences, by default for this hub."""
        payload = self._open(token)
        wanted = audiences or (self.issuer,)
        if payload is None or payload.iss != self.issuer:
            return None
        if not any(name in payload.aud for name in wanted):
            return None
        claims = payload.kubernetes
        if payload.sub != service_account_user(claims.namespace, claims.serviceaccount.name):
            return None
        return Verified(
            identity=_identity(payload),
            audiences=tuple(payload.aud),
            begins=payload.nbf,
            expires=payload.exp,
            bound_to=tuple(
                (kind, claims.namespace, named.name, named.uid) for kind, named in _bindings(claims)
            ),
        )

    def holds(self, verified: Verified, now: float) -> bool:
        """Whether a token is valid now and everything it is bound to still exists."""
        if not verified.begins <= now < verified.expires:
            return False
        for kind, namespace, name, uid in verified.bound_to:
            if self._find_uid(kind, namespace, name) != uid:
                return False
        return True

    def _claims(self, namespace: str, name: str, bound: _BoundTo | None) -> dict[str, Any]:
        uid = self._find_uid("ServiceAccount", namespace, name)
        if uid is None:
            # Deleted after the request was admitted; a token without a uid would outlive it.
            details = {"name": name, "kind": "serviceaccounts"}
            raise NotFound(f'serviceaccounts "{name}" not found', details=details)
        claims: dict[str, Any] = {
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": uid},
        }
        if bound:
            result = self._find_uid(bound.kind, namespace, bound.name)
            if result is None or bound.uid not in ("", result):
                fault = invalid("spec.boundObjectRef", bound.name, f"no such {bound.kind}")
                raise Invalid.of("TokenRequest", "authentication.k8s.io", "", [fault])
            claims[bound.kind.lower()] = {"name": bound.name, "uid": result}
        return claims

    def _sign(self, payload: Mapping[str, Any]) -> str:
        content = msgspec.json.encode(payload)
        return _signatures.encode(content, self._key, _ALGORITHM, headers=self._header)

    def _open(self, token: str) -> _Payload | None:
        if len(token) > _TOKEN_LENGTH_MAX or not token.isascii():
            return None
        try:
            return _decode_payload(_signatures.decode(token, self._public, [_ALGORITHM]))
        except (jwt.InvalidTokenError, msgspec.MsgspecError):
            return None


def _bindings(claims: _Claims) -> list[tuple[str, _Named]]:
    bound = [("ServiceAccount", claims.serviceaccount)]
    if claims.pod:
        bound.append(("Pod", claims.pod))
    if claims.secret:
        bound.append(("Secret", claims.secret))
    return bound


def _identity(payload: _Payload) -> Identity:
    claims = payload.kubernetes
    extra: dict[str, tuple[str, ...]] = {}
    if payload.jti:
        extra[f"{_EXTRA}credential-id"] = (f"JTI={payload.jti}",)
    if claims.pod:
        extra[f"{_EXTRA}pod-name"] = (claims.pod.name,)
        extra[f"{_EXTRA}pod-uid"] = (claims.pod.uid,)
    return authenticated_identity(
        payload.sub,
        uid=claims.serviceaccount.uid,
        groups=service_account_groups(claims.namespace),
        extra=extra,
    )


def _request_spec(request: Mapping[str, Any]) -> _RequestSpec:
    """The spec of a TokenRequest in its typed form; a client may have posted anything."""
    try:
        return msgspec.convert(request.get("spec") or {}, _RequestSpec)
    except msgspec.ValidationError as error:
        raise BadRequest(f"the spec cannot be understood: {error}") from None


def _lifetime(spec: _RequestSpec) -> int:
    """The lifetime of a token in seconds; raises Invalid for an invalid request."""
    faults: list[FieldError] = []
    asked = spec.expiration_seconds
    seconds = _LIFETIME_SECONDS if asked is None else asked
    path = "spec.expirationSeconds"
    if seconds < _LIFETIME_SECONDS_MIN:
        faults.append(invalid(path, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _LIFETIME_SECONDS_MAX:
        message = "may not specify a duration larger than 2^32 seconds"
        faults.append(invalid(path, seconds, message))
    bound = spec.bound_object_ref
    if bound and (bound.kind not in ("Pod", "Secret") or bound.api_version != "v1"):
        fault = invalid("spec.boundObjectRef.kind", bound.kind, "must be Pod or Secret of v1")
        faults.append(fault)
    if faults:
        raise Invalid.of("TokenRequest", "authentication.k8s.io", "", faults)
    return seconds


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The signing key, generated when there is none."""
    if not path.exists():
        made = ec.generate_private_key(ec.SECP256R1())
        pem = made.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        write_private(path, pem)
    try:
        key = serialization.load_pem_private_key(read_private(path), password=None)
    except (ValueError, TypeError):
        raise RefusedFile(f"{path} is not a private key") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise RefusedFile(f"{path} is not a key of the curve P-256")
    return key


def _key_id(public: ec.EllipticCurvePublicKey) -> str:
    encoded = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.urlsafe_b64encode(hashlib.sha256(encoded).digest()).rstrip(b"=").decode()
