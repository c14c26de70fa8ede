"""Every field of every spec is set by some test of behaviour: none is promised and never tried.

`test_fields_are_read` shows that code reads a field. This one shows that a test gives it a value: a
new field fails here until a test sets it. What counts is a key of a mapping, a keyword argument, or
a key in YAML. A name that several types share counts only within the field that leads to its type,
or as an argument of the type. Tests of form alone (schemas, records, goldens) do not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import msgspec
import pytest

from fairway.api.kinds import KINDS
from tests.api.field_reads import parts_in
from tests.api.test_fields_are_read import UNREAD, spec_fields, structs

TESTS = Path(__file__).parents[1]
# These hold forms of objects, and see no decision or effect.
OF_FORM = ("api", "differential", "fuzz", "goldens", "peers/recorded", "resources", "schema")
OF_FORM += ("kinds/statuses", "upgrade", "wire")
# Set by no test of behaviour, and why.
_WHOLE = "written by agents; tests compare their reports whole"
UNTRIED: dict[str, str] = {
    "ClusterReportSpec.removed_nodes": _WHOLE,
    "DataReference.location": "data is refused until its places are known",
    "DeviceColumn.unit": _WHOLE,
    "FleetSpec.pause_reason": "for people: `fairway top` shows it",
    "PoolReport.awaits_stock": _WHOLE,
    "WorkPods.terminating": _WHOLE,
}
_NEAR = 3000  # characters of text in which the fields of one object stand


@cache
def leads_to() -> dict[str, frozenset[str]]:
    """For each type, the names of the fields that hold it."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for kind in KINDS:
        for struct in structs(kind.struct):
            for field in msgspec.structs.fields(struct):
                for part in parts_in(field.type):
                    names[part.__name__] |= {field.name, field.encode_name}
    return {part: frozenset(some) for part, some in names.items()}


@cache
def types_with(name: str) -> int:
    return sum(name in names for names in spec_fields().values())


@cache
def sources() -> tuple[str, ...]:
    """The texts of all tests that see decisions or effects, and the rules that these play."""
    paths = [
        path
        for path in sorted(TESTS.rglob("*"))
        if path.suffix in (".py", ".yaml")
        and not path.relative_to(TESTS).as_posix().startswith(OF_FORM)
    ]
    rules = sorted((TESTS.parent / "fairway/kinds/rules/data").glob("*.yaml"))
    return tuple(path.read_text() for path in (*paths, *rules))


@cache
def keys() -> dict[str, tuple[tuple[int, int], ...]]:
    """Where each name is given a value: the number of the text, and the place in it."""
    given: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, text in enumerate(sources()):
        for match in re.finditer(r"""\b([A-Za-z_]\w*)["']?\s*(?::|=(?!=))""", text):
            given[match[1]].append((number, match.start()))
    return {name: tuple(places) for name, places in given.items()}


def is_set(field: str) -> bool:
    """Whether some test gives a field a value."""
    struct = field.partition(".")[0]
    spellings = set(spec_fields()[field])
    places = [place for name in spellings for place in keys().get(name, ())]
    if max(types_with(name) for name in spellings) == 1:
        return bool(places)
    return any(_is_within(struct, number, start) for number, start in places)


def _is_within(struct: str, number: int, start: int) -> bool:
    """Whether what leads to the type stands near a place."""
    near = sources()[number][max(0, start - _NEAR) : start + _NEAR]
    names = "|".join(map(re.escape, sorted(leads_to().get(struct, ()) | {struct})))
    return re.search(rf"""\b(?:{names})\b["']?\s*[:=(]""", near) is not None


@pytest.mark.parametrize("field", sorted(spec_fields()))
def test_a_field_of_a_spec_is_set_by_a_test(field: str) -> None:
    if field in UNREAD:
        return
    if field in UNTRIED:
        assert not is_set(field), f"{field} is set by a test now: take it out of UNTRIED"
    else:
        assert is_set(field), f"no test of behaviour sets {field}"
