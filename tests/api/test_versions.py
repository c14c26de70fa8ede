"""Objects go from one version of their kind to another and back, and say what they said."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api import codec, versions
from fairway.api.flavor import Flavor
from fairway.api.kinds import BY_NAME
from fairway.api.schemas import schema_of
from fairway.resources.custom import root_node
from fairway.schema.validation import Findings, conform

OLD, NEW = "fairway.dev/v1alpha1", "fairway.dev/v1beta1"
Json = dict[str, Any]

names = st.from_regex(r"[a-z]{1,6}(\.[a-z]{1,4})?", fullmatch=True)
labels = st.dictionaries(names, names, max_size=3)
amounts = st.one_of(st.integers(0, 9), st.sampled_from(["500m", "1", "2.50", "1e3"]))
taints = st.lists(
    st.fixed_dictionaries({"key": names, "effect": st.sampled_from(["NoSchedule", "NoExecute"])}),
    max_size=2,
)
shared = {
    "description": st.text(max_size=5),
    "tolerations": st.lists(st.fixed_dictionaries({"operator": st.just("Exists")}), max_size=1),
    "speed": amounts,
}
old_specs = st.fixed_dictionaries(
    {},
    optional={
        **shared,
        "nodeLabels": labels,
        "nodeTaints": taints,
        "clusterLabels": labels,
        "interruptible": st.booleans(),
        "prices": st.dictionaries(names, amounts, max_size=3),
    },
)
prices = st.fixed_dictionaries({"resource": names, "perHour": amounts})
new_specs = st.fixed_dictionaries(
    {},
    optional={
        **shared,
        "nodes": st.fixed_dictionaries({}, optional={"labels": labels, "taints": taints}),
        "clusters": st.fixed_dictionaries({}, optional={"labels": labels}),
        "capacity": st.sampled_from(["OnDemand", "Reserved", "Spot"]),
        "prices": st.lists(prices, max_size=3, unique_by=lambda price: price["resource"]),
    },
)
# What no schema would let in, but a server may ask about in the middle of its work.
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=3)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
FIELDS = ["nodeLabels", "nodeTaints", "clusterLabels", "interruptible", "prices", "nodes"]
FIELDS += ["clusters", "capacity", "speed"]
pieces = st.dictionaries(st.sampled_from(FIELDS), anything, max_size=4)
annotations = st.dictionaries(names, st.text(max_size=4), min_size=1, max_size=2)


def flavor(api_version: str, spec: Any, **metadata: Any) -> Json:
    named = {"name": "h100", **metadata}
    return {"apiVersion": api_version, "kind": "Flavor", "metadata": named, "spec": spec}


def text(value: Any) -> bytes:
    """JSON in which true is not 1, and the order of keys means nothing."""
    return msgspec.json.encode(value, order="deterministic")


def there_and_back(body: Json, over: str) -> Json:
    before = copy.deepcopy(body)
    other = versions.convert(body, over)
    assert other["apiVersion"] == over
    assert text(body) == text(before)  # what was given is as it was
    return versions.convert(other, body["apiVersion"])


@given(old_specs, st.none() | annotations)
def test_what_the_old_version_says_comes_back_from_the_new_one(spec: Json, noted: Json) -> None:
    body = flavor(OLD, spec, **({"annotations": noted} if noted else {}))
    assert text(there_and_back(body, NEW)) == text(body)


@given(new_specs, st.none() | annotations)
def test_what_the_new_version_says_comes_back_from_the_old_one(spec: Json, noted: Json) -> None:
    body = flavor(NEW, spec, **({"annotations": noted} if noted else {}))
    assert text(there_and_back(body, OLD)) == text(body)


@given(pieces, st.sampled_from([(OLD, NEW), (NEW, OLD)]))
def test_pieces_of_any_shape_come_back_as_well(spec: Json, way: tuple[str, str]) -> None:
    body = flavor(way[0], spec)
    assert text(there_and_back(body, way[1])) == text(body)


@given(anything, anything)
def test_no_object_is_so_odd_that_it_cannot_be_asked_for(spec: Any, metadata: Any) -> None:
    body = {"apiVersion": OLD, "kind": "Flavor", "metadata": metadata, "spec": spec}
    assert versions.convert(body, NEW)["apiVersion"] == NEW


@pytest.mark.parametrize(
    ("specs", "way"), [(old_specs, (OLD, NEW)), (new_specs, (NEW, OLD))], ids=["old", "new"]
)
def test_what_conforms_in_one_version_conforms_in_the_other(
    specs: st.SearchStrategy[Json], way: tuple[str, str]
) -> None:
    kind = BY_NAME["Flavor"]
    structs = {OLD: kind.struct, NEW: kind.further[0].struct}
    there = root_node(schema_of(structs[way[1]]))
    here = root_node(schema_of(structs[way[0]]))

    def faults(body: Json, node: Any) -> list[Any]:
        findings = Findings(checks_duplicates=True)
        conform(copy.deepcopy(body), node, findings)
        return [*findings.faults, *findings.unknown]

    @given(specs)
    def holds(spec: Json) -> None:
        body = flavor(way[0], spec)
        assert faults(body, here) == []
        assert faults(versions.convert(body, way[1]), there) == []

    holds()


@given(new_specs, old_specs)
def test_what_is_changed_in_the_old_version_is_changed_and_all_else_is_as_it_was(
    spec: Json, change: Json
) -> None:
    was = versions.convert(flavor(NEW, spec), OLD)
    changed = copy.deepcopy(was)
    changed["spec"].update(change)
    after = versions.convert(changed, NEW)
    # It says in the old version what was written there ...
    assert text(versions.convert(after, OLD)["spec"]) == text(changed["spec"])
    # ... and in the new one what was said there, field by field, if it is still so.
    for field, sources in {
        "capacity": ["interruptible"],
        "prices": ["prices"],
        "clusters": ["clusterLabels"],
        "nodes": ["nodeLabels", "nodeTaints"],
    }.items():
        parts = [
            {source: it["spec"][source] for source in sources if source in it["spec"]}
            for it in (was, changed)
        ]
        if text(parts[0]) == text(parts[1]):
            assert text(after["spec"].get(field)) == text(spec.get(field))


def test_what_one_version_cannot_say_is_noted() -> None:
    body = flavor(NEW, {"capacity": "Reserved", "nodes": {"labels": {"gpu": "h100"}}})
    assert versions.convert(body, OLD) == flavor(
        OLD,
        {"interruptible": False, "nodeLabels": {"gpu": "h100"}},
        annotations={"fairway.dev/said-in-v1beta1": '{"capacity":"Reserved"}'},
    )


def test_a_note_that_is_out_of_date_is_dropped() -> None:
    body = versions.convert(flavor(NEW, {"capacity": "Reserved"}), OLD)
    body["spec"]["interruptible"] = True
    assert versions.convert(body, NEW) == flavor(NEW, {"capacity": "Spot"})


@pytest.mark.parametrize("note", ["", "{", "[]", '{"prices": 3, "other": 1}'])
def test_a_note_that_somebody_spoilt_says_nothing(note: str) -> None:
    body = flavor(OLD, {"prices": {"gpu": "2"}}, annotations={versions.note_of("v1beta1"): note})
    assert versions.convert(body, NEW) == flavor(
        NEW, {"prices": [{"resource": "gpu", "perHour": "2"}]}
    )


@given(new_specs)
def test_our_types_read_either_version(spec: Json) -> None:
    body = flavor(NEW, spec)
    assert codec.decode(body, Flavor) == codec.decode(text(body), Flavor)
    assert codec.decode(body, Flavor) == codec.decode(versions.convert(body, OLD), Flavor)
