"""`fairway delete`: by file, by name or by selector; waits until the objects are gone."""

from __future__ import annotations

from dataclasses import dataclass

import click

from fairway.api.errors import ApiError, NotFound
from fairway.cli import options, terminal
from fairway.cli.commands import Command
from fairway.cli.completion import complete_targets
from fairway.cli.conditions import Gone, wait_for
from fairway.cli.options import Duration
from fairway.cli.session import Failure, Session, current, say
from fairway.cli.targets import Target, find_targets, from_files, parse
from fairway.client.wire import Object

EXAMPLES = """
    fairway delete workload train              by name
    fairway delete wl/train queue/team-a       two kinds
    fairway delete -f fleet/                   what the files name
    fairway delete pods -l app=web             by label
    fairway delete workloads --all             all of your namespace
"""
CASCADES = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How to delete."""

    options: Object
    ignores_missing: bool
    is_dry: bool
    output: str | None


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("words", nargs=-1, metavar="KIND NAME...", shell_complete=complete_targets)
@options.files
@options.recursive
@options.selector
@options.field_selector
@options.all_namespaces
@click.option("--all", "everything", is_flag=True, help="All objects of the kind.")
@click.option("--wait/--no-wait", default=True, help="Wait until they are gone (the default).")
@click.option("--timeout", type=Duration(), default=0.0, metavar="TIME", help="Wait no longer.")
@click.option(
    "--cascade",
    type=click.Choice(list(CASCADES)),
    default="background",
    is_flag=False,
    flag_value="background",
    help="What happens to dependents.",
)
@click.option(
    "--grace-period",
    type=int,
    default=-1,
    metavar="SECONDS",
    help="How long pods may take to stop.",
)
@click.option("--now", is_flag=True, help="A grace period of one second.")
@click.option("--ignore-not-found", is_flag=True, help="Do not fail if an object is missing.")
@options.dry_run
@click.option("-o", "--output", type=click.Choice(["name"]), help="name: print only names.")
def delete(  # noqa: PLR0913 - one parameter for each option
    *,
    words: tuple[str, ...],
    filenames: tuple[str, ...],
    recursive: bool,
    selector: str,
    field_selector: str,
    all_namespaces: bool,
    everything: bool,
    wait: bool,
    timeout: float,
    cascade: str,
    grace_period: int,
    now: bool,
    ignore_not_found: bool,
    dry_run: str,
    output: str | None,
) -> int:
    """Delete objects.

    Objects that wait for a finalizer stay until it is done; this command waits with them.
    """
    session = current()
    targets = from_files(session, filenames, recursive) if filenames else parse(session, words)
    is_broad = everything or bool(selector or field_selector)
    if not is_broad and not all(target.name for target in targets):
        raise Failure("say which ones: give names, a selector with -l, or --all")
    if all_namespaces:
        targets = [Target(served=target.served, name=target.name) for target in targets]
    result = find_targets(session, targets, labels=selector, fields=field_selector)
    if not result:
        say("No resources found")
        return 0
    body: Object = {"propagationPolicy": CASCADES[cascade]}
    if grace_period >= 0 or now:
        body["gracePeriodSeconds"] = 1 if now else grace_period
    if dry_run == "server":
        body["dryRun"] = ["All"]
    manner = Manner(
        options=body,
        ignores_missing=ignore_not_found or is_broad,
        is_dry=dry_run == "server",
        output=output,
    )
    deleted, failures = _delete_all(session, result, manner)
    if wait and not manner.is_dry:
        failures += _wait_all(session, deleted, timeout if timeout > 0 else None)
    return 1 if failures else 0


def _delete_all(
    session: Session, targets: list[Target], manner: Manner
) -> tuple[list[tuple[Target, str]], int]:
    deleted: list[tuple[Target, str]] = []
    failures = 0
    for target in targets:
        try:
            answer = session.client.delete(
                target.served, target.name, namespace=target.namespace, options=manner.options
            )
        except NotFound as error:
            if not manner.ignores_missing:
                say(f"Error from server ({error.reason}): {error.message}")
                failures += 1
            continue
        except ApiError as error:
            say(f"Error from server ({error.reason}): {error.message}")
            failures += 1
            continue
        deleted.append((target, _uid(answer)))
        terminal.write([_sentence(target, manner)])
    return deleted, failures


def _wait_all(session: Session, deleted: list[tuple[Target, str]], seconds: float | None) -> int:
    """Waits for each to be gone; returns how many were not in time."""
    late = 0
    for target, uid in deleted:
        try:
            wait_for(session, target, Gone(uid=uid), seconds)
        except TimeoutError:
            say(f"error: timed out waiting for {target.label} to be gone")
            late += 1
    return late


def _uid(answer: Object) -> str:
    """The UID of the deleted object; servers answer with a Status or with the object itself."""
    if answer.get("kind") == "Status":
        return str((answer.get("details") or {}).get("uid", ""))
    return str(answer["metadata"].get("uid", ""))


def _sentence(target: Target, manner: Manner) -> str:
    if manner.output == "name":
        return target.label
    where = f" from {target.namespace} namespace" if target.namespace else ""
    how = " (server dry run)" if manner.is_dry else ""
    return f'{target.served.qualified_singular} "{target.name}" deleted{where}{how}'
