"""A small issuer with keys of the test's own, behind a real HTTPS server.

It describes itself and shows its keys as providers do, and signs whatever it is told to, so that a
test can make every token that a good provider never would.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from fairway.server.access import certificates
from fairway.server.access.openid.settings import Settings

Json = dict[str, Any]
CLIENT = "fairway"


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an issuer, by its name."""

    name: str
    private: Any
    algorithm: str = "RS256"

    def shown(self) -> Json:
        """The public half, as a provider shows it."""
        made = jwt.get_algorithm_by_name(self.algorithm).to_jwk(self.private.public_key())
        return {**json.loads(made), "kid": self.name, "use": "sig", "alg": self.algorithm}


def rsa_key(name: str, algorithm: str = "RS256") -> Key:
    return Key(name, rsa.generate_private_key(65537, 2048), algorithm)


def elliptic_key(name: str) -> Key:
    return Key(name, ec.generate_private_key(ec.SECP256R1()), "ES256")


@dataclass(slots=True)
class Issuer:
    """What it says of itself, and how often it was asked."""

    url: str
    authority: bytes
    keys: list[Key]
    asked: list[str] = field(default_factory=list)
    is_away: bool = False
    calls_itself: str = ""
    granted: Json = field(default_factory=dict)  # what the token endpoint answers
    posted: list[dict[str, str]] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)

    def settings(self, **changes: Any) -> Settings:
        given = {"issuer": self.url, "client_id": CLIENT, "authority": self.authority}
        return Settings(**{**given, **changes})

    def token(self, now: float, *, key: Key | None = None, **claims: Any) -> str:
        """A token as a good provider would sign it, but for what is told otherwise."""
        signing = key or self.keys[0]
        body = {"iss": self.url, "aud": CLIENT, "sub": "ann", "iat": now, "exp": now + 600}
        said = {name: value for name, value in {**body, **claims}.items() if value is not None}
        return jwt.encode(
            said, signing.private, algorithm=signing.algorithm, headers={"kid": signing.name}
        )

    def described(self) -> Json:
        return {
            "issuer": self.calls_itself or self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "end_session_endpoint": f"{self.url}/end",
            "scopes_supported": ["openid", "email", "groups"],
        }

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request.path)
        if self.is_away:
            return web.Response(status=503)
        if request.path == "/token":
            self.posted.append({key: str(value) for key, value in (await request.post()).items()})
            if "Authorization" in request.headers:
                self.authorizations.append(request.headers["Authorization"])
            is_refused = "error" in self.granted
            return web.json_response(self.granted, status=400 if is_refused else 200)
        known = {
            "/.well-known/openid-configuration": self.described(),
            "/keys": {"keys": [item.shown() for item in self.keys]},
        }
        if request.path not in known:
            return web.Response(status=404)
        return web.json_response(known[request.path])


@asynccontextmanager
async def issuing(folder: Path, *keys: Key) -> AsyncIterator[Issuer]:
    """An issuer for as long as the context lasts."""
    files = certificates.generate_certificate(folder / "issuer", ("127.0.0.1",))
    assert files.authority is not None
    issuer = Issuer(url="", authority=files.authority, keys=list(keys))
    runner = web.ServerRunner(web.Server(issuer.answer, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificates.server_context(files))
    await site.start()
    issuer.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield issuer
    finally:
        await runner.cleanup()
