"""`fairway apply`: makes the server's objects match files, by server-side apply.

Every object is tried; each failure is reported, and sets the exit code. Namespaces and definitions
of kinds go first, so that a folder can be applied as a whole whatever its file names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click

from fairway.api.equality import same
from fairway.api.errors import ApiError, Conflict, NotFound
from fairway.cli import options, terminal
from fairway.cli.commands import Command
from fairway.cli.manifests import read_files
from fairway.cli.session import Failure, Session, current, say
from fairway.cli.targets import Target, of_object
from fairway.client import Client
from fairway.client.asynchronous import AsyncClient
from fairway.client.errors import ClientError, ConfigError, ConnectionFailed
from fairway.client.wire import Object, Scope

FIRST = ("Namespace", "CustomResourceDefinition")
ESTABLISH_SECONDS = 15.0
EXAMPLES = """
    fairway apply -f workload.yaml          one file
    fairway apply -f fleet/ -R              a folder and all below it
    cat queue.yaml | fairway apply -f -     the standard input
    fairway apply -f fleet/ --dry-run=server   check, and change nothing
"""


@click.command(cls=Command, examples=EXAMPLES)
@options.files
@options.recursive
@options.dry_run
@click.option("--force-conflicts", is_flag=True, help="Take over fields that others own.")
@click.option(
    "--field-manager", default="fairway", metavar="NAME", help="Name of the field manager."
)
@click.option(
    "--server-side",
    is_flag=True,
    hidden=True,
    help="Accepted for kubectl; apply is always server-side.",
)
@options.output("")
def apply(
    *,
    filenames: tuple[str, ...],
    recursive: bool,
    dry_run: str,
    force_conflicts: bool,
    field_manager: str,
    server_side: bool,
    output: str,
) -> int:
    """Create or change objects from files.

    What the files say becomes so; fields they no longer say are removed. Fields that others own
    are not taken from them unless --force-conflicts is given.
    """
    if not filenames:
        raise click.UsageError("Say which files, with -f FILE.")
    session = current()
    objects = sorted(read_files(filenames, recursive=recursive), key=_order)
    failures = 0
    written: list[Object] = []
    for obj in objects:
        try:
            target = of_object(session, obj)
            obj = _place(obj, target)  # noqa: PLW2901 - the same object, at home
            before = _before(session.client, target)
            after = session.client.apply(
                obj, force=force_conflicts, dry_run=dry_run == "server", manager=field_manager
            )
        except (ConfigError, ConnectionFailed):
            raise  # it is the same for all objects
        except (ApiError, ClientError, Failure) as error:
            say(_explain(error, obj))
            failures += 1
            continue
        written.append(after)
        _report(target, _verdict(before, after), output, is_dry=dry_run == "server")
        if target.served.kind == FIRST[1] and dry_run == "none":
            _await_definition(session, target)
    _print(written, output)
    return 1 if failures else 0


def _order(obj: Object) -> int:
    return FIRST.index(obj["kind"]) if obj["kind"] in FIRST else len(FIRST)


def _place(obj: Object, target: Target) -> Object:
    if target.namespace is None:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "namespace": target.namespace}}


def _before(client: Client, target: Target) -> Object | None:
    try:
        return client.get(target.served, target.name, namespace=target.namespace)
    except NotFound:
        return None


def _verdict(before: Object | None, after: Object) -> str:
    if before is None:
        return "created"
    return "unchanged" if same(_essence(before), _essence(after)) else "configured"


def _essence(obj: Object) -> Object:
    """The content that counts as a change, without bookkeeping that a dry run invents."""
    dropped = {"managedFields", "resourceVersion", "generation"}
    metadata = {key: value for key, value in obj["metadata"].items() if key not in dropped}
    return {**obj, "metadata": metadata}


def _report(target: Target, verdict: str, output: str, *, is_dry: bool) -> None:
    if not output:
        terminal.write([f"{target.label} {verdict}{' (server dry run)' if is_dry else ''}"])
    elif output == "name":
        terminal.write([target.label])


def _print(written: list[Object], output: str) -> None:
    from fairway.cli import render_objects  # noqa: PLC0415 - seldom wanted

    if written and output not in {"", "name", "table", "wide"}:
        shown = [render_objects.without_managed_fields(obj) for obj in written]
        click.echo(render_objects.render(output, shown, is_single=True))


def _explain(error: Exception, obj: Object) -> str:
    name = (obj.get("metadata") or {}).get("name", "")
    if isinstance(error, Failure):
        return f"error: {error.message}"
    if not isinstance(error, ApiError):
        return f"error: {obj['kind']} {name}: {error}"
    text = f"Error from server ({error.reason}): {error.message}"
    causes: Sequence[Object] = error.details.get("causes") or ()
    if isinstance(error, Conflict) and any(cause.get("field") for cause in causes):
        text += "\nAgree with the owner, leave the field out, or take it with --force-conflicts."
    return text


def _await_definition(session: Session, target: Target) -> None:
    """Waits until a new kind is served, a moment after its definition is created."""
    client = session.client
    try:
        client.loop.run(_establish(client.asynchronous, target))
    except TimeoutError:
        say(f"warning: {target.label} is not established after {ESTABLISH_SECONDS:.0f} seconds")
    client.asynchronous.discovery.forget()


async def _establish(client: AsyncClient, target: Target) -> None:
    scope = Scope(fields=f"metadata.name={target.name}")
    async with asyncio.timeout(ESTABLISH_SECONDS):
        async for event in client.watch(target.served, scope=scope):
            conditions = (event.object.get("status") or {}).get("conditions") or ()
            if any(
                condition["type"] == "Established" and condition["status"] == "True"
                for condition in conditions
            ):
                return
