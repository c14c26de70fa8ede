"""Strategic merge patches, on a schema that holds every strategy."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fairway.api.errors import ApiError, BadRequest, Invalid
from fairway.schema.node import parse
from fairway.schema.strategic import strategic_merge

TEXT = {"type": "string"}
MERGED_BY_NAME = {
    "type": "array",
    "x-kubernetes-patch-strategy": "merge",
    "x-kubernetes-patch-merge-key": "name",
}
NODE = parse(
    {
        "type": "object",
        "properties": {
            "finalizers": {
                "type": "array",
                "x-kubernetes-patch-strategy": "merge",
                "items": TEXT,
            },
            "labels": {"type": "object", "additionalProperties": TEXT},
            "whole": {"type": "object", "x-kubernetes-patch-strategy": "replace"},
            "args": {"type": "array", "items": TEXT},
            "strategy": {"type": "object", "x-kubernetes-patch-strategy": "retainKeys"},
            "containers": {
                **MERGED_BY_NAME,
                "items": {
                    "type": "object",
                    "properties": {
                        "name": TEXT,
                        "image": TEXT,
                        "env": {**MERGED_BY_NAME, "items": {"type": "object"}},
                        "args": {"type": "array", "items": TEXT},
                    },
                },
            },
            "broken": {
                "type": "array",
                "x-kubernetes-patch-strategy": "merge",
                "items": {"type": "object"},
            },
        },
    }
)
DOCUMENT: Any = {
    "finalizers": ["a", "b", "c"],
    "labels": {"x": "1", "y": "2"},
    "whole": {"a": 1},
    "args": ["1", "2"],
    "strategy": {"type": "Rolling", "rolling": {"surge": 1}},
    "containers": [
        {"name": "a", "image": "i", "env": [{"name": "A"}, {"name": "B"}], "args": ["x", "y"]},
        {"name": "b", "image": "i"},
        {"name": "c", "image": "i"},
        {"name": "d", "image": "i"},
    ],
    "broken": [{"x": 1}],
}
A, B, C, D = DOCUMENT["containers"]
ORDER = "$setElementOrder/"


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({}, {}, id="an empty patch changes nothing"),
        pytest.param(
            {"labels": {"x": None, "z": "3"}},
            {"labels": {"y": "2", "z": "3"}},
            id="maps merge and null deletes",
        ),
        pytest.param({"labels": None}, {"labels": ...}, id="null deletes a whole map"),
        pytest.param({"missing": None}, {}, id="null deletes nothing"),
        pytest.param(
            {"new": {"a": None, "b": [{"c": None}]}},
            {"new": {"b": [{}]}},
            id="nulls do not come in with new content",
        ),
        pytest.param({"args": ["3"]}, {"args": ["3"]}, id="a plain list is replaced"),
        pytest.param({"whole": {"b": 1}}, {"whole": {"b": 1}}, id="so is a map that says so"),
        pytest.param(
            {"labels": {"$patch": "replace", "z": "3"}},
            {"labels": {"z": "3"}},
            id="a map is replaced by directive",
        ),
        pytest.param(
            {"labels": {"$patch": "delete"}}, {"labels": {}}, id="a map is emptied by directive"
        ),
        pytest.param(
            {"new": {"$patch": "replace", "a": 1}}, {}, id="a directive on nothing brings nothing"
        ),
        pytest.param(
            {"finalizers": ["d", "a"]},
            {"finalizers": ["d", "a", "b", "c"]},
            id="a set is joined, and what the patch names comes first and in its order",
        ),
        pytest.param(
            {"$deleteFromPrimitiveList/finalizers": ["b", "z"]},
            {"finalizers": ["a", "c"]},
            id="values are deleted from a set",
        ),
        pytest.param(
            {ORDER + "finalizers": ["c", "e", "a"], "finalizers": ["e"]},
            {"finalizers": ["b", "c", "e", "a"]},
            id="a set is put in order",
        ),
        pytest.param(
            {"$deleteFromPrimitiveList/finalizers": ["b"], ORDER + "finalizers": ["c", "a"]},
            {"finalizers": ["c", "a"]},
            id="values are deleted and the rest is put in order",
        ),
        pytest.param(
            {"containers": [{"name": "b", "image": "j"}, {"name": "z", "image": None}]},
            {"containers": [A, {"name": "b", "image": "j"}, {"name": "z"}, C, D]},
            id="items merge by key, and a new one follows what the patch puts before it",
        ),
        pytest.param(
            {"containers": [{"name": "b", "$patch": "delete"}]},
            {"containers": [A, C, D]},
            id="an item is deleted by directive",
        ),
        pytest.param(
            {"containers": [{"$patch": "replace"}, {"name": "o"}]},
            {"containers": [{"name": "o"}]},
            id="a list is replaced by directive",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "a",
                        "env": [{"name": "B", "$patch": "delete"}, {"name": "C"}],
                        "args": ["z"],
                    }
                ]
            },
            {
                "containers": [
                    {
                        "name": "a",
                        "image": "i",
                        "env": [{"name": "C"}, {"name": "A"}],
                        "args": ["z"],
                    },
                    B,
                    C,
                    D,
                ]
            },
            id="lists inside items follow their own strategies",
        ),
        pytest.param(
            {
                ORDER + "containers": [{"name": "d"}, {"name": "n"}, {"name": "a"}],
                "containers": [{"name": "n"}],
            },
            {"containers": [B, C, D, {"name": "n"}, A]},
            id="items are put in order and the others keep their place",
        ),
        pytest.param(
            {ORDER + "containers": [{"name": "d"}, {"name": "c"}]},
            {"containers": [A, B, D, C]},
            id="an order alone reorders",
        ),
        pytest.param(
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
            id="keys that are not retained go",
        ),
    ],
)
def test_a_patch_is_merged_by_strategy(patch: Any, expected: Any) -> None:
    before = copy.deepcopy((DOCUMENT, patch))
    wanted = {**DOCUMENT, **expected}
    assert strategic_merge(DOCUMENT, patch, NODE) == {
        key: value for key, value in wanted.items() if value is not ...
    }
    assert (DOCUMENT, patch) == before


@pytest.mark.parametrize(
    ("patch", "error", "message"),
    [
        pytest.param([], BadRequest, "must be an object", id="a list"),
        pytest.param(
            {"strategy": {"$retainKeys": ["type"], "rolling": {}}},
            BadRequest,
            "invalid patch format of retainKeys",
            id="a key that is set and not retained",
        ),
        pytest.param(
            {"strategy": {"$retainKeys": "type"}},
            BadRequest,
            "invalid patch format of retainKeys",
            id="retained keys that are no list",
        ),
        pytest.param(
            {"$deleteFromPrimitiveList": ["a"]},
            BadRequest,
            "invalid patch format of primitive list",
            id="a deletion without a field",
        ),
        pytest.param(
            {ORDER + "finalizers": "a"},
            BadRequest,
            "invalid patch format of setElementOrder list",
            id="an order that is no list",
        ),
        pytest.param(
            {ORDER + "containers": [{"name": "d"}], "containers": [{"name": "b"}]},
            Invalid,
            "doesn't match",
            id="an item that its order does not name",
        ),
        pytest.param(
            {"containers": [{"image": "x"}]},
            Invalid,
            "does not contain declared merge key: name",
            id="an item without its key",
        ),
        pytest.param(
            {"containers": [{"name": "x", "$patch": "merge"}]},
            Invalid,
            "merging lists cannot yet be specified",
            id="an item that asks to merge",
        ),
        pytest.param(
            {"labels": {"$patch": "bogus"}}, Invalid, "unknown patch type: bogus", id="a directive"
        ),
        pytest.param(
            {"containers": ["x"]}, Invalid, "types are not identical", id="items of two types"
        ),
        pytest.param({"containers": [["x"]]}, Invalid, "lists of lists", id="a list of lists"),
        pytest.param({"broken": [{"x": 2}]}, Invalid, "without a merge key", id="no merge key"),
    ],
)
def test_a_patch_that_makes_no_sense_is_refused(
    patch: Any, error: type[ApiError], message: str
) -> None:
    with pytest.raises(error, match=message):
        strategic_merge(DOCUMENT, patch, NODE)
