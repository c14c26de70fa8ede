"""In Python true equals 1; nothing that is changed, checked or remembered may rest on that."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.clock import VirtualClock
from fairway.resources.catalogue import standard_catalogue
from fairway.schema.cel.rules import check_rules
from fairway.schema.compare import compare
from fairway.schema.managed import after_update, apply
from fairway.schema.node import parse
from fairway.schema.patches import difference, merge_patch
from fairway.schema.strategic import strategic_merge
from fairway.schema.validation import Findings, conform, is_unchanged
from fairway.store.embedded.memory import MemoryJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Write
from tests.contracts.conftest import WIDGET_DEFINITION, widget
from tests.schema.things import LATER, NODE, TIME, VERSION, alike, json_values, stored_text, thing

FREE = {"x-kubernetes-preserve-unknown-fields": True}


def faults(value: Any, schema: dict[str, Any]) -> list[str]:
    findings = Findings()
    root = parse({"type": "object", "properties": {"x": schema}})
    conform({"x": value}, root, findings)
    return [fault.path for fault in findings.faults]


@pytest.mark.parametrize(
    ("schema", "value", "is_refused"),
    [
        pytest.param({"type": "integer"}, True, True, id="true is no integer"),
        pytest.param({"type": "number"}, False, True, id="false is no number"),
        pytest.param({"type": "boolean"}, 1, True, id="1 is no boolean"),
        pytest.param({"x-kubernetes-int-or-string": True}, True, True, id="nor an IntOrString"),
        pytest.param({"enum": [1, 2]}, True, True, id="a choice of numbers has no true"),
        pytest.param({"enum": [True]}, 1, True, id="a choice of booleans has no 1"),
        pytest.param({"enum": [1, 2]}, 2.0, False, id="a choice has a number however written"),
        pytest.param({"enum": [[1]]}, [True], True, id="a choice of lists looks into them"),
        pytest.param(
            {"enum": [{"a": 1}]}, {"a": True}, True, id="a choice of maps looks into them"
        ),
        pytest.param(
            {"type": "array", "uniqueItems": True, "items": FREE},
            [1, True, "1", {"a": 0}, {"a": False}],
            False,
            id="1 and true are no duplicates",
        ),
        pytest.param(
            {"type": "array", "uniqueItems": True, "items": FREE},
            [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
            True,
            id="the same in another order is a duplicate",
        ),
        pytest.param(
            {"type": "array", "x-kubernetes-list-type": "set", "items": FREE},
            [1, True, 0, False],
            False,
            id="a set holds 1 and true",
        ),
        pytest.param(
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": FREE}},
            },
            [{"k": 1}, {"k": True}],
            False,
            id="items with the keys 1 and true are two",
        ),
        pytest.param(
            {"type": "array", "items": FREE, "not": {"items": {"type": "integer"}}},
            [True],
            False,
            id="true is no integer in a condition",
        ),
    ],
)
def test_validation(schema: dict[str, Any], value: Any, is_refused: bool) -> None:
    assert bool(faults(value, schema)) is is_refused


def test_a_fault_of_true_is_not_excused_by_the_1_that_was_there() -> None:
    findings = Findings()
    root = parse({"type": "object", "properties": {"x": {"type": "integer"}}})
    conform({"x": True}, root, findings)
    assert [is_unchanged(fault, {"x": True}, {"x": 1}) for fault in findings.faults] == [False]
    assert [is_unchanged(fault, {"x": True}, {"x": True}) for fault in findings.faults] == [True]


@pytest.mark.parametrize(
    ("old", "new", "is_refused"),
    [
        pytest.param({"x": 1}, {"x": True}, True, id="1 became true"),
        pytest.param({"x": True}, {"x": True}, False, id="true was true"),
    ],
)
def test_a_rule_is_held_against_what_changed(old: Any, new: Any, is_refused: bool) -> None:
    rules = [{"rule": "type(self.x) == int"}]
    held = {"type": "object", "properties": {"x": FREE}, "x-kubernetes-validations": rules}
    node = parse({"type": "object", "properties": {"spec": held}})
    found = check_rules({"spec": new}, {"spec": old}, node, is_update=True)
    assert bool(found) is is_refused


def test_items_with_the_keys_1_and_true_have_pasts_of_their_own() -> None:
    rules = [{"rule": "self.v == oldSelf.v"}]
    item = {
        "type": "object",
        "properties": {"k": FREE, "v": {"type": "string"}},
        "x-kubernetes-validations": rules,
    }
    listed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": item,
    }
    node = parse({"type": "object", "properties": {"spec": listed}})
    old = [{"k": 1, "v": "a"}, {"k": True, "v": "b"}]
    assert not check_rules({"spec": old}, {"spec": old}, node, is_update=True)
    new = [{"k": 1, "v": "a"}, {"k": True, "v": "a"}]
    found = check_rules({"spec": new}, {"spec": old}, node, is_update=True)
    assert [item.path for item in found] == ["spec[1]"]


def test_the_writer_of_true_over_1_owns_it() -> None:
    old, new = thing(spec={"free": {"a": 1, "b": [0]}}), thing(spec={"free": {"a": True, "b": [0]}})
    found = compare(old, new, NODE)
    assert found.changed == {"f:spec": {"f:free": {"f:a": {}}}}
    facts = {"node": NODE, "api_version": VERSION, "subresource": ""}
    entries = after_update(None, old, manager="first", time=TIME, **facts)
    old["metadata"]["managedFields"] = entries
    entries = after_update(old, new, manager="second", time=LATER, **facts)
    owned = {entry["manager"]: entry["fieldsV1"]["f:spec"]["f:free"] for entry in entries}
    assert "f:a" in owned["second"]
    assert "f:a" not in owned["first"]


def test_an_apply_of_true_over_1_is_a_change_at_its_time() -> None:
    facts = {
        "node": NODE,
        "manager": "m",
        "api_version": VERSION,
        "subresource": "",
        "force": False,
    }
    made = apply(None, thing(spec={"free": {"a": 1}}), time=TIME, **facts)
    again = apply(made, thing(spec={"free": {"a": 1}}), time=LATER, **facts)
    assert [managed_field["time"] for managed_field in again["metadata"]["managedFields"]] == [TIME]
    changed = apply(made, thing(spec={"free": {"a": True}}), time=LATER, **facts)
    assert changed["spec"]["free"]["a"] is True
    assert [managed_field["time"] for managed_field in changed["metadata"]["managedFields"]] == [
        LATER
    ]


def test_a_strategic_patch_keeps_1_and_true_apart_in_a_set() -> None:
    node = parse(
        {
            "type": "object",
            "properties": {
                "tags": {"type": "array", "items": FREE, "x-kubernetes-patch-strategy": "merge"}
            },
        }
    )
    merged = strategic_merge({"tags": [1, 0]}, {"tags": [True]}, node)
    assert sorted(map(repr, merged["tags"])) == ["0", "1", "True"]
    left = strategic_merge({"tags": [1, True]}, {"$deleteFromPrimitiveList/tags": [True]}, node)
    assert repr(left) == "{'tags': [1]}"


objects = st.dictionaries(st.sampled_from("xyz"), json_values, max_size=3)
pairs = objects.flatmap(
    lambda object_: st.tuples(st.just(object_), st.one_of(alike(object_), objects))
)
histories = objects.flatmap(
    lambda object_: st.tuples(
        st.just(object_), st.lists(st.one_of(alike(object_), objects), min_size=1, max_size=3)
    )
)


@given(pairs)
def test_the_difference_makes_one_object_of_another(pair: tuple[Any, Any]) -> None:
    before, after = pair
    assert stored_text(merge_patch(before, difference(before, after))) == stored_text(after)


@settings(max_examples=60, deadline=None)
@given(histories)
def test_a_patch_that_changes_the_text_changes_what_is_stored(
    history: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    asyncio.run(_patch_in_turn(*history))


async def _patch_in_turn(first: dict[str, Any], patches: list[dict[str, Any]]) -> None:
    store = EmbeddedStore(MemoryJournal(), standard_catalogue(), clock=VirtualClock())
    store.start()
    try:
        for kind, body in _SURROUNDINGS:
            await store.create(kind, json.loads(json.dumps(body)), write=Write())
        made = await store.create(
            _WIDGETS, widget("a", free=first), namespace="default", write=Write()
        )
        for change in patches:
            patch = Patch(type="merge", body={"spec": {"free": change}})
            earlier, before = made.raw, made.object()
            made, _ = await store.patch(_WIDGETS, "a", patch, namespace="default", write=Write())
            after, expected = made.object(), merge_patch(before["spec"]["free"], change)
            is_changed = stored_text(expected) != stored_text(before["spec"]["free"])
            assert json.dumps(after["spec"]["free"], sort_keys=True) == stored_text(expected)
            assert (made.raw != earlier) is is_changed
            assert after["metadata"]["generation"] - before["metadata"]["generation"] == is_changed
    finally:
        await store.close()


_WIDGETS = ResourceKey("example.com", "v1", "widgets")
_SURROUNDINGS = (
    (ResourceKey("", "v1", "namespaces"), {"metadata": {"name": "default"}}),
    (
        ResourceKey("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
        WIDGET_DEFINITION,
    ),
)
