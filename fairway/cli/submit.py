"""`fairway submit`: submits native objects or workloads to a queue, and waits on request."""

from __future__ import annotations

import time

import click

from fairway.cli import follow, options, render_objects, terminal, workloads
from fairway.cli.commands import Command
from fairway.cli.completion import complete_queues
from fairway.cli.manifests import read_files
from fairway.cli.options import Duration
from fairway.cli.session import current, say
from fairway.cli.submission import Submitted, Wish, await_workload
from fairway.cli.submission import submit as submit_objects

EXAMPLES = """
    fairway submit job.yaml --queue research           a Job, PyTorchJob, Deployment, ...
    fairway submit train.yaml -q research --wait       until it has succeeded or failed
    fairway submit train.yaml -q research --follow     the same, with its output
    fairway submit workload.yaml                       a Workload that names its queue itself
    cat job.yaml | fairway submit - -q research        the standard input
"""


@click.command(cls=Command, examples=EXAMPLES, misuse_code=2)
@click.argument("words", nargs=-1, metavar="FILE...", type=click.Path())
@options.files
@options.recursive
@click.option(
    "-q",
    "--queue",
    default="",
    metavar="QUEUE",
    shell_complete=complete_queues,
    help="Queue to submit to.",
)
@click.option("--priority", type=int, metavar="N", help="Priority; higher goes first.")
@click.option("--policy", default="", metavar="NAME", help="Placement policy.")
@click.option("-w", "--wait", is_flag=True, help="Wait until all have ended.")
@click.option("--follow", is_flag=True, help="Wait, and show the output meanwhile.")
@click.option(
    "--timeout", type=Duration(), metavar="TIME", help="Wait no longer than 90s, 5m or 1h."
)
@options.dry_run
@options.output("")
def submit(  # noqa: PLR0913 - one parameter for each option
    *,
    words: tuple[str, ...],
    filenames: tuple[str, ...],
    recursive: bool,
    queue: str,
    priority: int | None,
    policy: str,
    wait: bool,
    follow: bool,
    timeout: float | None,
    dry_run: str,
    output: str,
) -> int:
    """Submit workloads: native objects of any known kind, or Workloads.

    A native object is made on the hub with its queue as a label; the workload that stands for it
    is named after its kind and name, such as job-train. If the hub does not serve the kind, the
    object is wrapped in a Workload. Other objects in the files, such as a ConfigMap, are applied
    first.

    With --wait the exit code is 0 if all succeeded, 1 if one failed or was cancelled, 124 if it
    took longer than --timeout. What runs goes on if you interrupt the wait.
    """
    if not words and not filenames:
        raise click.UsageError("Say which files.")
    session = current()
    is_dry = dry_run == "server"
    objects = read_files([*words, *filenames], recursive=recursive)
    wish = Wish(queue=queue, priority=priority, policy=policy, is_dry=is_dry)
    made = submit_objects(session, objects, wish)
    _show(made, output, is_dry=is_dry)
    if is_dry or not (wait or follow):
        return 0
    return _wait(made, timeout, with_logs=follow)


def _show(made: list[Submitted], output: str, *, is_dry: bool) -> None:
    if output == "name":
        terminal.write([submitted.label for submitted in made])
    elif output not in {"", "table", "wide"}:
        shown = [render_objects.without_managed_fields(submitted.object) for submitted in made]
        click.echo(render_objects.render(output, shown, is_single=len(made) == 1))
    else:
        for submitted in made:
            where = f" to queue {submitted.queue}" if submitted.queue else ""
            is_other = submitted.workload and not submitted.label.endswith(f"/{submitted.workload}")
            who = f", as workload {submitted.workload}" if is_other else ""
            dry = " (server dry run)" if is_dry else ""
            terminal.write([f"{submitted.label} {submitted.verb}{where}{who}{dry}"])


def _wait(made: list[Submitted], seconds: float | None, *, with_logs: bool) -> int:
    session = current()
    deadline = None if seconds is None else time.monotonic() + seconds
    try:
        result = [
            await_workload(session, submitted, _left(deadline))
            for submitted in made
            if submitted.workload
        ]
        wish = follow.Wish(seconds=_left(deadline), with_logs=with_logs)
        ended = follow.follow(session, result, wish)
    except TimeoutError:
        say("error: timed out; it goes on by itself")
        return workloads.TIMED_OUT
    return max(map(workloads.exit_code, ended), default=0)


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.001)
