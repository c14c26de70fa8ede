"""What the hub alone can open.

Two things leave the hub sealed. A token for looking only holds the token that somebody signed in
with: the browser has the sealed one alone, so nothing in the browser can be used to change
anything, at this hub or elsewhere. And what renews a sign-in lies in a cookie that no script can
read, bound to the tab that it was made for. Sealed is: encrypted and authenticated, by a key that
is derived from a secret of the hub; its replicas share that secret where they share an authority.
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

LOOK_ONLY = "look-only."  # what such a token begins with; no other token does
_TOKEN, _RENEWAL = b"token", b"renewal"
_NONCE_BYTES = 12
_TEXT_MOST = 64 << 10


class Renewal(msgspec.Struct, frozen=True, kw_only=True):
    """How a sign-in is renewed, and for whom."""

    refresh_token: str
    subject: str
    tab: str  # a digest of what the tab alone knows
    is_look_only: bool = False


class Sealing:
    """Seals and opens; the secret is read when it is first needed."""

    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._secret = secret
        self._made: AESGCM | None = None

    def seal_token(self, token: str) -> str:
        """A token that stands for another, for looking only."""
        return LOOK_ONLY + self._seal(token.encode(), _TOKEN)

    def open_token(self, sealed: str) -> str | None:
        """The token within; None for what was not sealed here."""
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
