"""Texts that only one private key can open.

X25519 with an ephemeral key per text, HKDF-SHA256 over what both sides know, and
ChaCha20-Poly1305 (RFC 7748, 5869, 8439). The derived key is used once, so the nonce may be
constant.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_KEY_BYTES = 32
_NONCE = bytes(12)
_PURPOSE = b"fairway credential 1"
_SHOWN = 16  # hexadecimal digits of a fingerprint


class NotSealedForUs(ValueError):
    """A text that this key cannot open."""


def new_key() -> bytes:
    """Generates a private key."""
    return X25519PrivateKey.generate().private_bytes_raw()


def public_of(private: bytes) -> str:
    """The public key of a private key, as text."""
    return _text(X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw())


def fingerprint(public: str) -> str:
    """A digest of a public key, short enough for people to compare."""
    digest = hashlib.sha256(public.encode()).hexdigest()[:_SHOWN]
    return "-".join(digest[at : at + 4] for at in range(0, _SHOWN, 4))


def seal(public: str, content: bytes) -> str:
    """Seals a text for the holder of the private key; ValueError if `public` is no public key."""
    receiver = base64.b64decode(public, validate=True)
    own = X25519PrivateKey.generate()
    sender = own.public_key().public_bytes_raw()
    shared = own.exchange(X25519PublicKey.from_public_bytes(receiver))
    cipher = ChaCha20Poly1305(_derive(shared, sender, receiver))
    return _text(sender + cipher.encrypt(_NONCE, content, None))


def open_sealed(private: bytes, sealed: str) -> bytes:
    """Opens a text that was sealed for this key."""
    key = X25519PrivateKey.from_private_bytes(private)
    try:
        whole = base64.b64decode(sealed, validate=True)
        sender, content = whole[:_KEY_BYTES], whole[_KEY_BYTES:]
        shared = key.exchange(X25519PublicKey.from_public_bytes(sender))
        receiver = key.public_key().public_bytes_raw()
        return ChaCha20Poly1305(_derive(shared, sender, receiver)).decrypt(_NONCE, content, None)
    except (binascii.Error, InvalidTag, ValueError) as error:
        raise NotSealedForUs("this was not sealed for this agent's key") from error


def _derive(shared: bytes, sender: bytes, receiver: bytes) -> bytes:
    purpose = _PURPOSE + sender + receiver
    return HKDF(algorithm=hashes.SHA256(), length=_KEY_BYTES, salt=None, info=purpose).derive(
        shared
    )


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
