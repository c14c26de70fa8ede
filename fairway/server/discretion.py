"""What a caller may know of others, by their rights; `api/discretion` says what is made of it."""

from __future__ import annotations

from fairway.api.discretion import MayLook, everywhere
from fairway.api.meta import GROUP
from fairway.server.identity import Identity
from fairway.server.rbac import Authorizer
from fairway.server.rbac_rules import Attributes

_EVERY = ""  # namespace


def may_look(authorizer: Authorizer, identity: Identity, *, within: str = "") -> MayLook:
    """Whether a caller may list the workloads of a namespace.

    `within` is a namespace in which the caller was let in already, by the right of the question.
    """

    def lists(namespace: str) -> bool:
        wanted = Attributes(
            user=identity.user,
            groups=identity.groups,
            verb="list",
            group=GROUP,
            resource="workloads",
            namespace=namespace,
        )
        return authorizer.authorize(wanted).allowed

    if lists(_EVERY):
        return everywhere
    return lambda namespace: namespace == within or lists(namespace)
