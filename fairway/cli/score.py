"""`fairway score`: tries a scorer, and shows what its scores would change."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.text import Text

from fairway.cli import manifests, options, render_objects, terminal
from fairway.cli.commands import Command, global_options
from fairway.cli.render_table import Grid, Printer
from fairway.cli.session import Failure, current
from fairway.client.wire import Object

EXAMPLES = """
    fairway score test carbon             run a scorer once, and keep nothing
    fairway score test -f carbon.yaml     one that does not exist yet
    fairway get scores                    the scores of all clusters
    fairway get scorers                   where scores come from, and whether that works
"""
_FLEETS = "fleets.fairway.dev"
_SCORES = "scores.fairway.dev/v1alpha1"


@click.group()
def score() -> None:
    """Try scorers: what they yield for each cluster, and what that would change."""


score.params += global_options()


@score.command(cls=Command, examples=EXAMPLES)
@click.argument("name", required=False, default="")
@click.option("-f", "--filename", default="", metavar="FILE", help="A file with the scorer.")
@options.output()
def test(*, name: str, filename: str, output: str) -> int:
    """Run a scorer once, and show what its scores would change."""
    if bool(name) == bool(filename):
        raise Failure("name a scorer, or give a file with one by -f")
    scorer: Object = {"apiVersion": _SCORES, "kind": "Scorer", "metadata": {"name": name}}
    if filename:
        objects = [item for item in manifests.read_files([filename]) if item["kind"] == "Scorer"]
        if len(objects) != 1:
            raise Failure(f"{filename}: one Scorer is expected, and there are {len(objects)}")
        scorer = objects[0]
    answer = current().client.ask(_FLEETS, "fleet", "score", body=scorer)
    if output not in {"table", "wide"}:
        click.echo(render_objects.render(output, [answer], is_single=True))
        return 0
    if fault := answer.get("fault"):
        raise Failure(f"scorer {answer['scorer']}: {fault}")
    rows = list(_rows(answer))
    if rows:
        Printer().show(Grid(["CLUSTER", "ITEM", "MEASURED", "SCORE", "NOW", "SAMPLES"], rows))
    else:
        terminal.write(["No cluster gets a score."])
    terminal.write(list(_changes(answer)))
    return 0


def _rows(answer: Object) -> Iterator[list[str]]:
    for row in answer["clusters"]:
        texts = (row.get(key, "") for key in ("item", "measured", "value", "now", "samples"))
        yield [row["cluster"], *(str(text) for text in texts)]


def _changes(answer: Object) -> Iterator[Text | str]:
    for fault in answer["faults"]:
        yield f"{fault['cluster']}: {fault['message']}"
    for policy in answer["policies"]:
        now, then = (_names(policy[key]) for key in ("chooses", "wouldChoose"))
        if now == then:
            yield f"Policy {policy['policy']} would choose the same: {now}."
        else:
            yield Text.assemble(
                f"Policy {policy['policy']} chooses {now}, and would choose ", (then, "bold"), "."
            )


def _names(clusters: list[Object]) -> str:
    return ", ".join(item["cluster"] for item in clusters) or "none"
