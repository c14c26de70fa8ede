"""Calls of the official Python client that the script names.

Each function takes the client and the group's namespace and returns what is compared. `request`
sends one bare request through the client's own connection, for what kubectl never sends.
"""

from __future__ import annotations

import copy
import datetime
import json
import threading
from typing import Any

import kubernetes
import kubernetes.dynamic
import urllib3
from kubernetes.client.exceptions import ApiException

Client = Any


def request(
    client: Client,
    namespace: str,
    *,
    method: str = "GET",
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """One bare request; the body is sent as it is if it is a text, else as JSON."""
    sent = body if isinstance(body, str | None) else json.dumps(body)
    sent = sent.replace("$NS", namespace) if sent else sent
    configuration = client.configuration
    address = configuration.host + path.replace("$NS", namespace)
    given: dict[str, str] = {}
    client.update_params_for_auth(given, [], ["BearerToken"], path, method, body)
    if sent is not None:
        given["Content-Type"] = "application/json"
    for name, value in (headers or {}).items():
        given = {key: each for key, each in given.items() if key.lower() != name.lower()}
        if value:
            given[name] = value
    answer: urllib3.HTTPResponse = client.rest_client.pool_manager.request(
        method, address, body=sent, headers=given, retries=False, timeout=30
    )
    return {
        "code": answer.status,
        "type": (answer.headers.get("Content-Type") or "").split(";")[0],
        "warnings": answer.headers.getlist("Warning"),
        "out": _parsed(answer.data),
    }


def refusal(error: ApiException) -> dict[str, Any]:
    """What an exception of the client tells its caller."""
    return {"status": error.status, "reason": error.reason, "body": _parsed(error.body)}


def creates_and_reads_a_config_map(client: Client, namespace: str) -> Any:
    core = kubernetes.client.CoreV1Api(client)
    core.create_namespaced_config_map(
        namespace,
        kubernetes.client.V1ConfigMap(
            metadata=kubernetes.client.V1ObjectMeta(name="typed", labels={"made": "by-client"}),
            data={"a": "1"},
        ),
    )
    return core.read_namespaced_config_map("typed", namespace)


def replaces_a_config_map_with_an_old_version(client: Client, namespace: str) -> Any:
    core = kubernetes.client.CoreV1Api(client)
    old = core.read_namespaced_config_map("typed", namespace)
    core.patch_namespaced_config_map("typed", namespace, {"data": {"b": "2"}})
    return core.replace_namespaced_config_map("typed", namespace, old)


def lists_in_pages(client: Client, namespace: str) -> Any:
    core = kubernetes.client.CoreV1Api(client)
    for number in range(5):
        core.create_namespaced_config_map(
            namespace, {"metadata": {"name": f"page-{number}", "labels": {"pages": "yes"}}}
        )
    pages, going_on = [], None
    while True:
        page = core.list_namespaced_config_map(
            namespace, label_selector="pages=yes", limit=2, _continue=going_on
        )
        remaining = page.metadata.remaining_item_count
        pages.append([[item.metadata.name for item in page.items], remaining])
        going_on = page.metadata._continue
        if not going_on:
            return pages


def lists_with_a_bad_continue_token(client: Client, namespace: str) -> Any:
    core = kubernetes.client.CoreV1Api(client)
    return core.list_namespaced_config_map(namespace, limit=2, _continue="not-a-token")


def watches_from_a_version(client: Client, namespace: str) -> Any:
    """Events after the listed version, in order: nothing is seen twice and nothing is missed."""
    core = kubernetes.client.CoreV1Api(client)
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "seen"}})
    core.patch_namespaced_config_map("seen", namespace, {"data": {"k": "v"}})
    core.delete_namespaced_config_map("seen", namespace)
    watch = kubernetes.watch.Watch()
    seen = []
    for event in watch.stream(
        core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=20
    ):
        seen.append([event["type"], event["object"].metadata.name, event["object"].data])
        if len(seen) == 3:
            watch.stop()
    return seen


