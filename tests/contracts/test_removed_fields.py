"""Fields that leave a kind, on every store: what is stored of them bothers nobody.

A field that the schema no longer has is left out of what is read, and refuses no write that does
not set it. Each test has a kind of its own, of which objects are stored before the field leaves.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from fairway.api.errors import AlreadyExists, BadRequest, Invalid, NotFound
from fairway.clock import SystemClock
from fairway.store.interface import Patch, ResourceKey, Store, WatchFrom
from fairway.store.keys import DEFINITIONS
from fairway.store.kubernetes.definitions import await_definitions
from fairway.store.kubernetes.store import KubernetesStore
from tests.contracts.conftest import ALICE, BOB, Settled

Json = dict[str, Any]
_numbers = itertools.count(1)
SPEC: Json = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "former": {"type": "string"},
        "parts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "former": {"type": "integer"}},
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "named": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
STATUS: Json = {
    "type": "object",
    "properties": {"ready": {"type": "integer"}, "former": {"type": "string"}},
}


def definition(plural: str, spec: Json = SPEC, status: Json = STATUS) -> Json:
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": copy.deepcopy(schema)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [version],
        },
    }


class Shelf:
    """A kind of its own in a store, whose schema changes."""

    def __init__(self, store: Store, settled: Settled) -> None:
        self.store = store
        self.plural = f"gadgets{next(_numbers)}"
        self.key = ResourceKey("example.com", "v1", self.plural)
        self._settled = settled

    async def define(self, **schemas: Json) -> None:
        """Makes the kind what is said, and returns once the store goes by it."""
        body = definition(self.plural, **schemas)
        patch = Patch(type="apply", body=body, force=True)
        await self.store.patch(DEFINITIONS, body["metadata"]["name"], patch, write=ALICE)
        if isinstance(self.store, KubernetesStore):
            await await_definitions(self.store, [body], clock=SystemClock())

    async def without(self, name: str) -> None:
        """Takes a field out of the kind, wherever it is."""
        await self.define(spec=stripped(SPEC, name), status=stripped(STATUS, name))

        async def is_read() -> bool:
            found = (await self.store.list(self.key)).items
            return any(name in item.object()["spec"] for item in found)

        await self._settled(is_read, False)

    async def create(self, name: str, spec: Json, status: Json | None = None) -> None:
        body = {**self.named(name), "spec": spec}
        where: Json = {"namespace": "default", "write": ALICE}
        found = (await self.store.create(self.key, body, **where)).object()
        if status is not None:
            await self.store.update(
                self.key, {**found, "status": status}, subresource="status", **where
            )

    async def get(self, name: str) -> Json:
        return (await self.store.get(self.key, name, "default")).object()

    async def patch(self, name: str, patch: Patch, **more: Any) -> Json:
        where = {"namespace": "default", "write": ALICE, **more}
        return (await self.store.patch(self.key, name, patch, **where))[0].object()

    def named(self, name: str) -> Json:
        kind = self.plural.capitalize()
        return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name}}


def stripped(schema: Any, name: str) -> Any:
    """A schema without the properties of a name."""
    if isinstance(schema, dict):
        return {key: stripped(value, name) for key, value in schema.items() if key != name}
    return schema


@pytest.fixture
async def shelf(store: Store, settled: Settled) -> AsyncIterator[Shelf]:
    found = Shelf(store, settled)
    await found.define()
    await found.create(
        "one",
        {
            "size": 1,
            "former": "here",
            "parts": [{"name": "a", "former": 1}, {"name": "b"}],
            "free": {"former": "stays"},
            "named": {"former": "stays"},
        },
        {"ready": 1, "former": "here"},
    )
    await found.without("former")
    yield found
    for stored in (await store.list(found.key)).items:
        name = stored.object()["metadata"]["name"]
        await store.delete(found.key, name, namespace="default", write=ALICE)
    await store.delete(DEFINITIONS, f"{found.plural}.example.com", write=ALICE)


LEFT = {
    "size": 1,
    "parts": [{"name": "a"}, {"name": "b"}],
    "free": {"former": "stays"},
    "named": {"former": "stays"},
}


async def test_it_is_left_out_of_all_that_is_read(shelf: Shelf, store: Store) -> None:
    found = [await shelf.get("one"), (await store.list(shelf.key)).items[0].object()]
    watch = await store.watch(shelf.key, start=WatchFrom())
    found.append((await watch.batch())[0].stored.object())
    await watch.close()
    for item in found:
        assert item["spec"] == LEFT
        assert item["status"] == {"ready": 1}


WRITES: dict[str, Callable[[Json], tuple[Patch, str]]] = {
    "a merge patch": lambda _: (Patch(type="merge", body={"spec": {"size": 2}}), ""),
    "a JSON patch": lambda _: (
        Patch(type="json", body=[{"op": "replace", "path": "/spec/size", "value": 2}]),
        "",
    ),
    "an apply": lambda named: (
        Patch(type="apply", body={**named, "spec": {"size": 2}}, force=True),
        "",
    ),
    "a patch of the status": lambda _: (
        Patch(type="merge", body={"status": {"ready": 2}}),
        "status",
    ),
}


@pytest.mark.parametrize("how", WRITES)
async def test_it_refuses_no_patch_that_does_not_set_it(shelf: Shelf, how: str) -> None:
    patch, subresource = WRITES[how](shelf.named("one"))
    for write in (ALICE, BOB):
        after = await shelf.patch("one", patch, subresource=subresource, write=write)
        wanted = (1, 2) if subresource else (2, 1)
        assert (after["spec"]["size"], after["status"]["ready"]) == wanted
        assert "former" not in after["spec"]
        assert "former" not in after["status"]


async def test_it_refuses_no_update_of_what_was_read(shelf: Shelf, store: Store) -> None:
    where: Json = {"namespace": "default", "write": BOB}
    body = await shelf.get("one")
    body["spec"]["size"] = 2
    body = (await store.update(shelf.key, body, **where)).object()
    body["status"]["ready"] = 2
    body = (await store.update(shelf.key, body, subresource="status", **where)).object()
    assert body["spec"] == {**LEFT, "size": 2}
    assert body["status"] == {"ready": 2}


async def test_setting_it_is_refused(shelf: Shelf, store: Store) -> None:
    with pytest.raises(BadRequest, match=r'unknown field "spec\.former"'):
        await shelf.create("another", {"former": "here"})
    with pytest.raises((BadRequest, Invalid), match=r'unknown field "spec\.former"'):
        await shelf.patch("one", Patch(type="merge", body={"spec": {"former": "here"}}))
    body = await shelf.get("one")
    body["spec"]["former"] = "here"
    with pytest.raises(BadRequest, match=r'unknown field "spec\.former"'):
        await store.update(shelf.key, body, namespace="default", write=ALICE)


async def test_a_write_takes_it_off_the_disk_though_nothing_else_changes(
    shelf: Shelf, store: Store, settled: Settled
) -> None:
    before = await shelf.get("one")
    await shelf.patch("one", Patch(type="json", body=[]))
    after = await shelf.get("one")
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    await shelf.patch("one", Patch(type="json", body=[]))
    assert await shelf.get("one") == after
    await shelf.define()

    async def is_made() -> bool:  # a kube-apiserver goes by the former schema for a moment
        try:
            await shelf.create("other", {"former": "anew"})
        except BadRequest:
            return False
        except AlreadyExists:
            return True
        return True

    await settled(is_made, True)

    async def names() -> list[bool]:
        found = (await store.list(shelf.key)).items
        return ["former" in item.object()["spec"] for item in found]

    await settled(names, [False, True])


async def test_an_object_that_has_it_can_be_deleted(shelf: Shelf, store: Store) -> None:
    await store.delete(shelf.key, "one", namespace="default", write=ALICE)
    with pytest.raises(NotFound):
        await shelf.get("one")
