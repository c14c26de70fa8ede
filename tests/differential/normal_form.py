"""Outcomes in a form that two servers can be compared by.

What may rightly differ between two runs is replaced by its name in angle brackets: times, ages,
uids, resource versions, addresses, random endings of generated names, tokens. Everything else
stays. What was written by whom is sorted by the writer, since upstream orders these entries by
a time of whole seconds.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

_REPLACED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"), "<time>"),
    (re.compile(r"https?://(?:127\.0\.0\.1|localhost|\[::1\]):\d+"), "<server>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"/tmp/[\w./-]+"), "<file>"),
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"), "<token>"),
    (re.compile(r'("resourceVersion": ?)"\d+"'), r'\1"<version>"'),
    (re.compile(r"(resourceVersion: )\"?\d+\"?"), r"\1<version>"),
    (re.compile(r"(resource version: \d+, current: )\d+"), r"\1<version>"),
    (re.compile(r"(ResourceVersion in record \()\d+"), r"\1<version>"),
    (re.compile(r"(ResourceVersion in object meta: )\d+"), r"\1<version>"),
    (re.compile(r'(\\"resourceVersion\\":\\")\d+'), r"\1<version>"),
    (re.compile(r"(made-)[a-z0-9]{5}\b"), r"\1<random>"),
)
# Upstream walks maps in no order, so neither have the causes of a refusal one.
_CAUSES = re.compile(r"(?:^\* .*\n?)+", re.MULTILINE)
_AGE = r"(?:\d+[smhdy])+|<invalid>"
# Alone; with how often an event was seen over which time; or after a number of restarts.
_AGED_CELL = re.compile(rf"(?:{_AGE})(?: \(x\d+ over (?:{_AGE})\))?|\d+ \((?:{_AGE}) ago\)")
_DESCRIPTIONS = {"description", "x-kubernetes-group-version-kind"}


def text(value: str) -> str:
    """A text with everything that varies replaced."""
    for pattern, replacement in _REPLACED:
        value = pattern.sub(replacement, value)
    return _CAUSES.sub(_sorted_lines, value.rstrip("\n"))


def value(given: Any, key: str = "") -> Any:
    """A JSON value with everything that varies replaced."""
    if isinstance(given, dict):
        given = _without_own_writes(given)
        plain = {text(name): value(each, name) for name, each in given.items()}
        return _with_sorted_causes(plain) if plain.get("kind") == "Status" else plain
    if isinstance(given, list):
        items = [value(each) for each in given]
        if key == "cells":
            return [cell(each) if isinstance(each, str) else each for each in items]
        return sorted(items, key=_writer) if key == "managedFields" else items
    if isinstance(given, str):
        if key == "resourceVersion" and given.isdigit():
            return "<version>"
        if key == "continue" and given:
            return "<continue>"
        return text(given)
    return given


# A controller of the hub that writes to the objects of users; upstream's does not run here.
_OWN_WRITER = "fairway-adopted-autoscalers"


def _without_own_writes(given: dict[str, Any]) -> dict[str, Any]:
    """An object without the status that only the hub's own controller has written."""
    metadata = given.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    own = [each for each in entries or () if each.get("manager") == _OWN_WRITER]
    if not own:
        return given
    others = [each for each in entries or () if each not in own]
    written = {name for each in own for name in each["fieldsV1"].get("f:status", {})}
    kept = {name for each in others for name in each["fieldsV1"].get("f:status", {})}
    gone = {name.removeprefix("f:") for name in written - kept}
    status = {name: each for name, each in given.get("status", {}).items() if name not in gone}
    return {**given, "metadata": {**metadata, "managedFields": others}, "status": status}


def output(given: str, how: str) -> Any:
    """Standard output, read as the step says."""
    readers = {
        "text": text,
        "nothing": lambda _: "",
        "lines": lambda each: sorted(text(each).splitlines()),
        "table": table,
        "json": lambda each: value(json.loads(each)) if each.strip() else "",
        "yaml": lambda each: value(yaml.safe_load(each)),
        "documents": lambda each: [value(document) for document in documents(each)],
        "fields": fields,
    }
    try:
        return readers[how](given)
    except (ValueError, yaml.YAMLError):
        return text(given)


def table(given: str) -> list[list[str]]:
    """A printed table as rows of cells; ages are replaced."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in text(given).splitlines() if line.strip()]
    return [[cell(each) for each in row] for row in rows]


def cell(given: str) -> str:
    """A cell of a table; the ages in it are replaced, whatever their units."""
    return re.sub(_AGE, "<age>", given) if _AGED_CELL.fullmatch(given) else given


def documents(given: str) -> list[Any]:
    """JSON objects printed one after the other; an unfinished last one is left out."""
    decoder = json.JSONDecoder()
    found: list[Any] = []
    rest = given.lstrip()
    while rest:
        try:
            one, end = decoder.raw_decode(rest)
        except ValueError:
            break
        found.append(one)
        rest = rest[end:].lstrip()
    return found


def fields(given: str) -> list[str]:
    """Names and types out of what `explain` printed; its prose is upstream's, not ours."""
    kept = []
    for line in text(given).splitlines():
        heading = re.match(r"^(GROUP|KIND|VERSION|FIELD|RESOURCE):\s*(.*)$", line)
        entry = re.match(r"^(\s*)([\w$-]+)\t+(<[^>]*>+)(.*)$", line)
        if heading:
            kept.append(f"{heading[1]}: {heading[2]}")
        elif entry:
            kept.append(f"{entry[1]}{entry[2]} {entry[3]}{entry[4].rstrip()}")
    return kept


def without_prose(given: Any) -> Any:
    """A JSON value without descriptions."""
    if isinstance(given, dict):
        return {
            key: without_prose(each)
            for key, each in given.items()
            if not (key in _DESCRIPTIONS and isinstance(each, str | list))
        }
    if isinstance(given, list):
        return [without_prose(each) for each in given]
    return given


def _sorted_lines(found: re.Match[str]) -> str:
    lines = sorted(found[0].splitlines())
    return "\n".join(lines) + ("\n" if found[0].endswith("\n") else "")


def _with_sorted_causes(status: dict[str, Any]) -> dict[str, Any]:
    details, message = status.get("details"), status.get("message")
    causes = details.get("causes") if isinstance(details, dict) else None
    if not isinstance(causes, list) or len(causes) < 2 or not isinstance(message, str):
        return status
    told = [f"{cause.get('field')}: {cause.get('message')}" for cause in causes]
    begin, found, listed = message.partition("is invalid: [")
    if found and sorted(listed[:-1]) == sorted(", ".join(told)):
        message = f"{begin}{found}{', '.join(sorted(told))}]"
    ordered = [
        cause for _, cause in sorted(zip(told, causes, strict=True), key=lambda item: item[0])
    ]
    return {**status, "message": message, "details": {**details, "causes": ordered}}


def _writer(entry: Any) -> tuple[str, ...]:
    if not isinstance(entry, dict):
        return (str(entry),)
    return tuple(
        str(entry.get(key, "")) for key in ("manager", "operation", "subresource", "apiVersion")
    )
