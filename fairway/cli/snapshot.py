"""`fairway snapshot`: saves all inputs of a decision, and replays decisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from fairway.cli import terminal
from fairway.cli.commands import Command, global_options
from fairway.cli.session import Failure, current, say

if TYPE_CHECKING:
    from fairway.controllers.scheduling.record import Replay

DUMP_EXAMPLES = """
    fairway snapshot dump -o fleet.json     to a file
    fairway plan -f fleet.json              what would be decided on it, and why
"""
REPLAY_EXAMPLES = """
    fairway snapshot replay ~/.local/share/fairway/decisions      all that a hub recorded
    fairway snapshot replay decisions/00000003.decisions          one segment
"""
_SHOWN = 5


@click.group()
def snapshot() -> None:
    """Dump what decisions are made from, and replay recorded decisions."""


snapshot.params += global_options()


@snapshot.command("dump", cls=Command, examples=DUMP_EXAMPLES)
@click.option(
    "-o", "--output", default="-", metavar="FILE", help="File to write; - is standard output."
)
@click.option(
    "--format", "form", type=click.Choice(["json", "yaml"]), default=None, help="json by default."
)
def dump(*, output: str, form: str | None) -> int:
    """Print everything that decisions are made from, as a list of objects.

    `fairway plan -f FILE` reads it, and plans for the moment at which it was taken.
    """
    answer = current().client.ask("fleets.fairway.dev", "fleet", "snapshot")
    is_yaml = form == "yaml" or (form is None and output.endswith((".yaml", ".yml")))
    text = (
        yaml.safe_dump(answer, sort_keys=False) if is_yaml else json.dumps(answer, indent=1) + "\n"
    )
    if output == "-":
        click.echo(text, nl=False)
        return 0
    try:
        Path(output).write_text(text)
    except OSError as error:
        raise Failure(f"cannot write {output}: {error.strerror}") from error
    say(f"{len(answer.get('items') or ())} objects written to {output}")
    return 0


@snapshot.command("replay", cls=Command, examples=REPLAY_EXAMPLES)
@click.argument("place", metavar="FILE|FOLDER", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    help="Text for people, or JSON for programs.",
)
def replay(*, place: Path, output: str) -> int:
    """Replay recorded decisions, and show where they differ.

    A hub records in the folder `decisions` of its data what its planner was told and what it
    answered. The exit code is 1 if a decision comes out differently now.
    """
    # The core is much larger than the client; only this command loads it.
    from fairway.controllers.scheduling.record import replay as again  # noqa: PLC0415 - as above
    from fairway.hub.decision_log import read_segment, segments  # noqa: PLC0415 - as above

    if not place.exists():
        raise Failure(f'the path "{place}" does not exist')
    files = segments(place) if place.is_dir() else [place]
    if not files and place.is_dir() and (place / "decisions").is_dir():
        files = segments(place / "decisions")
    if not files:
        raise Failure(f"there is no record of decisions in {place}")
    result: list[tuple[Path, Replay]] = []
    for file in files:
        try:
            result.append((file, again(read_segment(file))))
        except (OSError, ValueError, KeyError) as error:
            raise Failure(f"{file} is not a record of decisions: {error}") from error
        except Exception as error:
            if type(error).__module__ == "zlib":
                raise Failure(f"{file} is not a record of decisions") from error
            raise
    _show(result, output)
    return 1 if any(replay.differences for _, replay in result) else 0


def _show(items: list[tuple[Path, Replay]], output: str) -> None:
    if output == "json":
        segments = [
            {
                "file": str(file),
                "plans": replay.plans,
                "decisions": replay.decisions,
                "differences": replay.differences,
            }
            for file, replay in items
        ]
        click.echo(json.dumps({"segments": segments}, indent=2))
        return
    for file, replay in items:
        different = len(replay.differences)
        verdict = f"{different} differ" if different else "all the same"
        counts = f"{replay.plans} plans with {replay.decisions} decisions made again"
        terminal.write([f"{file.name}: {counts}, {verdict}"])
        for difference in replay.differences[:_SHOWN]:
            terminal.write([f"  at {difference['now']}:"])
            terminal.write([f"    recorded: {_steps(difference['recorded'])}"])
            terminal.write([f"    now:      {_steps(difference['replayed'])}"])
        if different > _SHOWN:
            terminal.write([f"  and {different - _SHOWN} more (-o json)"])


def _steps(answer: dict[str, object]) -> str:
    steps = answer.get("steps")
    if not isinstance(steps, list) or not steps:
        return "nothing"
    named = [f"{step.get('action')} {step.get('workload')}" for step in steps[:4]]
    return ", ".join(named) + (f" and {len(steps) - 4} more" if len(steps) > 4 else "")
