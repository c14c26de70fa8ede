"""`fairway get`: objects as tables, YAML, JSON, names or values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

import click

from fairway.api.errors import Expired, NotFound
from fairway.cli import options, render_objects, render_table, server_tables, terminal
from fairway.cli.commands import Command
from fairway.cli.completion import complete_targets
from fairway.cli.server_tables import View
from fairway.cli.session import Failure, Session, current, say
from fairway.cli.targets import Target, from_files, parse
from fairway.client.catalogue import Served
from fairway.client.wire import Object, Scope
from fairway.schema import jsonpath

EXAMPLES = """
    fairway get workloads                     those of your namespace
    fairway get wl train -o yaml              one of them, whole
    fairway get queues,clusters               two kinds
    fairway get fairway -A                    all kinds of Fairway, everywhere
    fairway get pods -l app=web -w            watch
    fairway get wl -o jsonpath='{.items[*].metadata.name}'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the user wants to see of the targets."""

    form: str
    scope: Scope
    view: View
    sort_by: str
    with_headings: bool
    with_managed_fields: bool


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("words", nargs=-1, metavar="KIND [NAME]...", shell_complete=complete_targets)
@options.output()
@options.files
@options.recursive
@options.all_namespaces
@options.selector
@options.field_selector
@click.option("-w", "--watch", is_flag=True, help="Keep showing changes until interrupted.")
@click.option("--sort-by", default="", metavar="PATH", help="Order by a field: .metadata.name.")
@click.option("--show-labels", is_flag=True, help="Add a column with all labels.")
@click.option(
    "-L", "--label-columns", multiple=True, metavar="KEY", help="Show this label as a column."
)
@click.option("--no-headers", is_flag=True, help="Leave out the headings.")
@click.option("--show-managed-fields", is_flag=True, help="Show which manager owns each field.")
@click.option("--ignore-not-found", is_flag=True, help="Do not fail if an object is missing.")
def get(  # noqa: PLR0913 - one parameter for each option
    *,
    words: tuple[str, ...],
    output: str,
    filenames: tuple[str, ...],
    recursive: bool,
    all_namespaces: bool,
    selector: str,
    field_selector: str,
    watch: bool,
    sort_by: str,
    show_labels: bool,
    label_columns: tuple[str, ...],
    no_headers: bool,
    show_managed_fields: bool,
    ignore_not_found: bool,
) -> int:
    """Show objects.

    Name a kind to list all of it, or a kind and names; several kinds are separated by commas.
    `fairway api-resources` tells which kinds there are.
    """
    session = current()
    targets = from_files(session, filenames, recursive) if filenames else parse(session, words)
    if all_namespaces:
        if any(target.name for target in targets):
            raise Failure("a name cannot be looked for in every namespace")
        targets = [replace(target, namespace=None) for target in targets]
    wish = Wish(
        form=output,
        scope=Scope(labels=selector, fields=field_selector),
        view=View(
            is_wide=output == "wide",
            with_labels=show_labels,
            label_columns=[key for given in label_columns for key in given.split(",")],
        ),
        sort_by=sort_by,
        with_headings=not no_headers,
        with_managed_fields=show_managed_fields,
    )
    if watch:
        return _watch(session, targets, wish)
    if output in {"table", "wide"}:
        return _show_tables(session, targets, wish, ignore_not_found)
    return _show_objects(session, targets, wish, ignore_not_found)


def _show_tables(session: Session, targets: list[Target], wish: Wish, ignore: bool) -> int:
    kinds = list(dict.fromkeys(target.served for target in targets))
    shown, failed = 0, False
    for served in kinds:
        mine = [target for target in targets if target.served == served]
        table, problems = _table(session, mine, wish, ignore)
        failed = failed or problems
        if not table.get("rows"):
            continue
        if shown and wish.with_headings:
            terminal.write([""])
        view = replace(
            wish.view,
            with_namespace=served.namespaced and mine[0].namespace is None,
            name_prefix=f"{served.qualified_singular}/" if len(kinds) > 1 else "",
        )
        _sort_rows(table, wish.sort_by)
        render_table.show(server_tables.grid(table, view), with_headings=wish.with_headings)
        shown += 1
    if not shown and not failed and not ignore:
        say(_nothing(targets))
    return 1 if failed else 0


def _table(
    session: Session, targets: list[Target], wish: Wish, ignore: bool
) -> tuple[Object, bool]:
    """One table for several targets of a kind; and whether some could not be read."""
    served = targets[0].served
    if not targets[0].name:
        scope = _scope(targets[0], wish)
        # Sorting by any field needs the whole objects in the rows.
        return session.client.table(served, scope=scope, with_objects=bool(wish.sort_by)), False
    whole: Object = {}
    failed = False
    for target in targets:
        try:
            table = session.client.get(
                served, target.name, namespace=target.namespace, as_table=True
            )
        except NotFound as error:
            if not ignore:
                say(f"Error from server ({error.reason}): {error.message}")
                failed = True
            continue
        whole = {**table, "rows": [*(whole.get("rows") or []), *(table.get("rows") or [])]}
    return whole, failed


def _show_objects(session: Session, targets: list[Target], wish: Wish, ignore: bool) -> int:
    objects: list[Object] = []
    failed = False
    for target in targets:
        if not target.name:
            scope = _scope(target, wish)
            objects += session.client.list(target.served, scope=scope).items
            continue
        try:
            objects.append(
                session.client.get(target.served, target.name, namespace=target.namespace)
            )
        except NotFound as error:
            if not ignore:
                say(f"Error from server ({error.reason}): {error.message}")
                failed = True
    if failed and not objects:
        return 1
    if ignore and not objects and all(target.name for target in targets):
        return 0
    if wish.sort_by:
        objects.sort(key=lambda obj: _sort_key(obj, wish.sort_by))
    _print_objects(session, objects, wish, is_single=len(targets) == 1 and bool(targets[0].name))
    return 1 if failed else 0


def _print_objects(session: Session, objects: list[Object], wish: Wish, *, is_single: bool) -> None:
    if wish.form == "name":
        terminal.write([_label(session.client.kind_of(obj), obj) for obj in objects])
        return
    if not wish.with_managed_fields:
        objects = [render_objects.without_managed_fields(obj) for obj in objects]
    click.echo(render_objects.render(wish.form, objects, is_single=is_single))


def _watch(session: Session, targets: list[Target], wish: Wish) -> int:
    """Lists, then watches; lists again when the resource version has expired."""
    if len(targets) != 1:
        raise Failure("only one kind, or one object, can be watched at a time")
    target = targets[0]
    if target.name:
        fields = ",".join(
            part for part in (wish.scope.fields, f"metadata.name={target.name}") if part
        )
        session.client.get(target.served, target.name, namespace=target.namespace)
        wish = replace(wish, scope=replace(wish.scope, fields=fields))
    scope = _scope(target, wish)
    if wish.form in {"table", "wide"}:
        _watch_table(session, target.served, scope, wish)
    for event in session.client.watch(target.served, scope=scope):
        if event.type != "BOOKMARK":
            _print_objects(session, [event.object], wish, is_single=True)
    return 0


def _watch_table(session: Session, served: Served, scope: Scope, wish: Wish) -> NoReturn:
    """Rows as they change; all of them again when the resource version has expired."""
    view = replace(wish.view, with_namespace=served.namespaced and scope.namespace is None)
    printer = render_table.Printer()
    with_headings = wish.with_headings
    while True:
        table = session.client.table(served, scope=scope)
        version = str(table["metadata"]["resourceVersion"])
        columns = table["columnDefinitions"]
        try:
            for rows in _tables(session, served, scope, table, version):
                # Only the first table of a watch has column definitions.
                columns = rows.get("columnDefinitions") or columns
                grid = server_tables.grid({**rows, "columnDefinitions": columns}, view)
                printer.show(grid, with_headings=with_headings)
                with_headings = False
        except Expired:
            continue


def _tables(
    session: Session, served: Served, scope: Scope, first: Object, version: str
) -> Iterator[Object]:
    """The first table, then one for each change; tables without rows are left out."""
    if first.get("rows"):
        yield first
    for event in session.client.watch(served, scope=scope, resource_version=version, as_table=True):
        if event.type != "BOOKMARK" and event.object.get("rows"):
            yield event.object


def _scope(target: Target, wish: Wish) -> Scope:
    return replace(wish.scope, namespace=target.namespace)


def _sort_rows(table: Object, path: str) -> None:
    if path:
        table["rows"].sort(key=lambda row: _sort_key(row.get("object") or {}, path))


def _sort_key(obj: Object, path: str) -> tuple[int, float, str]:
    """Numbers by size, then strings alphabetically, then objects that lack the field."""
    try:
        matches = jsonpath.find(path, obj)
    except jsonpath.PathError as error:
        raise Failure(f"in --sort-by: {error}") from error
    match matches:
        case [int() | float() as number, *_]:
            return (0, float(number), "")
        case [value, *_]:
            return (1, 0.0, str(value))
        case _:
            return (2, 0.0, "")


def _label(served: Served, obj: Object) -> str:
    return f"{served.qualified_singular}/{obj['metadata']['name']}"


def _nothing(targets: list[Target]) -> str:
    homes = {target.namespace for target in targets if target.served.namespaced}
    if len(homes) == 1 and (home := homes.pop()) is not None:
        return f"No resources found in {home} namespace."
    return "No resources found"