def watches_with_a_selector(client: Client, namespace: str) -> Any:
    """An object that no longer matches is reported as deleted."""
    core = kubernetes.client.CoreV1Api(client)
    core.create_namespaced_config_map(
        namespace, {"metadata": {"name": "leaves", "labels": {"in": "yes"}}}
    )
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.patch_namespaced_config_map("leaves", namespace, {"metadata": {"labels": {"in": "no"}}})
    core.patch_namespaced_config_map("leaves", namespace, {"metadata": {"labels": {"in": "yes"}}})
    watch = kubernetes.watch.Watch()
    seen = []
    for event in watch.stream(
        core.list_namespaced_config_map, namespace, resource_version=version,
        label_selector="in=yes", timeout_seconds=20,
    ):  # fmt: skip
        seen.append([event["type"], event["object"].metadata.labels])
        if len(seen) == 2:
            watch.stop()
    return seen


def watches_from_a_version_of_the_future(client: Client, namespace: str) -> Any:
    core = kubernetes.client.CoreV1Api(client)
    return core.list_namespaced_config_map(namespace, resource_version="999999999")


def two_writers_race(client: Client, namespace: str) -> Any:
    """Of many replacements of one version exactly one wins."""
    core = kubernetes.client.CoreV1Api(client)
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "raced"}})
    held = core.read_namespaced_config_map("raced", namespace)
    statuses: list[int] = []

    def write(number: int) -> None:
        body = client.sanitize_for_serialization(held) | {"data": {"by": str(number)}}
        try:
            core.replace_namespaced_config_map("raced", namespace, body)
            statuses.append(200)
        except ApiException as error:
            statuses.append(error.status)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(statuses)


def deletes_with_preconditions(client: Client, namespace: str) -> Any:
    core = kubernetes.client.CoreV1Api(client)
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "guarded"}})
    other = "00000000-0000-0000-0000-000000000000"
    return core.delete_namespaced_config_map(
        "guarded", namespace, body={"preconditions": {"uid": other}}
    )


def _make_owner(client: Client, namespace: str, ending: str) -> Any:
    """An owner and one that it owns, which blocks its owner's deletion in the foreground."""
    core = kubernetes.client.CoreV1Api(client)
    owner = core.create_namespaced_config_map(namespace, {"metadata": {"name": f"owner-{ending}"}})
    return _make_owned(core, namespace, ending, owner.metadata.uid)


def _make_owned(core: Any, namespace: str, ending: str, uid: str) -> Any:
    reference = {
        "apiVersion": "v1", "kind": "ConfigMap", "name": f"owner-{ending}", "uid": uid,
        "blockOwnerDeletion": True, "controller": True,
    }  # fmt: skip
    return core.create_namespaced_config_map(
        namespace, {"metadata": {"name": f"owned-{ending}", "ownerReferences": [reference]}}
    )


def makes_an_owner_background(client: Client, namespace: str) -> Any:
    return _make_owner(client, namespace, "background")


def makes_an_owner_foreground(client: Client, namespace: str) -> Any:
    return _make_owner(client, namespace, "foreground")


def makes_an_owner_orphan(client: Client, namespace: str) -> Any:
    return _make_owner(client, namespace, "orphan")


def makes_an_owner_held(client: Client, namespace: str) -> Any:
    return _make_owner(client, namespace, "held")


def makes_one_with_a_missing_owner(client: Client, namespace: str) -> Any:
    core = kubernetes.client.CoreV1Api(client)
    made = _make_owned(core, namespace, "missing", "22222222-2222-2222-2222-222222222222")
    return made.metadata.name


def _discover(client: Client, namespace: str, path: str, kept: set[str]) -> Any:
    answer = request(client, namespace, path=path)["out"]
    resources = [
        {
            # The hash names a way of storing; verbs are a set.
            key: sorted(each) if key == "verbs" else each
            for key, each in resource.items()
            if key != "storageVersionHash"
        }
        for resource in answer["resources"]
        if resource["name"].split("/")[0] in kept
    ]
    return {**answer, "resources": sorted(resources, key=lambda resource: resource["name"])}


def discovers_batch(client: Client, namespace: str) -> Any:
    return _discover(client, namespace, "/apis/batch/v1", {"jobs"})


def discovers_apps(client: Client, namespace: str) -> Any:
    return _discover(client, namespace, "/apis/apps/v1", {"deployments", "statefulsets"})


def discovers_boats(client: Client, namespace: str) -> Any:
    return _discover(client, namespace, "/apis/sea.example.com/v1", {"boats"})


def discovers_core(client: Client, namespace: str) -> Any:
    kept = {
        "configmaps", "secrets", "pods", "services", "serviceaccounts", "namespaces", "events",
        "persistentvolumeclaims",
    }  # fmt: skip
    return _discover(client, namespace, "/api/v1", kept)


