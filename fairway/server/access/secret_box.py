"""Sealed values, which only the hub can open.

Two things leave the hub sealed. A look-only token holds the token that a person signed in with: the
browser has only the sealed one, so nothing in the browser can be used to change anything, at this
hub or elsewhere. The refresh token of a sign-in is in a cookie that no script can read, bound to
the tab that it was made for. Sealed means encrypted and authenticated, with a key derived from a
secret of the hub; replicas share that secret where they share an authority.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fairway.server.access.private_files import read_private, write_private

LOOK_ONLY = "look-only."  # the prefix of such a token; no other token has it
_TOKEN, _RENEWAL = b"token", b"renewal"
_NONCE_BYTES = 12
_TEXT_MOST = 64 << 10


class Renewal(msgspec.Struct, frozen=True, kw_only=True):
    """How a sign-in is renewed, and for which person."""

    refresh_token: str
    subject: str
    tab: str  # a digest of a secret that only the tab has
    is_look_only: bool = False


class Sealing:
    """Seals and opens values; the secret is read when it is first needed."""

    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._secret = secret
        self._made: AESGCM | None = None

    def seal_token(self, token: str) -> str:
        """A look-only token that holds another token."""
        return LOOK_ONLY + self._seal(token.encode(), _TOKEN)

    def open_token(self, sealed: str) -> str | None:
        """The token inside; None for anything not sealed here."""
        content = self._open(sealed.removeprefix(LOOK_ONLY), _TOKEN)
        return content.decode() if content is not None else None

    def seal_renewal(self, renewal: Renewal) -> str:
        return self._seal(msgspec.json.encode(renewal), _RENEWAL)

    def open_renewal(self, sealed: str) -> Renewal | None:
        content = self._open(sealed, _RENEWAL)
        return msgspec.json.decode(content, type=Renewal) if content is not None else None

    def _seal(self, content: bytes, purpose: bytes) -> str:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, content, purpose)
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def _open(self, text: str, purpose: bytes) -> bytes | None:
        if len(text) > _TEXT_MOST or not text.isascii():
            return None
        try:
            sealed = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], purpose)
        except (binascii.Error, InvalidTag, ValueError):
            return None

    @property
    def _cipher(self) -> AESGCM:
        if self._made is None:
            derived = HKDF(hashes.SHA256(), 32, salt=None, info=b"fairway page sealing")
            self._made = AESGCM(derived.derive(self._secret()))
        return self._made


def secret_of(data: Path) -> bytes:
    """The secret of a hub: the key of its authority, which replicas share, or one of its own."""
    authority, own = data / "tls" / "ca.key", data / "keys" / "page.key"
    if authority.exists():
        return read_private(authority)
    if not own.exists():
        write_private(own, secrets.token_bytes(32))
    return read_private(own)
