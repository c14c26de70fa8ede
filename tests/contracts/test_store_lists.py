"""What every store promises of lists and watches."""

from __future__ import annotations

import asyncio

import pytest

from fairway.api.errors import BadRequest, Expired
from fairway.clock import VirtualClock
from fairway.store.embedded.history import History
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Page, Patch, Selection, Store, WatchEvent, WatchFrom
from tests.contracts.conftest import ALICE, EMBEDDED_ALONE, EVENTS, NAMESPACES, WIDGETS, widget
from tests.waiting import PATIENCE_SECONDS


async def make(store: Store, name: str, namespace: str = "default", **labels: str) -> str:
    stored = await store.create(
        WIDGETS, widget(name, labels=labels), namespace=namespace, write=ALICE
    )
    return stored.object()["metadata"]["resourceVersion"]


async def relabel(store: Store, name: str, **labels: str | None) -> None:
    patch = Patch(type="merge", body={"metadata": {"labels": labels}})
    await store.patch(WIDGETS, name, patch, namespace="default", write=ALICE)


def names(items) -> list[str]:
    return [item.object()["metadata"]["name"] for item in items]


async def take(watch, count: int) -> list[WatchEvent]:
    events: list[WatchEvent] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(events) < count:
            events.extend(await watch.batch())
    assert len(events) == count
    return events


def told(events: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(event.type, event.stored.object()["metadata"].get("name", "")) for event in events]


async def test_a_list_is_in_order_of_namespace_and_name(store: Store, space: str) -> None:
    await store.create(NAMESPACES, {"metadata": {"name": space}}, write=ALICE)
    for name in ("c", "a", "b"):
        await make(store, name)
    await make(store, "z", space)
    assert names((await store.list(WIDGETS)).items) == ["z", "a", "b", "c"]
    chosen = Selection(namespace="default")
    assert names((await store.list(WIDGETS, chosen)).items) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        ("team=red", ["a"]),
        ("team!=red", ["b", "c"]),
        ("team in (red,blue)", ["a", "b"]),
        ("team notin (red)", ["b", "c"]),
        ("team", ["a", "b"]),
        ("!team", ["c"]),
        ("team=red,size", []),
        ("size>3", ["b"]),
    ],
)
async def test_labels_select(store: Store, selector: str, want: list[str]) -> None:
    await make(store, "a", team="red")
    await make(store, "b", team="blue", size="5")
    await make(store, "c")
    assert names((await store.list(WIDGETS, Selection(labels=selector))).items) == want


async def test_fields_select_and_unknown_ones_are_refused(store: Store) -> None:
    await make(store, "a")
    await make(store, "b")
    chosen = Selection(fields="metadata.name=b")
    assert names((await store.list(WIDGETS, chosen)).items) == ["b"]
    with pytest.raises(BadRequest, match=r"field label not supported: spec\.size"):
        await store.list(WIDGETS, Selection(fields="spec.size=1"))


@pytest.mark.parametrize("selector", ["a=(", "a in", "=b", "a b", "a in (b", "-x=1"])
async def test_a_selector_that_makes_no_sense_is_refused(store: Store, selector: str) -> None:
    with pytest.raises(BadRequest):
        await store.list(WIDGETS, Selection(labels=selector))


async def test_a_list_in_pages_shows_one_moment(store: Store) -> None:
    for name in "abcde":
        await make(store, name)
    first = await store.list(WIDGETS, page=Page(limit=2))
    assert names(first.items) == ["a", "b"]
    assert first.remaining == 3
    await store.delete(WIDGETS, "c", namespace="default", write=ALICE)
    await make(store, "bb")
    await relabel(store, "d", late="yes")
    second = await store.list(WIDGETS, page=Page(limit=2, continue_from=first.continue_from))
    assert names(second.items) == ["c", "d"]
    assert "labels" not in second.items[1].object()["metadata"]
    assert second.version == first.version
    third = await store.list(WIDGETS, page=Page(limit=2, continue_from=second.continue_from))
    assert names(third.items) == ["e"]
    assert not third.continue_from


async def test_a_list_at_an_exact_version_shows_that_version(store: Store) -> None:
    version = await make(store, "a")
    later = await make(store, "b")
    exact = await store.list(WIDGETS, page=Page(version=version, match="Exact"))
    assert names(exact.items) == ["a"]
    fresh = await store.list(WIDGETS, page=Page(version=later, match="NotOlderThan"))
    assert names(fresh.items) == ["a", "b"]


