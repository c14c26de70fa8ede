"""What a caller may know of others, by their rights; `api/discretion` says what is made of it.

Some kinds tell of everybody and are needed by everybody. Of these there is a right to a part, which
is written like one to a subresource: `clusterreports/nodes` lets somebody get, list and watch
reports, in which works of others have no name (`report_parts`). Who may read the kind sees it
whole. A kube-apiserver that keeps the objects of a hub knows no such part, and refuses.
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

    `within` is a namespace in which the caller was let in already, by the right of the question.
    """

    def lists(namespace: str) -> bool:
        return authorizer.authorize(_listing(identity, namespace)).allowed

    if lists(_EVERY):
        return everywhere
    return lambda namespace: namespace == within or lists(namespace)


def access_of(authorizer: Authorizer, identity: Identity) -> JsonObject:
    """What a caller may see, for a page that would rather not ask what is refused.

    `namespaces` are those whose workloads they may list, unless they may list `all`; `rules` are
    what they hold over all namespaces and in none.
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
    """The right to a part of what is wanted; None: there is no such part."""
    part = _PARTS.get((wanted.group, wanted.resource))
    if part is None or wanted.subresource or wanted.verb not in _READ:
        return None
    return msgspec.structs.replace(wanted, subresource=part)


class PartsShown:
    """Objects as those may see them who have a right to a part."""

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
        """What all replicas of a hub know, now and after a restart, and no tenant: a watch that
        goes on at another must find works under the same words."""
        try:
            result = (await self._store.get(NAMESPACES, _SYSTEM)).object()
        except ApiError:
            return secrets.token_bytes()
        return str(result["metadata"]["uid"]).encode()
