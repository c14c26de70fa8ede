"""Questions about rights and identities."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.errors import BadRequest, Invalid
from fairway.server.access import reviews
from fairway.server.access.bootstrap_roles import bootstrap_objects
from fairway.server.access.identity import authenticated_identity
from fairway.server.access.rbac import Authorizer
from fairway.server.access.service_accounts import ServiceAccountTokens
from fairway.server.access.tokens import Authenticator

JsonObject = dict[str, Any]
Parts = tuple[Authorizer, Authenticator, ServiceAccountTokens]
BOB = authenticated_identity("bob", uid="7", groups=["team"])


@pytest.fixture
def authorizer() -> Authorizer:
    view = {
        "kind": "RoleBinding",
        "metadata": {"name": "view", "namespace": "a"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "bob"}],
    }
    return Authorizer([*bootstrap_objects(), view])


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    folder = tmp_path_factory.mktemp("hub")
    accounts = ServiceAccountTokens(folder, lambda *_: "uid-1")
    return Authorizer(bootstrap_objects()), Authenticator(folder, accounts), accounts


def pods(verb: str, namespace: str = "a") -> JsonObject:
    return {"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": namespace}}


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        (pods("get"), True),
        (pods("delete"), False),
        (pods("get", "b"), False),
        ({"nonResourceAttributes": {"verb": "get", "path": "/version"}}, True),
        ({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, False),
        ({"nonResourceAttributes": {"verb": "get"}}, False),
    ],
)
def test_everybody_may_ask_what_they_may(
    authorizer: Authorizer, spec: JsonObject, allowed: bool
) -> None:
    review = {"kind": "SelfSubjectAccessReview", "spec": spec}
    answer = reviews.self_subject_access_review(review, BOB, authorizer)
    assert answer["status"]["allowed"] is allowed
    assert answer["spec"] == spec


def test_an_allowed_review_says_by_what(authorizer: Authorizer) -> None:
    answer = reviews.self_subject_access_review({"spec": pods("get")}, BOB, authorizer)
    assert answer["status"]["reason"].startswith('RBAC: allowed by RoleBinding "view/a"')


def test_a_review_of_another_takes_the_groups_it_is_given(authorizer: Authorizer) -> None:
    spec = pods("delete") | {"user": "eve", "groups": ["system:masters"]}
    assert reviews.subject_access_review({"spec": spec}, authorizer)["status"]["allowed"]
    spec = pods("delete") | {"user": "eve"}
    assert not reviews.subject_access_review({"spec": spec}, authorizer)["status"]["allowed"]


def test_a_local_review_stays_in_its_namespace(authorizer: Authorizer) -> None:
    review = {"spec": pods("get") | {"user": "bob"}}
    assert reviews.local_subject_access_review(review, "a", authorizer)["status"]["allowed"]
    with pytest.raises(Invalid, match=r"must match metadata\.namespace"):
        reviews.local_subject_access_review(review, "b", authorizer)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "exactly one of"),
        (pods("get") | {"nonResourceAttributes": {"path": "/"}}, "in combination with"),
    ],
)
def test_a_review_asks_one_question(authorizer: Authorizer, spec: JsonObject, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        reviews.self_subject_access_review({"spec": spec}, BOB, authorizer)


def test_a_review_of_nobody_is_refused(authorizer: Authorizer) -> None:
    with pytest.raises(Invalid, match="at least one of user or group"):
        reviews.subject_access_review({"spec": pods("get")}, authorizer)


def test_the_rules_review_lists_both_halves(authorizer: Authorizer) -> None:
    review = {"spec": {"namespace": "a"}}
    status = reviews.self_subject_rules_review(review, BOB, authorizer)["status"]
    assert any("workloads" in rule["resources"] for rule in status["resourceRules"])
    assert any("/version" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    assert status["incomplete"] is False
    with pytest.raises(BadRequest, match="no namespace"):
        reviews.self_subject_rules_review({"spec": {}}, BOB, authorizer)


def test_everybody_may_ask_who_they_are() -> None:
    answer = reviews.self_subject_review({"kind": "SelfSubjectReview"}, BOB)
    assert answer["status"]["userInfo"] == {
        "username": "bob",
        "uid": "7",
        "groups": ["team", "system:authenticated"],
    }


def whose(review: JsonObject, authenticator: Authenticator) -> JsonObject:
    found = authenticator.authenticate_for(*reviews.token_of(review))
    return reviews.token_review(review, found)


def test_a_token_review_tells_whose_token_it_is_and_keeps_it_to_itself(tmp_path: Path) -> None:
    accounts = ServiceAccountTokens(tmp_path, lambda *_: "uid-1")
    authenticator = Authenticator(tmp_path, accounts)
    token = accounts.answer({}, "team", "bot")["status"]["token"]
    for value, user in (
        (token, "system:serviceaccount:team:bot"),
        (authenticator.admin_token(), "admin"),
    ):
        answer = whose({"spec": {"token": value}}, authenticator)
        assert answer["status"]["authenticated"] is True
        assert answer["status"]["user"]["username"] == user
        assert answer["status"]["audiences"] == [accounts.issuer]
        assert value not in str(answer)
    answer = whose({"spec": {"token": "wrong"}}, authenticator)
    assert answer["status"] == {"user": {}, "error": "invalid bearer token"}
    with pytest.raises(BadRequest):
        whose({"spec": {}}, authenticator)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
_FIELDS = {
    "resourceAttributes": _json | st.dictionaries(st.sampled_from(["verb", "name"]), _json),
    "nonResourceAttributes": _json | st.dictionaries(st.sampled_from(["verb", "path"]), _json),
    "user": _json,
    "groups": _json,
    "namespace": _json,
    "token": _json,
    "audiences": _json,
    "expirationSeconds": _json,
    "boundObjectRef": _json | st.dictionaries(st.sampled_from(["kind", "name"]), _json),
}


@given(
    st.fixed_dictionaries({}, optional={"spec": _json})
    | st.fixed_dictionaries({"spec": st.fixed_dictionaries({}, optional=_FIELDS)})
)
def test_whatever_is_posted_is_answered_or_refused(parts: Parts, review: JsonObject) -> None:
    authorizer, authenticator, accounts = parts
    for answer in (
        lambda: reviews.self_subject_access_review(review, BOB, authorizer),
        lambda: reviews.subject_access_review(review, authorizer),
        lambda: reviews.local_subject_access_review(review, "a", authorizer),
        lambda: reviews.self_subject_rules_review(review, BOB, authorizer),
        lambda: reviews.self_subject_review(review, BOB),
        lambda: whose(review, authenticator),
        lambda: accounts.answer(review, "team", "bot"),
    ):
        with contextlib.suppress(BadRequest, Invalid):
            answer()
