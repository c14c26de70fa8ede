"""`fairway logs`: the output of a workload's pods."""

from __future__ import annotations

import math

import click

from fairway.api.errors import NotFound
from fairway.cli import workloads
from fairway.cli.commands import Command
from fairway.cli.completion import complete_workloads
from fairway.cli.conditions import Vanished, wait_for
from fairway.cli.options import Duration
from fairway.cli.output import Source, copy
from fairway.cli.session import Failure, Session, current, say
from fairway.cli.targets import Target
from fairway.client.asynchronous import WORKLOADS
from fairway.client.wire import Object

EXAMPLES = """
    fairway logs train                         all its pods, each after the other
    fairway logs -f job/train                  as it comes, until it ends
    fairway logs train --pod train-0 --tail 20   the end of one pod's output
    fairway logs train --since 5m --prefix     what was said lately, and by whom
    fairway logs train --previous              the run before a restart
"""


class _Started:
    """A program has started, so there may be output."""

    def is_reached(self, obj: Object | None) -> bool:
        if obj is None:
            raise Vanished
        return workloads.phase_of(obj) in workloads.STARTED


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("word", metavar="WORKLOAD", shell_complete=complete_workloads)
@click.option("-f", "--follow", is_flag=True, help="Follow the output until it ends.")
@click.option("--pod", default="", metavar="NAME", help="Only this pod.")
@click.option("-c", "--container", default="", metavar="NAME", help="Container.")
@click.option(
    "--cluster", default="", metavar="NAME", help="Cluster; default: wherever it runs or ran."
)
@click.option(
    "--tail",
    type=click.IntRange(min=-1),
    default=-1,
    metavar="N",
    help="Number of last lines to show.",
)
@click.option("--since", type=Duration(), metavar="TIME", help="No older than 90s, 5m or 1h.")
@click.option("-p", "--previous", is_flag=True, help="Output of the run before the last restart.")
@click.option(
    "--all-pods/--first-pod", "every", default=True, help="All pods (the default), or one."
)
@click.option("--prefix/--no-prefix", default=None, help="Whether lines begin with their pod.")
def logs(  # noqa: PLR0913 - one parameter for each option
    *,
    word: str,
    follow: bool,
    pod: str,
    container: str,
    cluster: str,
    tail: int,
    since: float | None,
    previous: bool,
    every: bool,
    prefix: bool | None,
) -> int:
    """Print the output of a workload's pods.

    WORKLOAD is a workload, or the native object that it stands for, such as job/train. Output of
    several pods begins each line with the pod's name. That of a finished workload is kept until
    the workload is removed.
    """
    session = current()
    query = {"container": container} if container else {}
    if tail >= 0:
        query["tailLines"] = str(tail)
    if since is not None:
        query["sinceSeconds"] = str(max(math.ceil(since), 0))
    if previous:
        query["previous"] = "true"
    workload = workloads.find(session, word)
    if follow and not previous and workloads.phase_of(workload) not in workloads.STARTED:
        say(f"{workloads.name_of(workload)} {workloads.line(workload)}")
        wait_for(session, _target(session, workload), _Started(), None)
        workload = workloads.find(session, word)
    source = Source(
        client=session.client.asynchronous,
        workload=workload,
        cluster=cluster,
        pod=pod,
        is_every_pod=every,
        has_prefix=prefix,
        query=query,
    )
    try:
        session.client.loop.run(copy(source, follow=follow))
    except NotFound as error:
        raise Failure(error.message) from error
    return 0


def _target(session: Session, workload: Object) -> Target:
    return Target(
        served=session.client.resolve(WORKLOADS),
        name=workloads.name_of(workload),
        namespace=workload["metadata"]["namespace"],
    )
