"""The options of `fairway up` that say how people sign in: what is taken, and what is refused."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from fairway.app import SignInOptions
from fairway.cli.sign_in import SignIn, read, sign_in_options
from fairway.server.access import certificates
from fairway.server.access.private_files import RefusedFile

PROVIDER = ("--oidc-issuer-url", "https://id.example.com", "--oidc-client-id", "fairway")


def given(*words: str) -> SignInOptions:
    """What a hub would be told; UsageError as a person would see it."""
    found: list[SignInOptions] = []

    @click.command()
    @sign_in_options
    def command(**options: object) -> None:
        found.append(read(SignIn(**options)))  # type: ignore[typeddict-item] # click makes them

    CliRunner().invoke(command, words, standalone_mode=False, catch_exceptions=False)
    return found[0]


def test_nobody_has_to_have_a_provider() -> None:
    assert given() == SignInOptions()


def test_everything_arrives_where_it_is_meant(tmp_path: Path) -> None:
    files = certificates.generate_certificate(tmp_path, ("127.0.0.1",))
    secret, authority = tmp_path / "secret", tmp_path / "tls" / "ca.crt"
    secret.touch(mode=0o600)
    secret.write_text("s3cret\n")
    options = given(
        *PROVIDER,
        "--oidc-username-claim=email", "--oidc-username-prefix=corp:", "--oidc-groups-claim=groups",
        "--oidc-groups-prefix=corp:", "--oidc-required-claim=hd=example.com",
        "--oidc-required-claim=kind=a=b", "--oidc-signing-algs=RS256,ES256",
        f"--oidc-ca-file={authority}", f"--oidc-client-secret-file={secret}",
        "--oidc-scopes=openid email", "--oidc-provider-name=Example",
        "--page-url=https://fleet.example.com/page/", "--page-read-only",
    )  # fmt: skip
    settings = options.openid
    assert settings is not None
    assert (settings.prefix, settings.groups_prefix) == ("corp:", "corp:")
    assert settings.required_claims == {"hd": "example.com", "kind": "a=b"}
    assert settings.algorithms == ("RS256", "ES256")
    assert (settings.authority, settings.client_secret) == (files.authority, "s3cret")
    assert settings.scopes == ("openid", "email")
    assert options.page_urls == ("https://fleet.example.com/page/",)
    assert options.is_page_read_only
    assert "s3cret" not in repr(options)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(("--oidc-client-id=x",), "--oidc-issuer-url", id="a client of nobody"),
        pytest.param(PROVIDER[:2], "--oidc-client-id: required", id="a provider without client"),
        pytest.param(
            ("--oidc-issuer-url=http://id", "--oidc-client-id=x"), "https://", id="in the clear"
        ),
        pytest.param(
            ("--oidc-issuer-url=https://a:b@id", "--oidc-client-id=x"), "neither user", id="a user"
        ),
        pytest.param(
            ("--oidc-issuer-url=https://[id", "--oidc-client-id=x"), "not an address", id="nonsense"
        ),
        pytest.param((*PROVIDER, "--oidc-signing-algs=HS256"), "'HS256'", id="a shared secret"),
        pytest.param((*PROVIDER, "--oidc-signing-algs=none"), "'none'", id="no signature"),
        pytest.param((*PROVIDER, "--oidc-signing-algs=,"), "must not be empty", id="no algorithm"),
        pytest.param((*PROVIDER, "--oidc-required-claim=hd"), "CLAIM=VALUE", id="half a claim"),
        pytest.param((*PROVIDER, "--oidc-scopes=email"), "openid must be", id="other scopes"),
        pytest.param(("--page-url=http://a",), "--page-url", id="a page in the clear"),
        pytest.param(("--page-url=https://a/b",), "--page-url", id="a page elsewhere"),
        pytest.param(("--page-url=https://a:x",), "--page-url", id="a page at no port"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_the_name_of_its_option(
    words: tuple[str, ...], why: str
) -> None:
    with pytest.raises(click.UsageError, match=why):
        given(*words)


def test_an_authority_that_is_none_is_refused(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("no certificate")
    with pytest.raises(click.UsageError, match="--oidc-ca-file"):
        given(*PROVIDER, f"--oidc-ca-file={authority}")


def test_a_secret_that_others_may_read_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    secret.chmod(0o644)
    with pytest.raises(RefusedFile, match="chmod 600"):
        given(*PROVIDER, f"--oidc-client-secret-file={secret}")
