"""Impersonation, by the headers `Impersonate-User`, `-Group`, `-Uid` and `-Extra-*`.

Each name in the headers needs a right of its own: the right to impersonate a user is no right to
join a group. The sender of the request must hold these rights; afterwards the request counts as the
impersonated user's, and the audit log names both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import unquote

from fairway.api.errors import BadRequest
from fairway.server.access.identity import (
    ANONYMOUS_USER,
    AUTHENTICATED,
    UNAUTHENTICATED,
    Identity,
    service_account_groups,
    split_service_account,
)
from fairway.server.access.rbac import Decision, forbidden
from fairway.server.access.rbac_rules import Attributes, quote

_PREFIX = "impersonate-"
_EXTRA = "extra-"
_AUTHENTICATION = "authentication.k8s.io"


def impersonate(
    identity: Identity,
    headers: Iterable[tuple[str, str]],
    authorize: Callable[[Attributes], Decision],
) -> Identity:
    """The identity a request acts as: the sender's, or the one that the headers name."""
    wanted: dict[str, list[str]] = {}
    for header, value in headers:
        if header[:12].lower() == _PREFIX:
            # Header bytes that are not text would corrupt every log and response with them.
            text = value.encode(errors="surrogateescape").decode(errors="replace")
            wanted.setdefault(header[12:].lower(), []).append(text)
    if not wanted:
        return identity
    user = wanted.get("user", [""])[0]
    groups = wanted.get("group", [])
    uid = wanted.get("uid", [""])[0]
    extra = {
        unquote(key.removeprefix(_EXTRA)): tuple(values)
        for key, values in sorted(wanted.items())
        if key.startswith(_EXTRA)
    }
    if not user:
        if groups or uid or extra:
            raise BadRequest(f"requested {_show(wanted)} without impersonating a user name")
        return identity
    for attributes in _rights(identity, user, groups, uid, extra):
        decision = authorize(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)
    return Identity(user=user, uid=uid, groups=_groups(user, groups), extra=extra)


def _rights(
    identity: Identity, user: str, groups: list[str], uid: str, extra: dict[str, tuple[str, ...]]
) -> list[Attributes]:
    """Every right that the sender of the request needs for the impersonation."""

    def right(
        resource: str, name: str, *, namespace: str = "", group: str = "", subresource: str = ""
    ) -> Attributes:
        return Attributes(
            user=identity.user,
            groups=identity.groups,
            verb="impersonate",
            group=group,
            resource=resource,
            subresource=subresource,
            namespace=namespace,
            name=name,
        )

    account = split_service_account(user)
    rights = [
        right("serviceaccounts", account[1], namespace=account[0])
        if account
        else right("users", user)
    ]
    rights += [right("groups", group) for group in groups]
    rights += [
        right("userextras", value, group=_AUTHENTICATION, subresource=key)
        for key, values in extra.items()
        for value in values
    ]
    if uid:
        rights.append(right("uids", uid, group=_AUTHENTICATION))
    return rights


def _groups(user: str, given: list[str]) -> tuple[str, ...]:
    """The groups asked for, else those of a service account.

    One of `system:authenticated` and `system:unauthenticated` is always among them.
    """
    account = split_service_account(user)
    groups = tuple(given) or (service_account_groups(account[0]) if account else ())
    if user == ANONYMOUS_USER:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    if AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    return (*groups, AUTHENTICATED)


def _show(wanted: dict[str, list[str]]) -> str:
    pairs = (f"{key}={quote(value)}" for key, values in wanted.items() for value in values)
    return "[" + ", ".join(pairs) + "]"
