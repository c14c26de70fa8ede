"""Who may do what over HTTPS, what is written down, and what is never said."""

from __future__ import annotations

import asyncio
import json

import pytest
from hub_calls import APPLY, MERGE, Caller, Json, config_map, fresh

from fairway.app import Hub

RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def robot(call: Caller, namespace: str, *rules: Json) -> Caller:
    """A service account with rights in its namespace, calling with a token of its own."""
    name = fresh("robot")
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert (await call("POST", accounts, {"metadata": {"name": name}})).status == 201
    if rules:
        place = f"{RBAC}/namespaces/{namespace}"
        role = {"metadata": {"name": name}, "rules": list(rules)}
        assert (await call("POST", f"{place}/roles", role)).status == 201
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
        assert (await call("POST", f"{place}/rolebindings", binding)).status == 201
    answer = await call("POST", f"{accounts}/{name}/token", {"spec": {}})
    assert answer.status == 201, answer.body
    return call.using(answer.json["status"]["token"])


def rule(verbs: str, resources: str, group: str = "") -> Json:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


@pytest.fixture
def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def test_a_service_account_does_what_its_role_says(
    call: Caller, namespace: str, path: str
) -> None:
    me = await robot(call, namespace, rule("get create", "configmaps"))
    made = await me("POST", path, config_map("mine"))
    assert made.status == 201
    creator = made.json["metadata"]["annotations"]["fairway.dev/created-by"]
    assert creator.startswith(f"system:serviceaccount:{namespace}:robot-")
    assert (await me("GET", f"{path}/mine")).status == 200
    refused = await me("DELETE", f"{path}/mine")
    assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
    assert f'User "{creator}" cannot delete resource "configmaps"' in refused.json["message"]
    assert (await me("GET", path)).status == 403
    assert (await me("GET", f"{path}/mine", watch="true")).status == 403
    assert (await me("GET", "/api/v1/namespaces/default/configmaps/x")).status == 403
    who = await me("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert who.json["status"]["userInfo"]["username"] == creator


async def test_rights_follow_at_once_when_given_and_taken(
    call: Caller, namespace: str, path: str
) -> None:
    me = await robot(call, namespace, rule("get", "configmaps"))
    roles = f"{RBAC}/namespaces/{namespace}/roles"
    (name,) = [item["metadata"]["name"] for item in (await call("GET", roles)).json["items"]]
    assert (await me("POST", path, config_map("one"))).status == 403
    more = {"rules": [rule("*", "configmaps")]}
    await call("PATCH", f"{roles}/{name}", more, headers=MERGE)
    assert (await me("POST", path, config_map("one"))).status == 201
    await call("DELETE", f"{roles}/{name}")
    assert (await me("GET", f"{path}/one")).status == 403


async def test_a_token_ends_with_its_account(call: Caller, namespace: str) -> None:
    me = await robot(call, namespace)
    assert (await me("GET", "/version")).status == 200
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await call("DELETE", accounts)
    assert (await me("GET", "/version")).status == 401


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_a_token_is_only_made_by_who_may_create_one(
    call: Caller, namespace: str, method: str
) -> None:
    """Another verb with the same body would slip past the right that matters."""
    reader = await robot(call, namespace, rule("get update patch delete", "serviceaccounts/token"))
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await call("POST", accounts, {"metadata": {"name": "target"}})
    answer = await reader(method, f"{accounts}/target/token", {"spec": {}})
    assert answer.status == 405
    assert (await reader("POST", f"{accounts}/target/token", {"spec": {}})).status == 403


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("Bearer nonsense", id="an unknown token"),
        pytest.param("Bearer ", id="an empty token"),
        pytest.param("Bearer a.b.c", id="a signed token that is none"),
        pytest.param("Basic YWRtaW46YWRtaW4=", id="another scheme"),
    ],
)
async def test_a_bad_token_is_nobody(call: Caller, given: str) -> None:
    for path in ("/api/v1/namespaces", "/version", "/nothing"):
        answer = await call("GET", path, headers={"Authorization": given})
        assert (answer.status, answer.json["reason"]) == (401, "Unauthorized")


async def test_without_a_token_one_learns_only_that_the_hub_is_there(
    call: Caller, path: str
) -> None:
    nobody = call.using("")
    for open_path in ("/healthz", "/livez", "/readyz", "/version"):
        assert (await nobody("GET", open_path)).status == 200
    await call("POST", path, config_map("there"))
    there = await nobody("GET", f"{path}/there")
    not_there = await nobody("GET", f"{path}/other")
    assert (there.status, not_there.status) == (403, 403)
    assert there.json["message"].replace("there", "other") == not_there.json["message"]
    for closed in ("/metrics", "/api", "/openapi/v2", "/apis/none.example/v1/things"):
        answer = await nobody("GET", closed)
        assert (answer.status, "system:anonymous" in answer.json["message"]) == (403, True)


async def test_what_exists_is_not_said_to_who_may_not_look(call: Caller, namespace: str) -> None:
    me = await robot(call, namespace)
    real = await me("GET", "/api/v1/namespaces/kube-system/secrets/x")
    unreal = await me("GET", "/apis/none.example/v1/namespaces/kube-system/secrets/x")
    nowhere = await me("GET", "/api/v1/namespaces/nowhere/secrets/x")
    assert (real.status, unreal.status, nowhere.status) == (403, 403, 403)


