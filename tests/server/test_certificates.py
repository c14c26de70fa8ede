"""TLS for the server, and the kubeconfig that clients read."""

from __future__ import annotations

import base64
import ssl
import stat
from pathlib import Path

import pytest
import yaml

from fairway.clock import VirtualClock
from fairway.server.access import certificates, kubeconfig
from fairway.server.access.private_files import RefusedFile

DAY = 86_400


def handshake(files: certificates.ServingFiles, host: str, authority: bytes) -> dict[str, object]:
    """What a client that trusts one authority learns of the server; raises as it would."""
    client_context = ssl.create_default_context(cadata=authority.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = certificates.server_context(files).wrap_bio(to_server, to_client, server_side=True)
    done = False
    while not done:
        done = True
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                done = False
    found = client.getpeercert()
    assert found is not None
    return dict(found)


@pytest.fixture
def clock() -> VirtualClock:
    import time  # noqa: PLC0415 - only a handshake needs the machine's own time

    return VirtualClock(time.time())


def authority_of(files: certificates.ServingFiles) -> bytes:
    assert files.authority is not None
    return files.authority


@pytest.mark.parametrize(
    ("address", "needed"),
    [
        ("127.0.0.1", False),
        ("127.0.0.9", False),
        ("::1", False),
        ("localhost", False),
        ("0.0.0.0", True),
        ("::", True),
        ("10.0.0.1", True),
        ("hub.example.org", True),
    ],
)
def test_tls_is_needed_wherever_others_can_connect(address: str, needed: bool) -> None:
    assert certificates.needs_tls(address) is needed


@pytest.mark.parametrize("host", ["hub.example.org", "10.0.0.1", "localhost", "127.0.0.1"])
def test_a_client_that_trusts_the_authority_connects_by_every_name(
    tmp_path: Path, clock: VirtualClock, host: str
) -> None:
    files = certificates.generate_certificate(
        tmp_path, ["hub.example.org", "10.0.0.1"], clock=clock
    )
    handshake(files, host, authority_of(files))


def test_a_client_refuses_another_name_and_another_authority(
    tmp_path: Path, clock: VirtualClock
) -> None:
    files = certificates.generate_certificate(tmp_path / "a", ["hub"], clock=clock)
    other = certificates.generate_certificate(tmp_path / "b", ["hub"], clock=clock)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(files, "elsewhere", authority_of(files))
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(files, "hub", authority_of(other))


def test_keys_are_only_their_owners(tmp_path: Path, clock: VirtualClock) -> None:
    certificates.generate_certificate(tmp_path, [], clock=clock)
    for name in ("ca.key", "server.key"):
        assert stat.S_IMODE((tmp_path / "tls" / name).stat().st_mode) == 0o600


def test_a_restart_keeps_the_certificate(tmp_path: Path, clock: VirtualClock) -> None:
    first = certificates.generate_certificate(
        tmp_path, ["hub"], clock=clock
    ).certificate.read_bytes()
    again = certificates.generate_certificate(
        tmp_path, ["hub"], clock=clock
    ).certificate.read_bytes()
    assert first == again


async def test_a_certificate_is_renewed_a_month_before_its_end_by_the_same_authority(
    tmp_path: Path, clock: VirtualClock
) -> None:
    first = certificates.generate_certificate(tmp_path, ["hub"], clock=clock)
    content = first.certificate.read_bytes()
    await clock.advance(334 * DAY)
    certificates.generate_certificate(tmp_path, ["hub"], clock=clock)
    assert first.certificate.read_bytes() == content
    await clock.advance(2 * DAY)
    renewed = certificates.generate_certificate(tmp_path, ["hub"], clock=clock)
    assert renewed.certificate.read_bytes() != content
    assert renewed.authority == first.authority


async def test_an_authority_near_its_end_is_replaced_with_all_it_signed(
    tmp_path: Path, clock: VirtualClock
) -> None:
    first = certificates.generate_certificate(tmp_path, ["hub"], clock=clock)
    await clock.advance(3640 * DAY)
    second = certificates.generate_certificate(tmp_path, ["hub"], clock=clock)
    assert second.authority != first.authority
    certificates.server_context(second)


def test_another_host_name_makes_another_certificate(tmp_path: Path, clock: VirtualClock) -> None:
    certificates.generate_certificate(tmp_path, ["hub"], clock=clock)
    files = certificates.generate_certificate(tmp_path, ["new-hub"], clock=clock)
    handshake(files, "new-hub", authority_of(files))
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(files, "hub", authority_of(files))


def test_a_key_without_its_certificate_is_made_again(tmp_path: Path, clock: VirtualClock) -> None:
    certificates.generate_certificate(tmp_path / "a", ["hub"], clock=clock)
    certificates.generate_certificate(tmp_path / "b", ["hub"], clock=clock)
    mixed = tmp_path / "a" / "tls" / "server.key"
    mixed.write_bytes((tmp_path / "b" / "tls" / "server.key").read_bytes())
    files = certificates.generate_certificate(tmp_path / "a", ["hub"], clock=clock)
    handshake(files, "hub", authority_of(files))


def test_a_given_certificate_is_used_as_it_is(tmp_path: Path, clock: VirtualClock) -> None:
    made = certificates.generate_certificate(tmp_path, ["hub"], clock=clock)
    files = certificates.read_certificate(made.certificate, made.key, tmp_path / "tls" / "ca.crt")
    handshake(files, "hub", authority_of(files))


def test_a_certificate_and_a_key_that_do_not_belong_together_are_refused(
    tmp_path: Path, clock: VirtualClock
) -> None:
    one = certificates.generate_certificate(tmp_path / "a", ["hub"], clock=clock)
    other = certificates.generate_certificate(tmp_path / "b", ["hub"], clock=clock)
    with pytest.raises(RefusedFile, match="cannot be used"):
        certificates.server_context(certificates.read_certificate(one.certificate, other.key))


def test_the_kubeconfig_names_server_authority_and_token(tmp_path: Path) -> None:
    path = kubeconfig.write(
        tmp_path, server="https://hub:8443", token="secret-token", authority=b"PEM"
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = yaml.safe_load(path.read_text())
    assert content["current-context"] == "fairway"
    (cluster,) = content["clusters"]
    assert cluster["cluster"] == {
        "server": "https://hub:8443",
        "certificate-authority-data": base64.b64encode(b"PEM").decode(),
    }
    assert content["users"] == [{"name": "admin", "user": {"token": "secret-token"}}]


def test_the_kubeconfig_is_replaced_whole(tmp_path: Path) -> None:
    kubeconfig.write(tmp_path, server="https://old:1", token="a" * 500)
    path = kubeconfig.write(tmp_path, server="http://127.0.0.1:8001", token="b")
    content = yaml.safe_load(path.read_text())
    assert content["clusters"][0]["cluster"] == {"server": "http://127.0.0.1:8001"}
    assert [path.name for path in tmp_path.iterdir()] == ["kubeconfig"]
