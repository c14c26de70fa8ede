"""`fairway accept`: the second half of joining by pull, run by an administrator."""

from __future__ import annotations

import asyncio

import click

from fairway.agent.join import hub_side
from fairway.cli import terminal
from fairway.cli.cluster_survey import open_api
from fairway.cli.commands import Command
from fairway.cli.completion import complete_clusters
from fairway.cli.session import Failure, current, say
from fairway.client.access import Access

EXAMPLES = """
    fairway accept edge-7                                      shows who asks, then asks you
    fairway accept edge-7 --fingerprint 3f0a-91cc-e2d4-7b55    without a question
    fairway accept edge-7 --mode Manage                        and let the hub act there
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("name", metavar="CLUSTER", shell_complete=complete_clusters)
@click.option(
    "--fingerprint", default="", metavar="KEY", help="Accept only an agent with this key."
)
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--mode",
    type=click.Choice(["Observe", "Shadow", "Manage"]),
    default=None,
    help="What the hub may do there from now on; else as it is.",
)
def accept(*, name: str, fingerprint: str, is_sure: bool, mode: str | None) -> int:
    """Accept a cluster whose agent asks to join.

    Compare the key with the one that the agent shows: another agent may have the invitation.
    """
    try:
        asyncio.run(
            _accept(current().find_access(), name, fingerprint, is_sure=is_sure, mode=mode or "")
        )
    except hub_side.Refused as error:
        raise Failure(str(error)) from error
    return 0


async def _accept(access: Access, name: str, fingerprint: str, *, is_sure: bool, mode: str) -> None:
    async with open_api(access) as hub:
        request = await hub_side.join_request(hub, name)
        if request is None:
            if not await hub_side.trust(hub, name, mode=mode):
                raise Failure(f"no agent has asked to join as {name} yet: start it first")
            terminal.write([f"cluster.fairway.dev/{name} accepted"])
            return
        asking = f"{request.host or 'An agent'} asks to join as {name}"
        said = f"{asking} with the key {request.fingerprint}"
        say(f"{said} (version {request.version}, since {request.asked_at}).")
        if fingerprint and fingerprint != request.fingerprint:
            raise Failure(f"that is not the key {fingerprint}: nothing was accepted")
        if not fingerprint and not is_sure:
            click.confirm("Is that the key that your agent shows?", abort=True, err=True)
        await hub_side.accept(hub, name, request, mode=mode)
        terminal.write([f"cluster.fairway.dev/{name} accepted"])
