"""Small interventions: hold, drain, suspend, cancel, and change queue or priority.

Each changes one field of one object, as `fairway patch` could; here they have the names that people
look for. A workload of a native object gets its queue and its priority from that object, so they
are changed there, where the change persists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from fairway.api.errors import NotFound
from fairway.api.meta import API_VERSION
from fairway.cli import options, terminal, workloads
from fairway.cli.commands import Command
from fairway.cli.completion import (
    complete_clusters,
    complete_queues,
    complete_targets,
    complete_workloads,
)
from fairway.cli.drain_wait import await_empty
from fairway.cli.options import Duration
from fairway.cli.session import Failure, Session, current, say
from fairway.cli.targets import Target, parse
from fairway.client.asynchronous import WORKLOADS
from fairway.client.errors import UnknownKind
from fairway.client.wire import Object
from fairway.kinds.native import PRIORITY, QUEUE

FLEETS = "fleets.fairway.dev"
CLUSTERS = "clusters.fairway.dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of one object, and the word that reports it."""

    target: Target
    spec: dict[str, Any]
    past: str
    is_dry: bool = False


def _make(session: Session, change: Change) -> None:
    """Makes a change, and reports whether there was anything to change."""
    target, client = change.target, session.client
    before = client.get(target.served, target.name, namespace=target.namespace)
    spec = before.get("spec") or {}
    needed = {key: value for key, value in change.spec.items() if spec.get(key) != value}
    if needed:
        client.patch(
            target.served,
            target.name,
            {"spec": needed},
            namespace=target.namespace,
            dry_run=change.is_dry,
        )
    verdict = change.past if needed else f"already {change.past}"
    terminal.write([f"{target.label} {verdict}{' (server dry run)' if change.is_dry else ''}"])


def _change_all(session: Session, targets: list[Target], spec: Object, past: str, dry: str) -> int:
    for target in targets:
        _make(session, Change(target=target, spec=spec, past=past, is_dry=dry == "server"))
    return 0


def _switch(
    argument: Callable[[Callable[..., int]], Callable[..., int]],
    targets_of: Callable[[Session, tuple[str, ...]], list[Target]],
    hold: str,
    past: str,
    examples: str,
    purpose: str,
) -> click.Command:
    """Makes the command that sets the hold of the named objects."""

    @argument
    @options.dry_run
    def switch(*, dry_run: str, **words: tuple[str, ...]) -> int:
        session = current()
        (names,) = words.values()
        return _change_all(session, targets_of(session, names), {"hold": hold}, past, dry_run)

    return click.command(cls=Command, examples=examples, help=purpose)(switch)


# Clusters.

_cluster_names = click.argument(
    "names", nargs=-1, required=True, metavar="CLUSTER...", shell_complete=complete_clusters
)


def _clusters(session: Session, names: tuple[str, ...]) -> list[Target]:
    served = session.client.resolve(CLUSTERS)
    return [Target(served=served, name=name.removeprefix("cluster/")) for name in names]


cordon = _switch(
    _cluster_names,
    _clusters,
    "Hold",
    "cordoned",
    "fairway cordon east     what runs there goes on",
    "Cordon clusters: nothing new starts there; what runs goes on.",
)
uncordon = _switch(
    _cluster_names,
    _clusters,
    "None",
    "uncordoned",
    "fairway uncordon east     after cordon or drain",
    "Uncordon clusters: they are used again.",
)


DRAIN_EXAMPLES = """
    fairway drain east                   move all away, and wait until nothing is left
    fairway drain east --timeout 10m     for ten minutes at most
    fairway drain east --no-wait         return at once
"""


