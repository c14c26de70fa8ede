"""`fairway describe`: all about an object that a person wants to see, with its events."""

from __future__ import annotations

import click

from fairway.api.errors import ApiError, NotFound
from fairway.cli import options, terminal
from fairway.cli.commands import Command
from fairway.cli.completion import complete_targets
from fairway.cli.events import about_object
from fairway.cli.render_describe import lines
from fairway.cli.session import Session, current, say
from fairway.cli.targets import Target, find_targets, from_files, parse
from fairway.client.errors import UnknownKind
from fairway.client.wire import Object, Scope

EXAMPLES = """
    fairway describe workload train      one object
    fairway describe queues              all of a kind
    fairway describe wl -l team=vision   by label
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("words", nargs=-1, metavar="KIND [NAME]...", shell_complete=complete_targets)
@options.files
@options.recursive
@options.selector
@options.all_namespaces
@click.option("--show-events/--no-show-events", default=True, help="With events (the default).")
def describe(
    *,
    words: tuple[str, ...],
    filenames: tuple[str, ...],
    recursive: bool,
    selector: str,
    all_namespaces: bool,
    show_events: bool,
) -> int:
    """Show one object in full, with its conditions and events."""
    session = current()
    targets = from_files(session, filenames, recursive) if filenames else parse(session, words)
    if all_namespaces:
        targets = [Target(served=target.served, name=target.name) for target in targets]
    result = find_targets(session, targets, labels=selector)
    if not result:
        say("No resources found")
        return 0
    failures = 0
    is_first = True
    for target in result:
        try:
            obj = session.client.get(target.served, target.name, namespace=target.namespace)
        except NotFound as error:
            say(f"Error from server ({error.reason}): {error.message}")
            failures += 1
            continue
        happened = _events(session, obj) if show_events else []
        terminal.write([*([] if is_first else ["", ""]), *lines(obj, happened)])
        is_first = False
    return 1 if failures else 0


def _events(session: Session, obj: Object) -> list[Object]:
    """Events about an object; without permission to read them, none."""
    metadata = obj["metadata"]
    fields = about_object(str(metadata.get("uid", "")), obj["kind"], metadata["name"])
    scope = Scope(namespace=metadata.get("namespace"), fields=fields)
    try:
        return session.client.list("events.v1", scope=scope).items
    except (ApiError, UnknownKind):
        return []
