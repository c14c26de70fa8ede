"""What must hold of every answer, and of the store at any time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from fairway.resources.resource import Resource
from fairway.schema.validation import Findings, conform
from fairway.server.wire.exchange import Request, Response

if TYPE_CHECKING:
    from tests.fuzz.driver import Driver

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

# Words of the inside that no client should ever read.
_INSIDE = re.compile(
    r"Traceback|object at 0x|<class |<function |\b(Key|Type|Value|Attribute|Index|Recursion|"
    r"Assertion|Unicode\w*|Validation|Decode|Encode)Error\b|msgspec|NoneType|'(dict|list|str)'|"
    r"\bfairway/\w+|\.py\b|codec can't|Python"
)
# Some messages of Kubernetes are lists, one entry a line; clients know them by these words.
_LISTS = re.compile(r"(errors|not currently held|conflicts with [^\n]*):\n")


def check_answer(request: Request, response: Response, errors: list[str]) -> None:
    """An answer is never a 500; a refusal is a Status with one readable line."""
    assert not errors, f"{request}\n{errors}"
    assert 200 <= response.status < 600, f"{response.status} to {request}"
    assert response.status not in (500, 501, 502), f"{response.body!r} to {request}"
    if response.status >= 400 and response.content_type.startswith("application/json"):
        check_refusal(request, response)
    elif response.stream is None and response.content_type.startswith("application/json"):
        msgspec.json.decode(response.body)
    for warning in response.warnings:
        assert warning.isprintable(), f"{warning!r} to {request}"


def check_refusal(request: Request, response: Response) -> None:
    status = msgspec.json.decode(response.body)
    assert (status["kind"], status["apiVersion"]) == ("Status", "v1")
    assert status["status"] == "Failure"
    assert status["code"] == response.status
    assert status["reason"], status
    message = status["message"]
    assert message.strip(), f"an empty message to {request}"
    line = message.replace("\n", "") if _LISTS.search(message) else message
    assert line.isprintable(), f"{message!r} to {request}"
    asked = f"{request.body!r}{request.path}{request.query}{request.headers}"
    for found in _INSIDE.finditer(message):
        # What the client itself wrote may be said back to it.
        assert found.group() in asked, f"{message!r} to {request}"


def check_store(driver: Driver, *, lenient: frozenset[str] = frozenset()) -> None:
    """Every object decodes, conforms to its schema, and is the same wherever it is looked at.

    Objects of the kinds named in `lenient` may be older than the schema of today.
    """
    for resource in list(driver.hub.store.catalogue):
        if resource.is_stored and "list" in resource.verbs:
            check_kind(driver, resource, is_lenient=resource.qualified in lenient)


def check_kind(driver: Driver, resource: Resource, *, is_lenient: bool = False) -> None:
    everywhere = address(resource)
    listed = driver.json("GET", everywhere)
    assert listed["kind"] == (resource.list_kind or resource.kind + "List")
    table = driver.json("GET", everywhere, headers=(("accept", TABLE),))
    assert [row["object"]["metadata"]["name"] for row in table["rows"]] == [
        item["metadata"]["name"] for item in listed["items"]
    ]
    for row in table["rows"]:
        assert len(row["cells"]) == len(table["columnDefinitions"]), row
    for item in listed["items"]:
        _check_object(driver, resource, item, is_lenient=is_lenient)


def _check_object(
    driver: Driver, resource: Resource, one: dict[str, Any], *, is_lenient: bool
) -> None:
    metadata = one["metadata"]
    path = address_of(resource, one)
    assert driver.json("GET", path) == one
    assert (one["apiVersion"], one["kind"]) == (resource.api_version, resource.kind)
    for field in ("uid", "resourceVersion", "creationTimestamp"):
        assert isinstance(metadata[field], str), one
        assert metadata[field], one
    if is_lenient:
        return
    findings = Findings(checks_duplicates=resource.is_custom)
    again = msgspec.json.decode(msgspec.json.encode(one))
    conform(again, resource.schema, findings)
    assert not findings.faults, (path, findings.faults)
    assert not findings.unknown, (path, findings.unknown)
    assert again == one, f"{path} is kept in another form than its schema gives it"


def address(resource: Resource, namespace: str = "", name: str = "") -> str:
    """The path of a kind, of its part in a namespace, or of one object."""
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    inside = f"/namespaces/{namespace}" if namespace and resource.namespaced else ""
    return f"{root}{inside}/{resource.plural}" + (f"/{name}" if name else "")


def address_of(resource: Resource, body: dict[str, Any]) -> str:
    metadata = body["metadata"]
    return address(resource, metadata.get("namespace", ""), metadata["name"])


def contents(driver: Driver) -> dict[str, list[bytes]]:
    """Everything that is kept, to be compared."""
    found: dict[str, list[bytes]] = {}
    for resource in list(driver.hub.store.catalogue):
        if resource.is_stored and "list" in resource.verbs:
            listed = driver.json("GET", address(resource))
            found[f"{resource.qualified}/{resource.version}"] = [
                msgspec.json.encode(item) for item in listed["items"]
            ]
    return found
