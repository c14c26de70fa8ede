"""The sign-in options of `fairway up`, named as in kube-apiserver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar
from urllib.parse import urlsplit

import click

if TYPE_CHECKING:
    from fairway.app import SignInOptions

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class SignIn(TypedDict):
    """The options as they were given."""

    oidc_issuer_url: str
    oidc_client_id: str
    oidc_username_claim: str
    oidc_username_prefix: str
    oidc_groups_claim: str
    oidc_groups_prefix: str
    oidc_required_claim: tuple[str, ...]
    oidc_signing_algs: str
    oidc_ca_file: Path | None
    oidc_client_secret_file: Path | None
    oidc_scopes: str
    oidc_provider_name: str
    page_url: tuple[str, ...]
    page_read_only: bool


_OPTIONS = (
    click.option(
        "--oidc-issuer-url",
        default="",
        metavar="URL",
        help="Accept ID tokens of this OpenID Connect provider, and let the page sign in there.",
    ),
    click.option(
        "--oidc-client-id", default="", metavar="ID", help="The client that tokens must be for."
    ),
    click.option(
        "--oidc-username-claim",
        default="sub",
        show_default=True,
        metavar="CLAIM",
        help="The claim that names the user.",
    ),
    click.option(
        "--oidc-username-prefix",
        default="",
        metavar="TEXT",
        help="Prefix of user names; default ISSUER#, or none if the claim is email. - for none.",
    ),
    click.option(
        "--oidc-groups-claim", default="", metavar="CLAIM", help="The claim that names groups."
    ),
    click.option("--oidc-groups-prefix", default="", metavar="TEXT", help="Prefix of group names."),
    click.option(
        "--oidc-required-claim",
        multiple=True,
        metavar="CLAIM=VALUE",
        help="Claim that every token must have; repeatable.",
    ),
    click.option(
        "--oidc-signing-algs",
        default="RS256",
        show_default=True,
        metavar="NAME,NAME",
        help="Signing algorithms to accept.",
    ),
    click.option(
        "--oidc-ca-file",
        type=_FILE,
        metavar="FILE",
        help="CA of the provider's certificate, if not the system's.",
    ),
    click.option(
        "--oidc-client-secret-file",
        type=_FILE,
        metavar="FILE",
        help="File with the client secret, mode 0600; without it the client is public.",
    ),
    click.option(
        "--oidc-scopes",
        default="",
        metavar="SCOPES",
        help="Scopes that the page asks for; default: those of openid profile email groups "
        "offline_access that the provider supports.",
    ),
    click.option(
        "--oidc-provider-name",
        default="",
        metavar="NAME",
        help="Name of the provider on the page; default: the host of its URL.",
    ),
    click.option(
        "--page-url",
        multiple=True,
        metavar="URL",
        help="Address at which people open the page, if not the hub's own or --host-name; "
        "repeatable.",
    ),
    click.option("--page-read-only", is_flag=True, help="Make the page read-only for everyone."),
)


def sign_in_options(command: _Command) -> _Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read(given: SignIn) -> SignInOptions:
    """The options in the hub's form; UsageError for invalid ones."""
    from fairway.app import SignInOptions  # noqa: PLC0415 - the hub is large; see `up`

    for url in given["page_url"]:
        if not _is_page_url(url):
            raise click.UsageError(f"--page-url: {url!r} is not an address such as https://NAME/")
    return SignInOptions(
        openid=_provider(given),
        page_urls=given["page_url"],
        is_page_read_only=given["page_read_only"],
    )


def _provider(given: SignIn) -> Any:
    from fairway.server.access.openid.settings import Settings, faults  # noqa: PLC0415 - as above
    from fairway.server.access.private_files import read_private  # noqa: PLC0415 - as above

    if not given["oidc_issuer_url"]:
        if given["oidc_client_id"]:
            raise click.UsageError("--oidc-client-id: --oidc-issuer-url belongs to it.")
        return None
    authority, secret = given["oidc_ca_file"], given["oidc_client_secret_file"]
    settings = Settings(
        issuer=given["oidc_issuer_url"],
        client_id=given["oidc_client_id"],
        username_claim=given["oidc_username_claim"],
        username_prefix=given["oidc_username_prefix"],
        groups_claim=given["oidc_groups_claim"],
        groups_prefix=given["oidc_groups_prefix"],
        required_claims=dict(_pair(name) for name in given["oidc_required_claim"]),
        algorithms=tuple(_words(given["oidc_signing_algs"])),
        authority=authority.read_bytes() if authority is not None else b"",
        client_secret=read_private(secret).decode().strip() if secret is not None else "",
        scopes=tuple(_words(given["oidc_scopes"])),
        name=given["oidc_provider_name"],
    )
    for fault in faults(settings):
        raise click.UsageError(fault)
    return settings


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _pair(text: str) -> tuple[str, str]:
    claim, equals, value = text.partition("=")
    if not equals or not claim:
        raise click.UsageError(f"--oidc-required-claim: expected CLAIM=VALUE, got {text!r}")
    return claim, value


def _is_page_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
    is_at_root = parts.path in ("", "/", "/page", "/page/")
    return parts.scheme == "https" and bool(parts.hostname) and is_plain and is_at_root and has_port
