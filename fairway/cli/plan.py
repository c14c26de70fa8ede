"""`fairway plan`: what Fairway would do with this fleet, these queues and these workloads, and why.

Offline: files in, a plan out, by the same function that a hub uses. Nothing is changed anywhere.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click

from fairway.api.errors import ApiError
from fairway.cli import explain_plan, options, terminal
from fairway.cli.commands import Command
from fairway.cli.manifests import apply_edits, read_snapshot, refuse_faulty
from fairway.cli.render_table import Grid, show
from fairway.cli.session import Failure

if TYPE_CHECKING:
    from fairway.core.model import Placed
    from fairway.core.plan import Plan, Step, Waits

EXAMPLES = """
    fairway plan -f examples/plans/overflow     a folder of manifests
    fairway plan -f fleet.yaml -f job.yaml -o json
    fairway snapshot dump | fairway plan -f -   what a running hub would do now
    fairway plan -f fleet.yaml --explain vision/train
    fairway plan -f fleet.yaml --now 2026-11-15T08:00:00Z   or "2026-11-15 08:00", or seconds
    fairway plan -f fleet.json --if edit.yaml   the same with a change, such as {lose: [east]}
"""
_REASONS_SHOWN = 4


@click.command(cls=Command, examples=EXAMPLES)
@options.files
@options.recursive
@click.option(
    "--now",
    type=options.Moment(),
    metavar="TIME",
    help="The moment of the plan; else that of a snapshot, else now.",
)
@click.option(
    "--explain",
    "explained",
    metavar="NAMESPACE/NAME",
    help="Say why one workload waits, when it is expected to start, and what would help.",
)
@click.option(
    "--if",
    "edits",
    multiple=True,
    metavar="FILE",
    help="Plan with a change made first: lose, quota, clusters, apply, remove; - is the input.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    help="A table for people, or JSON for programs.",
)
def plan(
    *,
    filenames: tuple[str, ...],
    recursive: bool,
    now: float | None,
    explained: str | None,
    edits: tuple[str, ...],
    output: str,
) -> int:
    """Plan the workloads in files: what would be done, and why.

    Files hold any of our kinds. A Workload whose status has a claim is running there already;
    clusters bring their capacity as a ClusterReport or as simulated node pools; without any
    cluster, quota alone decides.
    """
    # The core is much larger than the client; only this command loads it.
    from fairway.core.cycle import plan as make_plan  # noqa: PLC0415 - as above
    from fairway.core.explain.shortfalls import completed  # noqa: PLC0415 - as above
    from fairway.core.modes.policy_clusters import choose_clusters  # noqa: PLC0415 - as above
    from fairway.core.snapshot import Snapshot  # noqa: PLC0415 - as above
    from fairway.view.objects import Objects  # noqa: PLC0415 - as above

    if not filenames:
        raise click.UsageError("Say which files, with -f FILE.")
    try:
        documents, taken_at = read_snapshot(filenames, recursive=recursive)
        refuse_faulty(documents)
        result = [document.value for document in documents]
        moment = next(number for number in (now, taken_at, time.time()) if number is not None)
        for edit in edits:
            result = apply_edits(result, edit, moment)
        objects = Objects.of(result)
    except ApiError as error:
        raise Failure(error.message) from error
    if not objects.workloads:
        raise Failure("no Workload in the files given, so there is nothing to plan")
    facts = objects.facts(moment)
    if explained is not None:
        return explain_plan.show(facts, explained, output)
    made, _ = make_plan(Snapshot(facts))
    made = completed(facts, made)
    choices = [
        choice
        for choice in choose_clusters(Snapshot(facts))
        if facts.policies[choice.policy].number_of_clusters is not None
    ]
    if output == "json":
        listed = {"choices": [choice.render() for choice in choices]} if choices else {}
        terminal.write([json.dumps({**made.render(), **listed}, indent=2)])
        return 0
    _show(made)
    if choices:
        terminal.write(["", "Chosen by policies:"])
        for choice in choices:
            names = ", ".join(chosen.cluster for chosen in choice.choice.chosen) or "none"
            terminal.write([f"  {choice.policy}: {names}"])
    return 0


def _show(made: Plan) -> None:
    if made.steps:
        show(
            Grid(
                ["ACTION", "WORKLOAD", "WHERE", "PODS", "HOW"], [_row(step) for step in made.steps]
            )
        )
    else:
        terminal.write(["Nothing to do."])
    if made.waiting:
        terminal.write(["", "Waiting:"])
        for waiting_workload in made.waiting:
            terminal.write([f"  {waiting_workload.workload}{_for_ever(waiting_workload)}"])
            reasons = [waiting_workload.never] if waiting_workload.never else []
            reasons.extend(waiting_workload.reasons)
            shown = list(dict.fromkeys(reason.render()["message"] for reason in reasons))
            terminal.write([f"    - {text}" for text in shown[:_REASONS_SHOWN]])
            if len(shown) > _REASONS_SHOWN:
                terminal.write([f"    - and {len(shown) - _REASONS_SHOWN} more (-o json)"])
    if made.warnings:
        terminal.write(["", "Warnings:"])
        terminal.write([f"  {warning.render()['message']}" for warning in made.warnings])
    if made.reservations:
        terminal.write(["", "Kept free:"])
        for kept in made.reservations:
            what = f" ({', '.join(kept.flavors)})" if kept.flavors else ""
            terminal.write([f"  in {kept.cluster}{what} for {kept.workload}"])


def _for_ever(waits: Waits) -> str:
    """That a workload can never start, and what its queue makes of that."""
    if waits.never is None:
        return ""
    return " (refused: it can never start)" if waits.is_refused else " (can never start)"


def _row(step: Step) -> list[str]:
    from fairway.core.plan import Admit, Move, Preempt, Provision  # noqa: PLC0415 - see above

    match step:
        case Admit():
            largest = sorted(
                step.placed, key=lambda placement: (-_pod_count(placement), placement.cluster)
            )
            where = ", ".join(placement.cluster for placement in largest) or "-"
            pods = ", ".join(_pods(placement) for placement in largest)
            victims = ", ".join(step.waits_for)
            are = "are" if len(step.waits_for) > 1 else "is"
            how = f"when {victims} {are} gone" if victims else step.rung
            if step.leaving:
                how = "; ".join(reason.render()["message"] for reason in step.reasons)
            return ["Admit", step.workload, where, pods, how]
        case Preempt():
            why = step.reasons[0].render()["message"] if step.reasons else f"for {step.for_}"
            return ["Preempt", step.workload, step.cluster or "-", "", why]
        case Provision():
            nodes = f"{step.count} node{'s' if step.count != 1 else ''} of {step.pool}"
            return ["Provision", step.workload, step.cluster, nodes, ""]
        case Move():
            why = step.reasons[0].render()["message"] if step.reasons else ""
            return [
                "Move",
                step.workload,
                f"{step.source} → {step.placed.cluster}",
                str(step.count),
                why,
            ]


def _pod_count(placed: Placed) -> int:
    return sum(pods.count for pods in placed.pods)


def _pods(placed: Placed) -> str:
    """`8 worker on h100`."""
    parts = []
    for pods in placed.pods:
        flavors = sorted({flavor for _, flavor in pods.flavors if flavor})
        on = f" on {'+'.join(flavors)}" if flavors else ""
        parts.append(f"{pods.count} {pods.name}{on}")
    return " + ".join(parts)
