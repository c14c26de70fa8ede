"""From a bearer token to an identity.

There are two kinds of token: those of the file `tokens.csv` (Kubernetes' static token format) and
those signed for service accounts. Tokens are found by a digest keyed with a secret of this process,
so the time of a look-up reveals nothing about any token, and no token is kept in memory.

The file is checked at most once a second and read again when it changed. When a changed file cannot
be used, the last good tokens stay valid and the log says so: an editing mistake must not lock out
all users.
"""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import os
import secrets
from pathlib import Path

from fairway.clock import Clock, SystemClock
from fairway.server.access.identity import MASTERS, Identity, authenticated_identity
from fairway.server.access.private_files import RefusedFile, read_private, write_private
from fairway.server.access.service_accounts import ServiceAccountTokens, Verified

_log = logging.getLogger(__name__)

FILE_NAME = "tokens.csv"
_LOOK_SECONDS = 1.0
_CACHED_MAX = 4096


class Authenticator:
    """Finds the identity of a bearer token."""

    def __init__(
        self,
        directory: Path,
        service_accounts: ServiceAccountTokens | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._path = directory / FILE_NAME
        self._service_accounts = service_accounts
        self._clock = clock or SystemClock()
        self._key = secrets.token_bytes(32)
        self._verified: dict[bytes, Verified] = {}
        if not self._path.exists():
            _write_first(self._path)
        self._stamp = _stamp(self._path)
        self._identities = self._read()
        self._look_at = self._clock.now() + _LOOK_SECONDS

    def __repr__(self) -> str:
        return f"Authenticator({len(self._identities)} static tokens)"

    def authenticate(self, bearer: str) -> Identity | None:
        """The identity of a token; None for one that is unknown, expired or revoked."""
        now = self._clock.now()
        if now >= self._look_at:
            self._look(now)
        digest = self._digest(bearer)
        identity = self._identities.get(digest)
        if identity is not None or self._service_accounts is None:
            return identity
        verified = self._verified.get(digest)
        if verified is None:
            verified = self._service_accounts.verify(bearer)
            if verified is None:
                return None
            self._remember(digest, verified)
        if self._service_accounts.holds(verified, now):
            return verified.identity
        del self._verified[digest]
        return None

    def authenticate_for(
        self, bearer: str, audiences: tuple[str, ...]
    ) -> tuple[Identity, tuple[str, ...]] | None:
        """The identity of a token and the audiences in common, for a TokenReview."""
        now = self._clock.now()
        if now >= self._look_at:
            self._look(now)
        identity = self._identities.get(self._digest(bearer))
        if identity is not None:
            common = self.own_audiences(audiences)
            return (identity, common) if common else None
        if self._service_accounts is None:
            return None
        wanted = audiences or (self._service_accounts.issuer,)
        verified = self._service_accounts.verify(bearer, wanted)
        if verified is None or not self._service_accounts.holds(verified, now):
            return None
        return verified.identity, tuple(name for name in wanted if name in verified.audiences)

    def own_audiences(self, audiences: tuple[str, ...]) -> tuple[str, ...]:
        """The audiences of a token that names none: it is for this hub alone."""
        issuer = self._service_accounts.issuer if self._service_accounts else ""
        return tuple(audience for audience in audiences or (issuer,) if audience == issuer)

    def identities(self) -> list[Identity]:
        """Those that have a token in the file."""
        self._look(self._clock.now())
        return list(self._identities.values())

    def admin_token(self) -> str:
        """The first token in the file whose user is in `system:masters`, for the kubeconfig."""
        for token, identity in _parse(self._path, read_private(self._path)):
            if MASTERS in identity.groups:
                return token
        raise RefusedFile(f"{self._path} has no token of the group {MASTERS}")

    def _digest(self, token: str) -> bytes:
        encoded = token.encode(errors="surrogatepass")
        return hashlib.blake2b(encoded, digest_size=32, key=self._key).digest()

    def _remember(self, digest: bytes, verified: Verified) -> None:
        if len(self._verified) >= _CACHED_MAX:
            # The oldest is evicted; it is verified again at its next use, which is cheap.
            del self._verified[next(iter(self._verified))]
        self._verified[digest] = verified

    def _read(self) -> dict[bytes, Identity]:
        rows = _parse(self._path, read_private(self._path))
        return {self._digest(token): identity for token, identity in rows}

    def _look(self, now: float) -> None:
        self._look_at = now + _LOOK_SECONDS
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._identities = self._read()
        except (OSError, RefusedFile) as error:
            _log.warning("the changed token file is not used, the last good one is: %s", error)


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        result = os.stat(path)  # noqa: PTH116 - half the cost of Path.stat, on the way of requests
    except OSError:
        return None
    return result.st_mtime_ns, result.st_size, result.st_ino, result.st_mode


def _write_first(path: Path) -> None:
    token = secrets.token_urlsafe(32)
    write_private(path, f"{token},admin,admin,{MASTERS}\n".encode())


def _parse(path: Path, content: bytes) -> list[tuple[str, Identity]]:
    """The rows of a token file. Errors name the row and never show its content."""
    try:
        rows = list(csv.reader(io.StringIO(content.decode()), strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise RefusedFile(f"{path} is not a table of comma-separated values") from None
    parsed: list[tuple[str, Identity]] = []
    for number, row in enumerate(rows, start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) < 3 or not cells[0] or not cells[1]:
            raise RefusedFile(f'{path}, row {number}: expected token,user,uid,"group1,group2"')
        groups = cells[3].split(",") if len(cells) > 3 else []
        named = authenticated_identity(
            cells[1], uid=cells[2], groups=[group.strip() for group in groups]
        )
        parsed.append((cells[0], named))
    return parsed
