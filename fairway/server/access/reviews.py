"""Answers to questions about rights and identities: the review kinds of the API.

A review is posted and answered at once, never stored: the object comes back with its status filled.
Each function takes the object as posted and returns the answered one.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from fairway.api.errors import BadRequest, FieldError, Invalid, invalid
from fairway.server.access.identity import Identity
from fairway.server.access.rbac import Authorizer
from fairway.server.access.rbac_rules import Attributes, Rule

JsonObject = dict[str, Any]
_GROUP = "authorization.k8s.io"
_Spec = TypeVar("_Spec")


class _ResourceAttributes(msgspec.Struct):
    verb: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _PathAttributes(msgspec.Struct):
    verb: str = ""
    path: str = ""


class _AccessSpec(msgspec.Struct, rename="camel"):
    resource_attributes: _ResourceAttributes | None = None
    non_resource_attributes: _PathAttributes | None = None
    user: str | None = None
    groups: list[str] | None = None
    uid: str | None = None


class _RulesSpec(msgspec.Struct):
    namespace: str = ""


class _TokenSpec(msgspec.Struct):
    token: str = ""
    audiences: list[str] | None = None


def self_subject_access_review(
    review: JsonObject, identity: Identity, authorizer: Authorizer
) -> JsonObject:
    """Whether the caller may do something."""
    spec = _spec(review, _AccessSpec)
    _refuse("SelfSubjectAccessReview", _attribute_faults(spec))
    return _answer(review, spec, identity, authorizer)


def subject_access_review(review: JsonObject, authorizer: Authorizer) -> JsonObject:
    """Whether a subject may do something."""
    spec = _spec(review, _AccessSpec)
    _refuse("SubjectAccessReview", [*_attribute_faults(spec), *_subject_faults(spec)])
    return _answer(review, spec, _subject(spec), authorizer)


def local_subject_access_review(
    review: JsonObject, namespace: str, authorizer: Authorizer
) -> JsonObject:
    """Whether a subject may do something in this namespace."""
    spec = _spec(review, _AccessSpec)
    faults = [*_attribute_faults(spec), *_subject_faults(spec)]
    resource, path = spec.resource_attributes, spec.non_resource_attributes
    if resource and resource.namespace != namespace:
        field = "spec.resourceAttributes.namespace"
        faults.append(invalid(field, resource.namespace, "must match metadata.namespace"))
    if path is not None:
        message = "disallowed on this kind of request"
        faults.append(invalid("spec.nonResourceAttributes", path, message))
    _refuse("LocalSubjectAccessReview", faults)
    return _answer(review, spec, _subject(spec), authorizer)


def self_subject_rules_review(
    review: JsonObject, identity: Identity, authorizer: Authorizer
) -> JsonObject:
    """What the caller may do in a namespace."""
    namespace = _spec(review, _RulesSpec).namespace
    if not namespace:
        raise BadRequest("no namespace on request")
    rules = authorizer.rules_for(identity, namespace)
    status = {
        "resourceRules": [_part(rule, "resources") for rule in rules if rule.resources],
        "nonResourceRules": [_part(rule, "nonResourceURLs") for rule in rules if rule.urls],
        "incomplete": False,
    }
    return {**review, "status": status}


def self_subject_review(review: JsonObject, identity: Identity) -> JsonObject:
    """The identity of the caller."""
    return {**review, "status": {"userInfo": identity.user_info()}}


def token_of(review: JsonObject) -> tuple[str, tuple[str, ...]]:
    """The token under review, and the audiences to check it for."""
    spec = _spec(review, _TokenSpec)
    if not spec.token:
        raise BadRequest("token is required for TokenReview in authentication")
    return spec.token, tuple(spec.audiences or ())


def token_review(
    review: JsonObject, identities: tuple[Identity, tuple[str, ...]] | None
) -> JsonObject:
    """The identity of a token. The response does not repeat the token."""
    spec = _spec(review, _TokenSpec)
    status: JsonObject = {"user": {}}
    if identities is not None:
        identity, common = identities
        status = {"authenticated": True, "user": identity.user_info()}
        if common:
            status["audiences"] = list(common)
    else:
        status["error"] = "invalid bearer token"
    kept = {"audiences": spec.audiences} if spec.audiences else {}
    return {**review, "spec": kept, "status": status}


def _answer(
    review: JsonObject, spec: _AccessSpec, identity: Identity, authorizer: Authorizer
) -> JsonObject:
    decision = authorizer.authorize(_attributes(spec, identity))
    status: JsonObject = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return {**review, "status": status}


def _attributes(spec: _AccessSpec, identity: Identity) -> Attributes:
    user, groups = identity.user, identity.groups
    path = spec.non_resource_attributes
    if path is not None:
        # "*" as a path matches what an empty path would: only the rule for all paths.
        return Attributes(user=user, groups=groups, verb=path.verb, path=path.path or "*")
    asked = spec.resource_attributes or _ResourceAttributes()
    return Attributes(user=user, groups=groups, **msgspec.structs.asdict(asked))


def _subject(spec: _AccessSpec) -> Identity:
    # The groups are taken as given: the caller says which groups the subject is in.
    return Identity(user=spec.user or "", uid=spec.uid or "", groups=tuple(spec.groups or ()))


def _attribute_faults(spec: _AccessSpec) -> list[FieldError]:
    resource, path = spec.resource_attributes, spec.non_resource_attributes
    if resource is not None and path is not None:
        message = "cannot be specified in combination with resourceAttributes"
        return [invalid("spec.nonResourceAttributes", path, message)]
    if resource is None and path is None:
        message = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid("spec.resourceAttributes", None, message)]
    return []


def _subject_faults(spec: _AccessSpec) -> list[FieldError]:
    if spec.user or spec.groups:
        return []
    return [invalid("spec.user", "", "at least one of user or group must be specified")]


def _part(rule: Rule, half: str) -> JsonObject:
    """The part of a rule on resources, or the part on paths."""
    keys = {
        "resources": ("verbs", "apiGroups", "resources", "resourceNames"),
        "nonResourceURLs": ("verbs", "nonResourceURLs"),
    }[half]
    return {key: value for key, value in rule.raw().items() if key in keys}


def _spec(review: JsonObject, form: type[_Spec]) -> _Spec:
    """The spec in its typed form; a client may have posted anything."""
    try:
        return msgspec.convert(review.get("spec") or {}, form)
    except msgspec.ValidationError as error:
        raise BadRequest(f"the spec cannot be understood: {error}") from None


def _refuse(kind: str, faults: list[FieldError]) -> None:
    if faults:
        raise Invalid.of(kind, _GROUP, "", faults)
