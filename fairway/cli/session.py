"""What all commands of one run share: the server, the user, and the output settings.

The client is made when it is first needed, so that help, completion and offline commands start
fast and work without a server.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fairway.client import Client
    from fairway.client.access import Access


@dataclass(slots=True)
class Session:
    """The global options of one run, and the client they describe."""

    kubeconfig: str | None = None
    context: str = ""
    namespace_given: str = ""
    server_given: str = ""
    token_given: str = ""
    verbosity: int = 0
    _client: Client | None = None
    _stop_logging: Callable[[], None] | None = None
    _warned: set[str] = field(default_factory=set)

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = self._connect()
        return self._client

    @property
    def namespace(self) -> str:
        """The namespace if the command gives none: the option's, else the context's."""
        return self.namespace_given or self.client.access.namespace

    @property
    def source(self) -> str:
        """The file that named the server; empty before it was needed, or if an option did."""
        return "" if self._client is None or self.server_given else self._client.access.source

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._stop_logging is not None:
            self._stop_logging()
            self._stop_logging = None

    def _connect(self) -> Client:
        from fairway.client import Client  # noqa: PLC0415 - starts fast without the client

        if self.verbosity >= 6:
            self._stop_logging = log_requests()
        client = Client(self.find_access())
        client.asynchronous.tell_warnings(self._warn)
        return client

    def _warn(self, warning: str) -> None:
        """Shows the server's warnings, each once, as kubectl does."""
        if warning not in self._warned:
            self._warned.add(warning)
            say(f"Warning: {warning}")

    def find_access(self) -> Access:
        """Access to the server and as the user that the options name."""
        from dataclasses import replace  # noqa: PLC0415 - starts fast without the client

        from fairway.client import load_access  # noqa: PLC0415 - as above

        access = load_access(self.kubeconfig, context=self.context)
        if self.server_given:
            access = replace(access, server=self.server_given.rstrip("/"))
        if self.token_given:
            access = replace(access, token=self.token_given, token_file=None, exec_plugin=None)
        return access


def log_requests() -> Callable[[], None]:
    """Shows every request on standard error, until the returned function is called."""
    import logging  # noqa: PLC0415 - seldom wanted

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("fairway.client")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)

    def stop() -> None:
        logger.removeHandler(handler)
        logger.setLevel(level)

    return stop


def current() -> Session:
    """The session of the running command."""
    return click.get_current_context().ensure_object(Session)


def say(text: str) -> None:
    """A message for the person, on standard error, apart from the output."""
    click.echo(text, err=True)


class Failure(click.ClickException):
    """A command could not do what was asked; its message is the whole output."""

    exit_code = 1

    def show(self, file: object = None) -> None:
        say(f"error: {self.message}")
