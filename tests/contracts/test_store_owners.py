"""What every store promises of owners and dependents, and of kinds that come and go."""

from __future__ import annotations

import copy

import pytest

from fairway.api.errors import NotFound
from fairway.store.interface import Deletion, Patch, ResourceKey, Store
from tests.contracts.conftest import (
    ALICE,
    CONFIG_MAPS,
    DEFINITIONS,
    WIDGET_DEFINITION,
    WIDGETS,
    Settled,
    config_map,
    widget,
)

GADGETS = ResourceKey("example.org", "v1", "gadgets")


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


async def names(store: Store, kind: ResourceKey = WIDGETS) -> list[str]:
    return [item.object()["metadata"]["name"] for item in (await store.list(kind)).items]


async def owners(store: Store, name: str) -> list[str]:
    metadata = (await store.get(WIDGETS, name, "default")).object()["metadata"]
    return [owner["name"] for owner in metadata.get("ownerReferences", ())]


async def are_going(store: Store) -> dict[str, bool]:
    """Whether each widget there is has been told to go."""
    found = [item.object()["metadata"] for item in (await store.list(WIDGETS)).items]
    return {item["name"]: "deletionTimestamp" in item for item in found}


async def is_served(store: Store, kind: ResourceKey) -> bool:
    try:
        await store.list(kind)
    except NotFound:
        return False
    return True


async def delete(store: Store, name: str, propagation: str = "") -> bool:
    how = Deletion(propagation=propagation)
    _, is_gone = await store.delete(WIDGETS, name, namespace="default", how=how, write=ALICE)
    return is_gone


async def test_dependents_follow_their_owner(store: Store, settled: Settled) -> None:
    owner = await make(store, "owner")
    child = await make(store, "child", [owner])
    await make(store, "grandchild", [child])
    assert await delete(store, "owner", "Background")
    await settled(lambda: names(store), [])


async def test_a_dependent_with_another_owner_stays(store: Store, settled: Settled) -> None:
    first, second = await make(store, "first"), await make(store, "second")
    await make(store, "child", [first, second])
    await delete(store, "first")
    await settled(lambda: owners(store, "child"), ["second"])
    assert await names(store) == ["child", "second"]


async def test_orphans_stay_without_their_owner(store: Store, settled: Settled) -> None:
    owner = await make(store, "owner")
    await make(store, "child", [owner])
    await delete(store, "owner", "Orphan")
    await settled(lambda: names(store), ["child"])
    child = (await store.get(WIDGETS, "child", "default")).object()
    assert "ownerReferences" not in child["metadata"]


async def test_in_foreground_the_owner_goes_last(store: Store, settled: Settled) -> None:
    owner = await make(store, "owner")
    await make(store, "child", [owner], ["example.com/hold"], blocks=True)
    assert not await delete(store, "owner", "Foreground")
    await settled(lambda: are_going(store), {"child": True, "owner": True})
    patch = Patch(type="merge", body={"metadata": {"finalizers": None}})
    await store.patch(WIDGETS, "child", patch, namespace="default", write=ALICE)
    await settled(lambda: names(store), [])


async def test_a_dependent_of_an_owner_that_never_was_goes(store: Store, settled: Settled) -> None:
    ghost = {**widget("ghost"), "metadata": {"name": "ghost", "uid": "no-such-uid"}}
    await make(store, "child", [ghost])
    await settled(lambda: names(store), [])


async def test_objects_of_a_kind_go_with_its_definition(store: Store, settled: Settled) -> None:
    definition = copy.deepcopy(WIDGET_DEFINITION)
    definition["metadata"]["name"] = "gadgets.example.org"
    definition["spec"] |= {"group": "example.org", "names": {"plural": "gadgets", "kind": "Gadget"}}
    await store.create(DEFINITIONS, definition, write=ALICE)
    await settled(lambda: is_served(store, GADGETS), True)
    for name, finalizers in (("a", []), ("held", ["example.com/hold"])):
        body = {**widget(name), "apiVersion": "example.org/v1", "kind": "Gadget"}
        body["metadata"]["finalizers"] = finalizers
        await store.create(GADGETS, body, namespace="default", write=ALICE)
    _, is_gone = await store.delete(DEFINITIONS, "gadgets.example.org", write=ALICE)
    assert not is_gone
    await settled(lambda: names(store, GADGETS), ["held"])
    patch = Patch(type="merge", body={"metadata": {"finalizers": None}})
    await store.patch(GADGETS, "held", patch, namespace="default", write=ALICE)
    await settled(lambda: is_served(store, GADGETS), False)
    with pytest.raises(NotFound, match="could not find the requested resource"):
        await store.list(GADGETS)
    with pytest.raises(NotFound):
        await store.get(DEFINITIONS, "gadgets.example.org")


async def test_an_owner_of_another_kind_counts_too(store: Store, settled: Settled) -> None:
    stored = await store.create(CONFIG_MAPS, config_map("owner"), namespace="default", write=ALICE)
    await make(store, "child", [stored.object()])
    await store.delete(CONFIG_MAPS, "owner", namespace="default", write=ALICE)
    await settled(lambda: names(store), [])
