"""Nobody hands out a right that they do not hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.errors import Forbidden, NotFound
from fairway.server.access import escalation
from fairway.server.access.bootstrap_roles import bootstrap_objects
from fairway.server.access.identity import Identity, authenticated_identity
from fairway.server.access.rbac import GROUP, Authorizer
from fairway.server.access.rbac_rules import Rule, uncovered_rules

JsonObject = dict[str, Any]
BOB = authenticated_identity("bob", groups=["team"])


def rule(verbs: str, resources: str, group: str = "", names: str = "") -> JsonObject:
    made: JsonObject = {
        "verbs": verbs.split(),
        "apiGroups": [group],
        "resources": resources.split(),
    }
    return made | ({"resourceNames": names.split()} if names else {})


def urls(*paths: str) -> JsonObject:
    return {"verbs": ["get"], "nonResourceURLs": list(paths)}


def cluster_role(name: str, *rules: JsonObject) -> JsonObject:
    return {"kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}


def binding(role: str, user: str = "bob", namespace: str = "") -> JsonObject:
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": f"{role}-{user}", "namespace": namespace},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user}],
    }


def holding(*rules: JsonObject) -> Authorizer:
    return Authorizer([cluster_role("held", *rules), binding("held")])


# sentence: (rule held, rule granted, covered)
COVERING: dict[str, tuple[JsonObject, JsonObject, bool]] = {
    "the same rule": (rule("get", "pods"), rule("get", "pods"), True),
    "one verb of two": (rule("get list", "pods"), rule("list", "pods"), True),
    "one verb more": (rule("get", "pods"), rule("get list", "pods"), False),
    "every verb by a star": (rule("*", "pods"), rule("anything", "pods"), True),
    "a star by many verbs": (rule("get list watch", "pods"), rule("*", "pods"), False),
    "another group": (rule("get", "jobs", "batch"), rule("get", "jobs", "apps"), False),
    "a subresource by a star": (rule("get", "*"), rule("get", "pods/log"), True),
    "a subresource by its kind": (rule("get", "pods"), rule("get", "pods/log"), False),
    "a subresource of every kind": (rule("get", "*/log"), rule("get", "pods/log"), True),
    "a name within every name": (rule("get", "pods"), rule("get", "pods", names="x"), True),
    "every name by some": (rule("get", "pods", names="x"), rule("get", "pods"), False),
    "a listed name": (rule("get", "pods", names="x y"), rule("get", "pods", names="y"), True),
    "a name that is not": (rule("get", "pods", names="x"), rule("get", "pods", names="y"), False),
    "a path below": (urls("/x/*"), urls("/x/y"), True),
    "a shorter path": (urls("/x/*"), urls("/*"), False),
    "a path by resources": (rule("get", "*", "*"), urls("/x"), False),
}


@pytest.mark.parametrize(("held", "granted", "covered"), COVERING.values(), ids=COVERING)
def test_a_held_rule_covers(held: JsonObject, granted: JsonObject, covered: bool) -> None:
    authorizer = holding(held)
    if covered:
        escalation.confirm(authorizer, BOB, cluster_role("new", granted))
    else:
        with pytest.raises(Forbidden):
            escalation.confirm(authorizer, BOB, cluster_role("new", granted))


def test_the_refusal_says_who_and_what_is_missing() -> None:
    paths = {"verbs": ["get", "post"], "nonResourceURLs": ["/x"]}
    wanted = cluster_role("new", rule("get list", "pods secrets"), paths)
    with pytest.raises(Forbidden) as raised:
        escalation.confirm(holding(rule("get", "pods")), BOB, wanted)
    assert raised.value.message == (
        f'clusterroles.{GROUP} "new" is forbidden: user "bob" '
        '(groups=["team" "system:authenticated"]) is attempting to grant RBAC permissions not '
        "currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["get"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["post"]}'
    )
    assert raised.value.details == {"name": "new", "group": GROUP, "kind": "clusterroles"}


def test_rights_add_up_over_rules() -> None:
    authorizer = holding(rule("get", "pods"), rule("list", "pods"))
    escalation.confirm(authorizer, BOB, cluster_role("new", rule("get list", "pods")))


def test_masters_grant_anything() -> None:
    root = Identity(user="root", groups=("system:masters",))
    escalation.confirm(Authorizer(), root, cluster_role("new", rule("*", "*", "*")))


def test_who_may_escalate_roles_grants_anything() -> None:
    authorizer = holding(rule("escalate", "clusterroles", GROUP))
    escalation.confirm(authorizer, BOB, cluster_role("new", rule("*", "*", "*")))


def test_who_may_escalate_one_role_may_not_make_another() -> None:
    authorizer = holding(rule("escalate", "clusterroles", GROUP, names="new"))
    wanted = cluster_role("new", rule("*", "*", "*"))
    escalation.confirm(authorizer, BOB, wanted, old=cluster_role("new"), request_name="new")
    with pytest.raises(Forbidden):
        escalation.confirm(authorizer, BOB, wanted)


def test_an_aggregated_role_takes_every_right_there_is() -> None:
    wanted = cluster_role("new") | {"aggregationRule": {"clusterRoleSelectors": [{}]}}
    with pytest.raises(Forbidden, match="must have cluster-admin privileges"):
        escalation.confirm(holding(rule("get update patch", "*", "*")), BOB, wanted)
    with pytest.raises(Forbidden, match="must have cluster-admin privileges"):
        escalation.confirm(Authorizer(), BOB, cluster_role("new"), old=wanted)
    escalation.confirm(holding(rule("*", "*", "*")), BOB, wanted)


def test_garbage_collection_may_write_a_role_it_could_not_grant() -> None:
    old = cluster_role("new", rule("get", "secrets"))
    collected = old | {"metadata": {"name": "new", "finalizers": [], "ownerReferences": []}}
    escalation.confirm(Authorizer(), BOB, collected, old=old, request_name="new")
    renamed = old | {"metadata": {"name": "new", "labels": {"a": "b"}}}
    with pytest.raises(Forbidden):
        escalation.confirm(Authorizer(), BOB, renamed, old=old, request_name="new")


def test_a_binding_takes_the_rights_of_its_role() -> None:
    authorizer = holding(rule("get", "pods"))
    authorizer.upsert(cluster_role("small", rule("get", "pods")))
    authorizer.upsert(cluster_role("large", rule("get", "secrets")))
    escalation.confirm(authorizer, BOB, binding("small", "eve", "a"), namespace="a")
    with pytest.raises(Forbidden, match="secrets"):
        escalation.confirm(authorizer, BOB, binding("large", "eve", "a"), namespace="a")


def test_who_may_bind_a_role_need_not_hold_its_rights() -> None:
    authorizer = holding(rule("bind", "clusterroles", GROUP, names="large"))
    authorizer.upsert(cluster_role("large", rule("get", "secrets")))
    authorizer.upsert(cluster_role("other", rule("get", "secrets")))
    escalation.confirm(authorizer, BOB, binding("large", "eve"))
    with pytest.raises(Forbidden):
        escalation.confirm(authorizer, BOB, binding("other", "eve"))


def test_the_right_to_bind_in_one_namespace_ends_there() -> None:
    authorizer = Authorizer([cluster_role("large", rule("get", "secrets"))])
    authorizer.upsert(cluster_role("binder", rule("bind", "clusterroles", GROUP)))
    authorizer.upsert(binding("binder", "bob", "a"))
    escalation.confirm(authorizer, BOB, binding("large", "eve", "a"), namespace="a")
    with pytest.raises(Forbidden):
        escalation.confirm(authorizer, BOB, binding("large", "eve", "b"), namespace="b")
    with pytest.raises(Forbidden):
        escalation.confirm(authorizer, BOB, binding("large", "eve"))


def test_a_binding_to_a_role_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound, match=f'clusterrolebindings.{GROUP} "gone" not found'):
        escalation.confirm(Authorizer(), BOB, binding("gone", "eve"))


def test_an_admin_of_a_namespace_hands_out_edit_there_and_no_more() -> None:
    authorizer = Authorizer([*bootstrap_objects(), binding("admin", "bob", "a")])
    escalation.confirm(authorizer, BOB, binding("edit", "eve", "a"), namespace="a")
    escalation.confirm(authorizer, BOB, binding("admin", "eve", "a"), namespace="a")
    with pytest.raises(Forbidden):
        escalation.confirm(authorizer, BOB, binding("cluster-admin", "eve", "a"), namespace="a")


def test_other_kinds_pass() -> None:
    escalation.confirm(Authorizer(), BOB, {"kind": "Pod", "metadata": {"name": "x"}})


_words = st.lists(st.sampled_from(["*", "a", "b/log", "*/log", "/x", "/x*"]), max_size=3)
# A rule is on resources or on paths; the API refuses one that is both.
_resource_rules = st.builds(
    lambda verbs, groups, resources, names: Rule(
        verbs=tuple(verbs), groups=tuple(groups), resources=tuple(resources), names=tuple(names)
    ),
    _words,
    _words,
    _words,
    _words,
)
_path_rules = st.builds(
    lambda verbs, paths: Rule(verbs=tuple(verbs), urls=tuple(paths)), _words, _words
)
_rules = _resource_rules | _path_rules


@given(st.lists(_rules, max_size=4))
def test_everybody_may_grant_what_they_hold(held: list[Rule]) -> None:
    assert uncovered_rules(held, held) == []


@given(st.lists(_rules, max_size=3), st.lists(_rules, max_size=3), _rules)
def test_holding_more_never_covers_less(
    granted: list[Rule], held: list[Rule], further: Rule
) -> None:
    fewer = uncovered_rules([*held, further], granted)
    assert all(right in uncovered_rules(held, granted) for right in fewer)
