"""Acting as somebody else."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.errors import BadRequest, Forbidden
from fairway.server.access.identity import Identity, authenticated_identity
from fairway.server.access.impersonation import impersonate
from fairway.server.access.rbac import Authorizer

BOSS = authenticated_identity("boss", groups=["system:masters"])
BOB = authenticated_identity("bob")
Headers = list[tuple[str, str]]

# sentence: (headers, identity)
IMPERSONATED: dict[str, tuple[Headers, Identity]] = {
    "nobody without a header": ([("Accept", "*/*")], BOSS),
    "a user, who is authenticated": (
        [("Impersonate-User", "eve")],
        Identity(user="eve", groups=("system:authenticated",)),
    ),
    "a user in the groups given": (
        [("impersonate-user", "eve"), ("Impersonate-Group", "a"), ("IMPERSONATE-GROUP", "b")],
        Identity(user="eve", groups=("a", "b", "system:authenticated")),
    ),
    "a service account, whose groups follow from its name": (
        [("Impersonate-User", "system:serviceaccount:team:bot")],
        Identity(
            user="system:serviceaccount:team:bot",
            groups=(
                "system:serviceaccounts",
                "system:serviceaccounts:team",
                "system:authenticated",
            ),
        ),
    ),
    "a user who is not authenticated": (
        [("Impersonate-User", "eve"), ("Impersonate-Group", "system:unauthenticated")],
        Identity(user="eve", groups=("system:unauthenticated",)),
    ),
    "the anonymous user": (
        [("Impersonate-User", "system:anonymous")],
        Identity(user="system:anonymous", groups=("system:unauthenticated",)),
    ),
    "a user with uid and more": (
        [
            ("Impersonate-User", "eve"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Extra-Acme.com%2Fproject", "x"),
            ("Impersonate-Extra-Scopes", "a"),
            ("Impersonate-Extra-Scopes", "b"),
        ],
        Identity(
            user="eve",
            uid="7",
            groups=("system:authenticated",),
            extra={"acme.com/project": ("x",), "scopes": ("a", "b")},
        ),
    ),
}


@pytest.mark.parametrize(("headers", "expected"), IMPERSONATED.values(), ids=IMPERSONATED)
def test_headers_name(headers: Headers, expected: Identity) -> None:
    assert impersonate(BOSS, headers, Authorizer().authorize) == expected


def authorizer_with(*rules: dict[str, Any]) -> Authorizer:
    return Authorizer(
        [
            {"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": list(rules)},
            {
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "r"},
                "roleRef": {"kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "User", "name": "bob"}],
            },
        ]
    )


USERS = {
    "verbs": ["impersonate"],
    "apiGroups": [""],
    "resources": ["users"],
    "resourceNames": ["eve"],
}
SCOPES = {
    "verbs": ["impersonate"],
    "apiGroups": ["authentication.k8s.io"],
    "resources": ["userextras/scopes"],
}


def test_the_right_to_be_one_user_is_enough_to_be_that_user() -> None:
    found = impersonate(BOB, [("Impersonate-User", "eve")], authorizer_with(USERS).authorize)
    assert found.user == "eve"


# sentence: (headers, message)
REFUSED: dict[str, tuple[Headers, str]] = {
    "not another user": (
        [("Impersonate-User", "ann")],
        'users "ann" is forbidden: User "bob" cannot impersonate resource "users" in API group ""',
    ),
    "not a group": (
        [("Impersonate-User", "eve"), ("Impersonate-Group", "system:masters")],
        'groups "system:masters" is forbidden',
    ),
    "not a service account": (
        [("Impersonate-User", "system:serviceaccount:team:bot")],
        'in the namespace "team"',
    ),
    "not a uid": ([("Impersonate-User", "eve"), ("Impersonate-Uid", "1")], "uids"),
    "not another extra": (
        [("Impersonate-User", "eve"), ("Impersonate-Extra-Other", "1")],
        "userextras/other",
    ),
}


@pytest.mark.parametrize(("headers", "message"), REFUSED.values(), ids=REFUSED)
def test_who_may_be_one_user_with_scopes_may_be(headers: Headers, message: str) -> None:
    with pytest.raises(Forbidden) as raised:
        impersonate(BOB, headers, authorizer_with(USERS, SCOPES).authorize)
    assert message in raised.value.message


@pytest.mark.parametrize("header", ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-A"])
def test_without_a_user_there_is_nobody_to_be(header: str) -> None:
    with pytest.raises(BadRequest, match="without impersonating a user"):
        impersonate(BOSS, [(header, "x")], Authorizer().authorize)


def test_header_bytes_that_are_no_text_can_still_be_refused_in_words() -> None:
    with pytest.raises(Forbidden) as raised:
        impersonate(BOB, [("Impersonate-User", "\udcff")], Authorizer().authorize)
    raised.value.message.encode()
