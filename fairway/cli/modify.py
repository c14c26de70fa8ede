"""`label`, `annotate`, `patch` and `scale`: small changes without a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

from fairway.api.errors import UnsupportedMediaType
from fairway.cli import options, terminal
from fairway.cli.commands import Command
from fairway.cli.completion import complete_targets
from fairway.cli.session import Failure, Session, current
from fairway.cli.targets import Target, find_targets, parse
from fairway.client.wire import Object, PatchType

LABEL_EXAMPLES = """
    fairway label workload train team=vision        add
    fairway label wl train team=audio --overwrite   change
    fairway label wl train team-                    remove
    fairway label clusters --all region=eu          all of a kind
"""
ANNOTATE_EXAMPLES = """
    fairway annotate workload train note='second attempt'   add
    fairway annotate wl/train note-                         remove
"""
PATCH_EXAMPLES = """
    fairway patch queue team-a -p '{"spec":{"weight":2}}'
    fairway patch wl train --type=json -p '[{"op":"remove","path":"/spec/priority"}]'
    fairway patch queue team-a --patch-file change.yaml
"""
SCALE_EXAMPLES = """
    fairway scale deployment web --replicas=3
    fairway scale workload/serve --replicas=0
"""
# A change to a label: KEY=VALUE adds, KEY- removes.
_CHANGE = re.compile(r"(?P<key>[^=/]+(?:/[^=/]+)?)(?:=(?P<value>.*)|(?P<gone>-))", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marking:
    """Changes to the labels, or annotations, of some objects."""

    field: str
    past: str
    changes: dict[str, str | None]
    overwrites: bool
    is_dry: bool


def _marker(field: str, past: str, examples: str) -> click.Command:
    """Makes the command that changes labels, or annotations."""

    @click.argument(
        "words", nargs=-1, metavar="KIND NAME... KEY=VALUE...", shell_complete=complete_targets
    )
    @click.option("--overwrite", is_flag=True, help=f"Allow existing {field} to change.")
    @click.option("--all", "everything", is_flag=True, help="All objects of the kind.")
    @options.selector
    @options.dry_run
    def mark(
        *, words: tuple[str, ...], overwrite: bool, everything: bool, selector: str, dry_run: str
    ) -> int:
        objects, changes = _split(words)
        marking = Marking(
            field=field,
            past=past,
            changes=changes,
            overwrites=overwrite,
            is_dry=dry_run == "server",
        )
        return _mark(_choose(current(), objects, everything, selector), marking)

    purpose = f"Add, change or remove {field}: KEY=VALUE adds, KEY- removes."
    return click.command(cls=Command, examples=examples, help=purpose)(mark)


label = _marker("labels", "labeled", LABEL_EXAMPLES)
annotate = _marker("annotations", "annotated", ANNOTATE_EXAMPLES)


@click.command(cls=Command, examples=PATCH_EXAMPLES)
@click.argument("words", nargs=-1, metavar="KIND NAME", shell_complete=complete_targets)
@click.option("-p", "--patch", "text", default="", metavar="PATCH", help="JSON or YAML.")
@click.option(
    "--patch-file", type=click.Path(exists=True, dir_okay=False), help="The same, in a file."
)
@click.option(
    "--type",
    "form",
    type=click.Choice(["strategic", "merge", "json"]),
    help="How to read it; by default strategic where the kind allows, else merge.",
)
@click.option("--subresource", default="", metavar="PART", help="status or scale.")
@options.dry_run
def patch(
    *,
    words: tuple[str, ...],
    text: str,
    patch_file: str | None,
    form: str | None,
    subresource: str,
    dry_run: str,
) -> int:
    """Change some fields of an object."""
    session = current()
    body = _read_patch(Path(patch_file).read_text() if patch_file else text)
    for target in _choose(session, words, False, ""):
        forms = [PatchType[form.upper()]] if form else [PatchType.STRATEGIC, PatchType.MERGE]
        before = session.client.get(target.served, target.name, namespace=target.namespace)
        after = _patch(session, target, body, forms, subresource, dry_run == "server")
        changed = before["metadata"].get("resourceVersion") != after["metadata"].get(
            "resourceVersion"
        )
        verdict = "patched" if changed or dry_run == "server" else "patched (no change)"
        terminal.write([f"{target.label} {verdict}{_dry(dry_run == 'server')}"])
    return 0


@click.command(cls=Command, examples=SCALE_EXAMPLES)
@click.argument("words", nargs=-1, metavar="KIND NAME...", shell_complete=complete_targets)
@click.option(
    "--replicas", type=click.IntRange(min=0), required=True, metavar="N", help="Number of replicas."
)
@click.option(
    "--current-replicas", type=int, metavar="N", help="Only if this is the current number."
)
def scale(*, words: tuple[str, ...], replicas: int, current_replicas: int | None) -> int:
    """Set the number of replicas."""
    session = current()
    for target in _choose(session, words, False, ""):
        if "scale" not in target.served.subresources:
            raise Failure(f"{target.served.qualified} cannot be scaled")
        if current_replicas is not None:
            now = session.client.get(
                target.served, target.name, namespace=target.namespace, subresource="scale"
            )
            count = (now.get("spec") or {}).get("replicas", 0)
            if count != current_replicas:
                raise Failure(f"expected {current_replicas} replicas, found {count}")
        session.client.scale(target.served, target.name, replicas, namespace=target.namespace)
        terminal.write([f"{target.label} scaled"])
    return 0


def _choose(
    session: Session, words: Sequence[str], everything: bool, selector: str
) -> list[Target]:
    targets = parse(session, words)
    if not everything and not selector and not all(target.name for target in targets):
        raise Failure("say which ones: give names, a selector with -l, or --all")
    return find_targets(session, targets, labels=selector)


def _split(words: Sequence[str]) -> tuple[list[str], dict[str, str | None]]:
    """Splits words into those that name objects, and those that are changes."""
    objects = [word for word in words if "=" not in word and not word.endswith("-")]
    changes: dict[str, str | None] = {}
    for word in words:
        if word in objects:
            continue
        match = _CHANGE.fullmatch(word)
        if match is None:
            raise click.UsageError(f"{word!r} is not KEY=VALUE or KEY-")
        if match["key"] in changes:
            raise click.UsageError(f"{match['key']!r} is given twice")
        changes[match["key"]] = None if match["gone"] else match["value"]
    if not changes:
        raise click.UsageError("Say what to change: KEY=VALUE adds, KEY- removes.")
    return objects, changes


def _mark(targets: Sequence[Target], marking: Marking) -> int:
    client = current().client
    for target in targets:
        obj = client.get(target.served, target.name, namespace=target.namespace)
        present: dict[str, str] = obj["metadata"].get(marking.field) or {}
        for key, value in marking.changes.items():
            if value is not None and present.get(key, value) != value and not marking.overwrites:
                raise Failure(
                    f"{target.label} already has {key}={present[key]}; change it with --overwrite"
                )
        needed = {key: value for key, value in marking.changes.items() if present.get(key) != value}
        if needed:
            client.patch(
                target.served,
                target.name,
                {"metadata": {marking.field: needed}},
                namespace=target.namespace,
                dry_run=marking.is_dry,
            )
        verdict = marking.past if needed else f"not {marking.past}"
        terminal.write([f"{target.label} {verdict}{_dry(marking.is_dry)}"])
    return 0


def _read_patch(text: str) -> Any:
    if not text.strip():
        raise click.UsageError("Give the change with -p or --patch-file.")
    try:
        body = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Failure(
            f"the patch is neither JSON nor YAML: {' '.join(str(error).split())}"
        ) from error
    if not isinstance(body, dict | list):
        raise Failure("the patch is not an object or a list")
    return body


def _patch(
    session: Session,
    target: Target,
    body: Any,
    forms: Sequence[PatchType],
    subresource: str,
    is_dry: bool,
) -> Object:
    """Tries the patch types in turn: custom kinds do not support strategic merge."""
    for form in forms[:-1]:
        try:
            return _patch(session, target, body, [form], subresource, is_dry)
        except UnsupportedMediaType:
            continue
    return session.client.patch(
        target.served,
        target.name,
        body,
        type=forms[-1],
        namespace=target.namespace,
        subresource=subresource,
        dry_run=is_dry,
    )


def _dry(is_dry: bool) -> str:
    return " (server dry run)" if is_dry else ""
