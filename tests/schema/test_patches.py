"""JSON patch and JSON merge patch."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.api.errors import BadRequest, Invalid, TooLarge
from fairway.schema.patches import json_patch, merge_patch

DOCUMENT = {"a": {"b": 1, "x/y": 2, "m~n": 3, "": 4}, "list": [1, 2, 3], "flag": True, "no": None}


def operation(op: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": op, "path": path, **more}


class TestJsonPatch:
    @pytest.mark.parametrize(
        ("operations", "expected"),
        [
            pytest.param([], {}, id="no operation changes nothing"),
            pytest.param(
                [operation("add", "/n", value=[])], {"n": []}, id="add puts a key into an object"
            ),
            pytest.param(
                [operation("add", "/list/1", value=9)],
                {"list": [1, 9, 2, 3]},
                id="add inserts into a list",
            ),
            pytest.param(
                [operation("add", "/list/3", value=9), operation("add", "/list/-", value=8)],
                {"list": [1, 2, 3, 9, 8]},
                id="add appends by position and by dash",
            ),
            pytest.param(
                [operation("add", "/list/-1", value=9)],
                {"list": [1, 2, 3, 9]},
                id="a negative index counts from behind the last",
            ),
            pytest.param(
                [operation("remove", "/a/x~1y"), operation("remove", "/a/m~0n")],
                {"a": {"b": 1, "": 4}},
                id="escapes stand for slash and tilde",
            ),
            pytest.param(
                [operation("remove", "/a/")],
                {"a": {"b": 1, "x/y": 2, "m~n": 3}},
                id="an empty part is an empty key",
            ),
            pytest.param(
                [operation("remove", "/list/-1"), operation("remove", "/list/0")],
                {"list": [2]},
                id="remove takes from a list",
            ),
            pytest.param(
                [operation("replace", "/list/0", value=[7])],
                {"list": [[7], 2, 3]},
                id="replace puts in place",
            ),
            pytest.param(
                [operation("replace", "/a/new", value=1), operation("replace", "/a/b", value=None)],
                {"a": {"b": None, "x/y": 2, "m~n": 3, "": 4, "new": 1}},
                id="replace adds a key that is not there",
            ),
            pytest.param(
                [{"op": "move", "from": "/a/b", "path": "/list/0"}],
                {"a": {"x/y": 2, "m~n": 3, "": 4}, "list": [1, 1, 2, 3]},
                id="move takes and puts",
            ),
            pytest.param(
                [{"op": "move", "from": "/list", "path": "/list"}],
                {},
                id="a move to itself is none",
            ),
            pytest.param(
                [
                    {"op": "copy", "from": "/list", "path": "/twin"},
                    operation("add", "/list/0", value=0),
                ],
                {"list": [0, 1, 2, 3], "twin": [1, 2, 3]},
                id="a copy does not change with its source",
            ),
            pytest.param(
                [
                    operation("test", "/a/b", value=1.0),
                    operation("test", "/list", value=[1, 2, 3]),
                    operation("test", "/no", value=None),
                    operation("test", "/missing", value=None),
                    operation("test", "", value=DOCUMENT),
                ],
                {},
                id="tests that hold",
            ),
        ],
    )
    def test_operations_change_the_document(self, operations: Any, expected: Any) -> None:
        assert json_patch(DOCUMENT, operations) == {**DOCUMENT, **expected}

    def test_the_empty_path_is_the_whole_document(self) -> None:
        assert json_patch(DOCUMENT, [operation("replace", "", value={"z": 1})]) == {"z": 1}
        assert json_patch(DOCUMENT, [operation("add", "", value={"z": 1})]) == {"z": 1}

    @pytest.mark.parametrize(
        "operations",
        [
            pytest.param([operation("test", "/a/b", value=2)], id="a test of another value"),
            pytest.param([operation("test", "/flag", value=1)], id="true is not one"),
            pytest.param([operation("test", "/list", value=[1, 2])], id="a shorter list"),
            pytest.param([operation("test", "/list/7", value=None)], id="a test past the end"),
            pytest.param([operation("remove", "/zz")], id="removing what is not there"),
            pytest.param([operation("remove", "/list/3")], id="removing past the end"),
            pytest.param([operation("add", "/list/4", value=1)], id="adding past the end"),
            pytest.param(
                [operation("add", "/list/01", value=1)], id="an index with a leading zero"
            ),
            pytest.param([operation("add", "/list/x", value=1)], id="an index that is no number"),
            pytest.param([operation("add", "/list/" + "9" * 5000, value=1)], id="a huge index"),
            pytest.param([operation("replace", "/list/-", value=1)], id="replacing the dash"),
            pytest.param([operation("add", "/a/b/c", value=1)], id="adding below a number"),
            pytest.param([operation("add", "/zz/c", value=1)], id="adding below nothing"),
            pytest.param([operation("add", "a", value=1)], id="a path without a slash"),
            pytest.param([operation("add", "/a")], id="an add without a value"),
            pytest.param([{"op": "add", "value": 1}], id="an add without a path"),
            pytest.param([{"op": "copy", "path": "/a"}], id="a copy without a source"),
            pytest.param([{"op": "copy", "from": "/zz", "path": "/a"}], id="a copy of nothing"),
            pytest.param([{"op": "move", "from": "/a", "path": "/a/c"}], id="a move into itself"),
            pytest.param([operation("bogus", "/a")], id="an unknown operation"),
            pytest.param([{"op": ["add"], "path": "/a"}], id="an operation that is a list"),
        ],
    )
    def test_an_operation_that_cannot_be_done_is_invalid(self, operations: Any) -> None:
        with pytest.raises(Invalid, match="the server rejected our request"):
            json_patch(DOCUMENT, operations)

    @pytest.mark.parametrize("patch", [{}, "x", None, [1], [["add"]]])
    def test_what_is_no_list_of_operations_is_a_bad_request(self, patch: Any) -> None:
        with pytest.raises(BadRequest):
            json_patch(DOCUMENT, patch)

    def test_too_many_operations_are_refused(self) -> None:
        most = [operation("test", "/flag", value=True)] * 10_000
        assert json_patch(DOCUMENT, most) == DOCUMENT
        with pytest.raises(TooLarge, match="10000, got 10001"):
            json_patch(DOCUMENT, [*most, most[0]])


class TestMergePatch:
    @pytest.mark.parametrize(
        ("document", "patch", "expected"),
        [
            pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="a value replaces"),
            pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="a new key is added"),
            pytest.param({"a": "b"}, {"a": None}, {}, id="null deletes"),
            pytest.param({"a": 1}, {"z": None}, {"a": 1}, id="null deletes nothing"),
            pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="a value replaces a list"),
            pytest.param({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}, id="a list replaces a value"),
            pytest.param(
                {"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}, id="maps merge"
            ),
            pytest.param({"a": [1]}, {"a": {"b": None}}, {"a": {}}, id="a map replaces a list"),
            pytest.param({"e": None}, {"a": 1}, {"e": None, "a": 1}, id="an old null stays"),
            pytest.param(
                {}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}, id="nulls in new maps are left out"
            ),
            pytest.param(
                {},
                {"a": [{"b": None, "c": 1}, None]},
                {"a": [{"c": 1}, None]},
                id="and in maps in new lists, but not in the lists",
            ),
        ],
    )
    def test_a_patch_is_merged(self, document: Any, patch: Any, expected: Any) -> None:
        assert merge_patch(document, patch) == expected

    @pytest.mark.parametrize("patch", [[], "x", None, 3])
    def test_a_patch_must_be_an_object(self, patch: Any) -> None:
        with pytest.raises(BadRequest):
            merge_patch({}, patch)


KEYS = st.sampled_from(["a", "b", "c", "0", "-"])
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), KEYS),
    lambda part: st.one_of(st.lists(part, max_size=3), st.dictionaries(KEYS, part, max_size=3)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
POINTERS = st.lists(KEYS, max_size=3).map(lambda parts: "".join(f"/{part}" for part in parts))
OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        "path": POINTERS,
        "from": POINTERS,
        "value": VALUES,
    }
)


@settings(deadline=None)
@given(OBJECTS, st.lists(OPERATIONS, max_size=5))
def test_a_json_patch_never_changes_what_it_is_given(document: Any, operations: Any) -> None:
    before = copy.deepcopy((document, operations))
    # Any other failure than a refusal of an operation fails the test.
    with contextlib.suppress(Invalid):
        json_patch(document, operations)
    assert (document, operations) == before


@settings(deadline=None)
@given(OBJECTS, OBJECTS)
def test_a_merge_patch_never_changes_what_it_is_given(document: Any, patch: Any) -> None:
    before = copy.deepcopy((document, patch))
    merged = merge_patch(document, patch)
    assert (document, patch) == before
    assert merge_patch(merged, patch) == merged
