"""`fairway why`: why one workload waits, when it is expected to start, and what would help."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.text import Text

from fairway.api.errors import NotFound
from fairway.cli import options, render_objects, terminal, workloads
from fairway.cli.commands import Command
from fairway.cli.completion import complete_workloads
from fairway.cli.moments import clock, margin
from fairway.cli.session import Session, current
from fairway.client.asynchronous import WORKLOADS
from fairway.client.wire import Object

EXAMPLES = """
    fairway why train                    in plain English
    fairway why job/train                by the native object that it stands for
    fairway explain workload/train       the same
    fairway why train -o json            for programs
"""

_RANKED_MOST = 8
_TIMES = "\N{MULTIPLICATION SIGN}"


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("word", metavar="WORKLOAD", shell_complete=complete_workloads)
@options.output()
def why(*, word: str, output: str) -> int:
    """Explain why a workload is pending, when it will start, and what would let it start now."""
    return show(current(), word, output)


def show(session: Session, word: str, output: str = "table") -> int:
    workload = workloads.find(session, word)
    name, namespace = workloads.name_of(workload), workload["metadata"]["namespace"]
    if workloads.is_over(workload) or workloads.phase_of(workload) in {"Stopping", "Held"}:
        terminal.write([_sentence(workload, workloads.line(workload))])
        return 0
    try:
        answer = session.client.ask(WORKLOADS, name, "explain", namespace=namespace)
    except NotFound:
        # It ended or started just now.
        terminal.write([_sentence(workload, workloads.line(workloads.find(session, word)))])
        return 0
    if output not in {"table", "wide"}:
        click.echo(render_objects.render(output, [answer], is_single=True))
        return 0
    terminal.write(list(lines(workload, answer)))
    return 0


def lines(workload: Object, body: Object) -> Iterator[Text | str]:
    """An explanation for people."""
    if body.get("state") == "Runs":
        yield _sentence(workload, workloads.line(workload, with_time=True))
        reasons = body.get("reasons") or ()
        yield from (f"  - {reason['message']}" for reason in reasons if reason.get("policy"))
        lacking = [reason for reason in reasons if not reason.get("policy")]
        yield from _try_({"reasons": lacking})  # for replicas that have no place yet
        yield from _ranking(body)
        return
    if body.get("state") in {"Starts", "Impossible"}:
        yield _sentence(workload, str(body.get("message") or ""))
        yield from _ranking(body)
        return
    queue = body.get("queue")
    copies = workloads.copies(workloads.status_of(workload))
    yield _sentence(workload, f"waits in queue {queue}{copies}" if queue else f"waits{copies}")
    yield ""
    yield from _facts(body)
    yield from _try_(body)
    yield from _ranking(body)
    if remedies := body.get("remedies"):
        yield ""
        yield Text("What would help:", style="bold")
        yield from (f"  - it {remedy['message']}" for remedy in remedies)


def _facts(facts: Object) -> Iterator[Text]:
    needs, nearest = facts.get("needs"), facts.get("nearest")
    if needs:
        between = " " if needs["of"] in ("pod", "pods") else f" {_TIMES} "
        yield _pair("Needs", f"{needs['amount']}{between}{needs['of']}")
    if nearest:
        short = "not together" if nearest["short"] == "0" else f"{nearest['short']} short"
        flavor = nearest.get("flavor") or ""
        of = f" {flavor}" if flavor and needs and flavor != needs["of"] else ""
        yield _pair("Nearest", f"{nearest['cluster']}, {nearest['free']}{of} free ({short})")
    if quota := facts.get("quota"):
        yield _pair("Quota", str(quota["message"]))
    if position := facts.get("position"):
        yield _pair("Position", f"{position} of {facts.get('waiting', position)}")
    expected = facts.get("expected") or {}
    if (start := expected.get("start")) is not None:
        yield _pair("Expected", _expected(expected, float(start), float(facts["now"])))


def _expected(expected: Object, start: float, now: float) -> str:
    latest = expected.get("latest")
    if expected.get("isGuess"):
        when = clock(start, now)
    elif latest is None:
        when = f"{clock(start, now)} or later"
    else:
        earliest = float(expected.get("earliest") or start)
        when = clock(start, now) + margin(max(float(latest) - start, start - earliest))
    because = expected.get("because")
    when = f"{when}, when {because} ends" if because else when
    return f"{when} (a guess: not all run times are known)" if expected.get("isGuess") else when


def _try_(body: Object) -> Iterator[Text | str]:
    """Each reason once, under its rung of the ladder."""
    by_rung: dict[str, dict[str, None]] = {}
    for reason in body.get("reasons") or ():
        by_rung.setdefault(str(reason.get("rung") or ""), {})[str(reason["message"])] = None
    if not by_rung:
        return
    yield ""
    yield Text("What was tried:", style="bold")
    for rung, messages in by_rung.items():
        if rung:
            yield Text(f"  {rung}", style="cyan")
        indent = "    " if rung else "  "
        yield from (f"{indent}- {message}" for message in messages)


def _ranking(body: Object) -> Iterator[Text | str]:
    """The best clusters by their scores, where these say more than how busy clusters are."""
    ranking = body.get("ranking") or ()
    if not ranking:
        return
    yield ""
    yield Text("Clusters by score, best first:", style="bold")
    for ranked in ranking[:_RANKED_MOST]:
        yield f"  - {ranked['cluster']} {ranked['total']}: {ranked['message']}"
    if len(ranking) > _RANKED_MOST:
        yield "    and more; -o json lists them"


def _sentence(workload: Object, said: str) -> Text:
    return Text.assemble((workloads.name_of(workload), "bold"), f" {said}.")


def _pair(key: str, value: str) -> Text:
    return Text.assemble((f"  {key:<10}", "dim"), value)
