"""Which provider, and how its claims become names.

The options have the names and meanings of kube-apiserver's, so that one set of role bindings serves
both; the options of the page are extra.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

ALGORITHMS = (
    "RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512",
)  # fmt: skip
_NO_PREFIX = "-"
# The default scopes to ask for: of these, those that the provider supports.
SCOPES = ("openid", "profile", "email", "groups", "offline_access")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One provider."""

    issuer: str
    client_id: str
    username_claim: str = "sub"
    username_prefix: str = ""  # empty: the issuer and #, unless the claim is an email; -: none
    groups_claim: str = ""  # empty: no groups from the provider
    groups_prefix: str = ""
    required_claims: Mapping[str, str] = field(default_factory=dict)
    algorithms: tuple[str, ...] = ("RS256",)
    authority: bytes = field(default=b"", repr=False)  # PEM; empty: the system's own
    client_secret: str = field(default="", repr=False)  # empty: a public client
    scopes: tuple[str, ...] = ()  # empty: see SCOPES
    name: str = ""  # for people; empty: the issuer's host

    @property
    def shown_name(self) -> str:
        return self.name or urlsplit(self.issuer).hostname or self.issuer

    @property
    def prefix(self) -> str:
        """The prefix of every user name."""
        if self.username_prefix == _NO_PREFIX:
            return ""
        if not self.username_prefix and self.username_claim != "email":
            return f"{self.issuer}#"
        return self.username_prefix


def faults(settings: Settings) -> Iterator[str]:
    """Why settings cannot be used, each with the name of its option."""
    try:
        issuer = urlsplit(settings.issuer)
        is_plain = not (issuer.query or issuer.fragment or issuer.username or issuer.password)
        is_usable = issuer.scheme == "https" and bool(issuer.hostname) and is_plain
    except ValueError:
        is_usable = False
    if not is_usable:
        yield (
            f"--oidc-issuer-url: {settings.issuer!r} is not an address that begins with https:// "
            "and has neither user, query nor fragment"
        )
    if not settings.client_id:
        yield "--oidc-client-id: required with --oidc-issuer-url"
    if not settings.username_claim:
        yield "--oidc-username-claim: must not be empty"
    for algorithm in settings.algorithms:
        if algorithm not in ALGORITHMS:
            yield f"--oidc-signing-algs: {algorithm!r} is none of {', '.join(ALGORITHMS)}"
    if not settings.algorithms:
        yield "--oidc-signing-algs: must not be empty"
    if settings.authority:
        try:
            ssl.create_default_context(cadata=settings.authority.decode())
        except (ssl.SSLError, ValueError) as error:
            yield f"--oidc-ca-file: it holds no certificates that can be used: {error}"
    if settings.scopes and "openid" not in settings.scopes:
        yield "--oidc-scopes: openid must be among them"
