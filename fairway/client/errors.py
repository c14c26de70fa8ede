"""What can go wrong before a server has answered.

A server's own refusals are `fairway.api.errors.ApiError`; these are the others: the configuration
is unusable, nobody answers, or the server serves no such kind.
"""

from __future__ import annotations

from fairway.client.wire import Answer


class ClientError(Exception):
    """The call could not be made."""


class ConfigError(ClientError):
    """No usable kubeconfig, context or credential."""


class ConnectionFailed(ClientError):
    """No answer from the server."""

    def __init__(self, server: str, why: str, *, is_refused: bool = False) -> None:
        super().__init__(f"cannot reach the server at {server}: {why}")
        self.server = server
        self.why = why
        self.is_refused = is_refused


class UpgradeRefused(ClientError):
    """The server answered, and opened no stream in both directions."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"the server opened no stream, and answered {answer.status}")
        self.answer = answer


class UnknownKind(ClientError):
    """The server serves nothing by that name."""
