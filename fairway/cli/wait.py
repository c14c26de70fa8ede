"""`fairway wait`: returns when a condition has become true."""

from __future__ import annotations

import time

import click

from fairway.api.errors import NotFound
from fairway.cli import options, terminal
from fairway.cli.commands import Command
from fairway.cli.completion import complete_targets
from fairway.cli.conditions import Exists, Goal, Gone, HasCondition, HasValue, Vanished, wait_for
from fairway.cli.options import Duration
from fairway.cli.session import Failure, current, say
from fairway.cli.targets import Target, find_targets, from_files, parse

A_WEEK = 7 * 86400.0
EXAMPLES = """
    fairway wait workload/train --for=jsonpath='{.status.phase}'=Succeeded --timeout=1h
    fairway wait pods -l app=web --for=condition=Ready
    fairway wait namespace/old --for=delete
    fairway wait cluster/east --for=create
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("words", nargs=-1, metavar="KIND NAME...", shell_complete=complete_targets)
@click.option(
    "--for",
    "wish",
    required=True,
    metavar="GOAL",
    help="condition=NAME[=VALUE], jsonpath=PATH[=VALUE], delete or create.",
)
@click.option(
    "--timeout",
    type=Duration(),
    default=30.0,
    metavar="TIME",
    help="How long to wait; default 30s. 0 checks once, below 0 waits a week.",
)
@options.files
@options.recursive
@options.selector
@options.field_selector
@options.all_namespaces
@click.option("--all", "everything", is_flag=True, help="All objects of the kind.")
def wait(  # noqa: PLR0913 - one parameter for each option
    *,
    words: tuple[str, ...],
    wish: str,
    timeout: float,
    filenames: tuple[str, ...],
    recursive: bool,
    selector: str,
    field_selector: str,
    all_namespaces: bool,
    everything: bool,
) -> int:
    """Wait for a condition on every object named."""
    session = current()
    goal = parse_goal(wish)
    targets = from_files(session, filenames, recursive) if filenames else parse(session, words)
    is_broad = everything or bool(selector or field_selector)
    if not is_broad and not all(target.name for target in targets):
        raise Failure("say which ones: give names, a selector with -l, or --all")
    if all_namespaces:
        targets = [Target(served=target.served, name=target.name) for target in targets]
    result = find_targets(session, targets, labels=selector, fields=field_selector)
    if not result:
        if isinstance(goal, Gone):
            return 0
        raise Failure("no matching resources found")
    deadline = time.monotonic() + (A_WEEK if timeout < 0 else timeout)
    failures = 0
    for target in result:
        left = 0.0 if timeout == 0 else max(deadline - time.monotonic(), 0.001)
        try:
            wait_for(session, target, goal, left)
        except TimeoutError:
            say(f"error: timed out waiting for the condition on {_plural(target)}")
            failures += 1
        except Vanished:
            say(
                f'Error from server (NotFound): {target.served.qualified} "{target.name}" not found'
            )
            failures += 1
        except NotFound as error:
            say(f"Error from server (NotFound): {error.message}")
            failures += 1
        else:
            terminal.write(
                [f"{target.label} {'deleted' if isinstance(goal, Gone) else 'condition met'}"]
            )
    return 1 if failures else 0


def parse_goal(text: str) -> Goal:
    """Parses the value of `--for`."""
    word, _, rest = text.partition("=")
    if text.lower() == "delete":
        return Gone()
    if text.lower() == "create":
        return Exists()
    if word == "condition" and rest:
        name, _, value = rest.partition("=")
        return HasCondition(type=name, value=value or "True")
    if word == "jsonpath" and rest:
        return _parse_path(rest)
    raise click.BadParameter(
        f"{text!r} is not condition=NAME[=VALUE], jsonpath=PATH[=VALUE], delete or create",
        param_hint="--for",
    )


def _parse_path(rest: str) -> HasValue:
    """Parses a path; within braces it may contain equal signs."""
    end = rest.rfind("}")
    if rest.startswith("{") and end > 0:
        path, tail = rest[: end + 1], rest[end + 1 :]
        return HasValue(path=path, value=tail[1:] if tail.startswith("=") else None)
    path, equals, value = rest.partition("=")
    return HasValue(path=path, value=value if equals else None)


def _plural(target: Target) -> str:
    return f"{target.served.qualified}/{target.name}"
