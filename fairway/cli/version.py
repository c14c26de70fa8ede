"""`fairway version`."""

from __future__ import annotations

import click

from fairway import __version__
from fairway.api.errors import ApiError
from fairway.cli.commands import Command
from fairway.cli.session import current, say
from fairway.client.errors import ClientError


@click.command(cls=Command)
@click.option("--client", "only_client", is_flag=True, help="Do not ask the server.")
def version(*, only_client: bool) -> int:
    """Show the versions of this program and of the server."""
    click.echo(f"Client Version: {__version__}")
    if only_client:
        return 0
    session = current()
    try:
        answer = session.client.fetch("/version")
    except (ApiError, ClientError) as error:
        say(f"error: {error}")
        return 1
    click.echo(f"Server Version: {answer.get('gitVersion', 'unknown')}")
    return 0
