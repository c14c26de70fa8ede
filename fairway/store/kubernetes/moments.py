"""Everything of Fairway on a server at one moment, for a backup.

A server keeps earlier states for some minutes, so all kinds are listed at the version of the first
list: one moment, while everyone goes on writing. Works and reports are left out, since agents bring
them back; so are native objects, which are the cluster's own. Of Secrets, a hub may read those that
it needs itself, one by one.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

from fairway.api.errors import Forbidden, NotFound
from fairway.api.kinds import KINDS
from fairway.api.names import AUTHORITY
from fairway.schema.node import JsonObject
from fairway.store.backup_lines import Item, Moment
from fairway.store.interface import Page, ResourceKey, Stored
from fairway.store.keys import CLUSTERS, FLEETS, NAMESPACES, REPORTS, SECRETS, WORKS
from fairway.store.kubernetes.store import KubernetesStore

_log = logging.getLogger(__name__)

NAMESPACE = "fairway-system"
_PAGE = 500
_BROUGHT_BACK = (WORKS, REPORTS)

OURS = tuple(
    key
    for kind in KINDS
    if (key := ResourceKey(kind.struct.api_group, kind.stored, kind.plural)) not in _BROUGHT_BACK
)


async def moment_of(store: KubernetesStore) -> Moment:
    """The objects of Fairway, their namespaces, and the Secrets that a hub itself reads."""
    version = (await store.list(FLEETS, page=Page(limit=1))).version
    return Moment(store="kubernetes", version=version, items=_items(store, version))


async def _items(store: KubernetesStore, version: str) -> AsyncIterator[Item]:
    objects: list[Item] = []
    secrets = {(NAMESPACE, AUTHORITY)}
    for kind in OURS:
        async for item, body in _list(store, kind, version):
            objects.append(item)
            if kind == CLUSTERS and (named := _kubeconfig_of(body)) is not None:
                secrets.add(named)
    for namespace, name in sorted(secrets):
        try:
            stored = await store.get(SECRETS, name, namespace)
        except NotFound:
            continue
        except Forbidden as fault:
            _log.warning("the backup lacks a Secret that this hub may not read: %s", fault)
            continue
        objects.append(_item(SECRETS, stored, stored.object()))
    spaces = {NAMESPACE, *(item.namespace for item in objects)}
    async for item, _ in _list(store, NAMESPACES, version):
        if item.name in spaces:
            yield item
    for item in objects:
        yield item


async def _list(
    store: KubernetesStore, kind: ResourceKey, version: str
) -> AsyncIterator[tuple[Item, JsonObject]]:
    page = Page(limit=_PAGE, version=version, match="Exact")
    while True:
        listing = await store.list(kind, page=page)
        for stored in listing.items:
            body = stored.object()
            yield _item(kind, stored, body), body
        if not listing.continue_from:
            return
        page = Page(limit=_PAGE, continue_from=listing.continue_from)


def _item(kind: ResourceKey, stored: Stored, body: JsonObject) -> Item:
    metadata = body["metadata"]
    return Item(
        group=kind.group,
        plural=kind.plural,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        value=stored.raw,
    )


def _kubeconfig_of(cluster: JsonObject) -> tuple[str, str] | None:
    """The Secret by which the hub reaches a cluster."""
    named = ((cluster.get("spec") or {}).get("kubernetes") or {}).get("kubeconfig")
    return (named["namespace"], named["name"]) if named else None