@click.command(cls=Command, examples=DRAIN_EXAMPLES)
@_cluster_names
@click.option("--wait/--no-wait", "waits", default=True, help="Until nothing is left (default).")
@click.option("--timeout", type=Duration(), metavar="TIME", help="Wait no longer than this.")
@options.dry_run
def drain(*, names: tuple[str, ...], waits: bool, timeout: float | None, dry_run: str) -> int:
    """Drain clusters: nothing new starts there, and what runs moves away.

    What is moved gets its checkpoint's signal and grace, and goes back to its queue.
    """
    session = current()
    targets = _clusters(session, names)
    _change_all(session, targets, {"hold": "HoldAndDrain"}, "drained", dry_run)
    if not waits or dry_run == "server":
        return 0
    try:
        await_empty(session, [target.name for target in targets], timeout)
    except TimeoutError:
        say("error: timed out; the rest goes by itself")
        return workloads.TIMED_OUT
    return 0


# Queues and workloads.

HOLD_EXAMPLES = """
    fairway hold queue/research           nothing new of it starts
    fairway hold queue/research --drain   what runs goes back to the queue as well
    fairway hold workload/train           keep it from starting
"""


@click.command(cls=Command, examples=HOLD_EXAMPLES)
@click.argument(
    "words", nargs=-1, required=True, metavar="KIND/NAME...", shell_complete=complete_targets
)
@click.option("--drain", is_flag=True, help="Stop what runs, too; it goes back to its queue.")
@options.dry_run
def hold(*, words: tuple[str, ...], drain: bool, dry_run: str) -> int:
    """Hold queues, workloads or clusters: nothing of theirs starts."""
    session = current()
    spec = {"hold": "HoldAndDrain" if drain else "Hold"}
    return _change_all(session, _holdable(session, words), spec, "held", dry_run)


@click.command(cls=Command, examples="fairway release queue/research     after hold")
@click.argument(
    "words", nargs=-1, required=True, metavar="KIND/NAME...", shell_complete=complete_targets
)
@options.dry_run
def release(*, words: tuple[str, ...], dry_run: str) -> int:
    """Release queues, workloads or clusters that are held."""
    session = current()
    return _change_all(session, _holdable(session, words), {"hold": "None"}, "released", dry_run)


def _holdable(session: Session, words: tuple[str, ...]) -> list[Target]:
    """Objects that can be held: our own, or the workload of a native one."""
    targets = []
    for target in parse(session, words):
        if not target.name:
            raise Failure("say which ones: as KIND/NAME, such as queue/research")
        if target.served.kind in ("Queue", "Cluster", "Workload"):
            targets.append(target)
        else:
            targets.append(_workload(session, f"{target.served.kind}/{target.name}"))
    return targets


_workload_words = click.argument(
    "words", nargs=-1, required=True, metavar="WORKLOAD...", shell_complete=complete_workloads
)


def _workload(session: Session, word: str) -> Target:
    matches = workloads.find(session, word)
    return Target(
        served=session.client.resolve(WORKLOADS),
        name=workloads.name_of(matches),
        namespace=matches["metadata"]["namespace"],
    )


def _workloads(session: Session, words: tuple[str, ...]) -> list[Target]:
    return [_workload(session, word) for word in words]


suspend = _switch(
    _workload_words,
    _workloads,
    "HoldAndDrain",
    "suspended",
    "fairway suspend train     until `fairway resume train`",
    "Suspend workloads: they release what they hold and keep their place in the queue.",
)
resume = _switch(
    _workload_words,
    _workloads,
    "None",
    "resumed",
    "fairway resume train     after suspend or hold",
    "Resume suspended workloads.",
)


@click.command(cls=Command, examples="fairway cancel train eval     they stay, to be looked at")
@_workload_words
@options.dry_run
def cancel(*, words: tuple[str, ...], dry_run: str) -> int:
    """Stop workloads for good; `fairway delete` also removes them."""
    session = current()
    targets, is_refused = list[Target](), False
    for word in words:
        matches = workloads.find(session, word)
        if workloads.is_over(matches):
            say(f"error: {workloads.name_of(matches)} is over already: {workloads.line(matches)}")
            is_refused = True
        else:
            targets.append(_workload(session, word))
    _change_all(session, targets, {"cancelled": True}, "cancelled", dry_run)
    return 1 if is_refused else 0


