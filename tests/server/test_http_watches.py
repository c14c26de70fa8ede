"""Watches over HTTPS: what is told, in which form, and how a stream ends."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hub_calls import MERGE, Caller, Json, calling, config_map, until

from fairway.app import Hub, HubOptions, open_hub
from fairway.clock import VirtualClock
from fairway.store.embedded import watches
from tests.waiting import PATIENCE_SECONDS

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


@pytest.fixture
def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def shown(event: Json | None) -> tuple[str, str]:
    assert event is not None
    return event["type"], event["object"]["metadata"].get("name", "")


async def test_a_watch_tells_what_is_there_and_every_change(call: Caller, path: str) -> None:
    await call("POST", path, config_map("one"))
    async with call.watch(path) as stream:
        assert shown(await stream.event()) == ("ADDED", "one")
        await call("POST", path, config_map("two"))
        await call("PATCH", f"{path}/one", {"data": {"a": "2"}}, headers=MERGE)
        await call("DELETE", f"{path}/two")
        told = [shown(event) for event in await stream.events(3)]
    assert told == [("ADDED", "two"), ("MODIFIED", "one"), ("DELETED", "two")]


async def test_a_watch_resumes_after_a_version_without_a_gap(call: Caller, path: str) -> None:
    since = (await call("POST", path, config_map("one"))).version
    later = [(await call("POST", path, config_map(f"more-{n}"))).version for n in range(5)]
    async with call.watch(path, resourceVersion=since) as stream:
        told = [int(e["object"]["metadata"]["resourceVersion"]) for e in await stream.events(5)]
    assert told == later


async def test_a_selection_is_entered_and_left(call: Caller, path: str) -> None:
    await call("POST", path, config_map("one"))
    async with call.watch(path, labelSelector="in=yes") as stream:
        for labels in ({"in": "yes"}, {"in": "yes", "more": "x"}, {"in": "no"}):
            change = {"metadata": {"labels": labels}}
            await call("PATCH", f"{path}/one", change, headers=MERGE)
        told = [event["type"] for event in await stream.events(3)]
    assert told == ["ADDED", "MODIFIED", "DELETED"]


@pytest.mark.parametrize("form", ["a name in the path", "the old path", "a field selector"])
async def test_one_object_is_watched(call: Caller, namespace: str, path: str, form: str) -> None:
    await call("POST", path, config_map("one"))
    where, query = path, {}
    match form:
        case "a name in the path":
            where = f"{path}/one"
        case "the old path":
            where = f"/api/v1/watch/namespaces/{namespace}/configmaps/one"
        case _:
            query = {"fieldSelector": "metadata.name=one"}
    async with call.watch(where, **query) as stream:
        assert shown(await stream.event()) == ("ADDED", "one")
        await call("POST", path, config_map("two"))
        await call("DELETE", f"{path}/one")
        assert shown(await stream.event()) == ("DELETED", "one")


async def test_a_stream_ends_at_its_time_limit(call: Caller, path: str) -> None:
    began = time.monotonic()
    async with call.watch(path, timeoutSeconds=1) as stream:
        assert await stream.rest() == []
    assert 0.8 < time.monotonic() - began < 5


async def test_a_busy_stream_ends_at_its_time_limit_too(call: Caller, path: str) -> None:
    async def write() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            await call("PUT", f"{path}/one", config_map("one", a=str(number)))

    is_over = asyncio.Event()
    await call("POST", path, config_map("one"))
    writing = asyncio.create_task(write())
    async with call.watch(path, timeoutSeconds=1) as stream:
        told = await stream.rest()
    is_over.set()
    await writing
    assert len(told) > 2


async def test_initial_events_end_with_a_bookmark(call: Caller, path: str) -> None:
    await call("POST", path, config_map("one"))
    last = (await call("POST", path, config_map("two"))).version
    async with call.watch(path, allowWatchBookmarks="true", **INITIAL) as stream:
        first, second, mark = await stream.events(3)
        assert [shown(first), shown(second)] == [("ADDED", "one"), ("ADDED", "two")]
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["kind"] == "ConfigMap"
        metadata = mark["object"]["metadata"]
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(metadata["resourceVersion"]) >= last


async def test_a_watch_without_initial_events_tells_news_only(call: Caller, path: str) -> None:
    await call("POST", path, config_map("old"))
    none = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    async with call.watch(path, **none) as stream:
        await call("POST", path, config_map("new"))
        assert shown(await stream.event()) == ("ADDED", "new")


async def test_time_brings_bookmarks_and_the_end_of_events(tmp_path: Path) -> None:
    clock = VirtualClock(time.time())
    events = "/api/v1/namespaces/default/events"
    happened = {
        "metadata": {"name": "happened"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "x"},
        "reason": "Tested",
    }
    async with (
        open_hub(HubOptions(data=tmp_path, port=0, has_controllers=False), clock=clock) as hub,
        calling(hub.kubeconfig) as call,
    ):
        made = await call("POST", events, happened)
        assert made.status == 201
        async with call.watch(
            events, allowWatchBookmarks="true", resourceVersion=made.version
        ) as stream:
            await clock.advance(61)
            mark = await stream.event()
            assert shown(mark) == ("BOOKMARK", "")
            assert mark is not None
            assert mark["object"]["metadata"]["resourceVersion"] == str(hub.store.version)
            await clock.advance(3600)
            told = await stream.event()
            while shown(told)[0] == "BOOKMARK":
                told = await stream.event()
            assert shown(told) == ("DELETED", "happened")


@pytest.mark.parametrize(("form", "kind"), [(TABLE, "Table"), (PARTIAL, "PartialObjectMetadata")])
async def test_a_stream_keeps_its_form(call: Caller, path: str, form: Json, kind: str) -> None:
    await call("POST", path, config_map("one"))
    query = {"allowWatchBookmarks": "true", **INITIAL}
    async with call.watch(path, headers=form, **query) as stream:
        added, mark = await stream.events(2)
    assert (added["type"], mark["type"]) == ("ADDED", "BOOKMARK")
    assert (added["object"]["kind"], mark["object"]["kind"]) == (kind, kind)
    if kind == "Table":
        assert added["object"]["rows"][0]["cells"][0] == "one"
        assert mark["object"]["rows"][0]["object"]["metadata"]["annotations"]
    else:
        assert "data" not in added["object"]


async def test_a_version_that_is_compacted_is_an_error_event(
    call: Caller, path: str, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub.store._history, "floor", hub.store.version)
    async with call.watch(path, resourceVersion="1") as stream:
        (event,) = await stream.rest()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    assert event["object"]["reason"] in ("Expired", "Gone")


async def test_a_large_kind_can_be_watched_from_the_start(
    call: Caller, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there when a watch begins is no arrears of its reader."""
    monkeypatch.setattr(watches, "QUEUE_MAX", 5)
    for number in range(20):
        await call("POST", path, config_map(f"one-{number:02}"))
    async with call.watch(path) as stream:
        told = [shown(event) for event in await stream.events(20)]
    assert told == [("ADDED", f"one-{number:02}") for number in range(20)]


