"""A path of a webhook that only an API server is told.

API servers do not authenticate to webhooks unless their own start options say so. So the path ends
with a word derived from a secret of the hub, and does not exist for a caller without the word. The
leader writes the path into the server's configuration; replicas that share a secret share the word.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from fairway.server.wire.exchange import Request


class SecretPath:
    """One webhook's path; the words of two webhooks do not reveal each other."""

    def __init__(self, prefix: str, *, purpose: str, secret: Callable[[], bytes]) -> None:
        self._prefix = prefix
        self._purpose = purpose.encode()
        self._secret = secret

    def path(self) -> str:
        return self._prefix + hmac.new(self._secret(), self._purpose, hashlib.sha256).hexdigest()

    def is_asked(self, request: Request) -> bool:
        """Whether a request is a question at this path."""
        if request.method != "POST" or not request.path.startswith(self._prefix):
            return False
        return hmac.compare_digest(request.path.encode(), self.path().encode())
