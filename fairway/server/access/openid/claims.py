"""From the claims of a token to an identity.

This works as in kube-apiserver, with one exception: names that begin with `system:` are refused,
whatever the prefix. kube-apiserver would accept them, and a claim that people may choose themselves
could make a user an administrator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairway.server.access.identity import Identity, authenticated_identity
from fairway.server.access.openid.settings import Settings

_RESERVED = "system:"
_GROUPS_MOST = 1_000
_NAME_LENGTH_MOST = 1_024


class TokenRefused(Exception):
    """A token that is not accepted; the message says why and does not show the token."""


def identity_of(claims: Mapping[str, Any], settings: Settings) -> Identity:
    """The identity that the claims of a verified token name."""
    _demand(claims, settings)
    user = _name(settings.prefix + _text(claims, settings.username_claim))
    if settings.username_claim == "email" and claims.get("email_verified", True) is not True:
        raise TokenRefused(
            "the email address is not verified: the claim email_verified is not true"
        )
    groups = [_name(settings.groups_prefix + group) for group in _groups(claims, settings)]
    return authenticated_identity(user, groups=groups)


def _demand(claims: Mapping[str, Any], settings: Settings) -> None:
    for claim, wanted in settings.required_claims.items():
        if claim not in claims:
            raise TokenRefused(f"the claim {claim} is required and missing")
        if claims[claim] != wanted:
            raise TokenRefused(f"the claim {claim} is required to be {wanted!r} and is not")


def _text(claims: Mapping[str, Any], claim: str) -> str:
    known = claims.get(claim)
    if not isinstance(known, str) or not known:
        raise TokenRefused(f"the claim {claim}, which is to name the user, is missing or no text")
    return known


def _groups(claims: Mapping[str, Any], settings: Settings) -> list[str]:
    result = claims.get(settings.groups_claim) if settings.groups_claim else None
    if result is None:
        return []
    many = [result] if isinstance(result, str) else result
    if not isinstance(many, list) or not all(isinstance(item, str) for item in many):
        raise TokenRefused(
            f"the claim {settings.groups_claim} is neither a text nor a list of texts"
        )
    if len(many) > _GROUPS_MOST:
        raise TokenRefused(f"the claim {settings.groups_claim} has more than {_GROUPS_MOST} groups")
    return [item for item in many if item]


def _name(name: str) -> str:
    if name.startswith(_RESERVED):
        raise TokenRefused(f"the name {name!r} begins with {_RESERVED}, which is Kubernetes' own")
    if len(name) > _NAME_LENGTH_MOST:
        raise TokenRefused(f"a name is longer than {_NAME_LENGTH_MOST} characters")
    return name
