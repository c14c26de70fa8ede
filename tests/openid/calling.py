"""Hubs that know a provider, and calls of them as a browser or a program makes them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from fairway.app import Hub, HubOptions, SignInOptions, open_hub

TAB = "a-tab-that-knows-its-own-name"
STATE, NONCE = "s" * 32, "n" * 32
CHALLENGE, VERIFIER = "c" * 43, "v" * 43
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    headers: Any
    json: Any

    @property
    def cookie(self) -> str:
        """What a browser would send back."""
        return str(self.headers.get("Set-Cookie", "")).partition(";")[0]


@dataclass(frozen=True, slots=True)
class Browsing:
    """Calls of a hub, from its own page unless something else is said."""

    hub: Hub
    session: aiohttp.ClientSession

    async def post(
        self, path: str, body: Any, *, token: str = "", cookie: str = "", **headers: str
    ) -> Answered:
        sent = {"Origin": self.hub.url, "Sec-Fetch-Site": "same-origin"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        if cookie:
            sent["Cookie"] = cookie
        async with self.session.post(self.hub.url + path, json=body, headers=sent) as response:
            return Answered(response.status, response.headers, await response.json())

    async def call(self, method: str, path: str, *, token: str, body: Any = None) -> Answered:
        sent = {"Authorization": f"Bearer {token}"}
        if method == "PATCH":
            sent["Content-Type"] = "application/merge-patch+json"
        async with self.session.request(
            method, self.hub.url + path, json=body, headers=sent
        ) as response:
            is_json = response.content_type == "application/json"
            return Answered(
                response.status, response.headers, await response.json() if is_json else None
            )

    async def user(self, token: str) -> str | int:
        """Whose token it is, or the code with which it was refused."""
        found = await self.post(WHO, {}, token=token)
        return found.json["status"]["userInfo"]["username"] if found.status == 201 else found.status


@asynccontextmanager
async def hub_with(data: Path, sign_in: SignInOptions) -> AsyncIterator[Browsing]:
    options = HubOptions(data=data, port=0, has_controllers=False, sign_in=sign_in)
    async with open_hub(options) as hub:
        context = ssl.create_default_context(cafile=str(data / "tls" / "ca.crt"))
        connector = aiohttp.TCPConnector(ssl=context)
        jar = aiohttp.DummyCookieJar()  # a test says itself what a browser would send
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as session:
            yield Browsing(hub, session)
