"""The backing of a hub's API and controllers: a store, and what the API needs beyond it.

The embedded store knows its kinds, roles and accounts itself; see `on_kubernetes` for the other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from fairway.api.errors import NotFound
from fairway.resources.catalogue import Catalogue
from fairway.server.access.rbac import Authorizer
from fairway.server.access.service_accounts import FindUid
from fairway.server.access.token_review import Vouch
from fairway.server.metrics import Metrics
from fairway.store.backup_lines import Moment, in_turns
from fairway.store.embedded.history import Change
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import BY_HUB, Patch, Store
from fairway.store.keys import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    RBAC,
    ROLE_BINDINGS,
    ROLES,
)

_ROLES = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
# Without the name of the folder: everybody may ask whether a hub is ready.
_FULL_DISK = "it is full; what was written before can be read, and nothing can be written"
_UID_KINDS = {"ServiceAccount": "serviceaccounts", "Pod": "pods", "Secret": "secrets"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """A store, and what the API needs beyond its interface."""

    store: Store
    catalogue: Catalogue
    authorizer: Authorizer
    find_uid: FindUid
    ready: Callable[[], dict[str, str]]  # by part: why it is not ready, or empty
    observe: Callable[[Metrics], None]  # called once with the metrics
    gather: Callable[[Metrics], None]  # called before metrics are read
    end_watches: Callable[[], Awaitable[None]]
    moment: Callable[[], Awaitable[Moment]]  # everything in the store, for a backup
    reseal: Callable[[], Awaitable[int]]  # encrypts the store with the current key
    vouch: Vouch | None = None  # checks tokens that the hub did not issue
    own_name: str = ""  # by which a server that keeps the objects knows the hub


def embedded_backing(store: EmbeddedStore) -> Backing:
    """The backing of a hub in one process."""

    def find_uid(kind: str, namespace: str, name: str) -> str | None:
        return store.uid_of(("", _UID_KINDS.get(kind, "")), (namespace, name))

    def gather(metrics: Metrics) -> None:
        metrics.set_objects(store.counts())
        metrics.set_version(store.writer.published)

    return Backing(
        store=store,
        catalogue=store.catalogue,
        authorizer=_follow_roles(store),
        find_uid=find_uid,
        ready=lambda: {
            "store": "" if store.writer.is_open else "it is shutting down",
            "disk": "" if store.writer.has_room else _FULL_DISK,
        },
        observe=lambda metrics: store.writer.figures.observers.append(metrics.batch_committed),
        gather=gather,
        end_watches=store.end_watches,
        moment=lambda: embedded_moment(store),
        reseal=store.reseal,
    )


async def embedded_moment(store: EmbeddedStore) -> Moment:
    version, items = store.moment()
    return Moment(store="embedded", version=str(version), items=in_turns(items))


def _follow_roles(store: EmbeddedStore) -> Authorizer:
    """An authorizer that knows every role and binding as soon as it is on disk."""
    objects = [body for kind in _ROLES for body in store.bodies((kind.group, kind.plural))]
    authorizer = Authorizer(objects)

    def follow(change: Change) -> None:
        if change.kind[0] != RBAC:
            return
        body = change.record.body()
        if change.is_removed:
            namespace, name = change.record.name
            authorizer.remove(body["kind"], name, namespace)
        else:
            authorizer.upsert(body)
        if body["kind"] == "ClusterRole":
            store.run(_write_aggregations(store, authorizer))

    store.followers.append(follow)
    store.run(_write_aggregations(store, authorizer))
    return authorizer


async def _write_aggregations(store: Store, authorizer: Authorizer) -> None:
    """Writes the gathered rules of aggregated roles to the roles, for people to see."""
    for role in authorizer.unwritten_aggregations():
        patch = Patch(type="merge", body={"rules": role["rules"]})
        with suppress(NotFound):  # deleted meanwhile
            await store.patch(CLUSTER_ROLES, role["metadata"]["name"], patch, write=BY_HUB)
