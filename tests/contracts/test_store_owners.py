"""What every store promises of owners and dependents, and of kinds that come and go."""

from __future__ import annotations

import pytest

from fairway.api.errors import NotFound
from fairway.clock import VirtualClock
from fairway.store.interface import Deletion, Patch, Store
from tests.contracts.conftest import ALICE, CONFIG_MAPS, DEFINITIONS, WIDGETS, config_map, widget


async def make(store: Store, name: str, owners: list[dict] = (), finalizers=(), **more) -> dict:
    body = widget(name)
    body["metadata"]["ownerReferences"] = [reference(owner, **more) for owner in owners]
    body["metadata"]["finalizers"] = list(finalizers)
    stored = await store.create(WIDGETS, body, namespace="default", write=ALICE)
    return stored.object()


def reference(owner: dict, *, blocks: bool = False) -> dict:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    }


async def names(store: Store) -> list[str]:
    return [one.object()["metadata"]["name"] for one in (await store.list(WIDGETS)).items]


async def delete(store: Store, name: str, propagation: str = "") -> bool:
    how = Deletion(propagation=propagation)
    _, is_gone = await store.delete(WIDGETS, name, namespace="default", how=how, write=ALICE)
    return is_gone


async def test_dependents_follow_their_owner(store: Store, clock: VirtualClock) -> None:
    owner = await make(store, "owner")
    child = await make(store, "child", [owner])
    await make(store, "grandchild", [child])
    assert await delete(store, "owner", "Background")
    await clock.advance(1)
    assert await names(store) == []


async def test_a_dependent_with_another_owner_stays(store: Store, clock: VirtualClock) -> None:
    first, second = await make(store, "first"), await make(store, "second")
    await make(store, "child", [first, second])
    await delete(store, "first")
    await clock.advance(1)
    assert await names(store) == ["child", "second"]
    child = (await store.get(WIDGETS, "child", "default")).object()
    assert [one["name"] for one in child["metadata"]["ownerReferences"]] == ["second"]


async def test_orphans_stay_without_their_owner(store: Store, clock: VirtualClock) -> None:
    owner = await make(store, "owner")
    await make(store, "child", [owner])
    await delete(store, "owner", "Orphan")
    await clock.advance(1)
    assert await names(store) == ["child"]
    child = (await store.get(WIDGETS, "child", "default")).object()
    assert "ownerReferences" not in child["metadata"]


async def test_in_foreground_the_owner_goes_last(store: Store, clock: VirtualClock) -> None:
    owner = await make(store, "owner")
    await make(store, "child", [owner], ["example.com/hold"], blocks=True)
    assert not await delete(store, "owner", "Foreground")
    await clock.advance(1)
    assert await names(store) == ["child", "owner"]
    patch = Patch(type="merge", body={"metadata": {"finalizers": None}})
    await store.patch(WIDGETS, "child", patch, namespace="default", write=ALICE)
    await clock.advance(1)
    assert await names(store) == []


async def test_a_dependent_of_an_owner_that_never_was_goes(
    store: Store, clock: VirtualClock
) -> None:
    ghost = {**widget("ghost"), "metadata": {"name": "ghost", "uid": "no-such-uid"}}
    await make(store, "child", [ghost])
    await clock.advance(1)
    assert await names(store) == []


async def test_objects_of_a_kind_go_with_its_definition(store: Store, clock: VirtualClock) -> None:
    await make(store, "a")
    await make(store, "held", finalizers=["example.com/hold"])
    _, is_gone = await store.delete(DEFINITIONS, "widgets.example.com", write=ALICE)
    assert not is_gone
    await clock.advance(1)
    assert await names(store) == ["held"]
    patch = Patch(type="merge", body={"metadata": {"finalizers": None}})
    await store.patch(WIDGETS, "held", patch, namespace="default", write=ALICE)
    await clock.advance(1)
    with pytest.raises(NotFound):
        await store.get(DEFINITIONS, "widgets.example.com")
    with pytest.raises(NotFound, match="could not find the requested resource"):
        await store.list(WIDGETS)


async def test_an_owner_of_another_kind_counts_too(store: Store, clock: VirtualClock) -> None:
    stored = await store.create(CONFIG_MAPS, config_map("owner"), namespace="default", write=ALICE)
    await make(store, "child", [stored.object()])
    await store.delete(CONFIG_MAPS, "owner", namespace="default", write=ALICE)
    await clock.advance(1)
    assert await names(store) == []
