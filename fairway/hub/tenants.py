"""Whether a hub has tenants: users besides its administrators."""

from __future__ import annotations

from collections.abc import Iterable

from fairway.agent.join.rights import AGENT, GUEST
from fairway.api.names import work_namespace
from fairway.server.access.bootstrap_roles import bootstrap_objects
from fairway.server.access.identity import MASTERS, Identity, service_account_user
from fairway.server.access.rbac import Authorizer

_AGENTS = service_account_user(work_namespace(""), "").removesuffix(":")


def tenant_among(identities: Iterable[Identity], bound: Iterable[tuple[str, str, str]]) -> str:
    """Names a tenant: a user with a token, or to whom a role is bound; empty if there is none.

    Administrators are no tenants, since a hub's own rights are theirs. Nor are agents, which submit
    nothing.
    """
    for identity in identities:
        if MASTERS not in identity.groups:
            return f"the user {identity.user} has a token"
    own = set(Authorizer(bootstrap_objects()).bound())
    for binding, kind, name in sorted(set(bound) - own):
        if name != MASTERS and not _is_agent(name):
            return f"the binding {binding.removeprefix('/')} gives rights to the {kind} {name}"
    return ""


def _is_agent(user: str) -> bool:
    return user.startswith(_AGENTS) and user.rpartition(":")[2] in (AGENT, GUEST)
