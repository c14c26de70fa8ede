"""What the store on Kubernetes leaves out, puts together and makes small."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from fairway.api.errors import Conflict, NotFound
from fairway.clock import VirtualClock
from fairway.kubeapi import KubeApi, Unreachable
from fairway.store.interface import Patch, ResourceKey, Stored, WatchFrom, Write
from fairway.store.kubernetes.joined_writes import Joining, is_joinable, joined_patch
from fairway.store.kubernetes.recent import Recent
from fairway.store.kubernetes.stamps import Stamps, in_force_since
from fairway.store.kubernetes.store import KubernetesStore
from fairway.store.kubernetes.trim import small
from tests.client.scripted_server import says, serving, streams

PODS = ResourceKey("", "v1", "pods")
WRITE = Write(manager="tests")
WORKLOADS = ResourceKey("fairway.dev", "v1alpha1", "workloads")
JOBS = ResourceKey("batch", "v1", "jobs")
WIDGETS = ResourceKey("example.com", "v1", "widgets")
NOTES = {"fairway.dev/submitted-by": "alice", "fairway.dev/created-by": "alice"}
CREATOR = {"fairway.dev/created-by": "alice"}
SINCE = Stamps(workloads_since="2026-11-01T00:00:05Z", natives_since="2026-11-02T00:00:05Z")
BEFORE, BETWEEN, AFTER = "2026-11-01T00:00:05Z", "2026-11-02T00:00:05Z", "2026-11-02T00:00:06Z"
OWNED = {"ownerReferences": [{"uid": "b", "controller": True}]}


def pod(version: str = "7", **more: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "default", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **more}


def stored(body: dict[str, Any]) -> Stored:
    return Stored(msgspec.json.encode(body))


def test_managed_fields_are_left_out_and_nothing_else() -> None:
    body = pod(spec={"note": '"managedFields":', "numbers": [1, 2.5, "ü"]})
    with_fields = {**body, "metadata": {**body["metadata"], "managedFields": [{"manager": "x"}]}}
    assert msgspec.json.decode(small(msgspec.json.encode(with_fields))) == body
    assert small(msgspec.json.encode(body)) == msgspec.json.encode(body)


@pytest.mark.parametrize(
    ("body", "subresource", "is_same"),
    [
        pytest.param(pod(status={"phase": "Running"}), "status", True, id="the same status"),
        pytest.param(pod(status={"phase": "Failed"}), "status", False, id="another status"),
        pytest.param(pod("6", status={"phase": "Running"}), "status", False, id="an old version"),
        pytest.param(pod("", status={"phase": "Running"}), "status", False, id="no version"),
        pytest.param(pod(status={"phase": "Failed"}), "", True, id="a status that is not written"),
        pytest.param(pod(spec={"x": 1}), "", False, id="another spec"),
        pytest.param(pod(spec={"x": 1}), "scale", False, id="a subresource that is not known"),
    ],
)
def test_an_update_that_changes_nothing_is_known(
    body: dict[str, Any], subresource: str, is_same: bool
) -> None:
    recent = Recent()
    recent.see(PODS, stored(pod(status={"phase": "Running"})))
    found = recent.if_unchanged(PODS, body, namespace="default", subresource=subresource)
    assert (found is not None) == is_same


def test_what_was_seen_last_counts_and_only_so_much_is_remembered() -> None:
    recent = Recent(most=2)
    recent.see(PODS, stored(pod("9", status={"n": 9})))
    recent.see(PODS, stored(pod("10", status={"n": 10})))
    recent.see(PODS, stored(pod("9", status={"n": 9})))  # told late
    same = {"namespace": "default", "subresource": "status"}
    assert recent.if_unchanged(PODS, pod("9", status={"n": 9}), **same) is None
    assert recent.if_unchanged(PODS, pod("10", status={"n": 10}), **same) is not None
    for name in "bc":
        other = pod("11")
        other["metadata"]["name"] = name
        recent.see(PODS, stored(other))
    assert recent.if_unchanged(PODS, pod("10", status={"n": 10}), **same) is None


def merge(status: dict[str, Any]) -> Patch:
    return Patch(type="merge", body={"status": status})


def whole(status: dict[str, Any]) -> Patch:
    return Patch(type="json", body=[{"op": "add", "path": "/status", "value": status}])


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        pytest.param(
            merge({"a": 1, "b": {"c": 1}}),
            merge({"b": {"c": None, "d": 2}}),
            merge({"a": 1, "b": {"c": None, "d": 2}}),
            id="a merge over a merge is one merge",
        ),
        pytest.param(merge({"a": 1}), whole({"b": 2}), whole({"b": 2}), id="a whole one replaces"),
        pytest.param(whole({"a": 1}), merge({"b": 2}), None, id="a merge over a whole one waits"),
    ],
)
def test_how_two_patches_are_joined(first: Patch, second: Patch, want: Patch | None) -> None:
    assert joined_patch(first, second) == want


def test_only_what_says_a_status_whatever_it_was_is_joined() -> None:
    assert is_joinable(merge({"a": 1}), "status", WRITE)
    assert not is_joinable(merge({"a": 1}), "", WRITE)
    assert not is_joinable(merge({"a": 1}), "status", Write(dry_run=True))
    conditional = Patch(type="merge", body={"metadata": {"resourceVersion": "1"}, "status": {}})
    assert not is_joinable(conditional, "status", WRITE)
    test = Patch(type="json", body=[{"op": "test", "path": "/status", "value": {}}])
    assert not is_joinable(test, "status", WRITE)


class Slow:
    """A server that answers when it is told to."""

    def __init__(self) -> None:
        self.sent: list[Patch] = []
        self._answers: list[asyncio.Future[tuple[Stored, bool]]] = []

    async def send(self, patch: Patch) -> tuple[Stored, bool]:
        self.sent.append(patch)
        self._answers.append(asyncio.get_running_loop().create_future())
        return await self._answers[-1]

    async def answer(self, fault: Exception | None = None) -> None:
        waiting = self._answers.pop(0)
        if fault is not None:
            waiting.set_exception(fault)
        else:
            waiting.set_result((stored(pod()), False))
        for _ in range(5):
            await asyncio.sleep(0)


async def test_status_writes_that_wait_are_sent_as_one() -> None:
    server, joining = Slow(), Joining()
    calls = []
    for status in ({"a": 1}, {"a": 2}, {"b": 3}, {"a": 4}):
        calls.append(asyncio.ensure_future(joining.send("a", merge(status), server.send)))
        await asyncio.sleep(0)
    assert server.sent == [merge({"a": 1})]
    await server.answer()
    assert server.sent == [merge({"a": 1}), merge({"a": 4, "b": 3})]
    assert [call.done() for call in calls] == [True, False, False, False]
    await server.answer()
    assert all(call.done() for call in calls)
    assert joining.joined == 2
    again = asyncio.ensure_future(joining.send("a", merge({"c": 1}), server.send))
    await asyncio.sleep(0)
    assert server.sent[-1] == merge({"c": 1})
    await server.answer()
    await again


async def test_who_waits_for_a_joined_write_hears_of_its_failure() -> None:
    server, joining = Slow(), Joining()
    calls = [
        asyncio.ensure_future(joining.send("a", merge({"n": number}), server.send))
        for number in range(3)
    ]
    await asyncio.sleep(0)
    await server.answer(NotFound("gone"))
    await server.answer(Conflict("again"))
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(item) for item in found] == [NotFound, Conflict, Conflict]


async def test_one_that_is_given_up_takes_no_other_with_it() -> None:
    server, joining = Slow(), Joining()
    first, second, third = (
        asyncio.ensure_future(joining.send("a", merge({"n": number}), server.send))
        for number in range(3)
    )
    await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert server.sent[-1] == merge({"n": 2})
    server._answers.pop(0)
    await server.answer()
    assert (await third)[1] is False


async def test_a_list_that_expired_between_two_pages_is_begun_anew() -> None:
    def page(names: str, token: str = "") -> dict[str, Any]:
        items = [{"metadata": {"name": name, "resourceVersion": "1"}} for name in names]
        head = {"resourceVersion": "5", "continue": token}
        return {"kind": "PodList", "apiVersion": "v1", "metadata": head, "items": items}

    expired = {"kind": "Status", "reason": "Expired", "code": 410, "message": "too old"}
    answers = (says(page("a", "next")), says(expired, status=410), says(page("xy")))
    async with serving(*answers) as script:
        store = KubernetesStore(KubeApi(script.access, VirtualClock()))
        listing = await store.list(PODS)
        assert [item.object()["metadata"]["name"] for item in listing.items] == ["x", "y"]
        assert listing.items[0].object()["kind"] == "Pod"
        await store.close()


async def test_a_watch_that_ends_before_it_told_anything_is_a_fault() -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"2"}}}\n'
    async with serving(streams(), streams(line)) as script:
        store = KubernetesStore(KubeApi(script.access, VirtualClock()))
        watch = await store.watch(PODS, start=WatchFrom(version="1", bookmarks=True))
        with pytest.raises(Unreachable, match="ended a watch at once"):
            await watch.batch()
        watch = await store.watch(PODS, start=WatchFrom(version="1", bookmarks=True))
        assert [event.version for event in await watch.batch()] == ["2"]
        assert await watch.batch() == []
        await store.close()


@pytest.mark.parametrize(
    ("stamps", "kind", "metadata", "kept"),
    [
        pytest.param(SINCE, WORKLOADS, {"creationTimestamp": BETWEEN}, NOTES, id="a workload"),
        pytest.param(SINCE, WORKLOADS, {"creationTimestamp": BEFORE}, {}, id="from before"),
        pytest.param(
            SINCE,
            WORKLOADS,
            {"creationTimestamp": BETWEEN, **OWNED},
            {},
            id="a workload of a native object from before native objects were stamped",
        ),
        pytest.param(
            SINCE,
            WORKLOADS,
            {"creationTimestamp": AFTER, **OWNED},
            NOTES,
            id="a workload of a native object",
        ),
        pytest.param(SINCE, JOBS, {"creationTimestamp": AFTER}, NOTES, id="a native object"),
        pytest.param(
            SINCE, JOBS, {"creationTimestamp": BETWEEN}, CREATOR, id="a native object from before"
        ),
        pytest.param(
            SINCE, WIDGETS, {"creationTimestamp": AFTER}, CREATOR, id="a kind without a policy"
        ),
        pytest.param(
            Stamps(), WORKLOADS, {"creationTimestamp": AFTER}, {}, id="a server without policies"
        ),
        pytest.param(
            Stamps(), JOBS, {"creationTimestamp": AFTER}, CREATOR, id="a Job there as well"
        ),
        pytest.param(SINCE, WORKLOADS, {}, {}, id="without a time"),
        pytest.param(
            Stamps(workloads_since=BEFORE),
            WORKLOADS,
            {"creationTimestamp": AFTER, **OWNED},
            {},
            id="a workload of a native object where native objects are not stamped",
        ),
        pytest.param(
            Stamps(natives_since=BEFORE),
            WORKLOADS,
            {"creationTimestamp": AFTER, **OWNED},
            {},
            id="and where workloads are not",
        ),
    ],
)
def test_only_notes_that_the_server_wrote_are_read(
    stamps: Stamps, kind: ResourceKey, metadata: dict[str, Any], kept: dict[str, str]
) -> None:
    others = {"example.com/other": "stays"}
    body = pod(spec={"text": '"fairway.dev/submitted-by":'})
    body["metadata"] |= metadata
    raw = msgspec.json.encode(
        {**body, "metadata": {**body["metadata"], "annotations": {**others, **NOTES}}}
    )
    found = stamps.read(kind, raw).object()
    assert found["metadata"].pop("annotations") == {**others, **kept}
    assert found == body


def test_a_policy_counts_some_seconds_after_it_and_its_binding_were_created() -> None:
    objects = [{"metadata": {"creationTimestamp": time}} for time in (BETWEEN, BEFORE)]
    assert in_force_since(*objects) == "2026-11-02T00:00:10Z"


async def test_a_server_without_policies_records_no_submitter() -> None:
    body = pod()
    body["metadata"]["annotations"] = NOTES
    async with serving(says(body)) as script:
        store = KubernetesStore(KubeApi(script.access, VirtualClock()))
        found = (await store.get(JOBS, "a", "default")).object()
        assert found["metadata"]["annotations"] == CREATOR
        await store.close()
