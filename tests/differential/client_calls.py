"""Calls of the official Python client that the script names.

Each function takes the client and the group's namespace and returns what is compared. `request`
sends one bare request through the client's own connection, for what kubectl never sends.
"""

from __future__ import annotations

import json
import threading
from typing import Any

import kubernetes
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
    client.update_params_for_auth(given, [], ["BearerToken"])
    if sent is not None:
        given["Content-Type"] = "application/json"
    given.update(headers or {})
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


def _parsed(data: bytes | str | None) -> Any:
    text = data.decode() if isinstance(data, bytes) else (data or "")
    try:
        return json.loads(text)
    except ValueError:
        return text
