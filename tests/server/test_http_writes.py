"""Writes over HTTPS: patches, apply, trials, validation, deletion, and who may be named creator."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hub_calls import APPLY, JSON_PATCH, MERGE, STRATEGIC, Answer, Caller, Json, config_map, fresh

from tests.waiting import PATIENCE_SECONDS

CREATED_BY = "fairway.dev/created-by"


@pytest.fixture
def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.mark.parametrize(
    ("kind", "body", "found"),
    [
        pytest.param(MERGE, {"data": {"a": None, "b": "2"}}, {"b": "2"}, id="merge"),
        pytest.param(STRATEGIC, {"data": {"b": "2"}}, {"a": "1", "b": "2"}, id="strategic merge"),
        pytest.param(
            JSON_PATCH,
            [{"op": "replace", "path": "/data/a", "value": "9"}],
            {"a": "9"},
            id="JSON patch",
        ),
    ],
)
async def test_a_patch_is_read_as_its_content_type_says(
    call: Caller, path: str, kind: Json, body: Any, found: Json
) -> None:
    await call("POST", path, config_map("one"))
    patched = await call("PATCH", f"{path}/one", body, headers=kind)
    assert (patched.status, patched.json["data"]) == (200, found)


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/cbor"])
async def test_a_patch_of_another_content_type_is_not_taken(
    call: Caller, path: str, kind: str
) -> None:
    await call("POST", path, config_map("one"))
    refused = await call("PATCH", f"{path}/one", {}, headers={"Content-Type": kind})
    assert (refused.status, refused.json["reason"]) == (415, "UnsupportedMediaType")
    created = await call("POST", path, b"a: 1", headers={"Content-Type": "text/plain"})
    assert created.status == 415


async def test_a_strategic_merge_of_a_custom_kind_is_not_taken(
    call: Caller, namespace: str
) -> None:
    path = "/apis/fairway.dev/v1alpha1/flavors"
    name = fresh("flavor")
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Flavor",
        "metadata": {"name": name},
        "spec": {},
    }
    await call("POST", path, body)
    refused = await call("PATCH", f"{path}/{name}", {"spec": {}}, headers=STRATEGIC)
    assert refused.status == 415


async def test_a_patch_that_tests_a_value_fails_when_it_differs(call: Caller, path: str) -> None:
    await call("POST", path, config_map("one"))
    tested = [
        {"op": "test", "path": "/data/a", "value": "other"},
        {"op": "remove", "path": "/data/a"},
    ]
    assert (await call("PATCH", f"{path}/one", tested, headers=JSON_PATCH)).status == 422
    assert (await call("GET", f"{path}/one")).json["data"] == {"a": "1"}


async def test_apply_shares_fields_among_managers(call: Caller, path: str) -> None:
    first = await call(
        "PATCH", f"{path}/one", config_map("one", a="1"), headers=APPLY, fieldManager="ann"
    )
    assert first.status == 201
    second = await call(
        "PATCH", f"{path}/one", config_map("one", b="2"), headers=APPLY, fieldManager="ben"
    )
    assert (second.status, second.json["data"]) == (200, {"a": "1", "b": "2"})
    taken = config_map("one", a="mine")
    conflict = await call("PATCH", f"{path}/one", taken, headers=APPLY, fieldManager="ben")
    assert (conflict.status, conflict.json["reason"]) == (409, "Conflict")
    (cause,) = conflict.json["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".data.a")
    assert '"ann"' in cause["message"]
    forced = await call(
        "PATCH", f"{path}/one", taken, headers=APPLY, fieldManager="ben", force="true"
    )
    assert forced.json["data"] == {"a": "mine"}
    left = await call("PATCH", f"{path}/one", config_map("one"), headers=APPLY, fieldManager="ben")
    assert left.status == 200
    managers = {
        managed_field["manager"] for managed_field in left.json["metadata"]["managedFields"]
    }
    assert "ben" in managers


async def test_apply_takes_yaml_and_needs_a_manager(call: Caller, path: str) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: '1'}\n"
    unnamed = await call("PATCH", f"{path}/one", text, headers=APPLY)
    assert (unnamed.status, unnamed.json["details"]["causes"][0]["field"]) == (422, "fieldManager")
    made = await call("PATCH", f"{path}/one", text, headers=APPLY, fieldManager="ann")
    assert (made.status, made.json["data"]) == (201, {"a": "1"})
    forced = await call("PATCH", f"{path}/one", {}, headers=MERGE, force="true")
    assert forced.status == 422


async def test_a_trial_answers_as_the_deed_and_leaves_nothing(
    call: Caller, path: str, namespace: str
) -> None:
    trial = await call("POST", path, config_map("one"), dryRun="All")
    assert (trial.status, trial.json["data"]) == (201, {"a": "1"})
    assert (await call("GET", f"{path}/one")).status == 404
    before = await call("POST", path, config_map("one"))
    change = {"data": {"a": "2"}}
    patched = await call("PATCH", f"{path}/one", change, headers=MERGE, dryRun="All")
    assert (patched.json["data"], patched.version) == ({"a": "2"}, before.version)
    assert (await call("DELETE", f"{path}/one", dryRun="All")).status == 200
    assert (await call("DELETE", f"{path}/one", {"dryRun": ["All"]})).status == 200
    assert (await call("DELETE", path, dryRun="All")).status == 200
    invalid = await call("POST", path, config_map("NOT A NAME"), dryRun="All")
    assert invalid.status == 422
    assert (await call("GET", f"{path}/one")).json == before.json


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_trial_that_is_not_understood_is_no_deed(
    call: Caller, path: str, method: str
) -> None:
    before = await call("POST", path, config_map("one"))
    body = None if method == "DELETE" else config_map("one", a="2")
    where = path if method == "POST" else f"{path}/one"
    answer = await call(method, where, body, headers=MERGE, dryRun="Some")
    assert (answer.status, answer.json["details"]["causes"][0]["field"]) == (422, "dryRun")
    assert (await call("GET", f"{path}/one")).json == before.json


async def test_unknown_fields_warn_are_refused_or_pass(call: Caller, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"

    def pod(name: str) -> Json:
        containers = [{"name": "main", "image": "app:1", "imagee": "x"}]
        return {"metadata": {"name": name}, "spec": {"containers": containers}}

    warned = await call("POST", path, pod("warned"))
    assert warned.status == 201
    (said,) = warned.warnings
    assert said.startswith('299 - "unknown field \\"spec.containers[0].imagee\\"')
    assert "imagee" not in warned.json["spec"]["containers"][0]
    strict = await call("POST", path, pod("strict"), fieldValidation="Strict")
    assert strict.status == 400
    assert (
        'strict decoding error: unknown field "spec.containers[0].imagee"'
        in (strict.json["message"])
    )
    ignored = await call("POST", path, pod("ignored"), fieldValidation="Ignore")
    assert (ignored.status, ignored.warnings) == (201, [])
    assert (await call("POST", path, pod("other"), fieldValidation="Maybe")).status == 422


@pytest.mark.parametrize(
    "path",
    [
        "/apis/fairway.dev/v1alpha1/queues",
        "/apis/kinds.fairway.dev/v1alpha1/kindrules",
        "/apis/costs.fairway.dev/v1alpha1/costaccounts",
        "/apis/serving.fairway.dev/v1alpha1/namespaces/default/rollouts",
    ],
)
async def test_unknown_fields_of_our_own_groups_are_refused(call: Caller, path: str) -> None:
    body = {"metadata": {"name": fresh("strict")}, "spec": {"noSuchField": 1}}
    refused = await call("POST", path, body)
    assert refused.status == 422
    causes = {cause["field"]: cause["message"] for cause in refused.json["details"]["causes"]}
    assert causes["spec.noSuchField"].startswith("Forbidden: unknown field")


async def test_deletion_takes_options_from_the_body_and_from_the_query(
    call: Caller, path: str
) -> None:
    made = await call("POST", path, config_map("owner"))
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": made.json["metadata"]["uid"],
    }
    dependent = config_map("dependent")
    dependent["metadata"]["ownerReferences"] = [owner]
    await call("POST", path, dependent)
    other = {"preconditions": {"uid": "another"}}
    assert (await call("DELETE", f"{path}/owner", other)).status == 409
    stale = {"preconditions": {"resourceVersion": "1"}}
    assert (await call("DELETE", f"{path}/owner", stale)).status == 409
    assert (await call("DELETE", f"{path}/owner", propagationPolicy="Orphan")).status == 200

    async def is_orphan() -> bool:
        body = (await call("GET", f"{path}/dependent")).json
        return "ownerReferences" not in body["metadata"]

    async def owner_is_gone() -> bool:
        return (await call("GET", f"{path}/owner")).status == 404

    await eventually(is_orphan)
    await eventually(owner_is_gone)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param({"propagationPolicy": "Sideways"}, 422, id="no such policy"),
        pytest.param(
            {"propagationPolicy": "Orphan", "orphanDependents": True}, 422, id="two policies"
        ),
        pytest.param({"dryRun": "All"}, 422, id="a trial that is no list"),
        pytest.param({"kind": "Pod"}, 400, id="another kind"),
        pytest.param([], 400, id="no object"),
        pytest.param({"gracePeriodSeconds": "soon"}, 400, id="no number"),
        pytest.param({"preconditions": "none"}, 400, id="no preconditions"),
    ],
)
async def test_a_deletion_that_is_not_understood_deletes_nothing(
    call: Caller, path: str, body: Any, code: int
) -> None:
    await call("POST", path, config_map("one"))
    assert (await call("DELETE", f"{path}/one", body)).status == code
    assert (await call("GET", f"{path}/one")).status == 200


async def test_a_collection_is_deleted_by_selector(call: Caller, path: str) -> None:
    for number in range(6):
        body = config_map(f"one-{number}")
        body["metadata"]["labels"] = {"even": str(number % 2 == 0)}
        await call("POST", path, body)
    gone = await call("DELETE", path, labelSelector="even=True")
    assert (gone.status, gone.json["kind"]) == (200, "ConfigMapList")
    assert [item["metadata"]["name"] for item in gone.json["items"]] == ["one-0", "one-2", "one-4"]
    left = (await call("GET", path)).json["items"]
    assert [item["metadata"]["name"] for item in left] == ["one-1", "one-3", "one-5"]
    assert (await call("DELETE", "/api/v1/configmaps")).status == 405


async def test_a_finalizer_holds_an_object_until_it_is_taken_off(call: Caller, path: str) -> None:
    body = config_map("held")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await call("POST", path, body)
    going = await call("DELETE", f"{path}/held")
    assert (going.status, going.json["kind"]) == (200, "ConfigMap")
    assert going.json["metadata"]["deletionTimestamp"]
    freed = {"metadata": {"finalizers": None}}
    assert (await call("PATCH", f"{path}/held", freed, headers=MERGE)).status == 200
    assert (await call("GET", f"{path}/held")).status == 404


async def test_a_namespace_empties_itself_and_takes_nothing_new(
    call: Caller, namespace: str, path: str
) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await call("POST", path, held)
    await call("POST", path, config_map("plain"))
    going = await call("DELETE", f"/api/v1/namespaces/{namespace}")
    assert going.json["status"]["phase"] == "Terminating"
    refused = await call("POST", path, config_map("late"))
    assert (refused.status, refused.json["details"]["causes"][0]["reason"]) == (
        403,
        "NamespaceTerminating",
    )

    async def plain_is_gone() -> bool:
        return (await call("GET", f"{path}/plain")).status == 404

    await eventually(plain_is_gone)
    assert (await call("GET", f"/api/v1/namespaces/{namespace}")).status == 200
    await call("PATCH", f"{path}/held", {"metadata": {"finalizers": []}}, headers=MERGE)

    async def namespace_is_gone() -> bool:
        return (await call("GET", f"/api/v1/namespaces/{namespace}")).status == 404

    await eventually(namespace_is_gone)
    assert (await call("POST", path, config_map("later"))).status == 404


@pytest.mark.parametrize("change", ["PUT", "merge", "apply", "remove all", "apply forced"])
async def test_who_created_an_object_cannot_be_changed(
    call: Caller, path: str, change: str
) -> None:
    body = config_map("one")
    body["metadata"]["annotations"] = {CREATED_BY: "somebody else"}
    made = await call("POST", path, body)
    assert made.json["metadata"]["annotations"][CREATED_BY] == "admin"
    answer: Answer
    match change:
        case "PUT":
            answer = await call("PUT", f"{path}/one", body)
        case "remove all":
            none = {"metadata": {"annotations": None}}
            answer = await call("PATCH", f"{path}/one", none, headers=MERGE)
        case "merge":
            answer = await call("PATCH", f"{path}/one", body, headers=MERGE)
        case _:
            force = "true" if "forced" in change else "false"
            answer = await call(
                "PATCH", f"{path}/one", body, headers=APPLY, fieldManager="x", force=force
            )
    now = await call("GET", f"{path}/one")
    assert now.json["metadata"]["annotations"][CREATED_BY] == "admin", answer.body


async def test_the_name_in_the_path_counts(call: Caller, path: str) -> None:
    await call("POST", path, config_map("one"))
    other = await call("PUT", f"{path}/one", config_map("two"))
    assert other.status == 400
    bare = await call("PUT", f"{path}/one", {"data": {"b": "2"}})
    assert (bare.status, bare.json["data"]) == (200, {"b": "2"})
    elsewhere = config_map("three")
    elsewhere["metadata"]["namespace"] = "default"
    assert (await call("POST", path, elsewhere)).status == 400
    generated = await call("POST", path, {"metadata": {"generateName": "made-"}})
    assert generated.json["metadata"]["name"].startswith("made-")


async def test_a_name_left_out_is_not_the_next_one(call: Caller, namespace: str) -> None:
    answer = await call("DELETE", f"/api/v1/namespaces//{namespace}")
    assert answer.status == 404
    assert (await call("GET", f"/api/v1/namespaces/{namespace}")).status == 200


@pytest.mark.parametrize(
    ("method", "where"),
    [("PUT", ""), ("PATCH", ""), ("POST", "/one"), ("PURGE", "/one"), ("TRACE", "")],
)
async def test_a_method_that_makes_no_sense_is_not_allowed(
    call: Caller, path: str, method: str, where: str
) -> None:
    answer = await call(method, path + where, config_map("one"), headers=MERGE)
    assert (answer.status, answer.json["reason"]) == (405, "MethodNotAllowed")


async def test_writers_at_once_conflict_or_win_and_lose_nothing(call: Caller, path: str) -> None:
    made = await call("POST", path, config_map("one", count="0"))

    async def put(number: int) -> int:
        body = made.json | {"data": {"count": str(number)}}
        return (await call("PUT", f"{path}/one", body)).status

    codes = await asyncio.gather(*(put(number) for number in range(1, 20)))
    assert sorted(codes) == [200] + [409] * 18


async def eventually(holds: Any) -> None:
    """Waits for something that the hub does on its own."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await holds():
            await asyncio.sleep(0.005)
