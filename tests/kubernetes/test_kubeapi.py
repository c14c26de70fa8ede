"""The thin client, against a real API server and against one that fails as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from fairway.api.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from fairway.clock import SystemClock, VirtualClock
from fairway.kubeapi import Access, Informer, KubeApi, Limits, Unreachable, load_access, path_of
from fairway.store.interface import Deletion, Patch, ResourceKey, Selection, WatchFrom, Write
from tests.client.scripted_server import drops, says, serving, streams
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.network import network_to
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.real

CONFIG_MAPS = ResourceKey("", "v1", "configmaps")
NAMESPACES = ResourceKey("", "v1", "namespaces")
DEFINITIONS = ResourceKey("apiextensions.k8s.io", "v1", "customresourcedefinitions")
LATE = ResourceKey("example.com", "v1", "latecomers")
SPACE = "kubeapi"
WRITE = Write(manager="tests")


class _Map(msgspec.Struct):
    data: dict[str, str] = {}


decode_map = msgspec.json.Decoder(_Map).decode


def config_map(name: str, **data: str) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
async def api(real: ControlPlane) -> AsyncIterator[KubeApi]:
    opened = KubeApi(load_access(str(real.kubeconfig)), SystemClock(), limits=Limits(page=2))
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    try:
        await opened.create(NAMESPACES, body, write=WRITE)
    except AlreadyExists:
        for page in [page async for page in opened.pages(CONFIG_MAPS, here(), read=bytes)]:
            for seen in page.items:
                await opened.delete(CONFIG_MAPS, seen.head.name, namespace=SPACE)
    yield opened
    await opened.close()


def here(**more: str) -> Selection:
    return Selection(namespace=SPACE, **more)


async def make(api: KubeApi, name: str, **data: str) -> dict:
    body = config_map(name, **data)
    return msgspec.json.decode(await api.create(CONFIG_MAPS, body, namespace=SPACE, write=WRITE))


async def test_what_is_made_is_read_replaced_applied_and_deleted(api: KubeApi) -> None:
    made = await make(api, "a", x="1")
    assert msgspec.json.decode(await api.get(CONFIG_MAPS, "a", SPACE)) == made
    raw = await api.replace(CONFIG_MAPS, {**made, "data": {"x": "2"}}, namespace=SPACE)
    assert msgspec.json.decode(raw)["data"] == {"x": "2"}
    with pytest.raises(Conflict):
        await api.replace(CONFIG_MAPS, {**made, "data": {"x": "3"}}, namespace=SPACE)
    patch = Patch(type="apply", body=config_map("b", y="1"), force=True)
    _, is_new = await api.patch(CONFIG_MAPS, "b", patch, namespace=SPACE, write=WRITE)
    assert is_new
    _, is_new = await api.patch(CONFIG_MAPS, "b", patch, namespace=SPACE, write=WRITE)
    assert not is_new
    with pytest.raises(Conflict, match="in the precondition"):
        await api.delete(CONFIG_MAPS, "a", namespace=SPACE, how=Deletion(uid="another"))
    _, is_gone = await api.delete(CONFIG_MAPS, "a", namespace=SPACE)
    assert is_gone
    with pytest.raises(NotFound):
        await api.get(CONFIG_MAPS, "a", SPACE)


async def test_a_list_comes_in_pages_and_keeps_what_is_read_of_each_object(api: KubeApi) -> None:
    for name in "abcde":
        await make(api, name, key=name)
    pages = [page async for page in api.pages(CONFIG_MAPS, here(), read=decode_map)]
    assert [len(page.items) for page in pages] == [2, 2, 1]
    found = {seen.head.name: seen.value.data for page in pages for seen in page.items}
    assert found == {name: {"key": name} for name in "abcde"}
    assert len({page.version for page in pages}) == 1


async def test_the_text_of_listed_objects_says_their_kind(api: KubeApi) -> None:
    await make(api, "a")
    page = await api.page(CONFIG_MAPS, here(), read=bytes)
    body = msgspec.json.decode(page.items[0].value)
    assert (body["kind"], body["apiVersion"]) == ("ConfigMap", "v1")


async def test_a_watch_goes_on_from_a_version_and_says_when_that_is_too_old(api: KubeApi) -> None:
    version = (await make(api, "a"))["metadata"]["resourceVersion"]
    await make(api, "b")
    await api.delete(CONFIG_MAPS, "a", namespace=SPACE)
    told: list[tuple[str, str]] = []
    start = WatchFrom(version=version, bookmarks=True)
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with aclosing(api.watch(CONFIG_MAPS, here(), start, read=bytes)) as batches:
            async for batch in batches:
                told += [(item.type, item.head.name) for item in batch if item.type != "BOOKMARK"]
                if len(told) == 2:
                    break
    assert told == [("ADDED", "b"), ("DELETED", "a")]


async def test_a_version_that_the_server_has_forgotten_has_expired(api: KubeApi) -> None:
    await define_late_kind(api)
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(Expired):
            async for _ in api.watch(LATE, here(), WatchFrom(version="1"), read=bytes):
                pass


async def test_an_informer_lists_anew_when_its_version_has_expired(api: KubeApi) -> None:
    await define_late_kind(api)
    informer = Informer(api, LATE, read=bytes, clock=SystemClock(), selection=here())
    informer._version = "1"
    running = asyncio.ensure_future(informer.run())
    async with asyncio.timeout(PATIENCE_SECONDS):
        await informer.is_complete.wait()
    assert [name for name, _ in informer.items()] == [(SPACE, "only")]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def define_late_kind(api: KubeApi) -> None:
    """A kind that is much younger than the server's first version, and one object of it."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "latecomers.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "latecomers", "kind": "Latecomer"},
            "versions": [version],
        },
    }
    body = {"apiVersion": "example.com/v1", "kind": "Latecomer", "metadata": {"name": "only"}}
    with suppress(AlreadyExists):
        await api.create(DEFINITIONS, definition)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with suppress(AlreadyExists):
                try:
                    await api.create(LATE, body, namespace=SPACE)
                except NotFound:
                    await asyncio.sleep(0.05)
                    continue
            return


