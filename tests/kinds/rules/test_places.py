"""Paths that can be read and written."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fairway.kinds.rules.places import compile_path, show_place

VALUE: dict[str, Any] = {
    "spec": {
        "roles": {"Master": {"replicas": 1}, "Worker": {"replicas": 3}},
        "groups": [{"name": "a", "size": 2}, {"name": "b"}],
        "a.b/c": 7,
    }
}
FOUND: dict[str, tuple[str, dict[str, Any]]] = {
    "a field": ("spec.roles.Master.replicas", {"spec.roles.Master.replicas": 1}),
    "nothing where there is nothing": ("spec.nobody.replicas", {}),
    "a quoted field": ("spec['a.b/c']", {"spec[a.b/c]": 7}),
    "an escaped field": (r"spec.a\.b/c", {"spec[a.b/c]": 7}),
    "all of a map": (
        "spec.roles.*.replicas",
        {"spec.roles.Master.replicas": 1, "spec.roles.Worker.replicas": 3},
    ),
    "all of a list": (
        "$.spec.groups[*].name",
        {"spec.groups[0].name": "a", "spec.groups[1].name": "b"},
    ),
    "an item": (".spec.groups[1].name", {"spec.groups[1].name": "b"}),
    "no item past the end": ("spec.groups[2].name", {}),
    "an item by a text": ('spec.groups[?(@.name=="a")].size', {"spec.groups[0].size": 2}),
    "a field of a list is nothing": ("spec.groups.name", {}),
}


@pytest.mark.parametrize(("text", "found"), FOUND.values(), ids=FOUND)
def test_a_path_finds(text: str, found: dict[str, Any]) -> None:
    assert {show_place(keys): value for keys, value in compile_path(text).places(VALUE)} == found


@pytest.mark.parametrize("text", ["a b", "a..b", "a[", "a[?(@.b>1)]", "a[1:2]", "a.'b'", "{.a}"])
def test_a_path_that_cannot_be_written_at_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be read at"):
        compile_path(text)


def test_writing_makes_what_is_missing() -> None:
    value: dict[str, Any] = {}
    compile_path("spec.policy.size").write(value, 3)
    assert value == {"spec": {"policy": {"size": 3}}}


def test_writing_goes_into_what_is_there() -> None:
    value = copy.deepcopy(VALUE)
    compile_path('spec.groups[?(@.name=="b")].size').write(value, 5)
    assert value["spec"]["groups"] == [{"name": "a", "size": 2}, {"name": "b", "size": 5}]


def test_making_adds_items_by_their_text_once() -> None:
    value: dict[str, Any] = {}
    path = compile_path('patches[?(@.by=="us")].jobs[?(@.name=="node")].template')
    for _ in range(2):
        path.make(value)
        assert value == {"patches": [{"by": "us", "jobs": [{"name": "node", "template": {}}]}]}
