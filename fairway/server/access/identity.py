"""Who makes a request.

Every request has an identity: a user name, its groups, and whatever extra the authenticator added.
Names that begin with `system:` are those of Kubernetes, so that its role bindings work here
unchanged. An identity holds no token: it can be shown and logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
ANONYMOUS_USER = "system:anonymous"
SERVICE_ACCOUNTS = "system:serviceaccounts"
_SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user, to which roles can be bound."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def user_info(self) -> dict[str, Any]:
        """The identity as a `UserInfo` of the API; empty fields are left out."""
        info: dict[str, Any] = {"username": self.user}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


ANONYMOUS = Identity(user=ANONYMOUS_USER, groups=(UNAUTHENTICATED,))


def authenticated_identity(
    user: str, *, uid: str = "", groups: Iterable[str] = (), extra: Mapping[str, Any] | None = None
) -> Identity:
    """An authenticated identity: it is in the group `system:authenticated`."""
    named = tuple(dict.fromkeys(group for group in groups if group))
    if AUTHENTICATED not in named:
        named = (*named, AUTHENTICATED)
    return Identity(user=user, uid=uid, groups=named, extra=extra or {})


def service_account_user(namespace: str, name: str) -> str:
    return f"{_SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, str]:
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")


def split_service_account(user: str) -> tuple[str, str] | None:
    """The namespace and name in a service account's user name, or None for any other user."""
    if not user.startswith(_SERVICE_ACCOUNT_PREFIX):
        return None
    namespace, _, name = user.removeprefix(_SERVICE_ACCOUNT_PREFIX).partition(":")
    return (namespace, name) if namespace and name and ":" not in name else None
