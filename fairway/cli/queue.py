"""`fairway queue`: the state of queues, and which workloads are next."""

from __future__ import annotations

import click

from fairway.cli import options, past, queue_tree, render_objects, render_table, terminal
from fairway.cli.commands import Command
from fairway.cli.completion import complete_queues
from fairway.cli.options import Duration
from fairway.cli.session import Failure, current, say
from fairway.client.wire import Object

EXAMPLES = """
    fairway queue                       all queues as a tree
    fairway queue research              one, with those below it and who waits there
    fairway queue research --last 12h   how it stood over the last hours
    fairway queue -o wide               with processors and memory too
    fairway queue -o json               for programs
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("name", default="", metavar="[QUEUE]", shell_complete=complete_queues)
@click.option(
    "--last",
    type=Duration(),
    metavar="TIME",
    help="Show how QUEUE was used over this time, up to 7d.",
)
@options.output()
@click.option("--no-headers", is_flag=True, help="Leave out the headings.")
def queue(*, name: str, last: float | None, output: str, no_headers: bool) -> int:
    """Show queues: what each owns, uses, borrows and lends, and what starts next.

    SHARE is the weighted share of what may be borrowed; the smaller goes first. NEXT is the
    first that waits in that very queue.
    """
    if last is not None:
        return _show_past(name, last, output, with_headings=not no_headers)
    queues = queue_tree.read(current())
    if name:
        queues = queue_tree.below(queues, name)
    if output == "name":
        terminal.write([f"queue.fairway.dev/{queue['queue']}" for queue in queues])
        return 0
    if output not in {"table", "wide"}:
        if output.startswith("jsonpath="):
            raise Failure("`fairway queue` prints a table, json, yaml or names")
        is_yaml = output == "yaml"
        whole: Object = {"queues": queues}
        click.echo(render_objects.render("yaml" if is_yaml else "json", [whole], is_single=True))
        return 0
    if not queues:
        say("No queues found")
        return 0
    grid = queue_tree.grid(queues, is_wide=output == "wide")
    render_table.show(grid, with_headings=not no_headers)
    if name:
        _show_line(queues[0])
    return 0


def _show_past(name: str, seconds: float, output: str, *, with_headings: bool) -> int:
    if not name:
        raise Failure("say whose: fairway queue QUEUE --last 12h")
    result = past.read(current(), name, seconds)
    if output in {"json", "yaml"}:
        click.echo(render_objects.render(output, [result], is_single=True))
        return 0
    terminal.write([past.title(result)])
    render_table.show(past.grid(result), with_headings=with_headings)
    return 0


def _show_line(entry: Object) -> None:
    """The workloads that wait in the queue itself, in order."""
    heads = entry.get("heads") or ()
    if heads:
        terminal.write(["", f"Next in {entry['queue']}:"])
        terminal.write([f"  {at}. {key}" for at, key in enumerate(heads, start=1)])
