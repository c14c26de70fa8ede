"""Stores and drivers under contract.

Each test of a driver gets a rig (see `rigs`), once for every driver.

Each test of a store gets one by interface only, with the namespace `default` and a custom kind
`Widget` (with status). What a test leaves behind is checked when it ends: versions are unique and
grow, every object is what its newest change says, and reading the disk anew gives the same state.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairway.clock import VirtualClock
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.loading import load
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey, Store, Write
from tests.contracts.drivers import Rig
from tests.contracts.rigs import RIGS
from tests.kubernetes.driving import driven
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import Fleet

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


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(params=[*sorted(RIGS), pytest.param("kubernetes", marks=IN_THE_FLEET)])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    if request.param == "kubernetes":
        fleet: Fleet = request.getfixturevalue("fleet")
        async with driven(fleet.members["edge"]) as member:
            yield member
        return
    async with RIGS[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture(params=["embedded"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: VirtualClock
) -> AsyncIterator[Store]:
    path = tmp_path / "fairway.db"
    store = EmbeddedStore(SqliteJournal(path, is_inline=True), standard_catalogue(), clock=clock)
    store.start()
    await store.create(NAMESPACES, {"metadata": {"name": "default"}}, write=Write())
    await store.create(DEFINITIONS, _copy(WIDGET_DEFINITION), write=Write())
    yield store
    await _check(store, path)


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
    version = load(again._journal, again._shelves, again._history)
    assert version == store.writer.published
    assert _state(again) == memory
    await again._journal.close()


def _state(store: EmbeddedStore) -> dict:
    return {
        (shelf.kind, name): record.raw
        for shelf in store._shelves.all()
        for name, record in shelf.records.items()
    }
