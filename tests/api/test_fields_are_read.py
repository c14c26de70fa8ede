"""Every field of every spec is read by code that acts on it, and every field of every status is
written by code that knows: no promise without its keeper.
"""

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


# Modules that write a status as plain JSON, and do not name its kind.
PLAIN_WRITERS = {"agent/cluster_status.py": "Cluster"}


def status_fields() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Every field of every status: its names, and the types of which a writer names one."""
    result: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    for kind in KINDS:
        for status in (f.type for f in msgspec.structs.fields(kind.struct) if f.name == "status"):
            for struct in (inner for root in parts_in(status) for inner in structs(root)):
                for field in msgspec.structs.fields(struct):
                    key = f"{struct.__name__}.{field.name}"
                    _, known = result.get(key, (frozenset(), frozenset()))
                    types = known | {struct.__name__, kind.struct.__name__}
                    result[key] = (frozenset({field.name, field.encode_name}), types)
    specs = spec_fields()
    return {key: value for key, value in result.items() if key not in specs}


@cache
def modules_writing() -> list[tuple[frozenset[str], frozenset[str]]]:
    """For each module outside the API's types: the names in it, and the fields that it sets."""
    modules = []
    for path in CODE.rglob("*.py"):
        if path.is_relative_to(CODE / "api"):
            continue
        names = {PLAIN_WRITERS.get(str(path.relative_to(CODE)), "")}
        fields = set[str]()
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                    names.add(name)
                case ast.keyword(arg=str(name)):
                    fields.add(name)
                case ast.Dict(keys=keys):
                    fields.update(key.value for key in keys if isinstance(key, ast.Constant))
                case ast.Call(args=[ast.Constant(value=str(name)), *_]):
                    fields.add(name)
        modules.append((frozenset(names), frozenset(fields)))
    return modules


@pytest.mark.parametrize("field", sorted(status_fields()))
def test_a_field_of_a_status_is_written(field: str) -> None:
    spellings, types = status_fields()[field]
    assert any(spellings & fields and types & names for names, fields in modules_writing()), (
        f"nothing writes {field}"
    )
