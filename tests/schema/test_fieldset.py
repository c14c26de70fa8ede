"""Field sets: the wire form, membership, and the laws of sets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.schema.compare import fields_of
from fairway.schema.fieldset import FieldSet, show_path
from fairway.schema.node import ANY, parse

SCALARS = st.one_of(st.integers(-9, 9), st.booleans(), st.text('ab<&"é', max_size=3))
ELEMENTS = st.one_of(
    st.text('abc./"', max_size=3).map(lambda name: f"f:{name}"),
    SCALARS.map(lambda value: _element("v:", value)),
    st.dictionaries(st.sampled_from("xy"), SCALARS, min_size=1).map(
        lambda keys: _element("k:", keys)
    ),
    st.integers(0, 3).map(lambda index: f"i:{index}"),
)
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
SETS = st.lists(PATHS, max_size=8).map(lambda paths: FieldSet.of(*paths))


def _element(kind: str, value: Any) -> str:
    (element,) = FieldSet.parse({kind + json.dumps(value): {}}).tree
    return element


def members(fields: FieldSet) -> set[tuple[str, ...]]:
    return set(fields.paths())


class TestWireForm:
    @pytest.mark.parametrize(
        ("wire", "paths"),
        [
            pytest.param({}, [], id="an empty object is an empty set"),
            pytest.param({"f:a": {}}, [("f:a",)], id="an empty branch is a member"),
            pytest.param(
                {"f:a": {"f:b": {}}}, [("f:a", "f:b")], id="a branch without a dot only leads on"
            ),
            pytest.param(
                {"f:a": {".": {}, "f:b": {}}},
                [("f:a",), ("f:a", "f:b")],
                id="a branch with a dot is a member too",
            ),
            pytest.param(
                {'k:{ "b": 1.0, "a": "x" }': {}},
                [('k:{"a":"x","b":1}',)],
                id="key fields come in order and whole numbers as integers",
            ),
            pytest.param(
                {'v:"\\u003c"': {}, "i:3": {}},
                [('v:"<"',), ("i:3",)],
                id="values are kept in one spelling",
            ),
            pytest.param(
                {"z:later": {"f:a": {}}, "f:b": {}},
                [("f:b",)],
                id="elements of an unknown kind are left out",
            ),
        ],
    )
    def test_a_wire_form_names_its_members(self, wire: Any, paths: list[tuple[str, ...]]) -> None:
        assert list(FieldSet.parse(wire).paths()) == paths

    @pytest.mark.parametrize(
        "wire",
        [
            pytest.param([], id="a list"),
            pytest.param({"f": {}}, id="an element without a colon"),
            pytest.param({"k:[1]": {}}, id="a key that is no object"),
            pytest.param({"k:{": {}}, id="a key that is no JSON"),
            pytest.param({"i:x": {}}, id="an index that is no number"),
            pytest.param({"f:a": 1}, id="a branch that is no object"),
        ],
    )
    def test_a_broken_wire_form_is_refused(self, wire: Any) -> None:
        with pytest.raises(ValueError):
            FieldSet.parse(wire)

    @settings(deadline=None)
    @given(SETS)
    def test_rendering_and_parsing_give_the_same_set(self, fields: FieldSet) -> None:
        assert FieldSet.parse(fields.render()) == fields


class TestAlgebra:
    @settings(deadline=None)
    @given(SETS, SETS)
    def test_sets_behave_as_sets_of_paths(self, left: FieldSet, right: FieldSet) -> None:
        assert members(left.union(right)) == members(left) | members(right)
        assert members(left.intersection(right)) == members(left) & members(right)
        assert members(left.difference(right)) == members(left) - members(right)

    @settings(deadline=None)
    @given(SETS, SETS)
    def test_union_and_intersection_do_not_care_about_sides(
        self, left: FieldSet, right: FieldSet
    ) -> None:
        assert left.union(right) == right.union(left)
        assert left.intersection(right) == right.intersection(left)

    @settings(deadline=None)
    @given(SETS, SETS)
    def test_what_is_shared_and_what_is_not_make_the_whole(
        self, left: FieldSet, right: FieldSet
    ) -> None:
        assert left.difference(right).union(left.intersection(right)) == left
        assert left.difference(left).is_empty()

    @settings(deadline=None)
    @given(SETS, PATHS)
    def test_a_set_has_exactly_its_members(self, fields: FieldSet, path: tuple[str, ...]) -> None:
        assert fields.has(path) == (path in members(fields))
        assert fields.is_empty() == (not members(fields))

    @settings(deadline=None)
    @given(SETS)
    def test_leaves_are_the_members_without_members_below(self, fields: FieldSet) -> None:
        every = members(fields)
        assert members(fields.leaves()) == {
            path
            for path in every
            if not any(other[: len(path)] == path and other != path for other in every)
        }


SCHEMA = parse(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "ports": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "port": {"type": "integer"},
                                "protocol": {"type": "string", "default": "TCP"},
                            },
                        },
                    },
                    "tags": {"type": "array", "x-kubernetes-list-type": "set"},
                    "args": {"type": "array", "items": {"type": "string"}},
                    "selector": {"type": "object", "x-kubernetes-map-type": "atomic"},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "old": {
                        "type": "array",
                        "x-kubernetes-patch-strategy": "merge",
                        "x-kubernetes-patch-merge-key": "name",
                    },
                },
            }
        },
    }
)


class TestFieldsOf:
    @pytest.mark.parametrize(
        ("spec", "fields"),
        [
            pytest.param(
                {"ports": [{"port": 80}]},
                {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}},
                id="a key that is left out takes its default",
            ),
            pytest.param(
                {"tags": ["b", "a"]}, {"f:tags": {'v:"b"': {}, 'v:"a"': {}}}, id="items of a set"
            ),
            pytest.param({"args": ["x"]}, {"f:args": {}}, id="a plain list is one piece"),
            pytest.param({"selector": {"a": 1}}, {"f:selector": {}}, id="an atomic map is too"),
            pytest.param(
                {"free": {"a": {"b": [1, {}]}}},
                {"f:free": {"f:a": {".": {}, "f:b": {}}}},
                id="free content is granular maps and whole lists, and owns its containers",
            ),
            pytest.param(
                {"old": [{"name": "x", "v": 1}]},
                {"f:old": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:v": {}}}},
                id="a list that patches by a key is a list of keyed items",
            ),
            pytest.param(
                {"ports": [{"port": 1, "protocol": "TCP"}, {"port": 1}]},
                {"f:ports": {'k:{"port":1,"protocol":"TCP"}': {}}},
                id="items with one key have one owner",
            ),
            pytest.param(
                {"ports": [], "free": {}, "args": None},
                {"f:free": {}, "f:args": {}},
                id="an empty list of items owns nothing, an empty map and a null do",
            ),
        ],
    )
    def test_an_object_claims_its_fields(self, spec: Any, fields: Any) -> None:
        assert fields_of({"spec": spec}, SCHEMA).render() == {"f:spec": fields}

    def test_an_unknown_schema_gives_granular_maps_and_whole_lists(self) -> None:
        assert fields_of({"a": {"b": [1], "c": {}}}, ANY).render() == {
            "f:a": {".": {}, "f:b": {}, "f:c": {}}
        }


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(("f:spec", "f:replicas"), ".spec.replicas", id="fields"),
        pytest.param(
            ("f:ports", 'k:{"port":80,"protocol":"TCP"}', "f:name"),
            '.ports[port=80,protocol="TCP"].name',
            id="a keyed item",
        ),
        pytest.param(("f:tags", 'v:"a"'), '.tags[="a"]', id="an item of a set"),
        pytest.param(("f:args", "i:2"), ".args[2]", id="an item by position"),
    ],
)
def test_a_path_reads_as_people_write_it(path: tuple[str, ...], text: str) -> None:
    assert show_path(path) == text
