"""An invitation: all that an agent needs to find its hub and to ask, as one text to paste."""

from __future__ import annotations

import base64
import binascii
import hashlib

import msgspec

from fairway.client.access import Access

_BEGINNING = "fwj1."  # so that one is known when it is seen, and may change
_LENGTH_MOST = 64 << 10


class BadInvitation(ValueError):
    """A text that is no invitation."""


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """Where the hub is, who signed its certificate, which cluster, and the token to ask with."""

    server: str
    cluster: str
    token: str
    authority: str = ""  # PEM; empty: the system's own
    tls_server_name: str = ""
    streams: str = ""  # where the hub takes streams, if not there
    streams_authority: str = ""  # as above

    def text(self) -> str:
        encoded = base64.urlsafe_b64encode(msgspec.json.encode(self)).decode()
        return _BEGINNING + encoded.rstrip("=")

    def digest(self) -> str:
        """Which invitation it is, without what it holds."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    def access(self) -> Access:
        """The hub, as one who asks sees it."""
        return Access(
            server=self.server,
            source="the invitation",
            authority=self.authority.encode(),
            tls_server_name=self.tls_server_name,
            token=self.token,
        )


def read(text: str) -> Invitation:
    """The invitation in a text."""
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
