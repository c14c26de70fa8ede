"""Server-side apply: what is merged, who owns it, and who is in the way.

The expectations were seen on a kube-apiserver with the same kind, but for one: where the server
leaves null in the place of a container that it has emptied, an empty container stays here.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.api.errors import BadRequest, Conflict
from fairway.schema.managed import apply
from tests.schema.things import LATER, NODE, TIME, VERSION, entry, port, thing


def applied(
    live: Any,
    spec: Any,
    *,
    manager: str = "ci",
    force: bool = False,
    time: str = LATER,
    subresource: str = "",
    labels: Any = None,
) -> Any:
    before = copy.deepcopy((live, spec))
    result = apply(
        live,
        thing(spec=spec, labels=labels) if spec is not None else thing(labels=labels),
        node=NODE,
        manager=manager,
        api_version=VERSION,
        subresource=subresource,
        time=time,
        force=force,
    )
    assert (live, spec) == before
    return result


def claims(manager: str, spec: Any, time: str = LATER) -> Any:
    return entry(manager, {"f:spec": spec}, operation="Apply", time=time)


def key(number: int, protocol: str = "TCP") -> str:
    return f'k:{{"port":{number},"protocol":"{protocol}"}}'


PORT = {".": {}, "f:port": {}, "f:protocol": {}}


class TestCreate:
    def test_the_applier_owns_what_it_states_and_no_container(self) -> None:
        spec = {
            "replicas": 1,
            "tags": ["b", "a"],
            "args": ["x"],
            "ports": [{"port": 1, "name": "n"}],
            "free": {"q": {"w": [1]}},
            "options": {"o": "1"},
            "selector": {"s": "1"},
            "deep": {"inner": {"a": "1"}},
        }
        fields = {
            "f:replicas": {},
            "f:tags": {'v:"b"': {}, 'v:"a"': {}},
            "f:args": {},
            "f:ports": {key(1): {".": {}, "f:port": {}, "f:name": {}}},
            "f:free": {"f:q": {".": {}, "f:w": {}}},
            "f:options": {"f:o": {}},
            "f:selector": {},
            "f:deep": {"f:inner": {"f:a": {}}},
        }
        assert applied(None, spec) == thing(owners=[claims("ci", fields)], spec=spec)

    def test_stating_nothing_owns_nothing(self) -> None:
        assert applied(None, None) == thing()


class TestMerge:
    @pytest.mark.parametrize(
        ("live", "spec", "expected"),
        [
            pytest.param(
                {"replicas": 1, "options": {"a": "1"}},
                {"note": "n", "options": {"b": "2"}},
                {"replicas": 1, "options": {"a": "1", "b": "2"}, "note": "n"},
                id="maps merge",
            ),
            pytest.param(
                {"selector": {"a": "1"}, "args": ["x"]},
                {"selector": {"b": "2"}, "args": ["y"]},
                {"selector": {"b": "2"}, "args": ["y"]},
                id="what is one piece is replaced",
            ),
            pytest.param(
                {"tags": ["a", "b", "c", "d", "e"]},
                {"tags": ["e", "z", "c", "y", "a"]},
                {"tags": ["b", "d", "e", "z", "c", "y", "a"]},
                id="a set takes the order of the configuration for what it names",
            ),
            pytest.param(
                {"ports": [port(1, name="a"), port(2)]},
                {"ports": [port(3), port(1)]},
                {"ports": [port(3), port(1, name="a"), port(2)]},
                id="items merge by key",
            ),
            pytest.param(
                {"ports": [port(1)]},
                {"ports": [{"port": 1, "name": "n"}]},
                {"ports": [port(1, name="n")]},
                id="a key that is left out is its default",
            ),
            pytest.param(
                {"ports": [port(1, name="a"), port(1, name="b"), port(2)]},
                {"ports": [port(1, name="c")]},
                {"ports": [port(1, name="c"), port(2)]},
                id="one item replaces several with its key",
            ),
            pytest.param(
                {"options": {"a": "1"}, "tags": ["a"], "ports": [port(1)]},
                {"options": {}, "tags": [], "ports": None},
                {"options": {"a": "1"}, "tags": ["a"], "ports": [port(1)]},
                id="an empty container takes nothing away",
            ),
            pytest.param({"note": "a"}, {"note": None}, {"note": None}, id="null is a value"),
            pytest.param(
                {"free": {"a": {"b": 1}, "l": [1], "s": 1}},
                {"free": {"a": {"c": 2}, "l": [2], "s": {"x": 1}}},
                {"free": {"a": {"b": 1, "c": 2}, "l": [2], "s": {"x": 1}}},
                id="free content merges by its own shape",
            ),
        ],
    )
    def test_a_configuration_is_laid_over_the_live_object(
        self, live: Any, spec: Any, expected: Any
    ) -> None:
        merged = applied(thing(spec=live), spec, force=True)
        assert merged["spec"] == expected


class TestRemoval:
    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            pytest.param({"replicas": 1, "note": "n"}, {"note": "n"}, {"note": "n"}, id="a field"),
            pytest.param({"tags": ["a", "b"]}, {"tags": ["b"]}, {"tags": ["b"]}, id="a set's item"),
            pytest.param(
                {"ports": [port(1), port(2)]}, {"ports": [port(2)]}, {"ports": [port(2)]}, id="item"
            ),
            pytest.param(
                {"ports": [port(1, name="x")]},
                {"ports": [port(1)]},
                {"ports": [port(1)]},
                id="part",
            ),
            pytest.param(
                {"replicas": 1, "ports": [port(1)], "options": {"o": "1"}},
                {"replicas": 1},
                {"replicas": 1},
                id="whole containers",
            ),
            pytest.param(
                {"options": {"a": "1"}}, {"options": {}}, {"options": {}}, id="an emptied container"
            ),
            pytest.param(
                {"replicas": 1, "free": {"a": {"b": 1}, "c": 1}},
                {"replicas": 1, "free": {"c": 1}},
                {"replicas": 1, "free": {"c": 1}},
                id="free content",
            ),
        ],
    )
    def test_what_is_no_longer_stated_goes(self, first: Any, second: Any, expected: Any) -> None:
        live = applied(None, first, time=TIME)
        assert applied(live, second)["spec"] == expected

    def test_what_somebody_else_states_too_stays(self) -> None:
        live = applied(None, {"replicas": 1, "tags": ["a", "b"]}, time=TIME)
        live = applied(live, {"tags": ["a"]}, manager="other", time=TIME)
        assert applied(live, {"replicas": 1}) == thing(
            owners=[
                # The second changed nothing, so there was no time to note.
                claims("other", {"f:tags": {'v:"a"': {}}}, time=""),
                claims("ci", {"f:replicas": {}}),
            ],
            spec={"replicas": 1, "tags": ["a"]},
        )

    def test_what_nobody_states_stays_beside_and_goes_with_what_holds_it(self) -> None:
        live = applied(None, {"args": ["x"], "deep": {"inner": {"a": "1"}}}, time=TIME)
        live["spec"]["note"] = "defaulted"
        live["spec"]["deep"]["inner"]["b"] = "defaulted"
        merged = applied(live, {"replicas": 1})
        assert merged["spec"] == {"replicas": 1, "note": "defaulted"}

    def test_a_manager_may_let_go_of_everything(self) -> None:
        live = applied(None, {"replicas": 1}, time=TIME)
        assert applied(live, None) == thing()


HERS = entry("her", {"f:spec": {"f:replicas": {}, "f:tags": {'v:"a"': {}}}})
LIVE = thing(owners=[HERS], spec={"replicas": 1, "tags": ["a"]})


class TestConflict:
    def test_one_conflict_is_told_in_a_line(self) -> None:
        with pytest.raises(Conflict) as caught:
            applied(LIVE, {"replicas": 2})
        assert caught.value.message == (
            'Apply failed with 1 conflict: conflict with "her" using x.io/v1: .spec.replicas'
        )
        assert caught.value.details == {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "her" using x.io/v1',
                    "field": ".spec.replicas",
                }
            ]
        }

    def test_several_conflicts_are_told_by_owner(self) -> None:
        live = thing(
            owners=[
                HERS,
                claims("cd", {"f:ports": {key(1): {".": {}, "f:name": {}}}, "f:note": {}}),
                entry("her", {"f:spec": {"f:args": {}}}, subresource="status"),
            ],
            spec={"replicas": 1, "ports": [port(1, name="a")], "note": "n", "args": ["x"]},
        )
        with pytest.raises(Conflict) as caught:
            applied(live, {"replicas": 2, "ports": [port(1, name="b")], "note": "m", "args": ["y"]})
        assert caught.value.message == (
            "Apply failed with 4 conflicts: "
            'conflicts with "cd":\n'
            "- .spec.note\n"
            '- .spec.ports[port=1,protocol="TCP"].name\n'
            'conflicts with "her" using x.io/v1:\n'
            "- .spec.replicas\n"
            'conflicts with "her" with subresource "status" using x.io/v1:\n'
            "- .spec.args"
        )
        assert len(caught.value.details["causes"]) == 4

    def test_the_same_value_is_no_conflict_and_is_owned_by_both(self) -> None:
        assert applied(LIVE, {"replicas": 1}) == thing(
            owners=[claims("ci", {"f:replicas": {}}, time=""), HERS], spec=LIVE["spec"]
        )

    def test_force_takes_the_field(self) -> None:
        assert applied(LIVE, {"replicas": 2}, force=True) == thing(
            owners=[
                claims("ci", {"f:replicas": {}}),
                entry("her", {"f:spec": {"f:tags": {'v:"a"': {}}}}),
            ],
            spec={"replicas": 2, "tags": ["a"]},
        )

    def test_an_own_update_is_another_owner(self) -> None:
        with pytest.raises(Conflict, match='conflict with "her" using'):
            applied(LIVE, {"replicas": 2}, manager="her")

    def test_what_was_there_before_the_first_apply_has_an_owner(self) -> None:
        live = thing(spec={"replicas": 1, "note": "n"})
        with pytest.raises(Conflict, match='conflict with "before-first-apply" using'):
            applied(live, {"replicas": 2})
        assert applied(live, {"replicas": 2}, force=True) == thing(
            owners=[
                claims("ci", {"f:replicas": {}}),
                entry("before-first-apply", {"f:spec": {".": {}, "f:note": {}}}, time=LATER),
            ],
            spec={"replicas": 2, "note": "n"},
        )


def test_owners_of_parts_own_the_whole_once_it_is_one_piece() -> None:
    parts = {"f:selector": {".": {}, "f:s": {}}, "f:args": {"i:0": {}}, "f:free": {"f:a": {}}}
    whole = {"f:selector": {}, "f:args": {}, "f:free": {"f:a": {}}}
    spec = {"selector": {"s": "1"}, "args": ["x"], "free": {"a": 1}}
    live = thing(owners=[claims("cd", parts, time=TIME)], spec=spec)
    assert applied(live, {"replicas": 1})["metadata"]["managedFields"] == [
        claims("cd", whole, time=TIME),
        claims("ci", {"f:replicas": {}}),
    ]


class TestRefusal:
    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            pytest.param(
                {"ports": [port(1), {"port": 1}]},
                '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]',
                id="two items with one key",
            ),
            pytest.param(
                {"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]', id="twice"
            ),
            pytest.param(
                {"bogus": 1}, ".spec.bogus: field not declared in schema", id="an unknown field"
            ),
            pytest.param(
                {"replicas": "1"},
                ".spec.replicas: expected numeric (int or float), got string",
                id="another type",
            ),
            pytest.param(
                {"ports": {"a": 1}}, ".spec.ports: expected list, got object", id="a map for a list"
            ),
            pytest.param(
                {"options": [1]}, ".spec.options: expected map, got array", id="a list for a map"
            ),
            pytest.param(
                {"ports": ["x"]},
                ".spec.ports: element 0: associative list with keys may not have non-map elements",
                id="an item that is no map",
            ),
            pytest.param(
                {"bogus": 1, "note": 2},
                "errors:\n  .spec.bogus: field not declared in schema\n"
                "  .spec.note: expected string, got integer",
                id="all faults at once",
            ),
        ],
    )
    def test_a_configuration_that_does_not_fit_is_refused(self, spec: Any, message: str) -> None:
        with pytest.raises(BadRequest) as caught:
            applied(LIVE, spec)
        assert caught.value.message == (
            f"failed to create typed patch object (/t; x.io/v1, Kind=Thing): {message}"
        )

    @pytest.mark.parametrize("given", [[], [HERS]])
    def test_owners_cannot_be_applied(self, given: Any) -> None:
        with pytest.raises(BadRequest, match=r"metadata\.managedFields must be nil"):
            apply(
                LIVE,
                thing(owners=given),
                node=NODE,
                manager="ci",
                api_version=VERSION,
                subresource="",
                time=TIME,
                force=True,
            )

    def test_metadata_that_is_no_map_is_refused(self) -> None:
        with pytest.raises(BadRequest, match="expected map, got integer"):
            apply(
                None,
                {"apiVersion": VERSION, "kind": "Thing", "metadata": 3},
                node=NODE,
                manager="ci",
                api_version=VERSION,
                subresource="",
                time=TIME,
                force=True,
            )


SHORT = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(1, 4)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": NUMBERS,
        "note": st.one_of(st.none(), SHORT),
        "tags": st.lists(SHORT, unique=True),
        "args": st.lists(SHORT, max_size=2),
        "ports": st.lists(
            st.fixed_dictionaries(
                {"port": NUMBERS}, optional={"protocol": st.just("TCP"), "name": SHORT}
            ),
            unique_by=lambda fixed_dictionary: fixed_dictionary["port"],
        ),
        "options": st.dictionaries(SHORT, SHORT),
        "selector": st.dictionaries(SHORT, SHORT),
        "free": st.dictionaries(
            SHORT, st.recursive(NUMBERS, lambda part: st.dictionaries(SHORT, part), max_leaves=4)
        ),
        "deep": st.fixed_dictionaries(
            {}, optional={"inner": st.fixed_dictionaries({}, optional={"a": SHORT, "b": SHORT})}
        ),
    },
)
HISTORIES = st.lists(st.tuples(st.sampled_from(["ci", "cd", "ops"]), SPECS), max_size=4)


def lived(history: list[Any]) -> Any:
    """An object with a past; it has a label, so that it has an owner from the first on."""
    live = applied(None, None, manager="first", labels={"l": "1"}, time=TIME)
    for manager, spec in history:
        live = applied(live, spec, manager=manager, force=True, time=TIME)
    return live


@settings(deadline=None)
@given(HISTORIES, SPECS)
def test_applying_again_changes_nothing(history: Any, spec: Any) -> None:
    once = applied(lived(history), spec, force=True, time=TIME)
    assert applied(once, spec, force=False, time=LATER) == once


@settings(deadline=None)
@given(HISTORIES, SPECS)
def test_a_forced_configuration_is_in_the_result_and_owned(history: Any, spec: Any) -> None:
    merged = applied(lived(history), spec, force=True)
    alone = applied(None, spec)
    owners = {
        managed_field["manager"]: managed_field["fieldsV1"]
        for managed_field in merged["metadata"]["managedFields"]
    }
    stated = [
        managed_field["fieldsV1"] for managed_field in alone["metadata"].get("managedFields", [])
    ]
    assert stated == ([owners["ci"]] if "ci" in owners else [])
    for name in ("replicas", "note", "args", "selector"):
        if name in spec:
            assert merged["spec"][name] == spec[name]


@settings(deadline=None)
@given(SPECS)
def test_letting_go_of_all_leaves_only_what_nobody_can_own(spec: Any) -> None:
    left = applied(applied(None, spec), {})["spec"]
    # An empty list of items and a map of nothing have no owner.
    assert all(value in ([], {}, {"inner": {}}) for value in left.values())
