"""TLS for the server.

On loopback no other machine can listen in, so plain HTTP suffices. On any other address the server
uses TLS: with the operator's certificate, or with one generated here and signed by an authority
that is generated once and kept, so that clients need to learn it only once. A generated certificate
is renewed 30 days before it expires, and when the hub gets another name.
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairway.clock import Clock, SystemClock
from fairway.server.access.private_files import RefusedFile, read_private, write_private

_log = logging.getLogger(__name__)

_AUTHORITY_LIFE = timedelta(days=3650)
_SERVING_LIFE = timedelta(days=365)
_RENEW_BEFORE = timedelta(days=30)
# Clocks differ; a new certificate must be valid on a machine whose clock is behind.
_SKEW = timedelta(minutes=5)

REPLICA = "replica.fairway.internal"  # the name of every replica for the others
_Made = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFiles:
    """The files of the server's certificate and key, and the authority clients should trust."""

    certificate: Path
    key: Path
    authority: bytes | None = None  # PEM; None: clients know it already


def needs_tls(address: str) -> bool:
    """Whether other machines can reach a server that listens on an address."""
    if address == "localhost":
        return False
    try:
        return not ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return True


def read_certificate(certificate: Path, key: Path, authority: Path | None = None) -> ServingFiles:
    """The operator's own certificate. A key that every user may read is logged as a warning."""
    if stat.S_IMODE(key.stat().st_mode) & stat.S_IRWXO:
        # Mounted secrets often have such modes, so the operator decides.
        _log.warning("everybody on this machine may read the private key %s", key)
    result = authority.read_bytes() if authority else None
    return ServingFiles(certificate=certificate, key=key, authority=result)


def is_signed_by_another(files: ServingFiles) -> bool:
    """Whether a certificate has an issuer that clients can know; else it is self-signed."""
    result = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    return result.issuer != result.subject


def generate_certificate(
    directory: Path, hosts: Iterable[str], *, clock: Clock | None = None
) -> ServingFiles:
    """A certificate for host names and addresses, kept in DIR/tls and renewed when due."""
    now = datetime.fromtimestamp((clock or SystemClock()).now(), UTC)
    folder = directory / "tls"
    names = tuple(sorted({"localhost", "127.0.0.1", "::1", *hosts}))
    authority = _authority(folder, now)
    return _under(authority, folder, "server", names, now)


def replica(directory: Path, *, clock: Clock | None = None) -> ServingFiles:
    """A certificate by which one replica of a hub knows another, at either end of a connection.

    No certificate that clients see has its name, and those are valid for serving only.
    """
    now = datetime.fromtimestamp((clock or SystemClock()).now(), UTC)
    folder = directory / "tls"
    return _under(_authority(folder, now), folder, "replica", (REPLICA,), now)


def _authority(folder: Path, now: datetime) -> _Made:
    """The authority that is kept, or a new one when that is due for renewal."""
    result = _kept(folder, "ca", now)
    if result is None or _is_due(result[0], now):
        result = _make_authority(now)
        _replace(folder, "ca", result)
    return result


def _under(
    authority: _Made, folder: Path, name: str, names: tuple[str, ...], now: datetime
) -> ServingFiles:
    """A certificate signed by an authority, renewed when due."""
    result = _kept(folder, name, now)
    if result is None or not _serves(result[0], authority[0], names, now):
        _replace(folder, name, _make_serving(authority, names, now))
    return ServingFiles(
        certificate=folder / f"{name}.crt",
        key=folder / f"{name}.key",
        authority=authority[0].public_bytes(serialization.Encoding.PEM),
    )


def replica_context(files: ServingFiles) -> ssl.SSLContext:
    """The TLS context of a replica; a peer without a certificate of the authority is refused."""
    context = server_context(files)
    assert files.authority is not None, "replicas share one"
    context.load_verify_locations(cadata=files.authority.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def server_context(files: ServingFiles) -> ssl.SSLContext:
    """The server's TLS context."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    reload(context, files)
    return context


def reload(context: ssl.SSLContext, files: ServingFiles) -> None:
    """Loads renewed files; existing connections keep the old certificate."""
    try:
        context.load_cert_chain(files.certificate, files.key)
    except (OSError, ssl.SSLError) as error:
        raise RefusedFile(
            f"the certificate {files.certificate} and the key {files.key} cannot be used: {error}"
        ) from None


def _load(folder: Path, name: str) -> _Made | None:
    try:
        key = serialization.load_pem_private_key(read_private(folder / f"{name}.key"), None)
        result = x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise RefusedFile(f"{folder} holds a damaged {name} certificate or key") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != result.public_key():
        # A crash between the two writes leaves a new key beside an old certificate.
        return None
    return result, key


def _kept(folder: Path, name: str, now: datetime) -> _Made | None:
    """What is kept under a name; the one before it, if this is not valid yet and that one is.

    Then a clock that was years ahead has replaced it, and clients trust the one before.
    """
    result = _load(folder, name)
    if result is None or now >= result[0].not_valid_before_utc:
        return result
    earlier = _load(folder, f"earlier-{name}")
    if earlier is None or now < earlier[0].not_valid_before_utc or _is_due(earlier[0], now):
        return result
    _replace(folder, name, earlier)
    return earlier


def _replace(folder: Path, name: str, made: _Made) -> None:
    before = _load(folder, name)
    if before is not None:
        _keep(folder, f"earlier-{name}", before)
    _keep(folder, name, made)


def _keep(folder: Path, name: str, made: _Made) -> None:
    pem = made[1].private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    write_private(folder / f"{name}.key", pem)
    write_private(folder / f"{name}.crt", made[0].public_bytes(serialization.Encoding.PEM))


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    return now >= certificate.not_valid_after_utc - _RENEW_BEFORE


def _serves(
    certificate: x509.Certificate,
    authority: x509.Certificate,
    names: tuple[str, ...],
    now: datetime,
) -> bool:
    """Whether a certificate can stay: not due, for these names, signed by this authority."""
    if _is_due(certificate, now) or certificate.issuer != authority.subject:
        return False
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        # Signed by an authority that was replaced.
        return False
    result = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(result) == set(_alternative_names(names))


def _make_authority(now: datetime) -> _Made:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"fairway-{int(now.timestamp())}")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    made = (
        _builder(name, name, key.public_key(), now, _AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return made, key


def _make_serving(authority: _Made, names: tuple[str, ...], now: datetime) -> _Made:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fairway")])
    issuer, issuer_key = authority
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH]
    if names == (REPLICA,):
        purposes.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    purpose = x509.ExtendedKeyUsage(purposes)
    made = (
        _builder(subject, issuer.subject, key.public_key(), now, _SERVING_LIFE)
        .add_extension(x509.SubjectAlternativeName(_alternative_names(names)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(purpose, critical=False)
        .add_extension(identifier, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return made, key


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _alternative_names(names: tuple[str, ...]) -> list[x509.GeneralName]:
    alternatives: list[x509.GeneralName] = []
    for name in names:
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(name.strip("[]"))))
        except ValueError:
            alternatives.append(x509.DNSName(name))
    return alternatives
