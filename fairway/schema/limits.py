"""The limits of a schema as a list of functions, so that a value is checked only for those set."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec
import re2

from fairway.api.doc import CLUSTER_EXPRESSION
from fairway.api.equality import same
from fairway.api.errors import (
    FieldError,
    invalid,
    not_supported,
    too_long,
    too_many,
    wrong_type,
)
from fairway.schema.cel.cluster_expressions import cluster_fault
from fairway.schema.node import Node

Check = Callable[[Any, str, list[FieldError]], None]

_encode = msgspec.json.Encoder(order="deterministic").encode


@lru_cache(maxsize=16_384)
def limits_of(node: Node) -> tuple[Check, ...]:
    """Every check beyond the type; an empty tuple for a plain field."""
    checks: list[Check] = []
    for make in (_number, _text, _members, _choice, _format, expression_checks, _logic):
        checks.extend(make(node))
    return tuple(checks)


def _number(node: Node) -> list[Check]:
    checks: list[Check] = []
    low, high, step = node.minimum, node.maximum, node.multiple_of
    if low is not None:
        word = "greater than" if node.exclusive_minimum else "greater than or equal to"
        if node.exclusive_minimum:
            checks.append(_comparing(lambda value: value > low, f"should be {word} {low}"))
        else:
            checks.append(_comparing(lambda value: value >= low, f"should be {word} {low}"))
    if high is not None:
        word = "less than" if node.exclusive_maximum else "less than or equal to"
        if node.exclusive_maximum:
            checks.append(_comparing(lambda value: value < high, f"should be {word} {high}"))
        else:
            checks.append(_comparing(lambda value: value <= high, f"should be {word} {high}"))
    if step:
        sentence = f"should be a multiple of {step}"
        checks.append(_comparing(lambda value: value % step == 0, sentence))
    if node.type == "integer" and node.format in ("int32", "int64"):
        bits = 31 if node.format == "int32" else 63
        checks.append(
            _comparing(
                lambda value: -(1 << bits) <= value < (1 << bits),
                f"must be a {node.format}",
            )
        )
    return checks


def _comparing(holds: Callable[[Any], bool], sentence: str) -> Check:
    def check(value: Any, path: str, faults: list[FieldError]) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool) and not holds(value):
            faults.append(invalid(path, value, f"{path} in body {sentence}"))

    return check


def _text(node: Node) -> list[Check]:
    checks: list[Check] = []
    if node.min_length:
        least = node.min_length

        def long_enough(value: Any, path: str, faults: list[FieldError]) -> None:
            if isinstance(value, str) and len(value) < least:
                sentence = f"{path} in body should be at least {least} chars long"
                faults.append(invalid(path, value, sentence))

        checks.append(long_enough)
    if node.max_length is not None:
        most = node.max_length

        def short_enough(value: Any, path: str, faults: list[FieldError]) -> None:
            if isinstance(value, str) and len(value) > most:
                faults.append(too_long(path, most))

        checks.append(short_enough)
    if node.pattern:
        pattern = node.pattern
        search = compile_pattern(pattern)
        # The same few values repeat often, and a search is expensive.
        remembered = lru_cache(maxsize=1024)(lambda value: search(value) is not None)

        def matches(value: str) -> bool:
            return remembered(value) if len(value) <= 256 else search(value) is not None

        def matching(value: Any, path: str, faults: list[FieldError]) -> None:
            if isinstance(value, str) and not matches(value):
                faults.append(invalid(path, value, f"{path} in body should match '{pattern}'"))

        checks.append(matching)
    return checks


def compile_pattern(pattern: str) -> Callable[[str], Any]:
    """A linear-time search for a pattern, whatever a user wrote."""
    options = re2.Options()
    options.log_errors = False
    search = re2.compile(pattern, options).search
    # The library works on bytes; given text, it also computes every character position.
    return lambda text: search(text.encode())


def _members(node: Node) -> list[Check]:
    checks: list[Check] = []
    bounds = (
        (list, node.min_items, node.max_items, "items"),
        (dict, node.min_properties, node.max_properties, "properties"),
    )
    for kind, least, most, word in bounds:
        if least or most is not None:
            checks.append(_counting(kind, least or 0, most, word))
    if node.unique_items:
        checks.append(_unique)
    return checks


def _counting(kind: type, least: int, most: int | None, word: str) -> Check:
    def check(value: Any, path: str, faults: list[FieldError]) -> None:
        if not isinstance(value, kind):
            return
        count = len(value)  # type: ignore[arg-type]  # list or dict by the line above
        if count < least:
            sentence = f"{path} in body should have at least {least} {word}"
            faults.append(invalid(path, count, sentence))
        if most is not None and count > most:
            faults.append(too_many(path, count, most))

    return check


def _unique(value: Any, path: str, faults: list[FieldError]) -> None:
    if isinstance(value, list) and len(set(map(_encode, value))) < len(value):
        faults.append(invalid(path, value, f"{path} in body shouldn't contain duplicates"))


def _choice(node: Node) -> list[Check]:
    if node.enum is None:
        return []
    allowed = node.enum

    def check(value: Any, path: str, faults: list[FieldError]) -> None:
        if not any(same(value, item) for item in allowed):
            faults.append(not_supported(path, value, allowed))

    return [check]


def _format(node: Node) -> list[Check]:
    reads = _FORMATS.get(node.format)
    if node.type != "string" or reads is None:
        return []
    name = node.format

    def check(value: Any, path: str, faults: list[FieldError]) -> None:
        if isinstance(value, str) and not reads(value):
            sentence = f"{path} in body must be of type {name}: {value!r}".replace("'", '"')
            faults.append(invalid(path, value, sentence))

    return [check]


def expression_checks(node: Node) -> list[Check]:
    """Expressions of users; a kube-apiserver does not know these formats, and takes anything."""
    if node.type != "string" or node.format != CLUSTER_EXPRESSION:
        return []

    def check(value: Any, path: str, faults: list[FieldError]) -> None:
        if isinstance(value, str) and (fault := cluster_fault(value)):
            faults.append(invalid(path, value, f"{path}: not a valid CEL expression: {fault}"))

    return [check]


def _logic(node: Node) -> list[Check]:
    checks: list[Check] = []
    for branch in node.all_of:
        checks.append(_all_of(branch))
    if node.any_of and not node.int_or_string:
        checks.append(_some_of(node.any_of, "anyOf", exactly_one=False))
    if node.one_of and not node.int_or_string:
        checks.append(_some_of(node.one_of, "oneOf", exactly_one=True))
    if node.none_of is not None:
        checks.append(_none_of(node.none_of))
    return checks


def faults_of(value: Any, node: Node, path: str) -> list[FieldError]:
    """The faults of a value by a schema used as a condition: nothing is pruned or defaulted."""
    faults: list[FieldError] = []
    if node.type and not _has_type(value, node):
        return [wrong_type(path, value, node.type)]
    if isinstance(value, dict):
        prefix = path + "." if path else ""
        for name in node.required:
            if name not in value:
                faults.append(FieldError(prefix + name, "FieldValueRequired", ""))
        for name, part in value.items():
            child = node.child(name)
            if child is not None:
                faults.extend(faults_of(part, child, prefix + name))
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            faults.extend(faults_of(item, node.items, f"{path}[{index}]"))
    for check in limits_of(node):
        check(value, path, faults)
    return faults


def _has_type(value: Any, node: Node) -> bool:
    match node.type:
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


def _all_of(branch: Node) -> Check:
    def check(value: Any, path: str, faults: list[FieldError]) -> None:
        faults.extend(faults_of(value, branch, path))

    return check


def _some_of(branches: tuple[Node, ...], word: str, *, exactly_one: bool) -> Check:
    def check(value: Any, path: str, faults: list[FieldError]) -> None:
        held = sum(1 for branch in branches if not faults_of(value, branch, path))
        if held == 0:
            sentence = f'"{path}" must validate at least one schema ({word})'
            if exactly_one:
                sentence = f'"{path}" must validate one and only one schema ({word}). '
                sentence += "Found none valid"
            faults.append(invalid(path, "", sentence))
        elif exactly_one and held > 1:
            sentence = f'"{path}" must validate one and only one schema ({word}). '
            faults.append(invalid(path, "", sentence + f"Found {held} valid alternatives"))

    return check


def _none_of(branch: Node) -> Check:
    def check(value: Any, path: str, faults: list[FieldError]) -> None:
        if not faults_of(value, branch, path):
            faults.append(invalid(path, "", f'"{path}" must not validate the schema (not)'))

    return check


def _reading(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def reads(text: str) -> bool:
        try:
            read(text)
        except (ValueError, TypeError, binascii.Error):
            return False
        return True

    return reads


def _read_date_time(text: str) -> datetime:
    if "T" not in text.upper():
        raise ValueError(text)
    return datetime.fromisoformat(text)


def _read_uri(text: str) -> None:
    if not urlsplit(text).scheme:
        raise ValueError(text)


_DURATION = re.compile(r"[-+]?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+|0")


def _read_duration(text: str) -> None:
    if not _DURATION.fullmatch(text):
        raise ValueError(text)


_FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": _reading(_read_date_time),
    "date": _reading(lambda text: datetime.strptime(text, "%Y-%m-%d")),  # noqa: DTZ007 - no time in it
    "duration": _reading(_read_duration),
    "byte": _reading(lambda text: base64.b64decode(text, validate=True)),
    "uuid": _reading(uuid.UUID),
    "ipv4": _reading(ipaddress.IPv4Address),
    "ipv6": _reading(ipaddress.IPv6Address),
    "cidr": _reading(ipaddress.ip_network),
    "uri": _reading(_read_uri),
    "email": lambda text: "@" in text[1:-1],
}