async def test_impersonation_needs_the_right_and_is_whole(
    call: Caller, namespace: str, path: str
) -> None:
    as_ann = {"Impersonate-User": "ann"}
    made = await call("POST", path, config_map("one"), headers=as_ann)
    assert made.status == 403
    binding = {
        "metadata": {"name": "ann"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    place = f"{RBAC}/namespaces/{namespace}/rolebindings"
    assert (await call("POST", place, binding)).status == 201
    made = await call("POST", path, config_map("one"), headers=as_ann)
    assert made.json["metadata"]["annotations"]["fairway.dev/created-by"] == "ann"
    me = await robot(call, namespace, rule("create", "configmaps"))
    refused = await me("POST", path, config_map("two"), headers=as_ann)
    assert (refused.status, "impersonate" in refused.json["message"]) == (403, True)
    groups_only = {"Impersonate-Group": "system:masters"}
    assert (await call("GET", path, headers=groups_only)).status == 400


ESCALATIONS = {
    "a role of more rights": ("roles", {"rules": [rule("*", "secrets")]}),
    "a role without its kind": ("roles", {"rules": [rule("*", "*")], "kind": None}),
    "a binding to more rights": (
        "rolebindings",
        {
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [],
        },
    ),
}


# The role of a binding cannot be changed at all.
ATTEMPTS = [
    (attempt, method)
    for attempt, (plural, _) in ESCALATIONS.items()
    for method in (["POST", "PUT", "PATCH", "APPLY"] if plural == "roles" else ["POST", "APPLY"])
]


@pytest.mark.parametrize(("attempt", "method"), ATTEMPTS)
async def test_nobody_hands_out_rights_that_they_do_not_hold(
    call: Caller, namespace: str, attempt: str, method: str
) -> None:
    plural, grant = ESCALATIONS[attempt]
    group = "rbac.authorization.k8s.io"
    me = await robot(
        call,
        namespace,
        rule("get create update patch", "roles rolebindings", group),
        rule("get", "configmaps"),
    )
    place = f"{RBAC}/namespaces/{namespace}/{plural}"
    kind = {"roles": "Role", "rolebindings": "RoleBinding"}[plural]
    body = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "mine"}, **grant}
    if body["kind"] is None:
        del body["kind"]
    match method:
        case "POST":
            answer = await me("POST", place, body)
        case "APPLY":
            applied = {**body, "kind": kind}
            answer = await me(
                "PATCH", f"{place}/mine", applied, headers=APPLY, fieldManager="me", force="true"
            )
        case _:
            less = {**body, "rules": [rule("get", "configmaps")]}
            assert (await me("POST", place, less)).status == 201
            headers = MERGE if method == "PATCH" else None
            answer = await me(method, f"{place}/mine", body, headers=headers)
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert "attempting to grant RBAC permissions not currently held" in answer.json["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"rules": "all"},
        {"rules": ["all"]},
        {"rules": [{"verbs": "get"}]},
        {"metadata": []},
        {"metadata": {"name": "x", "annotations": 3}},
        {"aggregationRule": []},
    ],
)
async def test_a_misshapen_role_is_refused_in_words(
    call: Caller, namespace: str, body: Json
) -> None:
    group = "rbac.authorization.k8s.io"
    me = await robot(call, namespace, rule("create", "roles", group))
    whole = {"metadata": {"name": "x"}, **body}
    answer = await me("POST", f"{RBAC}/namespaces/{namespace}/roles", whole)
    if "aggregationRule" in body:  # no field of a role at all
        assert answer.status == 201
    else:
        assert answer.status in (400, 422)


async def audit_lines(hub: Hub, namespace: str) -> list[Json]:
    await asyncio.to_thread(hub.api.audit_log.flush)
    text = (hub.kubeconfig.parent / "audit.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if line.get("namespace") == namespace]


async def test_the_audit_log_has_one_line_for_each_write_and_none_for_reads(
    call: Caller, namespace: str, path: str, hub: Hub
) -> None:
    before = len(await audit_lines(hub, namespace))
    await call("POST", path, config_map("one"))
    await call("PUT", f"{path}/one", config_map("one", a="2"))
    await call("PATCH", f"{path}/one", {}, headers=MERGE)
    await call("GET", f"{path}/one")
    await call("GET", path)
    async with call.watch(path, timeoutSeconds=1) as stream:
        await stream.event()
    await call("POST", path, config_map("one"))
    await call("POST", path, b"{")
    await call.using("")("DELETE", f"{path}/one")
    await call.using("wrong")("DELETE", f"{path}/one")
    await call("POST", path, config_map("two"), headers={"Impersonate-User": "ann"})
    await call("DELETE", f"{path}/one", dryRun="All")
    await call("DELETE", path)
    lines = (await audit_lines(hub, namespace))[before:]
    assert [(line["verb"], line["code"]) for line in lines] == [
        ("create", 201),
        ("update", 200),
        ("patch", 200),
        ("create", 409),
        ("create", 400),
        ("delete", 403),
        ("delete", 401),
        ("create", 403),
        ("delete", 200),
        ("deletecollection", 200),
    ]
    assert lines[0]["user"] == "admin"
    assert lines[5]["user"] == "system:anonymous"
    assert (lines[7]["user"], lines[7]["impersonatedBy"]) == ("ann", "admin")
    assert lines[8]["dryRun"] is True


async def test_tokens_are_in_no_log(
    call: Caller, namespace: str, path: str, hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    me = await robot(call, namespace, rule("create", "configmaps"))
    for caller in (call, me):
        token = caller.token
        await caller("POST", path, config_map("one"), headers={"User-Agent": f"x Bearer {token}"})
        await caller("DELETE", f"{path}/{token[:40].lower()}")
        await caller("GET", f"/{token}")
    await call("POST", f"{path}/one/{me.token}", config_map("one"))
    await asyncio.to_thread(hub.api.audit_log.flush)
    written = (hub.kubeconfig.parent / "audit.log").read_text() + caplog.text
    assert call.token not in written
    assert me.token not in written
