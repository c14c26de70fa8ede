"""Certificates: the server's, which must be trusted, and the client's own."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fairway.client import Access, AsyncClient, ConfigError, ConnectionFailed


@dataclass(frozen=True)
class Pair:
    """A certificate that trusts itself, and its key."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path) -> tuple[Path, Path]:
        certificate, key = folder / "certificate", folder / "key"
        certificate.write_bytes(self.certificate)
        key.write_bytes(self.key)
        return certificate, key


def pair(name: str) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


@asynccontextmanager
async def serving(folder: Path, server: Pair, caller: Pair) -> AsyncIterator[Access]:
    """A server that takes only callers with this certificate, and tells them their name."""

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        shown = request.transport.get_extra_info("peercert")
        return web.json_response({"subject": shown["subject"][0][0][1]})

    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cadata=caller.certificate.decode()
    )
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(*server.write(folder))
    application = web.Application()
    application.router.add_get("/version", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield Access(
            server=f"https://127.0.0.1:{runner.addresses[0][1]}",
            tls_server_name="hub.test",
            authority=server.certificate,
            certificate=caller.certificate,
            key=caller.key,
        )
    finally:
        await runner.cleanup()


async def test_the_client_shows_its_certificate_and_checks_the_servers(tmp_path: Path) -> None:
    server, caller = pair("hub.test"), pair("alice")
    async with serving(tmp_path, server, caller) as access, AsyncClient(access) as client:
        assert await client.fetch("/version") == {"subject": "alice"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"authority": pair("hub.test").certificate}, id="signed by another"),
        pytest.param({"tls_server_name": "other.test"}, id="made for another name"),
    ],
)
async def test_a_server_that_is_not_trusted_gets_no_request(
    tmp_path: Path, change: dict[str, bytes]
) -> None:
    server, caller = pair("hub.test"), pair("alice")
    async with serving(tmp_path, server, caller) as access:
        async with AsyncClient(replace(access, **change)) as client:  # type: ignore[arg-type]
            with pytest.raises(ConnectionFailed, match="not trusted"):
                await client.fetch("/version")
        async with AsyncClient(replace(access, is_insecure=True, **change)) as client:  # type: ignore[arg-type]
            assert await client.fetch("/version") == {"subject": "alice"}


async def test_certificates_that_are_none_are_named(tmp_path: Path) -> None:
    server, caller = pair("hub.test"), pair("alice")
    async with serving(tmp_path, server, caller) as access:
        async with AsyncClient(replace(access, key=b"nonsense")) as client:
            with pytest.raises(ConfigError, match="not usable"):
                await client.fetch("/version")
        assert b"nonsense" not in repr(replace(access, key=b"nonsense")).encode()