async def test_an_informer_keeps_what_there_is(api: KubeApi) -> None:
    await make(api, "a", n="1")
    await make(api, "b", n="1")
    await make(api, "c", n="1")
    informer = Informer(api, CONFIG_MAPS, read=decode_map, clock=SystemClock(), selection=here())
    changed = asyncio.Event()
    informer.followers.append(lambda _name, _value: changed.set())
    running = asyncio.ensure_future(informer.run())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await informer.is_complete.wait()
            assert len(informer) == 3
            patch = Patch(type="merge", body={"data": {"n": "2"}})
            await api.patch(CONFIG_MAPS, "a", patch, namespace=SPACE)
            await api.delete(CONFIG_MAPS, "b", namespace=SPACE)
            while {name[1]: value.data["n"] for name, value in informer.items()} != {
                "a": "2",
                "c": "1",
            }:
                changed.clear()
                await changed.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_connections_that_died_unnoticed_are_given_up(
    api: KubeApi, real: ControlPlane
) -> None:
    clock = SystemClock()
    async with network_to(real.url) as network:
        access = replace(load_access(str(real.kubeconfig)), server=network.url)
        far = KubeApi(access, clock)
        informer = Informer(far, CONFIG_MAPS, read=decode_map, clock=clock, selection=here())
        running = asyncio.ensure_future(informer.run())
        try:
            async with asyncio.timeout(20):
                await make(api, "seen")
                while informer.get((SPACE, "seen")) is None:
                    await asyncio.sleep(0.01)  # so that it watches
                await far.answers(5)
                network.cut("Silent")
                with pytest.raises(Unreachable):
                    await far.answers(0.2)
                calling = asyncio.ensure_future(far.page(CONFIG_MAPS, here(), read=bytes))
                await make(api, "unseen")
                network.mend()
                await far.answers(5)
                assert informer.get((SPACE, "unseen")) is None
                await far.reconnect()
                informer.hurry()
                assert len((await calling).items) == 2
                while informer.get((SPACE, "unseen")) is None:
                    await asyncio.sleep(0.01)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await far.close()


async def test_one_who_waits_to_follow_need_not_once_the_server_is_known_to_answer() -> None:
    clock = VirtualClock()
    page = {"metadata": {"resourceVersion": "7"}, "items": []}
    async with serving(*([says({}, status=503)] * 4), says(page)) as script:
        api = KubeApi(script.access, clock)
        informer = Informer(api, PODS, read=bytes, clock=clock)
        running = asyncio.ensure_future(informer.run())
        async with asyncio.timeout(10):
            while informer.fault is None:
                await clock.advance(1)
                await asyncio.sleep(0.001)
            informer.hurry()
            await informer.is_complete.wait()  # no further time has passed
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await api.close()


async def test_somebody_else_has_their_own_rights(api: KubeApi) -> None:
    nobody = api.acting_as("system:serviceaccount:kubeapi:nobody")
    with pytest.raises(Forbidden, match="system:serviceaccount:kubeapi:nobody"):
        await nobody.get(CONFIG_MAPS, "a", SPACE)
    master = api.acting_as("somebody", ("system:masters", "others"))
    await master.page(CONFIG_MAPS, here(), read=bytes)


async def test_what_a_server_serves_is_found_out(api: KubeApi) -> None:
    served = await api.discovery.of({"apiVersion": "apps/v1", "kind": "StatefulSet"})
    assert (served.plural, served.namespaced) == ("statefulsets", True)


async def test_a_group_that_is_not_served_is_not_found(api: KubeApi) -> None:
    with pytest.raises(NotFound, match="could not find the requested resource"):
        await api.page(ResourceKey("nowhere.example.com", "v1", "things"), read=bytes)


