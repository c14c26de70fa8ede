"""Who belongs to one team learns nothing of what another runs, whatever is asked.

Everything that is served is asked for by somebody of our team: each kind that discovery tells of,
in each form, as a list, one by one and as a watch; and each question. A kind or question that is
new is asked for as well. No byte of any answer may hold the word that all of theirs carries.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hub_calls import Answer, Caller, calling

from fairway.api.discretion import ANOTHER
from fairway.app import Hub
from fairway.client.synchronous import LoopThread
from fairway.server.questions.questions import SUBRESOURCES
from tests.two_teams import MEMBER_TOKEN, OURS, THEIRS, WORD, fill, running

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
ROWS = {"Accept": "application/json;as=Rows;v=v1alpha1;g=fairway.dev"}
METADATA = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
FLEET = "/apis/fairway.dev/v1alpha1/fleets/fleet"
# What a question must be asked with.
WITH: dict[str, list[dict[str, str]]] = {
    "history": [
        {"series": "queues"},
        {"series": "clusters"},
        {"series": "services", "name": f"{OURS}/mine-serves"},
    ],
    "timeline": [{}, {"by": "queue"}],
}
REFUSED = (403, 404, 405)
COUNTED = ("requests", "bound", "terminating", "pending")
OPENED = {"exec", "portforward", "stream", "log"}  # streams of one's own pods


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    loop = LoopThread()
    for hub in loop.iterate(running(tmp_path_factory.mktemp("teams"))):
        fill(hub)
        yield hub
    loop.stop()


@pytest.fixture
async def admin(teams: Hub) -> AsyncIterator[Caller]:
    async with calling(teams.kubeconfig) as caller:
        yield caller


@pytest.fixture
async def member(admin: Caller) -> Caller:
    return admin.using(MEMBER_TOKEN)


async def _served(call: Caller) -> list[tuple[str, dict[str, Any]]]:
    """Every resource and subresource, with where its version is."""
    groups = (await call("GET", "/apis")).json["groups"]
    roots = ["/api/v1"]
    roots += [
        f"/apis/{version['groupVersion']}" for group in groups for version in group["versions"]
    ]
    return [
        (root, resource)
        for root in roots
        for resource in (await call("GET", root)).json["resources"]
    ]


async def _lists(call: Caller) -> AsyncIterator[tuple[str, Answer]]:
    """Every kind, over all namespaces and in our own."""
    for root, resource in await _served(call):
        if "/" in resource["name"] or "list" not in resource["verbs"]:
            continue
        paths = [f"{root}/{resource['name']}"]
        if resource["namespaced"]:
            paths.append(f"{root}/namespaces/{OURS}/{resource['name']}")
        for path in paths:
            yield path, await call("GET", path)


async def test_no_list_in_any_form_tells_of_others(member: Caller) -> None:
    seen = []
    async for path, answer in _lists(member):
        assert answer.status in (200, *REFUSED), path
        for form in ({}, TABLE, METADATA, ROWS):
            assert WORD.encode() not in (await member("GET", path, headers=form)).body, path
        if answer.status == 200:
            seen.append(path.rpartition("/")[2])
    assert {"clusters", "clusterreports", "queues", "flavors", "fleets", "workloads"} <= {*seen}
    assert not {"costaccounts", "namespaces", "clusterrolebindings"} & {*seen}


async def test_no_watch_tells_of_others(member: Caller) -> None:
    seen = set()
    async for path, answer in _lists(member):
        if answer.status != 200:
            continue
        async with member.watch(path, timeoutSeconds=1, resourceVersion=0) as stream:
            events = json.dumps(await stream.rest())
        assert WORD not in events, path
        seen.add(path.rpartition("/")[2])
    assert {"clusters", "clusterreports", "workloads", "events"} <= seen


async def test_no_object_and_no_question_on_it_tells_of_others(member: Caller) -> None:
    served = await _served(member)
    asked = set()
    async for path, answer in _lists(member):
        plural = path.rpartition("/")[2]
        items = answer.json["items"] if answer.status == 200 else []
        for item in items:
            within = item["metadata"].get("namespace")
            root = path.partition("/namespaces/")[0].removesuffix(f"/{plural}")
            place = f"/namespaces/{within}" if within else ""
            found = f"{root}{place}/{plural}/{item['metadata']['name']}"
            parts = [
                resource["name"].partition("/")[2]
                for base, resource in served
                if base == root and resource["name"].startswith(f"{plural}/")
            ]
            for part in ["", *(each for each in parts if each not in OPENED)]:
                answered = await member("GET", f"{found}/{part}".rstrip("/"))
                assert WORD.encode() not in answered.body, (found, part)
                if answered.status == 200:
                    asked.add((plural, part))
    assert {("workloads", "explain"), ("workloads", "traffic"), ("clusterreports", "")} <= asked


@pytest.mark.parametrize("question", SUBRESOURCES["fleets"])
async def test_no_question_on_the_fleet_tells_of_others(member: Caller, question: str) -> None:
    for query in WITH.get(question, [{}]):
        for method in ("GET", "POST"):
            body = {} if method == "POST" else None
            answer = await member(method, f"{FLEET}/{question}", body, **query)
            assert answer.status in (200, *REFUSED), query
            assert WORD.encode() not in answer.body, query


@pytest.fixture
async def asking(admin: Caller, member: Caller) -> AsyncIterator[Caller]:
    """Somebody of our team who may besides ask what is asked of everybody."""
    asked = ["fleets/decisions", "fleets/whatif"]
    rule = {"apiGroups": ["fairway.dev"], "resources": asked, "verbs": ["get", "create"]}
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "our-people"}
    role = {"apiGroup": group["apiGroup"], "kind": "ClusterRole", "name": "asking"}
    path, named = f"/apis/{group['apiGroup']}/v1", {"metadata": {"name": "asking"}}
    await admin("POST", f"{path}/clusterroles", {**named, "rules": [rule]})
    await admin(
        "POST", f"{path}/clusterrolebindings", named | {"roleRef": role, "subjects": [group]}
    )
    yield member
    await admin("DELETE", f"{path}/clusterrolebindings/asking")
    await admin("DELETE", f"{path}/clusterroles/asking")


@pytest.mark.parametrize("name", ["zebra-runs", "none-of-this-name"])
async def test_decisions_on_a_workload_of_others_are_as_if_there_were_none(
    asking: Caller, name: str
) -> None:
    found = await asking("GET", f"{FLEET}/decisions", workload=f"{THEIRS}/{name}")
    assert (found.status, found.json) == (200, {"decisions": []})
    found = await asking("GET", f"{FLEET}/decisions", workload=f"{OURS}/mine-urgent")
    assert found.json["decisions"]
    assert WORD.encode() not in found.body


@pytest.mark.parametrize("name", ["zebra-runs", "none-of-this-name"])
@pytest.mark.parametrize("way", ["remove", "apply", "manifests"])
async def test_what_if_finds_no_workload_of_others_by_its_name(
    asking: Caller, way: str, name: str
) -> None:
    named = {"namespace": THEIRS, "name": name}
    plain = {"apiVersion": "fairway.dev/v1alpha1", "kind": "Workload", "metadata": named}
    changes: dict[str, Any] = {
        "remove": [{"kind": "Workload", **named}],
        "apply": [plain],
        "manifests": json.dumps(plain),
    }
    found = await asking("POST", f"{FLEET}/whatif", {way: changes[way]})
    said = f"you may not look into the namespace {THEIRS}, so nothing in it can be tried"
    assert (found.status, found.json["message"]) == (403, said)


async def test_what_if_tells_of_others_without_their_names(admin: Caller, asking: Caller) -> None:
    ours = {"kind": "Workload", "namespace": OURS, "name": "mine-urgent"}
    for change in ({"lose": ["west"]}, {"remove": [ours]}):
        mine, whole = [await item("POST", f"{FLEET}/whatif", change) for item in (asking, admin)]
        assert mine.status == whole.status == 200
        assert WORD.encode() in whole.body
        assert WORD.encode() not in mine.body
        assert len(mine.json["touched"]) == len(whole.json["touched"])


async def test_who_waits_is_told_when_and_not_for_whom(admin: Caller, member: Caller) -> None:
    path = f"/apis/fairway.dev/v1alpha1/namespaces/{OURS}/workloads/mine-waits/explain"
    mine, whole = (await member("GET", path)).json, (await admin("GET", path)).json
    assert mine["state"] == whole["state"] == "Waits"
    assert (mine["position"], mine["waiting"]) == (whole["position"], whole["waiting"])
    assert WORD in whole["message"]
    theirs = {part for part in whole["message"].split(" ") if WORD in part}
    expected = whole["message"]
    for item in theirs:
        expected = expected.replace(item, ANOTHER)
    assert mine["message"] == expected


async def test_the_line_of_a_queue_shows_ones_own_place_in_it(
    admin: Caller, member: Caller
) -> None:
    def heads(answer: Answer) -> list[str]:
        return next(queue["heads"] for queue in answer.json["queues"] if queue["queue"] == "shared")

    mine, whole = (
        heads(await member("GET", f"{FLEET}/standing")),
        heads(await admin("GET", f"{FLEET}/standing")),
    )
    assert len(mine) == len(whole)
    assert f"{OURS}/mine-waits" in mine
    assert ANOTHER in mine
    assert any(WORD in item for item in whole)


async def test_reports_tell_what_is_taken_on_each_node_and_by_whom_of_ones_own(
    admin: Caller, member: Caller
) -> None:
    path = "/apis/fairway.dev/v1alpha1/clusterreports"
    mine, whole = (await member("GET", path)).json, (await admin("GET", path)).json
    assert _taken(mine) == _taken(whole)
    named = {work["work"] for report in mine["items"] for work in report["spec"].get("works", ())}
    assert f"{OURS}.mine-runs" in named
    assert any(item.startswith("work-") for item in named)


def _taken(reports: Any) -> list[str]:
    return sorted(
        f"{report['metadata']['name']} {[work.get(field) for field in COUNTED]}"
        for report in reports["items"]
        for work in report["spec"].get("works", ())
    )


async def test_what_is_stored_of_others_has_no_name_and_says_how_urgent_they_are(
    admin: Caller, member: Caller
) -> None:
    path = "/apis/fairway.dev/v1alpha1/namespaces"
    uids = {
        name: (await admin("GET", f"{path}/{THEIRS}/workloads/{name}")).json["metadata"]["uid"]
        for name in ("zebra-runs", "zebra-urgent")
    }
    urgent = (await member("GET", f"{path}/{OURS}/workloads/mine-urgent")).json
    waits = urgent["status"]["claim"]["waitsFor"]
    assert [item["workload"] for item in waits] == [{"uid": uids["zebra-runs"]}]
    preempted = (await member("GET", f"{path}/{OURS}/workloads/mine-runs")).json
    by = preempted["status"]["history"][-1]["preemptedBy"]
    assert by == {"uid": uids["zebra-urgent"], "queue": "shared", "priority": 10}


async def test_a_part_of_a_kind_is_for_reading_alone(member: Caller) -> None:
    path = "/apis/fairway.dev/v1alpha1/clusterreports"
    name = (await member("GET", path)).json["items"][0]["metadata"]["name"]
    assert (await member("GET", f"{path}/{name}")).status == 200
    for method in ("DELETE", "PUT", "PATCH"):
        assert (await member(method, f"{path}/{name}", {})).status == 403


async def test_one_is_told_into_which_namespaces_one_may_look(
    admin: Caller, member: Caller
) -> None:
    found = (await member("GET", f"{FLEET}/access")).json
    assert (found["all"], found["namespaces"]) == (False, [OURS])
    held = {
        (verb, resource)
        for rule in found["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }
    assert ("list", "clusters") in held
    assert ("list", "workloads") not in held
    found = (await admin("GET", f"{FLEET}/access")).json
    assert (found["all"], found["namespaces"]) == (True, [])


async def test_somebody_without_any_right_may_look_into_no_namespace(admin: Caller) -> None:
    as_nobody = {"Impersonate-User": "nobody", "Impersonate-Group": "system:authenticated"}
    found = (await admin("GET", f"{FLEET}/access", headers=as_nobody)).json
    assert (found["all"], found["namespaces"]) == (False, [])
