"""Values on disk, encrypted with keys that are kept elsewhere.

A sealed value says which key opens it, and opens only at the place that it was sealed for: moved
to another object or another version, it is refused. Each process derives a key of its own from the
configured one, with a random salt, and counts nonces: no nonce is used twice, however many values
are sealed. The cipher is AES-256-GCM.

    0  S  1 | key id (8) | salt (16) | nonce (12) | ciphertext and tag
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Iterable, Sequence
from itertools import count

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fairway.api.errors import InternalError

MARK = b"\0S1"  # no JSON text begins with it
KEY_BYTES = 32
HEAD_BYTES = len(MARK) + 8
_SALT_BYTES, _NONCE_BYTES = 16, 12
_SALT_END = HEAD_BYTES + _SALT_BYTES
_NONCE_END = _SALT_END + _NONCE_BYTES


class KeyFault(InternalError):
    """A key that is missing, malformed, or not the one that a value was sealed with."""


class Keyring:
    """Seals with the first key, and opens with any."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys: dict[bytes, bytes] = {}  # by id
        self._opening: dict[bytes, AESGCM] = {}  # by id and salt
        self.use(keys)

    def use(self, keys: Sequence[bytes]) -> None:
        """Seals with the first of these keys from now on; those known before still open."""
        if not keys:
            raise KeyFault("there is no key")
        self._keys |= {_id_of(key): key for key in keys}
        current = _id_of(keys[0])
        salt = secrets.token_bytes(_SALT_BYTES)
        # Replaced as a whole: another thread may be sealing.
        self._sealing = (MARK + current + salt, self._cipher(current, salt), count())

    @property
    def current(self) -> str:
        """The id of the key that seals."""
        return self.head.removeprefix(MARK).hex()

    @property
    def head(self) -> bytes:
        """How every value begins that is sealed with the current key."""
        return self._sealing[0][:HEAD_BYTES]

    def seal(self, value: bytes, *place: str) -> bytes:
        head, cipher, numbers = self._sealing
        nonce = next(numbers).to_bytes(_NONCE_BYTES)
        return head + nonce + cipher.encrypt(nonce, value, _bound_to(place))

    def open(self, sealed: bytes, *place: str) -> bytes:
        """The value that was sealed for a place; raises KeyFault for any other."""
        if not is_sealed(sealed):
            raise KeyFault(f"{_named(place)} is not encrypted, as everything else is")
        head = sealed[len(MARK) : _SALT_END]
        cipher = self._opening.get(head)
        if cipher is None:
            self.check([head[:8]])
            cipher = self._opening[head] = self._cipher(head[:8], head[8:])
        try:
            return cipher.decrypt(
                sealed[_SALT_END:_NONCE_END], sealed[_NONCE_END:], _bound_to(place)
            )
        except (InvalidTag, ValueError) as fault:
            raise KeyFault(f"{_named(place)} was changed, or belongs elsewhere") from fault

    def check(self, ids: Iterable[bytes]) -> None:
        """Raises KeyFault if values are sealed with keys that are not here."""
        missing = sorted(key.hex() for key in ids if key not in self._keys)
        if missing:
            known = ", ".join(sorted(key.hex() for key in self._keys))
            raise KeyFault(
                f"it is encrypted with the key {', '.join(missing)}, which was not given"
                f" (given: {known})"
            )

    def _cipher(self, key_id: bytes, salt: bytes) -> AESGCM:
        derived = HKDF(hashes.SHA256(), KEY_BYTES, salt=salt, info=b"fairway at rest")
        return AESGCM(derived.derive(self._keys[key_id]))


def is_sealed(value: bytes) -> bool:
    return value.startswith(MARK)


def key_id(sealed: bytes) -> bytes:
    """The id of the key that opens a sealed value."""
    return sealed[len(MARK) : HEAD_BYTES]


def keys_of(text: str, source: str) -> list[bytes]:
    """Keys as base64 of 32 bytes, one in a line; the first one seals."""
    keys: list[bytes] = []
    for number, word in enumerate(text.split(), 1):
        try:
            key = base64.b64decode(word, validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise KeyFault(f"key {number} of {source} is not {KEY_BYTES} bytes in base64")
        keys.append(key)
    if not keys:
        raise KeyFault(f"{source} holds no key")
    return keys


def _id_of(key: bytes) -> bytes:
    return HKDF(hashes.SHA256(), 8, salt=None, info=b"fairway key id").derive(key)


def _bound_to(place: tuple[str, ...]) -> bytes:
    return "\0".join(place).encode()


def _named(place: tuple[str, ...]) -> str:
    return "/".join(part for part in place if part)
