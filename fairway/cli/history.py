"""`fairway history`: what was decided and when, and what was preempted for it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from fairway.api.discretion import ANOTHER
from fairway.cli import options, render_objects, render_table, terminal, workloads
from fairway.cli.ages import span
from fairway.cli.commands import Command
from fairway.cli.completion import complete_workloads
from fairway.cli.moments import between, stamp
from fairway.cli.render_table import Grid
from fairway.cli.session import Session, current, say
from fairway.client.wire import Object

EXAMPLES = """
    fairway history               what was decided lately, the latest last
    fairway history --limit 20    the last twenty
    fairway history train         one workload: its attempts, and what was decided on it
    fairway history -o json       for programs
"""
DECISIONS = ["TIME", "ACTION", "WORKLOAD", "WHERE", "MESSAGE"]
ATTEMPTS = ["ATTEMPT", "CLUSTERS", "STARTED", "RAN", "ENDED", "REASON", "MESSAGE"]


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("word", default="", metavar="[WORKLOAD]", shell_complete=complete_workloads)
@click.option(
    "--limit",
    type=click.IntRange(1, 5000),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of last rounds to show.",
)
@options.output()
@click.option("--no-headers", is_flag=True, help="Leave out the headings.")
def history(*, word: str, limit: int, output: str, no_headers: bool) -> int:
    """Show decisions: what was admitted, preempted and why, moved, provisioned.

    Of one workload also its attempts: where each ran, why it ended, for whom it was preempted,
    what work was lost, and when it went on. A hub remembers its last 5,000 rounds, also after a
    restart; a workload its last ten attempts.
    """
    session = current()
    workload = workloads.find(session, word) if word else None
    decisions = _decisions(session, limit, workload)
    if output not in {"table", "wide"}:
        whole: Object = {"decisions": decisions}
        if workload is not None:
            whole = {"attempts": workloads.status_of(workload).get("history") or [], **whole}
        click.echo(render_objects.render(output, [whole], is_single=True))
        return 0
    if workload is not None:
        _show_attempts(workload, with_headings=not no_headers)
    rows = [_row(decision["now"], step) for decision in decisions for step in decision["steps"]]
    if rows:
        render_table.show(Grid(DECISIONS, rows), with_headings=not no_headers)
    elif workload is None:
        say("Nothing was decided yet")
    else:
        say("Nothing was decided on it lately")
    return 0


def _decisions(session: Session, limit: int, workload: Object | None) -> list[Object]:
    query = {"limit": str(limit)}
    if workload is not None:
        query["workload"] = workloads.key_of(workload)
    decisions = session.client.ask("fleets.fairway.dev", "fleet", "decisions", query=query)
    return list(decisions.get("decisions") or ())


def _row(now: float, step: Object) -> list[str]:
    where, said = _describe(step)
    return [stamp(now), str(step["action"]), str(step["workload"]), where, said]


def _describe(step: Object) -> tuple[str, str]:
    """The place of a step, and its description."""
    reasons = "; ".join(str(reason["message"]) for reason in step.get("reasons") or ())
    placements = step.get("placements") or ()
    clusters = ", ".join(placement["cluster"] or "-" for placement in placements)
    match step["action"]:
        case "Admit":
            victims = step.get("waitsFor") or ()
            later = f", when {', '.join(victims)} left" if victims else ""
            return clusters, f"{_pods(placements)} ({step.get('rung', '')}){later}"
        case "Preempt":
            lost = step.get("lostSeconds")
            loss = f", {span(lost)} of work lost" if lost else ""
            return str(step.get("cluster") or ""), (reasons or f"for {step['for']}") + loss
        case "Provision":
            count = int(step["count"])
            nodes = f"{count} node{'s' if count != 1 else ''} of {step['pool']}"
            return str(step["cluster"]), nodes
        case _:
            moved = f"{step.get('count', 0)} pods from {step.get('from', '')}"
            return clusters, moved + (f": {reasons}" if reasons else "")


def _pods(placements: Sequence[Object]) -> str:
    """`8 worker on h100`."""
    parts = []
    for placement in placements:
        for pods in placement.get("podSets") or ():
            flavors = sorted(set((pods.get("flavors") or {}).values()))
            on = f" on {'+'.join(flavors)}" if flavors else ""
            is_plural = pods["name"] == "pod" and pods["count"] != 1
            parts.append(f"{pods['count']} {pods['name']}{'s' if is_plural else ''}{on}")
    return " + ".join(dict.fromkeys(parts))


def _show_attempts(workload: Object, *, with_headings: bool) -> None:
    status = workloads.status_of(workload)
    past: list[Object] = list(status.get("history") or ())
    rows = [_attempt(value, _resume(past, at, status)) for at, value in enumerate(past)]
    if claim := status.get("claim"):
        clusters = ",".join(workloads.clusters_of(workload))
        started = claim.get("readyAt")
        state = workloads.line(workload, with_time=True)
        rows.append([str(claim["attempt"]), clusters, stamp(started), "", "", "", state])
    if rows:
        render_table.show(Grid(ATTEMPTS, rows), with_headings=with_headings)
        terminal.write([""])
    else:
        terminal.write([f"{workloads.name_of(workload)} {workloads.line(workload)}.", ""])


def _resume(past: Sequence[Object], at: int, status: Object) -> str:
    """When the attempt after this one began."""
    if at + 1 < len(past):
        return str(past[at + 1].get("startedAt") or "")
    claim = status.get("claim") or {}
    return str(claim.get("readyAt") or claim.get("decidedAt") or "")


def _for_whom(by: Object) -> str:
    """The workload that preempted it; for one of another team, only its queue and priority."""
    if by.get("name"):
        return f"for {by.get('namespace', '')}/{by['name']}"
    queue = f" in queue {by['queue']}" if by.get("queue") else ""
    priority = f", priority {by['priority']}" if by.get("priority") is not None else ""
    return f"for {ANOTHER}{queue}{priority}"


def _attempt(entry: Object, resumed: str) -> list[str]:
    """One attempt; if it was preempted, with the cause and the lost work."""
    said = []
    if by := entry.get("preemptedBy"):
        said.append(_for_whom(by))
    if entry.get("lostSeconds"):
        said.append(f"{span(entry['lostSeconds'])} of work lost")
    if entry.get("exitCode"):
        said.append(f"exit code {entry['exitCode']}")
    if entry.get("message"):
        said.append(str(entry["message"]))
    if resumed:
        said.append(f"went on {stamp(resumed)}")
    return [
        str(entry.get("attempt", "")),
        ",".join(entry.get("clusters") or ()),
        stamp(entry.get("startedAt")),
        between(entry.get("startedAt"), entry.get("endedAt")),
        stamp(entry.get("endedAt")),
        str(entry.get("reason") or ""),
        "; ".join(said),
    ]
