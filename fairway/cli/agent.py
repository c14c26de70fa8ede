"""`fairway agent`: manages one cluster, for a hub that cannot reach it."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairway.cli.commands import Command
from fairway.cli.session import Failure, current, say

if TYPE_CHECKING:
    from fairway.app.agent_process import PullOptions

EXAMPLES = """
    fairway agent --join fwj1.…                    as `fairway join --pull` printed it
    fairway agent                                  again, after it has joined
    fairway agent --join @/run/secrets/invitation --data /var/lib/fairway-agent
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.option(
    "--join",
    "given",
    default="",
    envvar="FAIRWAY_JOIN",
    metavar="INVITATION",
    help="The invitation, or @FILE that holds it; not needed once it has joined.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    envvar="FAIRWAY_AGENT_DATA",
    metavar="FOLDER",
    help="Folder for the credential and the state of works.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How to write the log.",
)
def agent(*, given: str, data: Path | None, log_format: str) -> int:
    """Run the agent of a cluster that the hub cannot reach, inside it or near it.

    The cluster is the one of the pod's own account, or that --kubeconfig and --context name.
    """
    from fairway.agent.join.hub_side import Refused  # noqa: PLC0415 - starts fast without it
    from fairway.agent.join.invitations import BadInvitation, read  # noqa: PLC0415 - as above
    from fairway.app.agent_process import PullOptions  # noqa: PLC0415 - as above
    from fairway.client.kubeconfig import data_home  # noqa: PLC0415 - as above
    from fairway.hub.on_kubernetes import OnKubernetes  # noqa: PLC0415 - as above
    from fairway.server import logs  # noqa: PLC0415 - as above
    from fairway.server.access.private_files import RefusedFile  # noqa: PLC0415 - as above

    logs.configure("json" if log_format == "json" else "text", level="INFO")
    session = current()
    try:
        options = PullOptions(
            data=(data or data_home() / "agent").absolute(),
            invitation=read(_text(given)) if given else None,
            cluster=OnKubernetes(kubeconfig=session.kubeconfig, context=session.context),
            tell=say,
        )
        asyncio.run(_run(options))
    except (Refused, BadInvitation, RefusedFile) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot use {error.filename}: {error.strerror}") from error
    return 0


def _text(given: str) -> str:
    return Path(given[1:]).read_text() if given.startswith("@") else given


async def _run(options: PullOptions) -> None:
    """Runs until the process is told to stop; the pods of works keep running."""
    from fairway.app.agent_process import run_agent  # noqa: PLC0415 - see above

    running = asyncio.ensure_future(run_agent(options))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel)
    with suppress(asyncio.CancelledError):
        await running
