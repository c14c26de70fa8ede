"""Who may do what, by Kubernetes' RBAC objects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.server.access.bootstrap_roles import bootstrap_objects
from fairway.server.access.identity import authenticated_identity
from fairway.server.access.rbac import GROUP, Authorizer, exact_name, forbidden
from fairway.server.access.rbac_rules import Attributes, Rule

JsonObject = dict[str, Any]
ALL = "system:authenticated"


def role(name: str, *rules: JsonObject, namespace: str = "", **metadata: Any) -> JsonObject:
    kind = "Role" if namespace else "ClusterRole"
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace, **metadata}} | {
        "rules": list(rules)
    }


def rule(verbs: str, resources: str, group: str = "", names: str = "") -> JsonObject:
    made: JsonObject = {
        "verbs": verbs.split(),
        "resources": resources.split(),
        "apiGroups": [group],
    }
    return made | ({"resourceNames": names.split()} if names else {})


def bind(role_name: str, *subjects: str, namespace: str = "", role_kind: str = "") -> JsonObject:
    """A binding; subjects as `User:bob`, `Group:team` or `ServiceAccount:namespace/name`."""
    parsed: list[JsonObject] = []
    for subject in subjects:
        kind, _, name = subject.partition(":")
        home, _, account = name.rpartition("/")
        parsed.append({"kind": kind, "name": account} | ({"namespace": home} if home else {}))
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": f"{role_name}-{len(parsed)}", "namespace": namespace},
        "roleRef": {"apiGroup": GROUP, "kind": role_kind or "ClusterRole", "name": role_name},
        "subjects": parsed,
    }


def ask(
    text: str, *, user: str = "bob", groups: tuple[str, ...] = (), name: str = ""
) -> Attributes:
    """`verb resource.group[/subresource] [namespace]`, or `verb /path`."""
    verb, what, *rest = text.split()
    if what.startswith("/"):
        return Attributes(user=user, groups=groups, verb=verb, path=what)
    resource, _, subresource = what.partition("/")
    plural, _, group = resource.partition(".")
    return Attributes(
        user=user,
        groups=groups,
        verb=verb,
        group=group,
        resource=plural,
        subresource=subresource,
        namespace=rest[0] if rest else "",
        name=name,
    )


# sentence: (rule of bob's cluster role, request, name, allowed)
RULES: dict[str, tuple[JsonObject, str, str, bool]] = {
    "a verb that is listed": (rule("get list", "pods"), "get pods a", "", True),
    "a verb that is not": (rule("get list", "pods"), "watch pods a", "", False),
    "any verb by a star": (rule("*", "pods"), "invented pods a", "", True),
    "a group that is listed": (rule("get", "jobs", "batch"), "get jobs.batch a", "", True),
    "the same plural of another group": (rule("get", "jobs", "batch"), "get jobs.x a", "", False),
    "any group by a star": (rule("get", "jobs", "*"), "get jobs.x a", "", True),
    "any resource by a star": (rule("get", "*"), "get pods a", "", True),
    "any subresource by a star": (rule("get", "*"), "get pods/log a", "", True),
    "a subresource that is listed": (rule("get", "pods/log"), "get pods/log a", "", True),
    "the resource of a listed subresource": (rule("get", "pods/log"), "get pods a", "", False),
    "a subresource of a listed resource": (rule("get", "pods"), "get pods/log a", "", False),
    "a subresource of every kind": (rule("get", "*/scale"), "get pods/scale a", "", True),
    "another subresource than that": (rule("get", "*/scale"), "get pods/status a", "", False),
    "no subresource at all": (rule("get", "*/scale"), "get pods a", "", False),
    "a star with the resource named": (rule("get", "pods/*"), "get pods/log a", "", False),
    "a name that is listed": (rule("get", "pods", names="x y"), "get pods a", "y", True),
    "a name that is not": (rule("get", "pods", names="x y"), "get pods a", "z", False),
    "a list when names are listed": (rule("list", "pods", names="x"), "list pods a", "", False),
    "a list of a single listed name": (rule("list", "pods", names="x"), "list pods a", "x", True),
    "a watch of a single listed name": (
        rule("watch", "pods", names="x"),
        "watch pods a",
        "x",
        True,
    ),
    "a creation when names are listed": (
        rule("create", "pods", names="x"),
        "create pods a",
        "",
        False,
    ),
    "cluster scope": (rule("get", "nodes"), "get nodes", "", True),
    "a path that is listed": ({"verbs": ["get"], "nonResourceURLs": ["/x"]}, "get /x", "", True),
    "a path below it": ({"verbs": ["get"], "nonResourceURLs": ["/x"]}, "get /x/y", "", False),
    "a path by its beginning": (
        {"verbs": ["get"], "nonResourceURLs": ["/x*"]},
        "get /x/y",
        "",
        True,
    ),
    "any path by a star": ({"verbs": ["get"], "nonResourceURLs": ["*"]}, "get /x", "", True),
    "a star in the middle": (
        {"verbs": ["get"], "nonResourceURLs": ["/*/y"]},
        "get /x/y",
        "",
        False,
    ),
    "a path with another verb": ({"verbs": ["get"], "nonResourceURLs": ["*"]}, "put /x", "", False),
    "a path by a rule for all resources": (rule("*", "*", "*"), "get /x", "", False),
    "a rule that is no list": ({"verbs": "get", "resources": "pods"}, "get pods a", "", False),
}


@pytest.mark.parametrize(("given_rule", "text", "name", "allowed"), RULES.values(), ids=RULES)
def test_a_rule_decides_on(given_rule: JsonObject, text: str, name: str, allowed: bool) -> None:
    authorizer = Authorizer([role("r", given_rule), bind("r", "User:bob")])
    assert authorizer.authorize(ask(text, name=name)).allowed is allowed


PODS = rule("get", "pods")
# sentence: (objects, request, allowed)
BINDINGS: dict[str, tuple[list[JsonObject], Attributes, bool]] = {
    "a user by name": ([role("r", PODS), bind("r", "User:bob")], ask("get pods a"), True),
    "another user": ([role("r", PODS), bind("r", "User:eve")], ask("get pods a"), False),
    "no user by a star": ([role("r", PODS), bind("r", "User:*")], ask("get pods a"), False),
    "a group": ([role("r", PODS), bind("r", "Group:g")], ask("get pods a", groups=("g",)), True),
    "a user named like a group": (
        [role("r", PODS), bind("r", "Group:bob")],
        ask("get pods a"),
        False,
    ),
    "a service account": (
        [role("r", PODS), bind("r", "ServiceAccount:team/bot")],
        ask("get pods a", user="system:serviceaccount:team:bot"),
        True,
    ),
    "a service account of the binding's namespace": (
        [role("r", PODS), bind("r", "ServiceAccount:bot", namespace="a")],
        ask("get pods a", user="system:serviceaccount:a:bot"),
        True,
    ),
    "a service account without namespace in a cluster binding": (
        [role("r", PODS), bind("r", "ServiceAccount:bot")],
        ask("get pods a", user="system:serviceaccount::bot"),
        False,
    ),
    "a cluster role in one namespace": (
        [role("r", PODS), bind("r", "User:bob", namespace="a")],
        ask("get pods a"),
        True,
    ),
    "a cluster role bound in another namespace": (
        [role("r", PODS), bind("r", "User:bob", namespace="b")],
        ask("get pods a"),
        False,
    ),
    "all namespaces from a binding in one": (
        [role("r", PODS), bind("r", "User:bob", namespace="a")],
        ask("get pods"),
        False,
    ),
    "a role of the same namespace": (
        [role("r", PODS, namespace="a"), bind("r", "User:bob", namespace="a", role_kind="Role")],
        ask("get pods a"),
        True,
    ),
    "a role of another namespace": (
        [role("r", PODS, namespace="b"), bind("r", "User:bob", namespace="a", role_kind="Role")],
        ask("get pods a"),
        False,
    ),
    "a path through a binding in a namespace": (
        [
            role("r", {"verbs": ["get"], "nonResourceURLs": ["*"]}),
            bind("r", "User:bob", namespace="a"),
        ],
        ask("get /metrics"),
        False,
    ),
    "the masters, with no object at all": (
        [],
        ask("delete nodes", groups=("system:masters",)),
        True,
    ),
    "nobody, with no object at all": ([], ask("get pods a"), False),
}


@pytest.mark.parametrize(("objects", "wanted", "allowed"), BINDINGS.values(), ids=BINDINGS)
def test_a_binding_reaches(objects: list[JsonObject], wanted: Attributes, allowed: bool) -> None:
    assert Authorizer(objects).authorize(wanted).allowed is allowed


def test_a_right_names_where_it_comes_from() -> None:
    authorizer = Authorizer([role("r", PODS), bind("r", "User:bob", namespace="a")])
    assert authorizer.authorize(ask("get pods a")).reason == (
        'RBAC: allowed by RoleBinding "r-1/a" of ClusterRole "r" to User "bob"'
    )


def test_a_binding_to_a_role_that_is_gone_says_so() -> None:
    decision = Authorizer([bind("r", "User:bob")]).authorize(ask("get pods a"))
    assert decision.reason == f'RBAC: clusterrole.{GROUP} "r" not found'


def test_every_change_counts_at_once() -> None:
    authorizer = Authorizer()
    wanted = ask("get pods a")
    seen = [authorizer.authorize(wanted).allowed]
    authorizer.upsert(role("r", PODS))
    authorizer.upsert(bind("r", "User:bob"))
    seen.append(authorizer.authorize(wanted).allowed)
    authorizer.upsert(role("r", rule("get", "secrets")))
    seen.append(authorizer.authorize(wanted).allowed)
    authorizer.upsert(role("r", PODS))
    seen.append(authorizer.authorize(wanted).allowed)
    authorizer.remove("ClusterRoleBinding", "r-1")
    seen.append(authorizer.authorize(wanted).allowed)
    authorizer.remove("ClusterRoleBinding", "never was")
    assert seen == [False, True, False, True, False]


def test_only_so_many_decisions_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairway.server.access.rbac._DECISIONS_MAX", 3)
    monkeypatch.setattr("fairway.server.access.rbac._GRANTS_MAX", 2)
    authorizer = Authorizer([role("r", PODS), bind("r", "User:bob")])
    for number in range(10):
        assert authorizer.authorize(ask(f"get pods n{number}")).allowed
    assert len(authorizer._decisions) <= 3
    assert len(authorizer._grants) <= 2


def test_a_cluster_role_never_takes_the_place_of_a_role() -> None:
    authorizer = Authorizer([role("r", PODS, namespace="a"), role("r", rule("get", "secrets"))])
    assert authorizer.rules_of_role("Role", "r", "a") == (Rule.of(PODS),)
    authorizer.remove("ClusterRole", "r")
    assert authorizer.rules_of_role("Role", "r", "a") is not None
    assert authorizer.rules_of_role("ClusterRole", "r") is None


def test_a_cluster_binding_never_takes_a_cluster_role_for_a_role() -> None:
    authorizer = Authorizer([role("r", PODS), bind("r", "User:bob", role_kind="Role")])
    assert not authorizer.authorize(ask("get pods a")).allowed


@pytest.mark.parametrize("kind", ["Role", "RoleBinding"])
def test_an_object_of_a_namespace_is_never_taken_for_one_of_all(kind: str) -> None:
    authorizer = Authorizer([role("r", PODS), bind("r", "User:bob")])
    with pytest.raises(ValueError, match="without a namespace"):
        authorizer.upsert({"kind": kind, "metadata": {"name": "r-1"}})
    authorizer.remove(kind, "r" if kind == "Role" else "r-1")
    assert authorizer.authorize(ask("get pods a")).allowed


def test_a_changed_binding_forgets_its_former_subjects() -> None:
    authorizer = Authorizer([role("r", PODS), bind("r", "User:bob")])
    authorizer.upsert(bind("r", "User:eve"))
    assert not authorizer.authorize(ask("get pods a")).allowed
    assert authorizer.authorize(ask("get pods a", user="eve")).allowed


def gathering(name: str, *selectors: JsonObject, **labels: str) -> JsonObject:
    made = role(name, labels=labels)
    return made | {"aggregationRule": {"clusterRoleSelectors": list(selectors)}}


# sentence: (selector, labels of the role, gathered)
SELECTORS: dict[str, tuple[JsonObject, dict[str, str], bool]] = {
    "labels that match": ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
    "labels that differ": ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
    "an empty selector": ({}, {}, True),
    "a value in a set": (
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]},
        {"a": "1"},
        True,
    ),
    "a value kept out": (
        {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]},
        {"a": "1"},
        False,
    ),
    "a label that exists": (
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        {"a": ""},
        True,
    ),
    "a label that must not": (
        {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
        {"a": ""},
        False,
    ),
    "an unknown operator": (
        {"matchExpressions": [{"key": "a", "operator": "Like"}]},
        {"a": ""},
        False,
    ),
}


@pytest.mark.parametrize(("selector", "labels", "gathered"), SELECTORS.values(), ids=SELECTORS)
def test_an_aggregated_role_gathers_by(
    selector: JsonObject, labels: dict[str, str], gathered: bool
) -> None:
    authorizer = Authorizer(
        [role("part", PODS, labels=labels), gathering("whole", selector), bind("whole", "User:bob")]
    )
    assert authorizer.authorize(ask("get pods a")).allowed is gathered


def test_aggregated_roles_that_gather_each_other_end() -> None:
    everything: JsonObject = {}
    authorizer = Authorizer(
        [gathering("a", everything), gathering("b", everything), role("c", PODS)]
    )
    assert authorizer.rules_of_role("ClusterRole", "a") == (Rule.of(PODS),)


def test_what_an_aggregated_role_should_store_is_told_until_it_is_stored() -> None:
    authorizer = Authorizer([role("part", PODS, labels={"a": "1"})])
    authorizer.upsert(gathering("whole", {"matchLabels": {"a": "1"}}))
    (written,) = authorizer.unwritten_aggregations()
    assert written["rules"] == [PODS]
    authorizer.upsert(written)
    assert authorizer.unwritten_aggregations() == []


# sentence: (role, request, allowed)
BOOTSTRAP: dict[str, tuple[str, str, bool]] = {
    "view reads workloads": ("view", "list workloads.fairway.dev a", True),
    "view reads queues": ("view", "get queues.fairway.dev a", True),
    "view reads no secrets": ("view", "get secrets a", False),
    "view reads no works, which carry secrets": ("view", "get works.fairway.dev a", False),
    "view asks why a workload waits": ("view", "get workloads.fairway.dev/explain a", True),
    "view reads output": ("view", "get workloads.fairway.dev/log a", True),
    "admin asks for nothing on all tenants": ("admin", "get fleets.fairway.dev/snapshot a", False),
    "admin reads no decisions": ("admin", "get fleets.fairway.dev/decisions a", False),
    "view changes nothing": ("view", "create workloads.fairway.dev a", False),
    "edit changes workloads": ("edit", "patch workloads.fairway.dev a", True),
    "edit changes placement policies": ("edit", "delete placementpolicies.fairway.dev a", True),
    "edit includes view": ("edit", "watch pods a", True),
    "edit reads secrets": ("edit", "get secrets a", True),
    "edit writes no claim": ("edit", "update workloads.fairway.dev/status a", False),
    "edit changes no queue": ("edit", "update queues.fairway.dev a", False),
    "edit changes no work": ("edit", "update works.fairway.dev a", False),
    "edit hands out no rights": ("edit", f"create rolebindings.{GROUP} a", False),
    "admin hands out rights": ("admin", f"create rolebindings.{GROUP} a", True),
    "admin includes edit": ("admin", "create jobs.batch a", True),
    "admin changes no cluster": ("admin", "create clusters.fairway.dev a", False),
    "cluster-admin does anything": ("cluster-admin", "escalate anything.at.all a", True),
    "cluster-admin goes anywhere": ("cluster-admin", "post /anywhere", True),
}


@pytest.mark.parametrize(("name", "text", "allowed"), BOOTSTRAP.values(), ids=BOOTSTRAP)
def test_on_a_fresh_hub(name: str, text: str, allowed: bool) -> None:
    authorizer = Authorizer([*bootstrap_objects(), bind(name, "User:bob")])
    assert authorizer.authorize(ask(text)).allowed is allowed


@pytest.mark.parametrize(
    ("group", "text", "allowed"),
    [
        (ALL, "get /apis/fairway.dev/v1alpha1", True),
        (ALL, "get /openapi/v3", True),
        (ALL, "create selfsubjectaccessreviews.authorization.k8s.io", True),
        (ALL, "get /metrics", False),
        (ALL, "list namespaces", False),
        ("system:unauthenticated", "get /healthz", True),
        ("system:unauthenticated", "get /version", True),
        ("system:unauthenticated", "get /apis", False),
        ("system:monitoring", "get /metrics", True),
    ],
)
def test_on_a_fresh_hub_everybody_may(group: str, text: str, allowed: bool) -> None:
    authorizer = Authorizer(bootstrap_objects())
    assert authorizer.authorize(ask(text, groups=(group,))).allowed is allowed


def test_bootstrap_objects_need_no_further_writing() -> None:
    objects = bootstrap_objects()
    assert Authorizer(objects).unwritten_aggregations() == []
    assert all(object_["rules"] for object_ in objects if object_["kind"] == "ClusterRole")


@pytest.mark.parametrize(
    ("selector", "name"),
    [
        ("metadata.name=x", "x"),
        ("status.phase=Running,metadata.name==x", "x"),
        ("metadata.name!=x", ""),
        ("metadata.namespace=x", ""),
        ("metadata.name=../x", ""),
        ("", ""),
    ],
)
def test_a_field_selector_may_ask_for_one_name(selector: str, name: str) -> None:
    assert exact_name(selector) == name


REFUSALS = {
    'workloads.fairway.dev "x" is forbidden: User "bob" cannot get resource "workloads" in API '
    'group "fairway.dev" in the namespace "ns"': ask("get workloads.fairway.dev ns", name="x"),
    'pods is forbidden: User "bob" cannot list resource "pods/log" in API group "" at the cluster '
    "scope": ask("list pods/log"),
    'forbidden: User "bob" cannot get path "/metrics"': ask("get /metrics"),
    'forbidden: User "bob" cannot get path "/&lt;b&gt;&amp;"': ask("get /<b>&"),
}


@pytest.mark.parametrize(("message", "wanted"), REFUSALS.items())
def test_a_refusal_reads(message: str, wanted: Attributes) -> None:
    assert forbidden(wanted).message == message


def test_a_refusal_carries_the_name_group_and_kind() -> None:
    error = forbidden(ask("get workloads.fairway.dev ns", name="x"))
    assert error.details == {"name": "x", "group": "fairway.dev", "kind": "workloads"}
    assert error.status()["code"] == 403


def test_the_rules_of_an_identity_are_those_of_its_bindings_in_the_namespace() -> None:
    secrets = rule("get", "secrets")
    authorizer = Authorizer(
        [
            role("everywhere", PODS),
            bind("everywhere", f"Group:{ALL}"),
            role("here", secrets, namespace="a"),
            bind("here", "User:bob", namespace="a", role_kind="Role"),
        ]
    )
    bob = authenticated_identity("bob")
    assert authorizer.rules_for(bob, "a") == (Rule.of(PODS), Rule.of(secrets))
    assert authorizer.rules_for(bob, "b") == (Rule.of(PODS),)


_words = st.sampled_from(["get", "pods", "pods/log", "*", "*/log", "jobs", "a", "b", ""])
_word_lists = st.lists(_words, max_size=3)
_rules = st.fixed_dictionaries(
    {"verbs": _word_lists, "apiGroups": _word_lists, "resources": _word_lists},
    optional={"resourceNames": _word_lists, "nonResourceURLs": _word_lists},
)
_namespaces = st.sampled_from(["", "a", "b"])
_subjects = st.sampled_from(["User:bob", "Group:team", "ServiceAccount:a/bot", "User:eve"])
_bindings = st.builds(
    lambda rules, subject, namespace, number: [
        role(f"r{number}", *rules),
        bind(f"r{number}", subject, namespace=namespace),
    ],
    st.lists(_rules, max_size=3),
    _subjects,
    _namespaces,
    st.integers(0, 5),
)
_requests = st.builds(
    Attributes,
    user=st.sampled_from(["bob", "eve", "system:serviceaccount:a:bot"]),
    groups=st.sampled_from([(), ("team",)]),
    verb=_words,
    group=_words,
    resource=_words,
    subresource=st.sampled_from(["", "log"]),
    namespace=_namespaces,
    name=_words,
    path=st.sampled_from(["", "a", "/b"]),
)


@given(st.lists(_bindings, max_size=3), _rules, _subjects, _namespaces, _requests)
def test_another_binding_never_takes_a_right_away(
    held: list[list[JsonObject]],
    new_rule: JsonObject,
    subject: str,
    namespace: str,
    wanted: Attributes,
) -> None:
    authorizer = Authorizer([item for pair in held for item in pair])
    before = authorizer.authorize(wanted).allowed
    authorizer.upsert(role("new", new_rule))
    authorizer.upsert(bind("new", subject, namespace=namespace))
    assert authorizer.authorize(wanted).allowed >= before


@given(st.lists(_bindings, max_size=3), _requests)
def test_an_authorizer_that_saw_events_decides_as_one_made_afresh(
    held: list[list[JsonObject]], wanted: Attributes
) -> None:
    grown = Authorizer()
    for item in (entry for pair in held for entry in pair):
        grown.authorize(wanted)
        grown.upsert(item)
    fresh = Authorizer([item for pair in held for item in pair])
    assert grown.authorize(wanted) == fresh.authorize(wanted)
