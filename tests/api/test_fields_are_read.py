"""Every field of every spec is read by code that acts on it: no promise without its keeper."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from fairway.api.kinds import KINDS
from fairway.api.meta import Part

CODE = Path(__file__).parents[2] / "fairway"
# Read by nothing yet, and what will read it. A field that is read leaves this table.
UNREAD: dict[str, str] = {}


def structs(root: type) -> Iterator[type[msgspec.Struct]]:
    """A struct and all structs in its fields."""
    pending, seen = [root], set[type]()
    while pending:
        kind = pending.pop()
        if kind in seen:
            continue
        seen.add(kind)
        yield kind
        for field in msgspec.structs.fields(kind):
            pending.extend(inner for inner in parts_in(field.type) if inner not in seen)


def parts_in(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and issubclass(hint, Part):
        yield hint
    for inner in get_args(hint):
        yield from parts_in(inner)


def spec_fields() -> dict[str, tuple[str, str]]:
    """Every field of every spec: its attribute, and its name on the wire."""
    result = {}
    for kind in KINDS:
        spec = next(f.type for f in msgspec.structs.fields(kind.struct) if f.name == "spec")
        for root in parts_in(spec):
            for struct in structs(root):
                for field in msgspec.structs.fields(struct):
                    result[f"{struct.__name__}.{field.name}"] = (field.name, field.encode_name)
    return result


@cache
def names_read() -> frozenset[str]:
    """Attributes and texts that code outside the API's own types names."""
    names = set[str]()
    for path in CODE.rglob("*.py"):
        if path.is_relative_to(CODE / "api"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                names.add(node.attr)
            elif isinstance(node, ast.MatchClass):
                names.update(node.kwd_attrs)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.add(node.value)
    return frozenset(names)


@pytest.mark.parametrize("field", sorted(spec_fields()))
def test_a_field_of_a_spec_is_read(field: str) -> None:
    is_read = bool(names_read().intersection(spec_fields()[field]))
    if field in UNREAD:
        assert not is_read, f"{field} is read now: take it out of UNREAD"
    else:
        assert is_read, f"nothing reads {field}"
