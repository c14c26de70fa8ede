"""`fairway rotate-key`, and the options that say where the keys for the data on disk are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from fairway.cli.commands import Command
from fairway.cli.session import current, say

if TYPE_CHECKING:
    from fairway.hub.encryption_keys import KeySource

EXAMPLES = """
    head -c 32 /dev/urandom | base64            a new key
    fairway rotate-key                          once the new key is the first in the hub's key file
"""
_Command = TypeVar("_Command", bound=Callable[..., Any])


class Keys(TypedDict):
    """The options as they were given."""

    encryption_key_file: Path | None
    encryption_key_command: str


_OPTIONS = (
    click.option(
        "--encryption-key-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Encrypt data on disk with the first key in this file; default: "
        "$FAIRWAY_ENCRYPTION_KEY.",
    ),
    click.option(
        "--encryption-key-command",
        default="",
        metavar="COMMAND",
        help="The same with keys that this command prints.",
    ),
)


def key_options(command: _Command) -> _Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read(given: Keys) -> KeySource:
    """Where the keys are, by the options or by the environment."""
    from fairway.hub.encryption_keys import KeySource  # noqa: PLC0415 - see cli.up

    if given["encryption_key_file"] and given["encryption_key_command"]:
        raise click.UsageError("Give --encryption-key-file or --encryption-key-command, not both.")
    return KeySource(
        file=given["encryption_key_file"],
        command=given["encryption_key_command"],
        is_from_environment=True,
    )


@click.command("rotate-key", cls=Command, examples=EXAMPLES)
def rotate_key() -> int:
    """Encrypt a hub's data on disk with another key, while it runs.

    Put the new key first in the hub's key file, and leave the old one below it. This command lets
    the hub read its keys again and encrypt everything with the first one. Then the old key can go.
    """
    answer = current().client.rotate_key()
    say(f"{answer['values']} values were encrypted with the key {answer['key']}")
    if answer["before"] != answer["key"]:
        say(f"The key {answer['before']} is needed for older backups only.")
    return 0
