"""`fairway pods`: the pods of a workload in all its clusters, as their agents see them."""

from __future__ import annotations

import click

from fairway.cli import options, render_objects, render_table, workloads
from fairway.cli.ages import since
from fairway.cli.commands import Command
from fairway.cli.completion import complete_workloads
from fairway.cli.render_table import Grid
from fairway.cli.session import Session, current, say
from fairway.client.asynchronous import WORKLOADS
from fairway.client.wire import Object

EXAMPLES = """
    fairway pods train                    all of them, cluster by cluster
    fairway pods train --cluster onprem   those of one cluster
    fairway pods train -o json            for programs
"""
HEADINGS = ["CLUSTER", "NAME", "STATE", "RESTARTS", "NODE", "SINCE", "MESSAGE"]
PAGE = 1_000


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("word", metavar="WORKLOAD", shell_complete=complete_workloads)
@click.option("--cluster", default="", metavar="NAME", help="Only pods in this cluster.")
@options.output()
@click.option("--no-headers", is_flag=True, help="Leave out the headings.")
def pods(*, word: str, cluster: str, output: str, no_headers: bool) -> int:
    """List the pods of a workload: where each is, what it does, and what is wrong with it."""
    session = current()
    workload = workloads.find(session, word)
    result = _ask(session, workload, cluster)
    if output not in {"table", "wide"}:
        click.echo(render_objects.render(output, [result], is_single=True))
        return 0
    for other in result["clusters"]:
        if "fault" in other:
            say(f"warning: pods in {other['cluster']} are missing: {other['fault']}")
    if result["pods"]:
        rows = [_row(pod) for pod in result["pods"]]
        render_table.show(Grid(HEADINGS, rows), with_headings=not no_headers)
    else:
        say(f"{workloads.name_of(workload)} has no pods")
    return 0


def _ask(session: Session, workload: Object, cluster: str) -> Object:
    """All pages in one; the clusters are those of the first page."""
    result: Object = {"clusters": [], "pods": []}
    query = {"limit": str(PAGE)} | ({"cluster": cluster} if cluster else {})
    name, namespace = workloads.name_of(workload), workload["metadata"]["namespace"]
    while True:
        page = session.client.ask(WORKLOADS, name, "pods", namespace=namespace, query=query)
        result["clusters"] = result["clusters"] or page["clusters"]
        result["pods"] += page["pods"]
        if not page.get("continue"):
            return result
        query = {**query, "continue": page["continue"]}


def _row(pod: Object) -> list[str]:
    said = [str(pod[key]) for key in ("reason", "message") if pod.get(key)]
    if pod.get("exitCode"):
        said.append(f"exit code {pod['exitCode']}")
    return [
        str(pod["cluster"]),
        str(pod["name"]),
        str(pod["phase"]),
        str(pod.get("restarts", 0)),
        str(pod.get("node") or "-"),
        since(pod.get("since")),
        ": ".join(said),
    ]
