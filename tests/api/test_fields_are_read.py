"""Every field of every spec is read by code that acts on it, and every field of every status is
written by code that knows: no promise without its keeper.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from fairway.api.kinds import KINDS
from fairway.api.work import WorkSpec
from tests.api.field_reads import Known, Reader, aliases_in, field_types, parts_in

CODE = Path(__file__).parents[2] / "fairway"
# Read by nothing, and why it is there all the same. A field that is read leaves this table.
UNREAD: dict[str, str] = {
    "DataReference.name": "data is refused until its places are known",
    "DataReference.required": "data is refused until its places are known",
    "DataReference.size": "data is refused until its places are known",
    "DescribedObject.api_version": "of the form of HorizontalPodAutoscalers; queries need the kind",
    "QueueSpec.description": "for people who read the queue",
    "UserLimit.name": "the key of its list",
}
# Read by name, or as plain JSON, where no type can be inferred: the file that does.
READ_AS_TEXT = {
    "ClusterScoreSpec.summary": "fairway/api/kinds.py",
    "FlavorSpec.description": "web/src/state/capacity.ts",
    "FleetSpec.pause_reason": "fairway/cli/top.py",
    "MinimumRun.reclaim_seconds": "fairway/view/queues.py",
    "MinimumRun.within_queue_seconds": "fairway/view/queues.py",
    "QueueDefaults.run_seconds_estimate": "fairway/view/workloads.py",
}


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


@cache
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
def trees() -> dict[Path, ast.Module]:
    """The modules of the package."""
    return {path: ast.parse(path.read_text()) for path in sorted(CODE.rglob("*.py"))}


@cache
def fields_read() -> frozenset[tuple[str, str]]:
    """The fields that code reads, each with the type that it is read of."""
    parts = {struct.__name__: struct for kind in KINDS for struct in structs(kind.struct)}
    known = Known(fields=field_types(parts.values()), structs=frozenset(parts))
    modules = [(tree, aliases_in(tree)) for tree in trees().values()]
    for tree, aliases in modules:
        known.learn(tree, aliases)
    reads = set[tuple[str, str]]()
    for tree, aliases in modules:  # what attributes of objects hold
        for node in (
            inner for kind in tree.body if isinstance(kind, ast.ClassDef) for inner in kind.body
        ):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                Reader(known, aliases).visit(node)
    for tree, aliases in modules:
        reader = Reader(known, aliases)
        reader.visit(tree)
        reads |= reader.reads
    return frozenset(reads)


@pytest.mark.parametrize("field", sorted(spec_fields()))
def test_a_field_of_a_spec_is_read(field: str) -> None:
    struct, _, attribute = field.partition(".")
    is_read = (struct, attribute) in fields_read()
    if field in READ_AS_TEXT:
        assert not is_read, f"{field} is read by type now: take it out of READ_AS_TEXT"
        text = (CODE.parent / READ_AS_TEXT[field]).read_text()
        assert any(re.search(rf"\b{name}\b", text) for name in spec_fields()[field])
    elif field in UNREAD:
        assert not is_read, f"{field} is read now: take it out of UNREAD"
    else:
        assert is_read, f"nothing reads {field}"


def test_every_state_that_a_work_may_ask_for_is_asked_for() -> None:
    desired = next(f.type for f in msgspec.structs.fields(WorkSpec) if f.name == "desired")
    text = (CODE / "controllers/works/derive.py").read_text()
    states = get_args(get_args(desired)[0])
    assert states
    assert [state for state in states if f'"{state}"' not in text] == []


EXAMPLES = {
    "through the fields that lead to it": ("def f(w: Workload): w.spec.queue", "queue"),
    "of a variable": ("def f(w: Workload):\n  s = w.spec\n  s.queue", "queue"),
    "of an element": ("def f(ws: list[Workload]): [w.spec.queue for w in ws]", "queue"),
    "of a pattern": ("match w:\n  case Workload(spec=s): s.queue", "queue"),
    "not of another type with the same name": ("def f(c: Claim, w: Workload): c.queue", ""),
    "not of what is unknown": ("x.queue", ""),
    "not where it is only written": ("WorkloadSpec(queue='')", ""),
}


@pytest.mark.parametrize(("code", "expected"), EXAMPLES.values(), ids=EXAMPLES)
def test_a_field_counts_as_read(code: str, expected: str) -> None:
    known = Known(
        fields={("Workload", "spec"): frozenset({"WorkloadSpec"})},
        structs=frozenset({"Workload", "WorkloadSpec"}),
    )
    reader = Reader(known, {})
    reader.visit(ast.parse(code))
    assert {name for struct, name in reader.reads if struct == "WorkloadSpec"} == (
        {expected} if expected else set()
    )


# Modules that write a status as plain JSON, and do not name its kind.
PLAIN_WRITERS = {"agent/cluster_status.py": "Cluster"}


@cache
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
    for path, tree in trees().items():
        if path.is_relative_to(CODE / "api"):
            continue
        names = {PLAIN_WRITERS.get(str(path.relative_to(CODE)), "")}
        fields = set[str]()
        for node in ast.walk(tree):
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
