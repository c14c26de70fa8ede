"""The embedded store of a hub, its initial objects, and those that a demo adds."""

from __future__ import annotations

import gc
import resource
import sys
from pathlib import Path

from fairway import demo
from fairway.api import crds
from fairway.api.errors import AlreadyExists, NotFound
from fairway.clock import Clock
from fairway.resources.catalogue import Catalogue, standard_catalogue
from fairway.schema.node import JsonObject
from fairway.sealing import Keyring
from fairway.server.access.bootstrap_roles import bootstrap_objects, complete
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import BY_HUB, Patch, ResourceKey, Store
from fairway.store.keys import DEFINITIONS, NAMESPACES, resource_of

_NAMESPACES = ("default", "fairway-system", "kube-public", "kube-system")
_FILES_MOST = 1 << 16
_SWITCH_SECONDS = 0.0005


def settle_memory() -> None:
    """Hides objects that live as long as the process from the garbage collector.

    A hub holds many objects that never form cycles; scanning them every few hundred allocations
    costs a quarter of all writes.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def settle_threads() -> None:
    """Lets threads that wait for a disk get the interpreter sooner than by default.

    Each of their system calls releases the interpreter's lock and must take it again, while the
    event loop releases it only when a thread has waited for this interval. Between the submission
    of a workload and its running there are seven durable writes, of several such calls each.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)


def settle_files() -> None:
    """Lets this process open as many files as it may: connections are files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_MOST if hard == resource.RLIM_INFINITY else min(hard, _FILES_MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def open_store(
    folder: Path, *, clock: Clock | None = None, keys: Keyring | None = None
) -> EmbeddedStore:
    """The embedded store of a data folder, read and running; encrypted if there are keys."""
    path = folder / "fairway.db"
    path.touch(mode=0o600)  # it holds secrets; SQLite gives its other files the same mode
    journal = SqliteJournal(path, keys=keys)
    store = EmbeddedStore(journal, standard_catalogue(), clock=clock)
    store.start()
    return store


async def prepare_store(store: EmbeddedStore) -> None:
    """Creates what every hub holds from the start: namespaces, roles, and our kinds."""
    for definition in crds.definitions():
        await _apply(store, DEFINITIONS, definition)
    for name in _NAMESPACES:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await _create(store, NAMESPACES, body)
    for role in bootstrap_objects():
        await _complete(store, resource_of(role["apiVersion"], role["kind"]), role)


async def load_demo(store: Store, catalogue: Catalogue) -> None:
    """Adds the demo fleet to a hub; existing objects stay as they are."""
    for document in demo.documents():
        body = document.value
        group, _, version = body["apiVersion"].rpartition("/")
        resource = catalogue.of_kind(group, version, body["kind"])
        assert resource is not None, f"{document.place}: no such kind"
        namespace = body["metadata"].get("namespace", "")
        await _create(store, ResourceKey(group, version, resource.plural), body, namespace)


async def _apply(store: Store, kind: ResourceKey, body: JsonObject) -> None:
    """Makes an object match this version of the hub, leaving what others added."""
    patch = Patch(type="apply", body=body, force=True)
    await store.patch(kind, body["metadata"]["name"], patch, write=BY_HUB)


async def _complete(store: EmbeddedStore, kind: ResourceKey, wanted: JsonObject) -> None:
    """Creates a role or binding, or adds what a newer version of the hub brings to it."""
    try:
        stored = await store.get(kind, wanted["metadata"]["name"])
    except NotFound:
        await store.create(kind, wanted, write=BY_HUB)
        return
    changed = complete(stored.object(), wanted)
    if changed is not None:
        await store.update(kind, changed, write=BY_HUB)


async def _create(store: Store, kind: ResourceKey, body: JsonObject, namespace: str = "") -> None:
    """Creates an object once; later changes by an administrator stay."""
    try:
        await store.create(kind, body, namespace=namespace, write=BY_HUB)
    except AlreadyExists:
        return
