"""`fairway rollout`: rollouts of services, with kubectl's words and conventions."""

from __future__ import annotations

import click

from fairway.api.codec import to_yaml
from fairway.api.names import revision_name
from fairway.api.rollout import APPROVED, RESUMED, RevisionNote, Rollout, approval_of, failure_of
from fairway.cli import ages, options, render_table, rollout_status, terminal
from fairway.cli.commands import Command, global_options
from fairway.cli.options import Duration
from fairway.cli.render_table import Grid
from fairway.cli.rollout_status import REVISIONS, ROLLOUTS, find, workload_of
from fairway.cli.session import Failure, Session, current, say
from fairway.client.asynchronous import WORKLOADS
from fairway.client.wire import Object
from fairway.kinds.updates import restore_revision

_name = click.argument("name", metavar="[KIND/]NAME")


@click.group()
def rollout() -> None:
    """Follow, pause, approve and undo new versions of services.

    NAME is that of a Rollout or of its service: `llm`, `workload/llm` or `deployment/llm`.
    """


rollout.params += global_options()

STATUS_EXAMPLES = """
    fairway rollout status llm                  until it is over
    fairway rollout status llm --timeout 10m    for ten minutes at most
    fairway rollout status llm --no-watch       as it is now, cluster by cluster
"""


@rollout.command(cls=Command, examples=STATUS_EXAMPLES)
@_name
@click.option("-w/-W", "--watch/--no-watch", default=True, help="Wait until it is over.")
@click.option("--timeout", type=Duration(), default=0.0, metavar="TIME", help="0 waits forever.")
def status(*, name: str, watch: bool, timeout: float) -> int:
    """Show the progress of a rollout, and wait until it completes or fails."""
    session = current()
    match = find(session, name)
    if not watch:
        terminal.write([rollout_status.sentence(match)])
        headings = ["CLUSTER", "GROUP", "REVISION", "UPDATED", "READY"]
        render_table.show(Grid(headings, list(rollout_status.rows(match))))
        return 0
    generation = rollout_status.generation_of(session, match)
    try:
        return rollout_status.follow(session, match, generation=generation, seconds=timeout or None)
    except TimeoutError:
        say("error: timed out waiting for the condition")
        return 1


@rollout.command(cls=Command, examples="fairway rollout history llm --revision 3     its template")
@_name
@click.option("--revision", type=int, default=0, help="Show the template of this one.")
def history(*, name: str, revision: int) -> int:
    """List the revisions that are kept, or show the template of one."""
    session = current()
    match = find(session, name)
    if revision:
        template = _template(session, match, _note(match, revision))
        terminal.write([f"{_label(match)} with revision #{revision}"])
        click.echo(to_yaml(template).rstrip("\n"))
        return 0
    terminal.write([_label(match)])
    headings = ["REVISION", "OUTCOME", "MARK", "AGE", "CHANGE-CAUSE"]
    notes = match.status.history
    render_table.show(Grid(headings, [_row(note) for note in notes]))
    return 0


def _row(note: RevisionNote) -> list[str]:
    made = note.created_at.isoformat() if note.created_at else None
    return [
        str(note.revision),
        note.outcome or "UnderWay",
        note.mark,
        ages.since(made),
        note.change_cause or "<none>",
    ]


@rollout.command(cls=Command, examples="fairway rollout pause llm     nothing further changes")
@_name
@options.dry_run
def pause(*, name: str, dry_run: str) -> int:
    """Pause a rollout: nothing further gets another version."""
    session = current()
    match = find(session, name)
    if match.spec.paused:
        raise Failure(f"{_label(match)} is already paused")
    return _patch(session, match, {"spec": {"paused": True}}, "paused", dry_run)


@rollout.command(cls=Command, examples="fairway rollout resume llm     also after a failure")
@_name
@options.dry_run
def resume(*, name: str, dry_run: str) -> int:
    """Resume a paused rollout, or retry a failed one from its batch."""
    session = current()
    match = find(session, name)
    if not match.spec.paused and not match.status.failure:
        raise Failure(f"{_label(match)} is not paused")
    patch: Object = {"spec": {"paused": False}} if match.spec.paused else {}
    if match.status.failure:
        patch["metadata"] = {"annotations": {RESUMED: failure_of(match.status)}}
    return _patch(session, match, patch, "resumed", dry_run)


