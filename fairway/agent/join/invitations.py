"""An invitation: all that an agent needs to find its hub and ask to join, as one text to paste."""

from __future__ import annotations

import base64
import binascii
import hashlib

import msgspec

from fairway.client.access import Access

_BEGINNING = "fwj1."  # makes invitations recognizable, and versions the format
_LENGTH_MOST = 64 << 10


class BadInvitation(ValueError):
    """A text that is not an invitation."""


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """The hub's address and CA, the cluster, and the token to ask with."""

    server: str
    cluster: str
    token: str
    authority: str = ""  # PEM; empty: the CAs of the system
    tls_server_name: str = ""
    streams: str = ""  # where the hub accepts streams, if not at `server`
    streams_authority: str = ""  # as above

    def text(self) -> str:
        encoded = base64.urlsafe_b64encode(msgspec.json.encode(self)).decode()
        return _BEGINNING + encoded.rstrip("=")

    def digest(self) -> str:
        """Identifies the invitation without revealing its content."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    def access(self) -> Access:
        """Access to the hub with the invitation's token."""
        return Access(
            server=self.server,
            source="the invitation",
            authority=self.authority.encode(),
            tls_server_name=self.tls_server_name,
            token=self.token,
        )


def read(text: str) -> Invitation:
    """Parses an invitation."""
    text = "".join(text.split())
    if not text.startswith(_BEGINNING) or len(text) > _LENGTH_MOST:
        raise BadInvitation(f"this is no invitation: one begins with {_BEGINNING}")
    encoded = text.removeprefix(_BEGINNING)
    try:
        content = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        invitation = msgspec.json.decode(content, type=Invitation)
    except (binascii.Error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadInvitation("this invitation is cut or altered: copy it whole") from error
    if not invitation.server.startswith("https://"):
        raise BadInvitation("this invitation names no server that is reached by HTTPS")
    return invitation