def discovers_aggregated(client: Client, namespace: str) -> Any:
    """The one document from which newer clients learn everything; only our kinds are kept."""
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    answer = request(client, namespace, path="/apis", headers={"Accept": accept})
    found = {}
    for group in answer["out"].get("items", []):
        if group["metadata"]["name"] in ("batch", "scheduling.k8s.io", "coordination.k8s.io"):
            version = group["versions"][0]
            kept = ("jobs", "priorityclasses", "leases")
            found[group["metadata"]["name"]] = {
                "version": version["version"],
                "resources": [
                    resource for resource in version["resources"] if resource["resource"] in kept
                ],
            }
    return {"code": answer["code"], "kind": answer["out"].get("kind"), "groups": found}


def lists_schemas(client: Client, namespace: str) -> Any:
    """Which groups have a schema document, of those that both servers have."""
    answer = request(client, namespace, path="/openapi/v3")["out"]
    wanted = ("api/v1", "apis/apps/v1", "apis/batch/v1", "apis/rbac.authorization.k8s.io/v1")
    return {path: "serverRelativeURL" in answer["paths"].get(path, {}) for path in wanted}


def uses_a_robots_token(client: Client, namespace: str) -> Any:
    """A service account's token says who asks, and carries that account's rights only."""
    core = kubernetes.client.CoreV1Api(client)
    made = core.create_namespaced_service_account_token(
        "robot", namespace, {"spec": {"expirationSeconds": 3600, "audiences": None}}
    )
    configuration = copy.copy(client.configuration)
    configuration.api_key = {"BearerToken": f"Bearer {made.status.token}"}
    configuration.refresh_api_key_hook = None
    with kubernetes.client.ApiClient(configuration) as robot:
        review = request(
            robot, namespace, method="POST",
            path="/apis/authentication.k8s.io/v1/selfsubjectreviews",
            body={"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
        )  # fmt: skip
        maps = request(robot, namespace, path="/api/v1/namespaces/$NS/configmaps")
        pods = request(robot, namespace, path="/api/v1/namespaces/$NS/pods")
    who = review["out"]["status"]["userInfo"]
    who.get("extra", {}).pop("authentication.kubernetes.io/credential-id", None)
    return {"who": who, "configmaps": maps["code"], "pods": pods}


def records_an_event(client: Client, namespace: str) -> Any:
    """An event of the newer group is read in the older one too."""
    events = kubernetes.client.EventsV1Api(client)
    now = datetime.datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=datetime.UTC)
    events.create_namespaced_event(
        namespace,
        kubernetes.client.EventsV1Event(
            metadata=kubernetes.client.V1ObjectMeta(name="told.1"),
            regarding={"apiVersion": "v1", "kind": "Pod", "name": "told", "namespace": namespace},
            reason="Told", note="it was told", type="Normal", action="Tell", event_time=now,
            reporting_controller="example.invalid/teller", reporting_instance="one",
        ),
    )  # fmt: skip
    return kubernetes.client.CoreV1Api(client).read_namespaced_event("told.1", namespace)


def holds_a_lease(client: Client, namespace: str) -> Any:
    leases = kubernetes.client.CoordinationV1Api(client)
    now = datetime.datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=datetime.UTC)
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": now}
    made = leases.create_namespaced_lease(namespace, {"metadata": {"name": "held"}, "spec": spec})
    made.spec.holder_identity = "two"
    return leases.replace_namespaced_lease("held", namespace, made)


def uses_the_dynamic_client(client: Client, namespace: str) -> Any:
    dynamic = kubernetes.dynamic.DynamicClient(client)
    jobs = dynamic.resources.get(api_version="batch/v1", kind="Job")
    container = {"name": "main", "image": "example.invalid/x:1"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    body = {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "dynamic"}, "spec": {"template": template},
    }  # fmt: skip
    jobs.create(body=body, namespace=namespace)
    patched = jobs.patch(
        name="dynamic", namespace=namespace, body={"spec": {"suspend": True}},
        content_type="application/merge-patch+json",
    )  # fmt: skip
    return patched.to_dict()


def _parsed(data: bytes | str | None) -> Any:
    text = data.decode() if isinstance(data, bytes) else (data or "")
    try:
        return json.loads(text)
    except ValueError:
        return text