@rollout.command(cls=Command, examples="fairway rollout approve llm     the next batch may begin")
@_name
@options.dry_run
def approve(*, name: str, dry_run: str) -> int:
    """Approve the batch that waits for it, so that the next one begins."""
    session = current()
    match = find(session, name)
    if match.status.phase != "AwaitingApproval":
        raise Failure(f"{_label(match)} does not wait for an approval: it is {match.status.phase}")
    annotations = {APPROVED: approval_of(match.status)}
    past = f"batch {match.status.current_batch + 1} approved"
    return _patch(session, match, {"metadata": {"annotations": annotations}}, past, dry_run)


UNDO_EXAMPLES = """
    fairway rollout undo llm                    the revision before
    fairway rollout undo llm --to-revision 3    that one
"""


@rollout.command(cls=Command, examples=UNDO_EXAMPLES)
@_name
@click.option(
    "--to-revision", type=int, default=0, help="Revision to go back to; 0: the previous one."
)
@options.dry_run
def undo(*, name: str, to_revision: int, dry_run: str) -> int:
    """Roll a service back to an earlier revision.

    The template is changed where it is kept: in the workload, or in the native object that the
    workload stands for. If that object is kept in a repository, change it there instead.
    """
    session = current()
    match = find(session, name)
    note = _note(match, to_revision) if to_revision else _before(match)
    if note.mark == match.status.target:
        label = f"{_label(match)} skipped rollback (current template already matches"
        terminal.write([f"{label} revision {note.revision})"])
        return 0
    _restore(session, match, _template(session, match, note), is_dry=dry_run == "server")
    terminal.write([f"{_label(match)} rolled back{_dry(dry_run)}"])
    return 0


def _before(rollout: Rollout) -> RevisionNote:
    if len(rollout.status.history) < 2:
        raise Failure(f"{_label(rollout)} has no revision before this one")
    return rollout.status.history[-2]


def _note(rollout: Rollout, revision: int) -> RevisionNote:
    for other in rollout.status.history:
        if other.revision == revision:
            return other
    known = ", ".join(str(other.revision) for other in rollout.status.history)
    raise Failure(f"{_label(rollout)} keeps no revision {revision} (it keeps: {known or 'none'})")


def _template(session: Session, rollout: Rollout, note: RevisionNote) -> Object:
    name = revision_name(rollout.metadata.name, note.mark)
    kept = session.client.get(REVISIONS, name, namespace=rollout.metadata.namespace)
    template: Object = kept["spec"]["template"]
    return template


def _restore(session: Session, rollout: Rollout, template: Object, *, is_dry: bool) -> None:
    """Writes a template to the workload, or to its native object."""
    client, namespace = session.client, rollout.metadata.namespace
    workload = client.get(WORKLOADS, workload_of(rollout), namespace=namespace)
    first, *others = template["manifests"]
    source = workload["spec"].get("source")
    if source:
        kind = client.kind_of({"apiVersion": source["apiVersion"], "kind": source["kind"]})
        native = client.get(kind, source["name"], namespace=namespace)
        client.replace(restore_revision(native, first), dry_run=is_dry)
        return
    now = workload["spec"]["template"]["manifests"]
    manifests = [restore_revision(now[0], first), *others]
    spec = {**workload["spec"], "template": {"manifests": manifests}}
    client.replace({**workload, "spec": spec}, dry_run=is_dry)


def _label(rollout: Rollout) -> str:
    return f"rollout.serving.fairway.dev/{rollout.metadata.name}"


def _dry(dry_run: str) -> str:
    return " (server dry run)" if dry_run == "server" else ""


def _patch(session: Session, rollout: Rollout, patch: Object, past: str, dry_run: str) -> int:
    metadata = rollout.metadata
    session.client.patch(
        ROLLOUTS,
        metadata.name,
        patch,
        namespace=metadata.namespace,
        dry_run=dry_run == "server",
    )
    terminal.write([f"{_label(rollout)} {past}{_dry(dry_run)}"])
    return 0
