"""`fairway edit`: opens an object in the user's editor, and sends the changes back.

If the server refuses, the editor opens again on the edited text, with the reason on top; nothing
typed is lost. Leaving the text unchanged, or emptying it, changes nothing.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import click

from fairway.api.codec import to_yaml
from fairway.api.errors import ApiError
from fairway.cli import render_objects, terminal
from fairway.cli.commands import Command
from fairway.cli.completion import complete_targets
from fairway.cli.manifests import parse as parse_manifest
from fairway.cli.session import Failure, Session, current, say
from fairway.cli.targets import Target, parse
from fairway.client.wire import Object

ADVICE = (
    "Change what you like, save and leave. Lines that begin with '#' are passed over.",
    "An empty file changes nothing. If it is refused, this opens again with the reason.",
)
EXAMPLES = """
    fairway edit workload train
    EDITOR=nano fairway edit queue/team-a
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("words", nargs=-1, metavar="KIND NAME", shell_complete=complete_targets)
def edit(*, words: tuple[str, ...]) -> int:
    """Change an object in your editor ($EDITOR, $VISUAL or vi)."""
    session = current()
    targets = parse(session, words)
    if not all(target.name for target in targets):
        raise Failure("say which one: KIND NAME")
    for target in targets:
        _edit(session, target)
    return 0


def _edit(session: Session, target: Target) -> None:
    obj = session.client.get(target.served, target.name, namespace=target.namespace)
    original = _text(obj)
    text, reasons = original, list[str]()
    with tempfile.TemporaryDirectory(prefix="fairway-edit-") as folder:
        file = Path(folder, f"{target.served.singular or 'object'}-{target.name}.yaml")
        while True:
            file.write_text(_comments([*ADVICE, *reasons]) + text)
            _open_editor(file)
            written = _strip_comments(file.read_text())
            if not written.strip() or written == original:
                say("Edit cancelled, no changes made.")
                return
            if reasons and written == text:
                raise Failure(f"edit given up, nothing was changed: {reasons[-1]}")
            text = written
            try:
                session.client.replace(_parse(written, obj))
            except ApiError as error:
                reasons = ["", f"Refused ({error.reason}):", *error.message.splitlines()]
                continue
            except Failure as error:
                reasons = ["", *error.message.splitlines()]
                continue
            terminal.write([f"{target.label} edited"])
            return


def _text(obj: Object) -> str:
    shown = render_objects.without_managed_fields(obj)
    return to_yaml(render_objects.in_order(shown))


def _parse(text: str, before: Object) -> Object:
    objects = parse_manifest(text, "the edited text")
    if len(objects) != 1:
        raise Failure("the edited text must hold exactly one object")
    after = objects[0]
    for path in (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")):
        if _at(after, path) != _at(before, path):
            raise Failure(f"{'.'.join(path)} of an object cannot change")
    return after


def _at(obj: Object, path: tuple[str, ...]) -> object:
    value: object = obj
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _comments(lines: list[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _strip_comments(text: str) -> str:
    """Removes our comments on top; a # further down may be part of the object."""
    lines = text.splitlines(keepends=True)
    while lines and lines[0].startswith("#"):
        lines.pop(0)
    return "".join(lines)


def _open_editor(file: Path) -> None:
    choices = (os.environ.get(name) for name in ("KUBE_EDITOR", "VISUAL", "EDITOR"))
    command = shlex.split(next((choice for choice in choices if choice), "vi"))
    try:
        done = subprocess.run([*command, str(file)], check=False)  # noqa: S603 - the user's editor
    except OSError as error:
        raise Failure(f"cannot start the editor {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise Failure(f"the editor {command[0]} ended with exit code {done.returncode}")
