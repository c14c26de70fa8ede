"""Who owns what after a create or an update. The expectations were seen on a kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.schema.managed import after_update, blank_of
from fairway.schema.node import parse
from tests.schema.things import LATER, NODE, TIME, VERSION, entry, port, thing


def owners_after(
    old: Any, new: Any, *, manager: str = "me", subresource: str = "", time: str = LATER
) -> list[Any]:
    return after_update(
        old,
        new,
        node=NODE,
        manager=manager,
        api_version=VERSION,
        subresource=subresource,
        time=time,
    )


SPEC = {"f:spec": {".": {}, "f:replicas": {}}}


class TestCreate:
    def test_the_creator_owns_all_but_what_is_the_servers(self) -> None:
        new = thing(
            labels={"l": "1"},
            spec={
                "replicas": 1,
                "tags": ["a"],
                "args": ["x"],
                "ports": [port(1)],
                "free": {"q": {"w": [1, {"z": 2}]}},
                "options": {},
                "selector": {"k": "v"},
                "note": None,
                "deep": {"inner": {"a": "1"}},
            },
        )
        new["metadata"] |= {
            "uid": "u",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": TIME,
            "finalizers": ["x.io/f"],
        }
        assert owners_after(None, new) == [
            entry(
                "me",
                {
                    "f:metadata": {
                        "f:labels": {".": {}, "f:l": {}},
                        "f:finalizers": {".": {}, 'v:"x.io/f"': {}},
                    },
                    "f:spec": {
                        ".": {},
                        "f:replicas": {},
                        "f:tags": {".": {}, 'v:"a"': {}},
                        "f:args": {},
                        "f:ports": {
                            ".": {},
                            'k:{"port":1,"protocol":"TCP"}': {
                                ".": {},
                                "f:port": {},
                                "f:protocol": {},
                            },
                        },
                        "f:free": {".": {}, "f:q": {".": {}, "f:w": {}}},
                        "f:options": {},
                        "f:selector": {},
                        "f:note": {},
                        "f:deep": {".": {}, "f:inner": {".": {}, "f:a": {}}},
                    },
                },
                time=LATER,
            )
        ]

    def test_an_object_of_nothing_has_no_owner(self) -> None:
        assert owners_after(None, thing()) == []

    def test_a_writer_without_a_name_is_unknown(self) -> None:
        (only,) = owners_after(None, thing(spec={"replicas": 1}), manager="")
        assert only["manager"] == "unknown"

    def test_owners_that_come_along_are_kept_for_what_they_own(self) -> None:
        new = thing(owners=[entry("her", {"f:spec": {"f:note": {}}})], spec={"replicas": 1})
        assert owners_after(None, new) == [
            entry("her", {"f:spec": {"f:note": {}}}),
            entry("me", SPEC, time=LATER),
        ]

    @pytest.mark.parametrize("given", [[], [{}]])
    def test_a_reset_at_creation_does_not_stop_tracking(self, given: list[Any]) -> None:
        new = thing(owners=given, spec={"replicas": 1})
        assert owners_after(None, new) == [entry("me", SPEC, time=LATER)]

    def test_containers_that_are_always_there_are_not_created(self) -> None:
        node = parse(
            {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "default": {},
                        "required": ["items"],
                        "properties": {
                            "items": {
                                "type": "array",
                                "x-kubernetes-list-type": "set",
                                "items": {"type": "string"},
                            },
                            "pointer": {"type": "object", "properties": {"a": {"type": "string"}}},
                        },
                    }
                },
            }
        )
        (only,) = after_update(
            None,
            thing(spec={"items": ["x"], "pointer": {"a": "1"}}),
            node=node,
            manager="me",
            api_version=VERSION,
            subresource="",
            time=TIME,
            blank=blank_of(node),
        )
        assert only["fieldsV1"] == {
            "f:spec": {"f:items": {'v:"x"': {}}, "f:pointer": {".": {}, "f:a": {}}}
        }


HERS = entry("her", {"f:spec": {".": {}, "f:replicas": {}, "f:tags": {".": {}, 'v:"a"': {}}}})
OLD = thing(owners=[HERS], spec={"replicas": 1, "tags": ["a"]})


class TestUpdate:
    @pytest.mark.parametrize(
        ("spec", "expected"),
        [
            pytest.param({"replicas": 1, "tags": ["a"]}, [HERS], id="no change, no new owner"),
            pytest.param({"replicas": 1.0, "tags": ["a"]}, [HERS], id="1.0 is 1"),
            pytest.param(
                {"replicas": 2, "tags": ["a"]},
                [
                    entry("her", {"f:spec": {".": {}, "f:tags": {".": {}, 'v:"a"': {}}}}),
                    entry("me", {"f:spec": {"f:replicas": {}}}, time=LATER),
                ],
                id="a changed field changes hands",
            ),
            pytest.param(
                {"replicas": 1, "tags": ["b", "a"]},
                [HERS, entry("me", {"f:spec": {"f:tags": {'v:"b"': {}}}}, time=LATER)],
                id="a new item belongs to who added it",
            ),
            pytest.param(
                {"tags": ["a"]},
                [entry("her", {"f:spec": {".": {}, "f:tags": {".": {}, 'v:"a"': {}}}})],
                id="a field that is gone has no owner, and nobody's time moves",
            ),
            pytest.param(
                {"replicas": 1},
                [entry("her", SPEC)],
                id="a list that is gone has no owner",
            ),
            pytest.param(
                {"replicas": 1, "tags": ["a"], "deep": {"inner": {}}},
                [HERS, entry("me", {"f:spec": {"f:deep": {".": {}, "f:inner": {}}}}, time=LATER)],
                id="new containers belong to who made them",
            ),
        ],
    )
    def test_fields_that_change_change_hands(self, spec: Any, expected: Any) -> None:
        assert owners_after(OLD, thing(spec=spec)) == expected

    def test_a_writer_who_comes_again_has_one_entry(self) -> None:
        first = owners_after(OLD, thing(spec={"replicas": 2, "tags": ["a"]}), time=TIME)
        second = owners_after(
            thing(owners=first, spec={"replicas": 2, "tags": ["a"]}),
            thing(owners=first, spec={"replicas": 2, "tags": ["a"], "note": "n"}),
        )
        assert second[1] == entry("me", {"f:spec": {"f:replicas": {}, "f:note": {}}}, time=LATER)

    def test_a_subresource_is_an_owner_of_its_own(self) -> None:
        new = thing(spec=OLD["spec"], status={"phase": "Up"})
        mine = entry(
            "her", {"f:status": {".": {}, "f:phase": {}}}, time=LATER, subresource="status"
        )
        assert owners_after(OLD, new, manager="her", subresource="status") == [HERS, mine]

    def test_an_applier_loses_what_an_update_changes(self) -> None:
        applied = entry("ci", {"f:spec": {"f:replicas": {}}}, operation="Apply")
        old = thing(owners=[applied], spec={"replicas": 1})
        assert owners_after(old, thing(spec={"replicas": 2})) == [
            entry("me", {"f:spec": {"f:replicas": {}}}, time=LATER)
        ]

    @pytest.mark.parametrize("given", [[], [{}]])
    def test_an_empty_list_or_entry_resets_ownership(self, given: list[Any]) -> None:
        assert owners_after(OLD, thing(owners=given, spec={"replicas": 2})) == []

    def test_a_subresource_cannot_reset_ownership(self) -> None:
        new = thing(owners=[], spec=OLD["spec"])
        assert owners_after(OLD, new, subresource="status") == [HERS]

    def test_an_object_whose_ownership_is_not_tracked_stays_so(self) -> None:
        assert owners_after(thing(spec={"replicas": 1}), thing(spec={"replicas": 2})) == []

    @pytest.mark.parametrize(
        "broken",
        [
            pytest.param([{"operation": "Update"}], id="no version"),
            pytest.param([{**HERS, "operation": "Other"}], id="an unknown operation"),
            pytest.param([{**HERS, "fieldsType": "FieldsV2"}], id="an unknown form"),
            pytest.param([{**HERS, "fieldsV1": {"x": {}}}], id="a broken set"),
            pytest.param(["x"], id="no entry at all"),
        ],
    )
    def test_broken_owners_leave_the_old_ones(self, broken: Any) -> None:
        assert owners_after(OLD, thing(owners=broken, spec=OLD["spec"])) == [HERS]

    def test_owners_may_be_rewritten_by_hand(self) -> None:
        by_hand = [entry("him", {"f:spec": {"f:tags": {'v: "a"': {}}}})]
        assert owners_after(OLD, thing(owners=by_hand, spec=OLD["spec"])) == [
            entry("him", {"f:spec": {"f:tags": {'v:"a"': {}}}})
        ]

    def test_items_that_share_a_key_have_one_owner(self) -> None:
        new = thing(spec={**OLD["spec"], "ports": [port(1), port(1, name="x")]})
        assert owners_after(OLD, new)[1]["fieldsV1"] == {
            "f:spec": {"f:ports": {".": {}, 'k:{"port":1,"protocol":"TCP"}': {}}}
        }

    def test_items_that_cannot_be_told_apart_end_tracking(self) -> None:
        assert owners_after(OLD, thing(spec={"tags": [{"a": 1}]})) == []


def test_the_oldest_updates_become_one_entry_when_there_are_many() -> None:
    owners: list[Any] = []
    spec: dict[str, Any] = {"options": {}}
    for day in range(1, 13):
        old = thing(owners=owners, spec=spec) if day > 1 else None
        spec = {"options": {**spec["options"], f"o{day}": "x"}}
        owners = owners_after(
            old, thing(spec=spec), manager=f"m{day:02}", time=f"2026-01-{day:02}T00:00:00Z"
        )
    assert [(owner["manager"], owner["time"][8:10]) for owner in owners] == [
        ("ancient-changes", "03"),
        *((f"m{day:02}", f"{day:02}") for day in range(4, 13)),
    ]
    assert set(owners[0]["fieldsV1"]["f:spec"]["f:options"]) == {".", "f:o1", "f:o2", "f:o3"}
