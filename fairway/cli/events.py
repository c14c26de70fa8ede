"""`fairway events`: what happened, in order."""

from __future__ import annotations

import click

from fairway.cli import ages, options, render_objects, render_table
from fairway.cli.commands import Command
from fairway.cli.render_table import Grid
from fairway.cli.session import Failure, Session, current, say
from fairway.cli.targets import parse
from fairway.client.wire import Object, Scope

HEADINGS = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
EXAMPLES = """
    fairway events                        those of your namespace
    fairway events --for workload/train   about one object
    fairway events -A --types=Warning -w  warnings everywhere, as they come
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.option(
    "--for", "about", default="", metavar="KIND/NAME", help="Only events about this object."
)
@click.option("--types", default="", metavar="TYPES", help="Normal, Warning, or both.")
@click.option("-w", "--watch", is_flag=True, help="Keep showing events until interrupted.")
@options.all_namespaces
@options.output()
@click.option("--no-headers", is_flag=True, help="Leave out the headings.")
def events(
    *, about: str, types: str, watch: bool, all_namespaces: bool, output: str, no_headers: bool
) -> int:
    """List events, newest last."""
    session = current()
    wanted = {word.strip().lower() for word in types.split(",") if word.strip()}
    if wanted - {"normal", "warning"}:
        raise Failure("--types takes Normal, Warning, or both")
    scope = Scope(
        namespace=None if all_namespaces else session.namespace,
        fields=_fields(session, about),
    )
    if watch:
        return _watch(session, scope, wanted, with_headings=not no_headers)
    result = [
        entry for entry in session.client.list("events.v1", scope=scope).items if _is(entry, wanted)
    ]
    result.sort(key=last_seen)
    if output in {"json", "yaml"} or output.startswith("jsonpath="):
        shown = [render_objects.without_managed_fields(entry) for entry in result]
        click.echo(render_objects.render(output, shown, is_single=False))
        return 0
    if not result:
        say("No events found" + (f" in {scope.namespace} namespace." if scope.namespace else "."))
        return 0
    grid = as_grid(result, with_namespace=all_namespaces)
    render_table.show(grid, with_headings=not no_headers)
    return 0


def about_object(uid: str, kind: str, name: str) -> str:
    """The field selector for events about one object."""
    parts = {"involvedObject.kind": kind, "involvedObject.name": name, "involvedObject.uid": uid}
    return ",".join(f"{key}={value}" for key, value in parts.items() if value)


def as_grid(items: list[Object], *, with_namespace: bool = False) -> Grid:
    rows = [_row(entry, with_namespace) for entry in items]
    return Grid([*(["NAMESPACE"] if with_namespace else []), *HEADINGS], rows)


def last_seen(event: Object) -> str:
    """When it last happened; the two events APIs use different fields."""
    series = event.get("series") or {}
    stamps = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return next((stamp for stamp in stamps if stamp), "")


def _row(event: Object, with_namespace: bool) -> list[str]:
    about = event.get("involvedObject") or {}
    count = event.get("count") or (event.get("series") or {}).get("count") or 1
    age = ages.since(last_seen(event))
    row = [
        f"{age} (x{count})" if count > 1 else age,
        str(event.get("type") or ""),
        str(event.get("reason") or ""),
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        " ".join(str(event.get("message") or "").split()),
    ]
    return [str(event["metadata"].get("namespace", "")), *row] if with_namespace else row


def _fields(session: Session, about: str) -> str:
    if not about:
        return ""
    targets = parse(session, [about])
    if not targets[0].name:
        raise Failure("--for takes one object, as KIND/NAME")
    return about_object("", targets[0].served.kind, targets[0].name)


def _is(event: Object, wanted: set[str]) -> bool:
    return not wanted or str(event.get("type", "")).lower() in wanted


def _watch(session: Session, scope: Scope, wanted: set[str], *, with_headings: bool) -> int:
    present: list[Object] | None = []
    printer, is_first = render_table.Printer(), True
    for change in session.client.watch("events.v1", scope=scope):
        if change.type == "BOOKMARK":
            ready = sorted(present or (), key=last_seen)
            present = None
        elif change.type == "DELETED" or not _is(change.object, wanted):
            continue
        elif present is not None:
            present.append(change.object)
            continue
        else:
            ready = [change.object]
        if ready:
            grid = as_grid(ready, with_namespace=scope.namespace is None)
            printer.show(grid, with_headings=with_headings and is_first)
            is_first = False
    return 0
