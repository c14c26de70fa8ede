"""The embedded store of a hub, what it holds from the start, and what a demo adds."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from fairway import demo
from fairway.api import crds
from fairway.api.errors import AlreadyExists, NotFound
from fairway.clock import Clock
from fairway.resources.catalogue import Catalogue, standard_catalogue
from fairway.schema.node import JsonObject
from fairway.server.access.bootstrap_roles import bootstrap_objects, complete
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import BY_HUB, Patch, ResourceKey, Store
from fairway.store.keys import DEFINITIONS, NAMESPACES, resource_of

_NAMESPACES = ("default", "fairway-system", "kube-public", "kube-system")
_SWITCH_SECONDS = 0.0005


def settle_memory() -> None:
    """Takes what lives as long as the process out of the collector's sight.

    A hub holds many objects that never form cycles; looking through them every few hundred
    allocations costs a quarter of all writes.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def settle_threads() -> None:
    """Lets threads that wait for a disk have the interpreter sooner than they would by default.

    Each call of theirs to the system gives up the interpreter's lock and has to get it back, while
    the event loop gives it up only when asked for as long as this. Seven durable writes lie between
    the submission of a workload and its running, of several such calls each.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)


def open_store(folder: Path, *, clock: Clock | None = None) -> EmbeddedStore:
    """The embedded store of a data folder, read and running."""
    path = folder / "fairway.db"
    path.touch(mode=0o600)  # it holds secrets; SQLite gives its other files the same mode
    journal = SqliteJournal(path)
    store = EmbeddedStore(journal, standard_catalogue(), clock=clock)
    store.start()
    return store


async def prepare_store(store: EmbeddedStore) -> None:
    """What every hub holds from the start: namespaces, roles, and our kinds."""
    for definition in crds.definitions():
        await _apply(store, DEFINITIONS, definition)
    for name in _NAMESPACES:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await _create(store, NAMESPACES, body)
    for role in bootstrap_objects():
        await _complete(store, resource_of(role["apiVersion"], role["kind"]), role)


async def load_demo(store: Store, catalogue: Catalogue) -> None:
    """Puts the demo fleet into a hub; what is there already stays as it is."""
    for document in demo.documents():
        body = document.value
        group, _, version = body["apiVersion"].rpartition("/")
        resource = catalogue.of_kind(group, version, body["kind"])
        assert resource is not None, f"{document.place}: no such kind"
        namespace = body["metadata"].get("namespace", "")
        await _create(store, ResourceKey(group, version, resource.plural), body, namespace)


async def _apply(store: Store, kind: ResourceKey, body: JsonObject) -> None:
    """Makes an object what this version of the hub says, leaving what others added."""
    patch = Patch(type="apply", body=body, force=True)
    await store.patch(kind, body["metadata"]["name"], patch, write=BY_HUB)


async def _complete(store: EmbeddedStore, kind: ResourceKey, wanted: JsonObject) -> None:
    """Makes a role or binding, or adds to it what a newer version of the hub brings."""
    try:
        stored = await store.get(kind, wanted["metadata"]["name"])
    except NotFound:
        await store.create(kind, wanted, write=BY_HUB)
        return
    changed = complete(stored.object(), wanted)
    if changed is not None:
        await store.update(kind, changed, write=BY_HUB)


async def _create(store: Store, kind: ResourceKey, body: JsonObject, namespace: str = "") -> None:
    """Makes an object once; what an administrator made of it since then stays."""
    try:
        await store.create(kind, body, namespace=namespace, write=BY_HUB)
    except AlreadyExists:
        return
