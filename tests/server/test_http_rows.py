"""Workloads as rows: what lists of them show, by the same lists and watches."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hub_calls import MERGE, Caller, Json

from fairway.server.wire.rows import COLUMNS, row_of
from fairway.store.interface import Stored

ROWS = {"Accept": "application/json;as=Rows;g=fairway.dev;v=v1alpha1"}
# The page is held to the same cases: see web/src/state/rows.test.ts.
CASES = json.loads((Path(__file__).parent / "data" / "rows.json").read_text())


def workload(name: str, queue: str = "research") -> Json:
    pods = [{"name": "main", "count": 2, "requests": {"cpu": "1", "nvidia.com/gpu": 4}}]
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name},
        "spec": {"queue": queue, "podSets": pods},
    }


@pytest.fixture
async def path(call: Caller, namespace: str) -> str:
    """A place with five workloads in two queues."""
    path = f"/apis/fairway.dev/v1alpha1/namespaces/{namespace}/workloads"
    for number in range(5):
        await call("POST", path, workload(f"one-{number}", ("research", "product")[number % 2]))
    return path


def cells(row: list[object]) -> dict[str, object]:
    return dict(zip(COLUMNS, row, strict=False))


@pytest.mark.parametrize("case", CASES, ids=[other["what"] for other in CASES])
def test_a_row_says_what_a_list_shows(case: Json) -> None:
    assert row_of(Stored(msgspec.json.encode(case["workload"]))) == case["row"]


async def test_a_list_of_rows_comes_in_pages_and_by_selectors(call: Caller, path: str) -> None:
    first = (await call("GET", path, headers=ROWS, limit=2)).json
    assert (first["kind"], first["columns"]) == ("Rows", list(COLUMNS))
    assert [cells(row)["name"] for row in first["rows"]] == ["one-0", "one-1"]
    assert cells(first["rows"][0]) | {"version": "", "created": ""} == {
        "namespace": path.split("/")[5],
        "name": "one-0",
        "version": "",
        "created": "",
        "user": "admin",
        "queue": "research",
        "phase": "Waiting",
        "reason": "",
        "kind": "Workload",
        "mode": "Gang",
        "priority": 0,
        "gpus": 8,
    }
    more = {"continue": first["metadata"]["continue"]}
    rest = (await call("GET", path, headers=ROWS, **more)).json
    assert [cells(row)["name"] for row in rest["rows"]] == ["one-2", "one-3", "one-4"]
    chosen = (await call("GET", path, headers=ROWS, fieldSelector="spec.queue=product")).json
    assert [cells(row)["name"] for row in chosen["rows"]] == ["one-1", "one-3"]


async def test_a_watch_goes_on_with_rows_where_the_list_was_taken(call: Caller, path: str) -> None:
    since = (await call("GET", path, headers=ROWS)).json["metadata"]["resourceVersion"]
    async with call.watch(path, headers=ROWS, resourceVersion=since) as stream:
        await call("PATCH", f"{path}/one-1", {"spec": {"priority": 7}}, headers=MERGE)
        await call("DELETE", f"{path}/one-2")
        changed, gone = await stream.events(2)
    assert (changed["type"], gone["type"]) == ("MODIFIED", "DELETED")
    assert (cells(changed["object"]["row"])["priority"], changed["object"]["kind"]) == (7, "Row")
    assert cells(gone["object"]["row"])["name"] == gone["object"]["metadata"]["name"] == "one-2"
    assert int(gone["object"]["metadata"]["resourceVersion"]) > int(since)


async def test_a_bookmark_says_how_far_a_watch_of_rows_is(call: Caller, path: str) -> None:
    initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    async with call.watch(path, headers=ROWS, allowWatchBookmarks="true", **initial) as stream:
        *there, mark = await stream.events(6)
    assert [item["object"]["metadata"]["name"] for item in there] == [f"one-{n}" for n in range(5)]
    assert (mark["type"], int(mark["object"]["metadata"]["resourceVersion"]) > 0) == (
        "BOOKMARK",
        True,
    )


async def test_what_has_no_rows_comes_whole(call: Caller, path: str) -> None:
    listed = (await call("GET", "/api/v1/namespaces", headers=ROWS)).json
    assert listed["items"][0]["kind"] == "Namespace"
    one = (await call("GET", f"{path}/one-0", headers=ROWS)).json
    assert one["spec"]["queue"] == "research"


async def test_pages_tell_of_one_moment_and_selectors_hold_together(
    call: Caller, path: str
) -> None:
    for number in (1, 2, 3):
        body = {"metadata": {"labels": {"of": "us"}}}
        await call("PATCH", f"{path}/one-{number}", body, headers=MERGE)
    chosen = {"labelSelector": "of=us", "fieldSelector": "spec.queue=product", "limit": 1}
    first = (await call("GET", path, headers=ROWS, **chosen)).json
    # What changes between two pages is not seen by the second.
    await call("PATCH", f"{path}/one-3", {"spec": {"queue": "research"}}, headers=MERGE)
    await call("POST", path, workload("one-11", "product"))
    more = {**chosen, "continue": first["metadata"]["continue"]}
    second = (await call("GET", path, headers=ROWS, **more)).json
    found = [cells(row)["name"] for row in (*first["rows"], *second["rows"])]
    assert found == ["one-1", "one-3"]
    assert "continue" not in second["metadata"]
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ({"limit": "-1"}, 400, "limit"),
        ({"limit": "many"}, 400, "limit"),
        ({"continue": "nonsense"}, 400, "continue"),
        ({"resourceVersion": "soon"}, 400, "resource version"),
        ({"fieldSelector": "spec.nothing=1"}, 400, "spec.nothing"),
        ({"labelSelector": "==="}, 400, "==="),
        ({"resourceVersion": "1", "resourceVersionMatch": "Best"}, 422, "resourceVersionMatch"),
    ],
)
async def test_what_cannot_be_listed_is_refused_with_its_parameter(
    call: Caller, path: str, query: Json, code: int, said: str
) -> None:
    answer = await call("GET", path, headers=ROWS, **query)
    assert (answer.status, answer.json["kind"]) == (code, "Status")
    assert said in answer.json["message"]


async def test_one_whose_manifest_is_odd_has_a_row(call: Caller, path: str) -> None:
    limits = {"nvidia.com/gpu": None, "amd.com/gpu": True, "example.com/tpu": "many"}
    containers = [None, "main", {"resources": {"limits": limits, "requests": 7}}]
    job = {"parallelism": "two", "template": {"spec": {"containers": containers}}}
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "odd"}, "spec": job}
    odd = {**workload("odd"), "spec": {"queue": "q", "template": {"manifests": [manifest]}}}
    odd["metadata"] |= {"annotations": None, "labels": None}
    created = await call("POST", path, odd)
    assert created.status == 201, created.json
    rows = (await call("GET", path, headers=ROWS)).json["rows"]
    assert [cells(row)["kind"] for row in rows if cells(row)["name"] == "odd"] == ["Job"]
