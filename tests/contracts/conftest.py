"""Stores and drivers under contract.

Each test of a driver gets a rig (see `rigs`), once for every driver.

Each test of a store gets one by interface only, with the namespace `default` and a custom kind
`Widget` (with status). What a test leaves behind is checked when it ends: versions are unique and
grow, every object is what its newest change says, and reading the disk anew gives the same state.
On Kubernetes the server is one for all tests, so what a test leaves behind is removed.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fairway.api.errors import Conflict, NotFound
from fairway.clock import SystemClock, VirtualClock
from fairway.kubeapi import KubeApi, load_access
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.load import load
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Selection, Store, Write
from fairway.store.kubernetes.definitions import define
from fairway.store.kubernetes.store import KubernetesStore
from tests.contracts.drivers import Rig
from tests.contracts.rigs import RIGS
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.driving import driven
from tests.kubernetes.fixtures import AT_THE_EDGE
from tests.kubernetes.fleet import Fleet
from tests.waiting import PATIENCE_SECONDS

WIDGETS = ResourceKey("example.com", "v1", "widgets")
CONFIG_MAPS = ResourceKey("", "v1", "configmaps")
DEPLOYMENTS = ResourceKey("apps", "v1", "deployments")
NAMESPACES = ResourceKey("", "v1", "namespaces")
DEFINITIONS = ResourceKey("apiextensions.k8s.io", "v1", "customresourcedefinitions")
EVENTS = ResourceKey("", "v1", "events")
ALICE = Write(user="alice", manager="alice")
BOB = Write(user="bob", manager="bob")

WIDGET_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer", "minimum": 0, "default": 1},
                                    "colour": {"type": "string", "enum": ["red", "blue"]},
                                    "level": {"enum": [1, 2], "type": "number"},
                                    "free": {
                                        "type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                    "parts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "count": {"type": "integer"},
                                            },
                                        },
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"ready": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


def widget(name: str, *, labels: dict[str, str] | None = None, **spec: object) -> dict:
    metadata: dict = {"name": name}
    if labels:
        metadata["labels"] = labels
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": metadata,
        "spec": dict(spec),
    }


def config_map(name: str, **data: str) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


# The time of a real server cannot be moved on, and its history cannot be made short.
EMBEDDED_ALONE = pytest.mark.parametrize("store", ["embedded"], indirect=True)
STORES = ["embedded", pytest.param("kubernetes", marks=pytest.mark.real)]
# Reads something of a store, and waits until it is what is wanted.
Settled = Callable[[Callable[[], Awaitable[Any]], Any], Awaitable[None]]
_numbers = itertools.count(1)


@pytest.fixture
def virtual() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def settled(request: pytest.FixtureRequest, virtual: VirtualClock) -> Settled:
    """Waits for what a store does by itself: at once on virtual time, or as long as it takes."""

    async def on_virtual_time(read: Callable[[], Awaitable[Any]], want: Any) -> None:
        await virtual.advance(1)
        assert await read() == want

    async def in_real_time(read: Callable[[], Awaitable[Any]], want: Any) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await read() != want:
                    await asyncio.sleep(0.05)
        assert await read() == want

    return in_real_time if _is_kubernetes(request) else on_virtual_time


@pytest.fixture
def space() -> str:
    """A name for a further namespace, which no other test uses."""
    return f"another-{next(_numbers)}"


def _is_kubernetes(request: pytest.FixtureRequest) -> bool:
    return request.node.callspec.params.get("store") == "kubernetes"


@pytest.fixture(params=[*sorted(RIGS), pytest.param("kubernetes", marks=AT_THE_EDGE)])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    if request.param == "kubernetes":
        fleet: Fleet = request.getfixturevalue("fleet")
        async with driven(fleet.members["edge"]) as member:
            yield member
        return
    async with RIGS[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture(params=STORES)
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, virtual: VirtualClock
) -> AsyncIterator[Store]:
    if request.param == "kubernetes":
        plane: ControlPlane = request.getfixturevalue("real")
        kubernetes = KubernetesStore(KubeApi(load_access(str(plane.kubeconfig)), SystemClock()))
        try:
            await _prepare(kubernetes, plane)
            yield kubernetes
            await _sweep(kubernetes)
        finally:
            await kubernetes.close()
        return
    path = tmp_path / "fairway.db"
    store = EmbeddedStore(SqliteJournal(path, is_inline=True), standard_catalogue(), clock=virtual)
    store.start()
    await store.create(NAMESPACES, {"metadata": {"name": "default"}}, write=Write())
    await store.create(DEFINITIONS, _copy(WIDGET_DEFINITION), write=Write())
    yield store
    await _check(store, path)


async def _prepare(store: KubernetesStore, plane: ControlPlane) -> None:
    try:
        await store.get(DEFINITIONS, WIDGET_DEFINITION["metadata"]["name"])
    except NotFound:
        await define(store, [_copy(WIDGET_DEFINITION)], clock=SystemClock())
        # Its garbage collector looks for new kinds twice a minute, and when it starts.
        plane.restart("kube-controller-manager")


async def _sweep(store: KubernetesStore) -> None:
    """Removes what a test left behind."""
    everywhere = Selection()
    free = Patch(type="merge", body={"metadata": {"finalizers": None}})
    for stored in (await store.list(WIDGETS, everywhere)).items:
        metadata = stored.object()["metadata"]
        with suppress(NotFound):
            where = {"namespace": metadata["namespace"], "write": Write()}
            await store.patch(WIDGETS, metadata["name"], free, **where)
            await store.delete(WIDGETS, metadata["name"], **where)
    for kind in (CONFIG_MAPS, DEPLOYMENTS, EVENTS):
        for stored in (await store.list(kind, Selection(namespace="default"))).items:
            with suppress(NotFound):
                name = stored.object()["metadata"]["name"]
                await store.delete(kind, name, namespace="default", write=Write())
    for stored in (await store.list(NAMESPACES)).items:
        name = stored.object()["metadata"]["name"]
        if name.startswith("another-"):
            with suppress(NotFound, Conflict):  # it is going already
                await store.delete(NAMESPACES, name, write=Write())


def _copy(value: dict) -> dict:
    return copy.deepcopy(value)


async def _check(store: EmbeddedStore, path: Path) -> None:
    """The invariants of a store: versions grow, and the disk says the same as memory."""
    changes = list(store._history)
    versions = [change.version for change in changes]
    assert versions == sorted(set(versions))
    memory = _state(store)
    await store.close()
    again = EmbeddedStore(
        SqliteJournal(path, is_inline=True), standard_catalogue(), clock=VirtualClock()
    )
    again.writer.resume(0)
    loaded = load(again._journal, again._shelves, again._history, now=0.0)  # skips no versions
    assert loaded.version == store.writer.published
    assert _state(again) == memory
    await again._journal.close()


def _state(store: EmbeddedStore) -> dict:
    return {
        (shelf.kind, name): record.raw
        for shelf in store._shelves.all()
        for name, record in shelf.records.items()
    }
