"""Errors of the client itself.

Error responses of a server are `fairway.api.errors.ApiError`. These are the others: the
configuration is unusable, the server does not answer, or it serves no such kind.
"""

from __future__ import annotations

from fairway.client.wire import Answer


class ClientError(Exception):
    """The call could not be made."""


class ConfigError(ClientError):
    """No usable kubeconfig, context or credential."""


class ConnectionFailed(ClientError):
    """No usable response from the server."""

    def __init__(self, server: str, why: str, *, is_refused: bool = False) -> None:
        super().__init__(f"cannot reach the server at {server}: {why}")
        self.server = server
        self.why = why
        self.is_refused = is_refused


class UpgradeRefused(ClientError):
    """The server answered, but did not upgrade to a two-way stream."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"the server opened no stream, and answered {answer.status}")
        self.answer = answer


class UnknownKind(ClientError):
    """The server serves no kind of that name."""
