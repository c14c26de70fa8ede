"""What a caller may see of other tenants, by its rights; `api/discretion` applies it.

Some kinds show all tenants, and all tenants need them. For these there is a right to a part,
written like a right to a subresource: `clusterreports/nodes` lets a caller get, list and watch
reports in which works of other tenants have no name (`report_parts`). A caller that may read the
kind sees it whole. A kube-apiserver that stores a hub's objects knows no such part, and refuses.
"""

from __future__ import annotations

import secrets

import msgspec

from fairway.api.discretion import MayLook, everywhere
from fairway.api.errors import ApiError
from fairway.api.meta import GROUP
from fairway.schema.node import JsonObject
from fairway.server.access.identity import Identity
from fairway.server.access.rbac import Authorizer
from fairway.server.access.rbac_rules import Attributes
from fairway.server.objects import Call
from fairway.server.wire.report_parts import Alias, aliases, nodes_alone
from fairway.server.wire.watches import Show
from fairway.store.interface import Store, Stored
from fairway.store.keys import NAMESPACES

_PARTS = {(GROUP, "clusterreports"): "nodes"}
_READ = ("get", "list", "watch")
_EVERY = ""  # namespace
_SYSTEM = "fairway-system"

_encode = msgspec.json.Encoder().encode


def may_look(authorizer: Authorizer, identity: Identity, *, within: str = "") -> MayLook:
    """Whether a caller may list the workloads of a namespace.

    `within` is a namespace in which the right to the question has already admitted the caller.
    """

    def lists(namespace: str) -> bool:
        return authorizer.authorize(_listing(identity, namespace)).allowed

    if lists(_EVERY):
        return everywhere
    return lambda namespace: namespace == within or lists(namespace)


def access_of(authorizer: Authorizer, identity: Identity) -> JsonObject:
    """What a caller may see, so that the page sends no requests that would be refused.

    `namespaces` are those whose workloads the caller may list, unless it may list `all`; `rules`
    are those that it holds cluster-wide.
    """
    may = may_look(authorizer, identity)
    is_all = may is everywhere
    held = authorizer.rules_for(identity, _EVERY)
    return {
        "all": is_all,
        "namespaces": [] if is_all else [*filter(may, authorizer.namespaces_of(identity))],
        "rules": [rule.raw() for rule in held if rule.resources],
    }


def _listing(identity: Identity, namespace: str) -> Attributes:
    return Attributes(
        user=identity.user,
        groups=identity.groups,
        verb="list",
        group=GROUP,
        resource="workloads",
        namespace=namespace,
    )


def part_of(wanted: Attributes) -> Attributes | None:
    """The attributes of a request for a part of what is wanted; None: there is no such part."""
    part = _PARTS.get((wanted.group, wanted.resource))
    if part is None or wanted.subresource or wanted.verb not in _READ:
        return None
    return msgspec.structs.replace(wanted, subresource=part)


class PartsShown:
    """Objects as a caller with a right to only a part may see them."""

    def __init__(self, store: Store, authorizer: Authorizer) -> None:
        self._store = store
        self._authorizer = authorizer
        self._alias: Alias | None = None

    async def __call__(self, call: Call) -> Show | None:
        if not call.is_in_part:
            return None
        may = may_look(self._authorizer, call.identity)
        alias = self._alias = self._alias or aliases(await self._secret())
        return lambda stored: Stored(_encode(nodes_alone(stored.object(), may, alias)))

    async def _secret(self) -> bytes:
        """A secret that all replicas of a hub share, also after a restart, and no tenant knows.

        A watch that resumes at another replica must find works under the same aliases. The secret
        is random if the system namespace cannot be read.
        """
        try:
            result = (await self._store.get(NAMESPACES, _SYSTEM)).object()
        except ApiError:
            return secrets.token_bytes()
        return str(result["metadata"]["uid"]).encode()