PRIORITY_EXAMPLES = """
    fairway priority train 100     higher goes first
    fairway priority train -- -5   below zero
"""


@click.command(cls=Command, examples=PRIORITY_EXAMPLES)
@click.argument("word", metavar="WORKLOAD", shell_complete=complete_workloads)
@click.argument("number", type=click.IntRange(-(2**31), 2**31 - 1), metavar="N")
@options.dry_run
def priority(*, word: str, number: int, dry_run: str) -> int:
    """Change the priority of a workload."""
    session, is_dry = current(), dry_run == "server"
    matches = workloads.find(session, word)
    past = f"has priority {number}"
    if not _mark_source(session, matches, {PRIORITY[0]: str(number)}, past, is_dry):
        target = _workload(session, f"workload/{workloads.name_of(matches)}")
        change = Change(target=target, spec={"priority": number}, past=past, is_dry=is_dry)
        _make(session, change)
    return 0


@click.command(cls=Command, examples="fairway move train --queue production     while it waits")
@click.argument("word", metavar="WORKLOAD", shell_complete=complete_workloads)
@click.option(
    "-q",
    "--queue",
    required=True,
    metavar="QUEUE",
    shell_complete=complete_queues,
    help="Queue to move it to.",
)
@options.dry_run
def move(*, word: str, queue: str, dry_run: str) -> int:
    """Move a pending workload to another queue."""
    session, is_dry = current(), dry_run == "server"
    matches = workloads.find(session, word)
    name = workloads.name_of(matches)
    if workloads.is_over(matches):
        raise Failure(f"{name} is over already")
    if workloads.clusters_of(matches):
        raise Failure(
            f"{name} {workloads.line(matches)}; suspend it first, then move and resume it"
        )
    try:
        session.client.get("queues.fairway.dev", queue)
    except NotFound as error:
        raise Failure(f"there is no queue {queue}") from error
    past = f"moved to queue {queue}"
    if not _mark_source(session, matches, {QUEUE[0]: queue}, past, is_dry):
        target = _workload(session, f"workload/{name}")
        _make(session, Change(target=target, spec={"queue": queue}, past=past, is_dry=is_dry))
    return 0


def _mark_source(
    session: Session, workload: Object, labels: dict[str, str], past: str, is_dry: bool
) -> bool:
    """Changes the labels of the workload's native object, if it exists."""
    source = workload["spec"].get("source")
    if not source:
        return False
    namespace = workload["metadata"]["namespace"]
    try:
        served = session.client.kind_of(source)
        body = {"metadata": {"labels": labels}}
        session.client.patch(served, source["name"], body, namespace=namespace, dry_run=is_dry)
    except (UnknownKind, NotFound):
        return False
    label = f"{served.qualified_singular}/{source['name']}"
    terminal.write([f"{label} {past}{' (server dry run)' if is_dry else ''}"])
    return True


# The fleet.


@click.command(cls=Command, examples='fairway pause --reason "network maintenance until noon"')
@click.option("--reason", default="", metavar="TEXT", help="Reason, shown to everyone.")
def pause(*, reason: str) -> int:
    """Stop all decisions and actions of the hub; what runs goes on."""
    _set_fleet({"paused": True, "pauseReason": reason})
    terminal.write(["fleet.fairway.dev/fleet paused"])
    return 0


@click.command(cls=Command, examples="fairway unpause")
def unpause() -> int:
    """Resume the hub's decisions and actions."""
    _set_fleet({"paused": False, "pauseReason": ""})
    terminal.write(["fleet.fairway.dev/fleet unpaused"])
    return 0


def _set_fleet(spec: Object) -> None:
    """Changes the fleet; creates it if the hub has none yet."""
    client = current().client
    try:
        client.patch(FLEETS, "fleet", {"spec": spec})
    except NotFound:
        identity = {"apiVersion": API_VERSION, "kind": "Fleet", "metadata": {"name": "fleet"}}
        client.create({**identity, "spec": spec})
