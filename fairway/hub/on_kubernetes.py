"""A hub whose objects are on a kube-apiserver: how it is reached, and what it must hold.

The hub's own API serves the kinds that come with Fairway. Roles are watched: a user who signs in at
the hub has the rights that the cluster's own RBAC objects give.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairway.api import crds
from fairway.api.errors import AlreadyExists, Forbidden, NotFound, Unavailable
from fairway.client.access import Access
from fairway.client.errors import ConfigError
from fairway.client.kubeconfig import access_of, from_service_account, read
from fairway.clock import Clock
from fairway.hub.backing import Backing
from fairway.kubeapi import KubeApi
from fairway.resources.catalogue import standard_catalogue
from fairway.schema.node import JsonObject
from fairway.server.access.identity import Identity, authenticated_identity
from fairway.server.access.rbac import Authorizer
from fairway.store.interface import BY_HUB, ResourceKey, Store, Stored
from fairway.store.keys import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    TOKEN_REVIEWS,
)
from fairway.store.kubernetes.admission import own_name
from fairway.store.kubernetes.creators import note_creators
from fairway.store.kubernetes.definitions import await_definitions, define
from fairway.store.kubernetes.deprecated import warn_of_deprecated
from fairway.store.kubernetes.held_back import hold_back
from fairway.store.kubernetes.moments import moment_of
from fairway.store.kubernetes.stamps import Stamps
from fairway.store.kubernetes.store import KubernetesStore
from fairway.store.kubernetes.submitters import note_submitters
from fairway.store.mirrors import Mirror, Name

_log = logging.getLogger(__name__)

_KIND_OF_ROLES = {
    ROLES: "Role",
    CLUSTER_ROLES: "ClusterRole",
    ROLE_BINDINGS: "RoleBinding",
    CLUSTER_ROLE_BINDINGS: "ClusterRoleBinding",
}
NAMESPACE = "fairway-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnKubernetes:
    """Which kube-apiserver keeps the objects of a hub."""

    kubeconfig: str | None = None  # None: the pod's own account, KUBECONFIG, or the home folder
    context: str = ""


def access_to(where: OnKubernetes) -> Access:
    """How to reach the server; never by the kubeconfig of a hub on this machine."""
    if where.kubeconfig:
        return access_of(read([Path(where.kubeconfig).expanduser()]), where.context)
    inside = from_service_account()
    if inside is not None and not where.context:
        return inside
    listed = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    files = [path for path in listed or [Path.home() / ".kube" / "config"] if path.exists()]
    if not files:
        raise ConfigError("no kubeconfig found: name the hub's cluster with --kubeconfig")
    return access_of(read(files), where.context)


@asynccontextmanager
async def backing_of(store: KubernetesStore, clock: Clock) -> AsyncIterator[Backing]:
    """The backing of a hub on a kube-apiserver, for as long as the context lasts."""
    catalogue = standard_catalogue()
    for definition in crds.definitions():
        catalogue.put_definition(definition)
    authorizer = Authorizer([])
    mirrors = [_follow(kind, store, authorizer, clock) for kind in _KIND_OF_ROLES]
    following = [asyncio.ensure_future(mirror.run()) for mirror in mirrors]

    try:
        yield Backing(
            store=store,
            catalogue=catalogue,
            authorizer=authorizer,
            find_uid=lambda kind, namespace, name: None,  # it signs no tokens of service accounts
            ready=lambda: {
                "store": ""
                if all(mirror.is_complete.is_set() for mirror in mirrors)
                else "roles are still being read"
            },
            observe=lambda metrics: None,
            gather=lambda metrics: None,
            end_watches=store.end_watches,
            moment=lambda: moment_of(store),
            reseal=_no_values,
            vouch=lambda token: _vouch(store, token),
            own_name=await own_name(store),
        )
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)


async def _no_values() -> int:
    """The server encrypts its own data, or does not."""
    return 0


async def _vouch(store: KubernetesStore, token: str) -> Identity | None:
    """The identity behind a token of the server, according to the server itself."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token},
    }
    try:
        status = msgspec.json.decode(await store.api.create(TOKEN_REVIEWS, body))["status"]
    except Forbidden as fault:
        _log.warning("tokens of the server cannot be used to sign in: %s", fault)
        return None
    if not status.get("authenticated"):
        return None
    user = status["user"]
    return authenticated_identity(
        user["username"], uid=user.get("uid", ""), groups=user.get("groups") or ()
    )


def _follow(kind: ResourceKey, store: Store, authorizer: Authorizer, clock: Clock) -> Mirror:
    """A mirror of one kind of role or binding that keeps an authorizer up to date."""
    mirror = Mirror(store, kind, clock=clock)

    def follow(name: Name, stored: Stored | None) -> None:
        if stored is None:
            authorizer.remove(_KIND_OF_ROLES[kind], name[1], name[0])
        else:
            authorizer.upsert(stored.object())

    mirror.followers.append(follow)
    return mirror


async def prepare_kubernetes(store: KubernetesStore, clock: Clock) -> None:
    """Makes what a hub needs on its server: our kinds, notes of creators, a namespace of its own.

    A hub that may not define kinds goes on if they are already defined.
    """
    definitions = crds.for_kubernetes()
    try:
        await define(store, definitions, clock=clock)
    except Forbidden:
        await _find(store, definitions, clock)
    await warn_of_deprecated(store, definitions)
    await hold_back(store)
    store.stamps = Stamps(
        natives_since=await note_submitters(store),
        workloads_since=await note_creators(store, clock=clock),
    )
    body: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    try:
        await store.create(NAMESPACES, body, write=BY_HUB)
    except AlreadyExists:
        return
    except Forbidden:
        await store.get(NAMESPACES, NAMESPACE)


async def _find(store: KubernetesStore, definitions: list[JsonObject], clock: Clock) -> None:
    try:
        await await_definitions(store, definitions, clock=clock)
    except NotFound as fault:
        raise Unavailable(
            f"the server does not know Fairway's kinds, and this hub may not define them: {fault}"
        ) from fault
    except Forbidden:
        return  # it may not even look; using the kinds will show


def open_kubernetes(where: OnKubernetes, clock: Clock) -> KubernetesStore:
    return KubernetesStore(KubeApi(access_to(where), clock))
