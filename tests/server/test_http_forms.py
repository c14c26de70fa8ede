"""The forms in which objects are shown: tables, metadata alone, pages."""

from __future__ import annotations

import pytest
from hub_calls import Caller, Json, config_map

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
PARTIALS = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}


@pytest.fixture
async def path(call: Caller, namespace: str) -> str:
    """A place with seven objects."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(7):
        await call("POST", path, config_map(f"one-{number}", a="1", b="2"))
    return path


def names(listed: Json) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def test_a_table_has_columns_and_a_row_for_each_object(call: Caller, path: str) -> None:
    table = (await call("GET", path, headers=TABLE)).json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column_definition["name"] for column_definition in table["columnDefinitions"]] == [
        "Name",
        "Data",
        "Age",
    ]
    assert [row["cells"][:2] for row in table["rows"]] == [[f"one-{n}", 2] for n in range(7)]
    assert int(table["metadata"]["resourceVersion"]) > 0
    one = (await call("GET", f"{path}/one-3", headers=TABLE)).json
    assert [row["cells"][0] for row in one["rows"]] == ["one-3"]


@pytest.mark.parametrize(
    ("include", "shown"),
    [
        pytest.param("", "PartialObjectMetadata", id="metadata unless told otherwise"),
        pytest.param("Metadata", "PartialObjectMetadata", id="metadata"),
        pytest.param("Object", "ConfigMap", id="the whole object"),
        pytest.param("None", None, id="nothing"),
    ],
)
async def test_a_row_brings_what_is_asked_of_its_object(
    call: Caller, path: str, include: str, shown: str | None
) -> None:
    query = {"includeObject": include} if include else {}
    rows = (await call("GET", path, headers=TABLE, **query)).json["rows"]
    kinds = {(row.get("object") or {}).get("kind") for row in rows}
    assert kinds == {shown}


async def test_metadata_alone_comes_without_the_rest(call: Caller, path: str) -> None:
    one = (await call("GET", f"{path}/one-0", headers=PARTIAL)).json
    assert (one["kind"], one["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert set(one) == {"kind", "apiVersion", "metadata"}
    listed = (await call("GET", path, headers=PARTIALS)).json
    assert listed["kind"] == "PartialObjectMetadataList"
    assert all("data" not in item for item in listed["items"])
    assert len(listed["items"]) == 7


async def test_a_form_that_is_not_served_is_refused_before_anything_is_done(
    call: Caller, path: str
) -> None:
    only = {"Accept": "application/vnd.kubernetes.protobuf"}
    refused = await call("POST", path, config_map("new"), headers=only)
    assert (refused.status, refused.json["reason"]) == (406, "NotAcceptable")
    assert (await call("GET", f"{path}/new")).status == 404
    both = {"Accept": "application/vnd.kubernetes.protobuf,application/json"}
    assert (await call("GET", path, headers=both)).headers["Content-Type"] == "application/json"


async def test_pages_are_of_one_moment(call: Caller, path: str) -> None:
    first = (await call("GET", path, limit=3)).json
    assert names(first) == ["one-0", "one-1", "one-2"]
    assert first["metadata"]["remainingItemCount"] == 4
    await call("DELETE", f"{path}/one-4")
    await call("POST", path, config_map("one-31"))
    second = (await call("GET", path, limit=3, **{"continue": first["metadata"]["continue"]})).json
    third = (await call("GET", path, limit=3, **{"continue": second["metadata"]["continue"]})).json
    assert names(second) + names(third) == ["one-3", "one-4", "one-5", "one-6"]
    assert "continue" not in third["metadata"]
    versions = {page["metadata"]["resourceVersion"] for page in (first, second, third)}
    assert len(versions) == 1


async def test_a_list_at_a_version_is_as_it_was(call: Caller, path: str) -> None:
    then = (await call("GET", path)).json["metadata"]["resourceVersion"]
    await call("DELETE", path)
    exact = await call("GET", path, resourceVersion=then, resourceVersionMatch="Exact")
    assert len(exact.json["items"]) == 7
    newer = await call("GET", path, resourceVersion=then, resourceVersionMatch="NotOlderThan")
    assert newer.json["items"] == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        pytest.param({"limit": "-1"}, 400, id="a negative limit"),
        pytest.param({"limit": "many"}, 400, id="a limit that is no number"),
        pytest.param({"continue": "nonsense"}, 400, id="a token that is none"),
        pytest.param({"labelSelector": "a in"}, 400, id="half a selector"),
        pytest.param({"fieldSelector": "data.a=1"}, 400, id="a field that is not selectable"),
        pytest.param({"resourceVersion": "x"}, 400, id="a version that is none"),
        pytest.param({"resourceVersionMatch": "Exact"}, 422, id="a match without a version"),
        pytest.param(
            {"resourceVersion": "1", "resourceVersionMatch": "Near"}, 422, id="an unknown match"
        ),
        pytest.param(
            {"watch": "true", "resourceVersionMatch": "Exact"}, 422, id="a watch with a match"
        ),
        pytest.param({"watch": "true", "sendInitialEvents": "true"}, 422, id="no match"),
        pytest.param({"watch": "true", "timeoutSeconds": "soon"}, 400, id="no number of seconds"),
    ],
)
async def test_parameters_that_make_no_sense_are_refused(
    call: Caller, path: str, query: dict[str, str], code: int
) -> None:
    answer = await call("GET", path, **query)
    assert (answer.status, answer.json["kind"]) == (code, "Status")


async def test_a_version_of_the_future_asks_to_come_back(call: Caller, path: str) -> None:
    answer = await call("GET", path, resourceVersion="999999999")
    assert (answer.status, answer.json["reason"]) == (504, "Timeout")
    assert answer.headers["Retry-After"] == "1"