async def test_bad_credentials_are_unauthorized(real: ControlPlane, tmp_path: Path) -> None:
    access = load_access(str(real.kubeconfig))
    for wrong in (
        replace(access, token="wrong"),
        replace(access, token="", token_file=tmp_path / "no-such-file"),
    ):
        api = KubeApi(wrong, SystemClock())
        with pytest.raises(Unauthorized):
            await api.get(NAMESPACES, "default")
        await api.close()


async def test_another_token_is_shown_from_the_next_call_on(real: ControlPlane) -> None:
    access = load_access(str(real.kubeconfig))
    api = KubeApi(replace(access, token="wrong"), SystemClock())
    as_somebody = api.acting_as("somebody")
    try:
        with pytest.raises(Unauthorized):
            await api.get(NAMESPACES, "default")
        api.show(access.token)
        await api.get(NAMESPACES, "default")
        async with aclosing(api.watch(NAMESPACES, read=bytes)) as batches:
            assert await anext(batches) == []
        with pytest.raises(Forbidden, match='User "somebody"'):
            await as_somebody.get(NAMESPACES, "default")
    finally:
        await api.close()


async def test_a_token_file_is_read_again_when_it_changes(
    real: ControlPlane, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("admin-token\n")
    access = load_access(str(real.kubeconfig))
    api = KubeApi(replace(access, token="", token_file=file), SystemClock())
    await api.get(NAMESPACES, "default")
    file.write_text("revoked\n")
    with pytest.raises(Unauthorized):
        await api.get(NAMESPACES, "default")
    await api.close()


PODS = ResourceKey("", "v1", "pods")
REFUSED = {"kind": "Status", "status": "Failure", "message": "not now"}


@pytest.mark.parametrize(
    ("verb", "answers", "want"),
    [
        pytest.param("get", ["drop", "ok"], "ok", id="a read is repeated after a lost connection"),
        pytest.param("get", ["503", "ok"], "ok", id="a read is repeated when the server is away"),
        pytest.param("create", ["drop"], Unreachable, id="a creation that may be done is not"),
        pytest.param("create", ["500"], InternalError, id="nor one that failed within the server"),
        pytest.param("create", ["429", "ok"], "ok", id="a creation is, when it was not looked at"),
        pytest.param("merge", ["drop"], Unreachable, id="a merge is not repeated"),
        pytest.param("apply", ["drop", "ok"], "ok", id="an apply is the same twice"),
        pytest.param("get", ["429"] * 4, TooManyRequests, id="patience ends"),
    ],
)
async def test_what_is_tried_again(verb: str, answers: list[str], want: object) -> None:
    given = {
        "drop": drops(),
        "ok": says({"kind": "Pod", "metadata": {"name": "a"}}),
        "503": says(REFUSED, status=503),
        "500": says(REFUSED, status=500),
        "429": says(REFUSED, status=429, Retry_After="1"),
    }
    clock = VirtualClock()
    async with serving(*(given[answer] for answer in answers)) as script:
        api = KubeApi(script.access, clock)
        calls = {
            "get": lambda: api.get(PODS, "a", "default"),
            "create": lambda: api.create(PODS, {}, namespace="default"),
            "merge": lambda: api.patch(PODS, "a", Patch(type="merge", body={})),
            "apply": lambda: api.patch(PODS, "a", Patch(type="apply", body={})),
        }
        calling = asyncio.ensure_future(calls[verb]())
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not calling.done():
                await clock.advance(5)
                await asyncio.sleep(0.01)
        if want == "ok":
            await calling
        else:
            with pytest.raises(want):  # type: ignore[call-overload]  # a class, where not a word
                await calling
        assert len(script.seen) == len(answers)
        await api.close()


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    clock = VirtualClock()
    api = KubeApi(Access(server="http://127.0.0.1:9"), clock)
    calling = asyncio.ensure_future(api.create(PODS, {}, namespace="default"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not calling.done():
            await clock.advance(5)
            await asyncio.sleep(0.01)
    with pytest.raises(Unreachable, match="connection refused"):
        await calling
    assert api.counts["POST"] == 4  # nothing was sent, so it may be tried again
    await api.close()


async def test_an_event_that_makes_no_sense_ends_the_watch() -> None:
    lines = (b'{"type":"ADDED","object":{"metadata":{"na', b'me":"a"}}}\n{"type":"ODD"}\n')
    async with serving(streams(*lines)) as script:
        api = KubeApi(script.access, VirtualClock())
        with pytest.raises(Unreachable, match="an event that makes no sense"):
            async for _ in api.watch(PODS, read=bytes):
                pass
        await api.close()


def test_names_in_paths_are_quoted() -> None:
    kind = ResourceKey("apps", "v1", "deployments")
    assert path_of(kind, "a/b", "n?", "status") == (
        "/apis/apps/v1/namespaces/n%3F/deployments/a%2Fb/status"
    )
