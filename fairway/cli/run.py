"""`fairway run`: runs a command wherever there is room, as if it ran here."""

from __future__ import annotations

import ipaddress
import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from fairway.api.errors import AlreadyExists
from fairway.cli import follow, options, render_objects, terminal, workloads
from fairway.cli.commands import Command
from fairway.cli.completion import complete_queues
from fairway.cli.options import Duration
from fairway.cli.run_manifests import Program, made_name, workload
from fairway.cli.session import Failure, Session, current, say
from fairway.client.asynchronous import WORKLOADS
from fairway.client.wire import Object

EXAMPLES = """
    fairway run -q research --gpus 2 -- python train.py     its output comes here
    fairway run -q research --gpus 8 --workers 4 -- torchrun train.py
    fairway run -q research --cpus 4 --memory 8Gi --env SEED=7 -- ./simulate
    fairway run -q research --name nightly --detach -- ./nightly.sh
"""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@click.command(
    cls=Command,
    examples=EXAMPLES,
    misuse_code=2,
    # Options after the first word of the command belong to the command.
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, metavar="-- COMMAND...", type=click.UNPROCESSED)
@click.option(
    "-q",
    "--queue",
    default="",
    metavar="QUEUE",
    shell_complete=complete_queues,
    help="Queue to submit to.",
)
@click.option(
    "--name", default="", metavar="NAME", help="Name of the workload; default: generated."
)
@click.option(
    "--gpus", type=click.IntRange(min=0), default=0, metavar="N", help="GPUs of each worker."
)
@click.option("--cpus", default="1", show_default=True, metavar="N", help="CPUs of each worker.")
@click.option("--memory", default="", metavar="SIZE", help="Memory of each worker, such as 16Gi.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    metavar="K",
    help="How many; they start together and find each other by RANK, WORLD_SIZE, MASTER_ADDR, ...",
)
@click.option(
    "--image",
    default="python:3",
    show_default=True,
    metavar="IMAGE",
    help="Container image; a local cluster needs none.",
)
@click.option(
    "-e", "--env", "pairs", multiple=True, metavar="KEY=VALUE", help="Environment variable."
)
@click.option(
    "--workdir",
    default=None,
    metavar="FOLDER",
    help="Working directory; default: the current one, if the hub is on this machine.",
)
@click.option("--flavor", "flavors", multiple=True, metavar="NAME", help="Accept this flavor.")
@click.option("--priority", type=int, metavar="N", help="Priority; higher goes first.")
@click.option("--policy", default="", metavar="NAME", help="Placement policy.")
@click.option("--time-limit", type=Duration(), metavar="TIME", help="Stop it after this time.")
@click.option("-d", "--detach", is_flag=True, help="Return at once, and print its name.")
@click.option("--quiet", is_flag=True, help="Show its output, and nothing else.")
@click.option("--rm", "removes", is_flag=True, help="Remove the workload once it has ended.")
@options.dry_run
@options.output("")
def run(  # noqa: PLR0913 - one parameter for each option
    *,
    command: tuple[str, ...],
    queue: str,
    name: str,
    gpus: int,
    cpus: str,
    memory: str,
    workers: int,
    image: str,
    pairs: tuple[str, ...],
    workdir: str | None,
    flavors: tuple[str, ...],
    priority: int | None,
    policy: str,
    time_limit: float | None,
    detach: bool,
    quiet: bool,
    removes: bool,
    dry_run: str,
    output: str,
) -> int:
    """Run a command on the fleet.

    It waits for its turn, runs where there is room, shows its output here, and returns the exit
    code of the command. Ctrl-C asks whether to cancel it; if you say no, or without a terminal
    after --detach, it goes on by itself and `fairway logs -f NAME` shows its output again.
    """
    if not command:
        raise click.UsageError("Say what to run, after --.")
    session = current()
    program = Program(
        name=name or made_name(command),
        namespace=session.namespace,
        command=command,
        image=image,
        queue=queue,
        gpus=str(gpus) if gpus else "",
        cpus=cpus,
        memory=memory,
        workers=workers,
        environment=_environment(pairs),
        folder=_folder(session, workdir),
        priority=priority,
        policy=policy,
        flavors=flavors,
        run_seconds_limit=int(time_limit) if time_limit else None,
    )
    made = _create(session, workload(program), is_dry=dry_run == "server")
    if output or detach or dry_run == "server":
        _show(made, output)
    if detach or dry_run == "server":
        return 0
    return _attend(session, made, is_quiet=quiet, removes=removes)


def _create(session: Session, body: Object, *, is_dry: bool) -> Object:
    try:
        return session.client.create(body, dry_run=is_dry)
    except AlreadyExists as error:
        raise Failure(f"{error.message}: choose another --name") from error


def _show(made: Object, output: str) -> None:
    if output in {"json", "yaml"} or output.startswith("jsonpath="):
        shown = render_objects.without_managed_fields(made)
        click.echo(render_objects.render(output, [shown], is_single=True))
    else:
        terminal.write([f"workload.fairway.dev/{workloads.name_of(made)}"])


def _attend(session: Session, made: Object, *, is_quiet: bool, removes: bool) -> int:
    name = workloads.name_of(made)
    wish = follow.Wish(with_logs=True, is_quiet=is_quiet)
    try:
        ended = follow.follow(session, [made], wish)[0]
    except KeyboardInterrupt:
        return _interrupt(session, made)
    if removes:
        session.client.delete(WORKLOADS, name, namespace=made["metadata"]["namespace"])
    return workloads.exit_code(ended, of_program=True)


def _interrupt(session: Session, made: Object) -> int:
    """Cancels it or lets it run, as the person chooses; a second interrupt means cancel."""
    name = workloads.name_of(made)
    say("")
    try:
        # Without a terminal there is no one to ask, so what was started here ends here.
        is_ended = not sys.stdin.isatty() or click.confirm(
            f"Cancel {name}?", default=True, err=True
        )
    except (KeyboardInterrupt, click.Abort):
        is_ended = True
    if is_ended:
        patch = {"spec": {"cancelled": True}}
        session.client.patch(WORKLOADS, name, patch, namespace=made["metadata"]["namespace"])
        say(f"{name} is cancelled")
    else:
        say(f"{name} goes on; `fairway logs -f {name}` shows its output")
    return workloads.INTERRUPTED


def _environment(pairs: tuple[str, ...]) -> dict[str, str]:
    environment = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not _VARIABLE.fullmatch(key):
            raise click.UsageError(f"--env: {pair!r} is not KEY=VALUE")
        environment[key] = value
    return environment


def _folder(session: Session, given: str | None) -> str:
    """The working directory; a hub on this machine may use the current one."""
    if given is not None:
        return given
    host = urlsplit(session.client.access.server).hostname or ""
    try:
        is_here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost"
    return str(Path.cwd()) if is_here else ""
