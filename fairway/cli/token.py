"""`fairway token`: the token to paste into the sign-in of the hub's page."""

from __future__ import annotations

import click

from fairway.cli.commands import Command
from fairway.cli.session import Failure, current
from fairway.client.credentials import Credentials
from fairway.clock import SystemClock

EXAMPLES = """
    fairway token                      of the context in use
    fairway token --context staging    of another one
"""


@click.command(cls=Command, examples=EXAMPLES)
def token() -> int:
    """Print the bearer token of your kubeconfig, to sign in to the page with.

    Anyone who has it can act as you: paste it into the page and nowhere else.
    """
    session = current()
    credentials = Credentials(session.client.access, SystemClock())
    identity = session.client.loop.run(credentials.current())
    if not identity.token:
        raise Failure("this context has no token; the page is signed in to with one")
    click.echo(identity.token)
    return 0
