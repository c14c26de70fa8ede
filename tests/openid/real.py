"""A real provider: `oidc-provider` of the npm registry, a certified implementation.

It is installed once, by the lock beside it, into the cache of the tests, and runs as a process of
its own with a certificate that a hub is told to believe. Where there is no node or no registry, a
test is skipped by name; FAIRWAY_REQUIRE_BROWSER=1 or FAIRWAY_REQUIRE_KUBERNETES=1 make that a
failure.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from fairway.server.access import certificates
from fairway.server.access.openid.settings import Settings
from tests.kubernetes.binaries import Missing, cache, locked
from tests.ports import own_ports
from tests.waiting import PATIENCE_SECONDS

SOURCES = Path(__file__).parent / "provider"
CLIENT = "fairway-page"
ACCOUNTS: dict[str, dict[str, Any]] = {
    "ann": {
        "email": "ann@example.com",
        "email_verified": True,
        "groups": ["research", "everybody"],
        "department": "models",
    },
    "bob": {
        "email": "bob@example.com",
        "email_verified": True,
        "groups": ["everybody"],
        "department": "models",
    },
    "eve": {
        "email": "eve@example.com",
        "email_verified": True,
        "groups": ["everybody"],
        "department": "elsewhere",
    },
}


@dataclass(frozen=True, slots=True)
class RealProvider:
    """Where it is, and by which authority it is to be believed."""

    issuer: str
    authority: bytes

    def settings(self) -> Settings:
        return Settings(
            issuer=self.issuer,
            client_id=CLIENT,
            authority=self.authority,
            username_claim="email",
            groups_claim="groups",
            groups_prefix="company:",
            required_claims={"department": "models"},
            name="Example",
        )


def installed() -> Path:
    """The folder of the provider with all it needs, installed if need be."""
    if not (shutil.which("node") and shutil.which("npm")):
        raise Missing("there is no node or no npm on this machine")
    content = b"".join((SOURCES / item).read_bytes() for item in ("package-lock.json", "serve.mjs"))
    folder = cache().parent / "openid" / hashlib.sha256(content).hexdigest()[:16]
    if not (folder / "whole").exists():
        with locked(folder):
            if not (folder / "whole").exists():
                shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
                done = subprocess.run(
                    ["npm", "ci", "--no-audit", "--no-fund"],
                    cwd=folder, capture_output=True, text=True, timeout=600, check=False,
                )  # fmt: skip
                if done.returncode != 0:
                    raise Missing(f"npm cannot install oidc-provider: {done.stderr.strip()[-300:]}")
                (folder / "whole").touch()
    return folder


@contextmanager
def running(folder: Path, pages: list[str]) -> Iterator[RealProvider]:
    """A provider whose client may come back to some pages."""
    sources = installed()
    port = own_ports(1)[0]
    files = certificates.generate_certificate(folder, ("127.0.0.1",))
    assert files.authority is not None
    issuer = f"https://127.0.0.1:{port}"
    client = {
        "client_id": CLIENT,
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "redirect_uris": pages,
        "post_logout_redirect_uris": pages,
    }
    told = {
        "issuer": issuer,
        "port": port,
        "key": files.key.read_text(),
        "certificate": files.certificate.read_text(),
        "clients": [client],
        "accounts": ACCOUNTS,
    }
    with subprocess.Popen(
        ["node", "serve.mjs"],
        cwd=sources,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(told))
            process.stdin.close()
            assert any(line.startswith("ready") for line in process.stdout), "it did not start"
            yield RealProvider(issuer, files.authority)
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def sign_in(page: Page, name: str) -> None:
    """Signs in on the provider's own pages."""
    page.get_by_role("button", name="Sign in with Example").click()
    page.get_by_placeholder("Enter any login").fill(name)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def demand() -> None:
    """Skips a test where no provider can be had, or fails it where one is required."""
    try:
        installed()
    except Missing as error:
        names = ("FAIRWAY_REQUIRE_BROWSER", "FAIRWAY_REQUIRE_KUBERNETES")
        if any(os.environ.get(name, "") not in ("", "0") for name in names):
            pytest.fail(f"required here, but missing: {error}", pytrace=False)
        pytest.skip(f"missing: {error}")
