"""Removes what a hub leaves on a server that other tests use as well."""

from __future__ import annotations

from contextlib import suppress

from fairway.api import crds
from fairway.api.errors import Conflict, NotFound
from fairway.controllers.terms import LEASES
from fairway.store.interface import Patch, ResourceKey, Stored, Write
from fairway.store.keys import DEFINITIONS, WEBHOOKS
from fairway.store.kubernetes import checked_writes
from fairway.store.kubernetes.store import KubernetesStore

_FREE = Patch(type="merge", body={"metadata": {"finalizers": None}})
_WRITE = Write(user="tests", manager="tests")


async def sweep(store: KubernetesStore, *spared: ResourceKey) -> None:
    """Every object of our kinds goes, with leases; namespaces of clusters stay, empty."""
    kinds = [
        ResourceKey(
            definition["spec"]["group"],
            definition["spec"]["versions"][0]["name"],
            definition["spec"]["names"]["plural"],
        )
        for definition in crds.definitions()
    ]
    await _forget_who_converts(store)
    with suppress(NotFound):
        await store.delete(WEBHOOKS, checked_writes.NAME, write=_WRITE)
    for kind in (*kinds, LEASES):
        if kind in spared:
            continue
        for stored in await _all(store, kind):
            metadata = stored.object()["metadata"]
            where = metadata.get("namespace", "")
            with suppress(NotFound, Conflict):
                if metadata.get("finalizers"):
                    await store.patch(kind, metadata["name"], _FREE, namespace=where, write=_WRITE)
                await store.delete(kind, metadata["name"], namespace=where, write=_WRITE)


async def _forget_who_converts(store: KubernetesStore) -> None:
    """As on a server of which no hub was the address: an installation names its Service."""
    for definition in crds.for_kubernetes():
        conversion = definition["spec"].get("conversion")
        if conversion is not None:
            client = {"url": None, "caBundle": None, **conversion["webhook"]["clientConfig"]}
            body = {"spec": {"conversion": {"webhook": {"clientConfig": client}}}}
            patch = Patch(type="merge", body=body)
            with suppress(NotFound):
                await store.patch(DEFINITIONS, definition["metadata"]["name"], patch, write=_WRITE)


async def _all(store: KubernetesStore, kind: ResourceKey) -> list[Stored]:
    try:
        return (await store.list(kind)).items
    except NotFound:
        return []  # no hub was here yet