@pytest.mark.parametrize("token", ["nonsense", "e30", "////"])
async def test_a_continue_token_of_ones_own_making_is_refused(store: Store, token: str) -> None:
    with pytest.raises(BadRequest, match="continue key is not valid"):
        await store.list(WIDGETS, page=Page(continue_from=token))


async def test_a_watch_tells_what_is_there_and_then_each_change(store: Store) -> None:
    await make(store, "a")
    watch = await store.watch(WIDGETS)
    assert told(await take(watch, 1)) == [("ADDED", "a")]
    await make(store, "b")
    await relabel(store, "a", x="y")
    await store.delete(WIDGETS, "b", namespace="default", write=ALICE)
    assert told(await take(watch, 3)) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    await watch.close()
    assert await watch.batch() == []


async def test_a_watch_from_a_version_tells_every_change_after_it(store: Store) -> None:
    version = await make(store, "a")
    await make(store, "b")
    await store.delete(WIDGETS, "a", namespace="default", write=ALICE)
    watch = await store.watch(WIDGETS, start=WatchFrom(version=version))
    events = await take(watch, 2)
    assert told(events) == [("ADDED", "b"), ("DELETED", "a")]
    versions = [int(event.version) for event in events]
    assert versions == sorted(versions)
    assert versions[0] > int(version)


async def test_a_watch_through_a_selector_sees_objects_enter_and_leave(store: Store) -> None:
    await make(store, "a", team="red")
    watch = await store.watch(WIDGETS, Selection(labels="team=red"))
    assert told(await take(watch, 1)) == [("ADDED", "a")]
    await make(store, "b")
    await relabel(store, "b", team="red")
    await relabel(store, "a", team="blue")
    assert told(await take(watch, 2)) == [("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_of_one_namespace_hears_nothing_of_others(store: Store, space: str) -> None:
    await store.create(NAMESPACES, {"metadata": {"name": space}}, write=ALICE)
    watch = await store.watch(WIDGETS, Selection(namespace="default"))
    await make(store, "x", space)
    await make(store, "y")
    assert told(await take(watch, 1)) == [("ADDED", "y")]


async def test_initial_events_end_with_a_bookmark(store: Store) -> None:
    await make(store, "a")
    watch = await store.watch(WIDGETS, start=WatchFrom(bookmarks=True, initial_events=True))
    events = await take(watch, 2)
    assert told(events) == [("ADDED", "a"), ("BOOKMARK", "")]
    assert events[1].ends_initial
    annotations = events[1].stored.object()["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


@EMBEDDED_ALONE
async def test_a_quiet_watch_hears_bookmarks(store: Store, virtual: VirtualClock) -> None:
    version = await make(store, "a")
    watch = await store.watch(WIDGETS, start=WatchFrom(version=version, bookmarks=True))
    await store.create(NAMESPACES, {"metadata": {"name": "elsewhere"}}, write=ALICE)
    await virtual.advance(61)
    (bookmark,) = await take(watch, 1)
    assert bookmark.type == "BOOKMARK"
    assert int(bookmark.version) > int(version)


@EMBEDDED_ALONE
async def test_a_version_that_left_the_history_expired(store: EmbeddedStore) -> None:
    """The tests of kubeapi have the same of a real server."""
    store._history._changes_max = 3
    version = await make(store, "a")
    first = await store.list(WIDGETS, page=Page(limit=1))
    for number in range(6):
        await relabel(store, "a", n=str(number))
    with pytest.raises(Expired, match="too old resource version"):
        await store.watch(WIDGETS, start=WatchFrom(version=version))
    with pytest.raises(Expired):
        await store.list(WIDGETS, page=Page(version=version, match="Exact"))
    assert first.version
    watch = await store.watch(WIDGETS, start=WatchFrom(version=(await store.list(WIDGETS)).version))
    await relabel(store, "a", n="last")
    assert told(await take(watch, 1)) == [("MODIFIED", "a")]
    store._history._changes_max = History()._changes_max


@EMBEDDED_ALONE
async def test_events_expire(store: Store, virtual: VirtualClock) -> None:
    body = {
        "metadata": {"name": "note"},
        "involvedObject": {"kind": "Widget", "name": "a", "namespace": "default"},
        "reason": "Testing",
        "type": "Normal",
        "message": "soon gone",
    }
    await store.create(EVENTS, body, namespace="default", write=ALICE)
    await virtual.advance(3000)
    assert names((await store.list(EVENTS)).items) == ["note"]
    await virtual.advance(700)
    assert names((await store.list(EVENTS)).items) == []