async def raw_connection(hub: Hub, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection with a request on it, below any HTTP library."""
    where = urlsplit(hub.url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(
        where.hostname, where.port, ssl=context, limit=1 << 10
    )
    head = f"GET {path} HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer {hub.token}\r\n\r\n"
    writer.write(head.encode())
    return reader, writer


async def test_a_reader_that_falls_behind_is_told_and_others_are_not_held_up(
    call: Caller, path: str, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "QUEUE_MAX", 20)
    large = "x" * 400_000
    await call("POST", path, config_map("one"))
    reader, writer = await raw_connection(hub, f"{path}?watch=true")
    writer.transport.pause_reading()
    async with call.watch(path) as other:
        await until(lambda: hub.store.watch_count() == 2)
        every = list(hub.store._watches._by_kind[("", "configmaps")])
        await other.event()
        number = 0
        while not any(item._error for item in every):
            number += 1
            assert number < 200, "nobody fell behind"
            await call("PUT", f"{path}/one", config_map("one", a=large, n=str(number)))
            event = await other.event()  # the one that reads has every change at once
            assert event is not None
            assert event["object"]["data"]["n"] == str(number)
    writer.transport.resume_reading()
    told = b""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while b'"type":"ERROR"' not in told or b'"code":410' not in told:
            chunk = await reader.read(1 << 16)
            assert chunk, "the stream ended without a word"
            told = told[-1000:] + chunk
    writer.transport.abort()


async def test_a_client_that_goes_leaves_nothing_behind(call: Caller, path: str, hub: Hub) -> None:
    connections = [await raw_connection(hub, f"{path}?watch=true") for _ in range(5)]
    await until(lambda: hub.store.watch_count() == 5)
    for _, writer in connections:
        writer.transport.abort()
    await until(lambda: hub.store.watch_count() == 0)
    metrics = (await call("GET", "/metrics")).body.decode()
    assert 'fairway_watches{resource="configmaps"} 0.0' in metrics


async def test_many_watchers_hear_the_same_in_the_same_order(call: Caller, path: str) -> None:
    async def listen() -> list[str]:
        async with call.watch(path) as stream:
            ready.release()
            return [json.dumps(event) for event in await stream.events(20)]

    ready = asyncio.Semaphore(0)
    listening = [asyncio.create_task(listen()) for _ in range(10)]
    for _ in listening:
        await ready.acquire()
    await asyncio.gather(*(call("POST", path, config_map(f"one-{n}")) for n in range(20)))
    heard = await asyncio.gather(*listening)
    assert all(item == heard[0] for item in heard)
    versions = [
        int(json.loads(event)["object"]["metadata"]["resourceVersion"]) for event in heard[0]
    ]
    assert versions == sorted(versions)
