"""`fairway explain`: the fields of a kind, from the server's own schema of it.

For an object, as in `workload/train`, it says why it waits; see `why`.
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator

import click
from rich.text import Text

from fairway.cli import terminal
from fairway.cli.commands import Command
from fairway.cli.completion import complete_kinds
from fairway.cli.openapi import Document
from fairway.cli.session import Failure, Session, current
from fairway.client.catalogue import Served
from fairway.client.errors import UnknownKind
from fairway.client.wire import Object

EXAMPLES = """
    fairway explain workload                  its fields
    fairway explain workload.spec.podSets     one field and what is in it
    fairway explain queue --recursive         all fields at all depths
    fairway explain workload/train            why that one waits, as `fairway why train`
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("path", metavar="KIND[.FIELD]...|WORKLOAD", shell_complete=complete_kinds)
@click.option("--recursive", is_flag=True, help="Show the fields of fields too, names only.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    metavar="FORM",
    help="Of a workload: table, json or yaml.",
)
def explain(*, path: str, recursive: bool, output: str) -> int:
    """Describe the fields of a kind; or say why a workload waits, named as workload/NAME."""
    session = current()
    if "/" in path:
        from fairway.cli.why import show  # noqa: PLC0415 - only for workloads

        return show(session, path, output)
    served, fields = _split(session, path)
    document = _document(session, served)
    schema = document.of_kind(served)
    if schema is None:
        raise Failure(f"the server does not describe {served.qualified}")
    walked: list[str] = []
    for name in fields:
        schema = _step(document, schema, name, ".".join([path.split(".", maxsplit=1)[0], *walked]))
        walked.append(name)
    terminal.write(list(_lines(served, walked, document, schema, recursive)))
    return 0


def _split(session: Session, path: str) -> tuple[Served, list[str]]:
    """Kind and fields; a kind may be qualified by its group, which also contains dots."""
    parts = path.split(".")
    catalogue = session.client.catalogue()
    for size in range(len(parts), 0, -1):
        try:
            return catalogue.resolve(".".join(parts[:size])), [
                part for part in parts[size:] if part
            ]
        except UnknownKind:
            if size == 1:
                raise
    raise UnknownKind(path)


def _document(session: Session, served: Served) -> Document:
    root = f"apis/{served.group}/{served.version}" if served.group else f"api/{served.version}"
    index = session.client.fetch("/openapi/v3").get("paths") or {}
    if root not in index:
        raise Failure(f"the server does not describe {served.api_version}")
    result = session.client.fetch(str(index[root]["serverRelativeURL"]))
    return Document((result.get("components") or {}).get("schemas") or {})


def _step(document: Document, schema: Object, name: str, walked: str) -> Object:
    fields = document.fields(schema)
    if name not in fields:
        close = difflib.get_close_matches(name, fields, n=1)
        hint = f' (did you mean "{close[0]}"?)' if close else ""
        raise Failure(f'field "{name}" does not exist in {walked}{hint}')
    return fields[name]


def _lines(
    served: Served, walked: list[str], document: Document, schema: Object, recursive: bool
) -> Iterator[Text | str]:
    if served.group:
        yield _pair("GROUP", served.group)
    yield _pair("KIND", served.kind)
    yield _pair("VERSION", served.version)
    yield ""
    if walked:
        yield _pair("FIELD", f"{walked[-1]} <{document.type_name(schema)}>")
        yield ""
    whole = document.resolve(schema)
    yield Text("DESCRIPTION:", style="bold")
    yield from _wrap(str(whole.get("description") or "<empty>"), 4)
    yield from _wrap(_limits(whole), 4)
    fields = document.fields(schema)
    if not fields:
        return
    yield ""
    yield Text("FIELDS:", style="bold")
    yield from _fields(document, schema, 2, recursive, frozenset())


def _fields(
    document: Document, schema: Object, indent: int, recursive: bool, seen: frozenset[str]
) -> Iterator[Text | str]:
    required = set(document.required_fields(schema))
    for name, field in sorted(document.fields(schema).items()):
        kind = document.type_name(field)
        yield Text.assemble(
            " " * indent,
            (name, "bold cyan"),
            "\t" if not terminal.is_rich() else "  ",
            (f"<{kind}>", "dim"),
            (" -required-" if name in required else "", "yellow"),
        )
        if recursive:
            # A recursive schema is shown once.
            if kind.endswith("Object") or kind not in seen:
                yield from _fields(document, field, indent + 2, True, seen | {kind})
            continue
        whole = document.resolve(field)
        yield from _wrap(str(whole.get("description") or ""), indent + 2)
        yield from _wrap(_limits(whole), indent + 2)
        yield ""


def _limits(schema: Object) -> str:
    """The limits of a value, beyond its type."""
    said = []
    if values := schema.get("enum"):
        said.append(f"One of: {', '.join(map(str, values))}.")
    if (least := schema.get("minimum")) is not None:
        said.append(f"At least {least}.")
    if (most := schema.get("maximum")) is not None:
        said.append(f"At most {most}.")
    if "default" in schema and schema["default"] not in ({}, ""):
        said.append(f"Default: {schema['default']}.")
    return " ".join(said)


def _wrap(text: str, indent: int) -> Iterator[str]:
    width = min(terminal.width(), 100) - indent if terminal.is_rich() else 80 - indent
    for paragraph in text.splitlines():
        for line in textwrap.wrap(paragraph, max(width, 20)):
            yield " " * indent + line


def _pair(key: str, value: str) -> Text:
    return Text.assemble((f"{key}:".ljust(12), "bold"), value)
