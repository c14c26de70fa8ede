"""Who has no right learns nothing: the answer is the same whether a thing exists or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.server.wire.exchange import Response
from tests.fuzz import shapes
from tests.fuzz.budget import budget
from tests.fuzz.driver import Driver

RBAC = "rbac.authorization.k8s.io"
TOKENS = {
    "admin": "known-admin-token-0123456789abcdef",
    "nobody": "known-nobody-token-0123456789abcdef",
    "viewer": "known-viewer-token-0123456789abcdef",
    "local": "known-local-token-0123456789abcdef",
}


@dataclass(frozen=True)
class Thing:
    """Where something is, or is not."""

    group: str
    plural: str
    namespace: str
    name: str

    def path(self, form: str) -> str:
        root = f"/apis/{self.group}/v1" if self.group else "/api/v1"
        inside = f"/namespaces/{self.namespace}" if "namespace" in form else ""
        return f"{root}{inside}/{self.plural}" + (f"/{self.name}" if "name " in form + " " else "")

    def without_names(self, answer: Response) -> tuple[int, bytes, str]:
        body = answer.body
        for word, mark in ((self.group, b"G"), (self.plural, b"P"), (self.namespace, b"S")):
            body = body.replace(word.encode(), mark) if word else body
        return answer.status, body.replace(self.name.encode(), b"N"), answer.content_type


# Each pair: something that exists, and something of the same form that does not.
HERE = Thing("apps", "deployments", "occupied", "engine-1")
PAIRS = {
    "an object": (HERE, Thing("apps", "deployments", "occupied", "nothing-1")),
    "a namespace": (HERE, Thing("apps", "deployments", "nowhere-7", "engine-1")),
    "a kind": (HERE, Thing("apps", "nothings", "occupied", "engine-1")),
    "a group": (HERE, Thing("nope.example", "deployments", "occupied", "engine-1")),
    "a secret": (
        Thing("", "secrets", "occupied", "password-1"),
        Thing("", "secrets", "nowhere-7", "nothing-1"),
    ),
    "a core kind": (
        Thing("", "secrets", "occupied", "password-1"),
        Thing("", "nothings", "occupied", "password-1"),
    ),
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
FORMS = ["everywhere", "in a namespace", "in a namespace with name "]
QUERIES: list[dict[str, str]] = [
    {},
    {"watch": "1"},
    {"limit": "junk"},
    {"resourceVersion": "999999999", "watch": "true"},
    {"fieldSelector": "metadata.name=x", "labelSelector": "((("},
    {"dryRun": "junk", "fieldManager": "\x00"},
]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    folder = tmp_path_factory.mktemp("hub")
    rows = [f"{token},{user},{user}," for user, token in TOKENS.items() if user != "admin"]
    tokens = folder / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text("\n".join([f"{TOKENS['admin']},admin,admin,system:masters", *rows, ""]))
    opened = Driver(folder)
    _furnish(opened)
    yield opened
    opened.close()
    assert not leaks(opened), "a token was written down"


def leaks(driver: Driver) -> list[str]:
    """Every line of a log in which a token stands."""
    audited = (driver.folder / "audit.log").read_text().splitlines()
    assert audited, "nothing was audited"
    lines = [*audited, *driver.complaints.lines]
    return [line for line in lines if any(token in line for token in TOKENS.values())]


def _furnish(driver: Driver) -> None:
    """What exists, and who may see it."""
    for name in ("occupied", "mine"):
        driver.json("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        secret = {"metadata": {"name": "password-1"}, "stringData": {"a": "pa55word"}}
        driver.json("POST", f"/api/v1/namespaces/{name}/secrets", secret)
        kept = {"metadata": {"name": "engine-1"}}
        driver.json("POST", f"/api/v1/namespaces/{name}/configmaps", kept)
    labels = {"app": "a"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    driver.json(
        "POST",
        HERE.path("in a namespace"),
        {
            "metadata": {"name": HERE.name},
            "spec": {"selector": {"matchLabels": labels}, "template": pod},
        },
    )
    for home, role, user in (
        ("clusterrolebindings", "view", "viewer"),
        ("namespaces/mine/rolebindings", "edit", "local"),
    ):
        binding = {
            "metadata": {"name": user},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        }
        driver.json("POST", f"/apis/{RBAC}/v1/{home}", binding)


def _both(driver: Driver, pair: tuple[Thing, Thing], form: str, method: str, **more: Any) -> None:
    """The two answers are refusals for want of a right, and equal but for the names."""
    here, missing = ((item, driver.send(method, item.path(form), **more)) for item in pair)
    assert here[1].status == 403, here[1].body
    assert here[0].without_names(here[1]) == missing[0].without_names(missing[1])


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
@pytest.mark.parametrize("form", FORMS)
def test_nobody_is_told_nothing(driver: Driver, pair: tuple[Thing, Thing], form: str) -> None:
    for method in METHODS:
        if (method == "POST") == ("name " in form):
            continue
        if form == "everywhere" and method in ("PUT", "PATCH"):
            continue
        for query in QUERIES:
            _both(driver, pair, form, method, query=query, token=TOKENS["nobody"])
            _both(driver, pair, form, method, query=query, token=TOKENS["nobody"], body=b"{junk")


@pytest.mark.parametrize("user", ["nobody", "viewer", "local"])
@budget(60)
@given(
    pair=st.sampled_from([PAIRS["a secret"], PAIRS["a core kind"]]),
    method=st.sampled_from(["GET", "PUT", "PATCH", "DELETE"]),
    query=st.one_of(
        st.sampled_from(QUERIES),
        st.dictionaries(st.sampled_from(["watch", "limit", "fieldManager"]), shapes.texts),
    ),
    body=st.one_of(st.binary(max_size=20), shapes.values),
)
def test_secrets_are_hidden_from_who_may_view_all_else(
    driver: Driver,
    user: str,
    pair: tuple[Thing, Thing],
    method: str,
    query: dict[str, str],
    body: Any,
) -> None:
    form = "in a namespace with name "
    _both(driver, pair, form, method, query=query, body=body, token=TOKENS[user])


@pytest.mark.parametrize("user", ["nobody", "viewer"])
@pytest.mark.parametrize("path", ["/api/v1/secrets", "/api/v1/namespaces/mine/secrets"])
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_no_list_or_watch_shows_a_secret(
    driver: Driver, user: str, path: str, query: dict[str, str]
) -> None:
    answer = driver.send("GET", path, query=query, token=TOKENS[user])
    assert answer.status == 403
    assert b"password" not in answer.body
    assert b"pa55word" not in answer.body


def test_a_role_in_one_namespace_says_nothing_of_the_others(driver: Driver) -> None:
    token = TOKENS["local"]
    assert (
        driver.send("GET", "/api/v1/namespaces/mine/configmaps/engine-1", token=token).status == 200
    )
    for name in ("configmaps", "secrets", "pods"):
        here = Thing("", name, "occupied", "engine-1")
        missing = Thing("", name, "nowhere-7", "nothing-1")
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            _both(driver, (here, missing), "in a namespace with name ", method, token=token)
        _both(driver, (here, missing), "in a namespace", "POST", token=token, body={})
        for query in QUERIES:
            _both(driver, (here, missing), "in a namespace", "GET", token=token, query=query)
    assert driver.send("GET", "/api/v1/namespaces", token=token).status == 403
    assert driver.send("GET", "/api/v1/namespaces/occupied", token=token).status == 403
    assert driver.send("GET", "/api/v1/namespaces/nowhere-7", token=token).status == 403


REVIEWS = "/apis/authorization.k8s.io/v1"


@pytest.mark.parametrize("user", ["nobody", "viewer", "local"])
def test_reviews_of_my_own_rights_say_the_same_of_what_is_not_there(
    driver: Driver, user: str
) -> None:
    for pair in (PAIRS["an object"], PAIRS["a namespace"], PAIRS["a secret"]):
        for verb in ("get", "list", "delete"):
            said = [
                item.without_names(
                    driver.send(
                        "POST",
                        f"{REVIEWS}/selfsubjectaccessreviews",
                        {"spec": {"resourceAttributes": _attributes(item, verb)}},
                        token=TOKENS[user],
                    )
                )
                for item in pair
            ]
            assert said[0][0] == 201
            assert said[0] == said[1]
    rules = [
        driver.send(
            "POST",
            f"{REVIEWS}/selfsubjectrulesreviews",
            {"spec": {"namespace": namespace}},
            token=TOKENS[user],
        ).body.replace(namespace.encode(), b"S")
        for namespace in ("occupied", "nowhere-7")
    ]
    assert rules[0] == rules[1]


def _attributes(thing: Thing, verb: str) -> dict[str, str]:
    return {
        "verb": verb,
        "group": thing.group,
        "resource": thing.plural,
        "namespace": thing.namespace,
        "name": thing.name,
    }


@pytest.mark.parametrize("user", ["nobody", "viewer", "local"])
def test_nobody_asks_after_the_rights_or_tokens_of_others(driver: Driver, user: str) -> None:
    review = {"spec": {"user": "admin", "resourceAttributes": _attributes(HERE, "get")}}
    for path in (
        f"{REVIEWS}/subjectaccessreviews",
        f"{REVIEWS}/namespaces/occupied/localsubjectaccessreviews",
    ):
        assert driver.send("POST", path, review, token=TOKENS[user]).status == 403
    asked = {"spec": {"token": TOKENS["admin"]}}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    assert driver.send("POST", path, asked, token=TOKENS[user]).status == 403


@pytest.mark.parametrize("user", ["nobody", "viewer", "local"])
def test_acting_as_another_is_refused_alike_for_all_names(driver: Driver, user: str) -> None:
    said = {
        driver.send(
            "GET",
            "/api/v1/namespaces/mine/configmaps",
            headers=(("Impersonate-User", name),),
            token=TOKENS[user],
        ).body.replace(name.encode(), b"N")
        for name in ("admin", "nobody-at-all", "local1")
    }
    assert len(said) == 1
    assert b"403" in said.pop()


@pytest.mark.parametrize("user", ["nobody", "viewer", "local"])
def test_nobody_hands_themselves_a_right(driver: Driver, user: str) -> None:
    """Whatever a body calls itself: left out, misspelt or of another kind."""
    role = {"rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}
    binding = {
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }
    before = driver.hub.store.version
    for kind in (None, "Role", "RoleBinding", "ConfigMap", "role", ["Role"], {}, 1):
        for plural, body in (("roles", role), ("rolebindings", binding)):
            for home in (f"/apis/{RBAC}/v1/namespaces/mine", f"/apis/{RBAC}/v1"):
                asked = {"metadata": {"name": "mighty"}, **body}
                asked |= {} if kind is None else {"kind": kind}
                cluster = plural if "mine" in home else f"cluster{plural}"
                answer = driver.send("POST", f"{home}/{cluster}", asked, token=TOKENS[user])
                assert answer.status in (400, 403, 422), answer.body
    assert driver.hub.store.version == before


HIDING_PLACES = st.sampled_from(
    [
        "Bearer {}",
        "bearer {}",
        "Bearer  {}  ",
        "Basic {}",
        "Token {}",
        "{}",
        "Bearer {}x",
        "Bearer {},",
    ]
)


@budget(200)
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    st.sampled_from(["/api/v1/namespaces/mine/configmaps", "/api/v1/secrets/x", "/metrics", "/x"]),
    HIDING_PLACES,
    st.sampled_from(sorted(TOKENS)),
    shapes.values,
)
def test_no_answer_shows_a_token(
    driver: Driver, method: str, path: str, place: str, user: str, body: Any
) -> None:
    headers = (("authorization", place.format(TOKENS[user])),)
    answer = driver.send(method, path, body, headers=headers)
    said = answer.body + repr((answer.headers, answer.warnings)).encode()
    assert not any(token.encode() in said for token in TOKENS.values())
    review = {"spec": {"token": TOKENS[user]}, "kind": body}
    answer = driver.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert not any(token.encode() in answer.body for token in TOKENS.values())


def test_a_token_made_for_an_account_is_shown_once_and_never_logged(driver: Driver) -> None:
    home = "/api/v1/namespaces/mine/serviceaccounts"
    driver.send("POST", home, {"metadata": {"name": "robot"}})
    made = driver.json("POST", f"{home}/robot/token", {"spec": {}})
    token = made["status"]["token"]
    for path in ("/api/v1/namespaces/mine/configmaps", "/version", "/api/v1/secrets"):
        answer = driver.send("GET", path, token=token)
        assert token.encode() not in answer.body
        driver.send("DELETE", path, token=token)
    driver.restart()
    audited = (driver.folder / "audit.log").read_text()
    assert "robot" in audited
    assert token not in audited
    assert not any(token in line for line in driver.complaints.lines)
