"""The life of a kind that a user defines: served at once, changed, and gone with its objects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hub_calls import MERGE, STRATEGIC, Caller, Json, fresh

from tests.waiting import PATIENCE_SECONDS

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def version(name: str, *, is_stored: bool, **extra: Any) -> Json:
    properties = {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 0, "default": 1},
                "colour": {"type": "string", "enum": ["red", "green"]},
            },
            "x-kubernetes-validations": [{"rule": "self.size < 100", "message": "it is too large"}],
        },
        "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
    }
    return {
        "name": name,
        "served": True,
        "storage": is_stored,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        **extra,
    }


def definition(plural: str, *versions: Json) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.toys.example"},
        "spec": {
            "group": "toys.example",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Toy" + plural, "shortNames": [plural[:3]]},
            "versions": list(versions),
        },
    }


WITH_DOORS: Json = {
    "subresources": {
        "status": {},
        "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
    },
    "additionalPrinterColumns": [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
    ],
}


@pytest.fixture
def plural() -> str:
    return fresh("toys").replace("-", "")


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await holds():
            await asyncio.sleep(0.005)


async def test_a_kind_is_served_as_soon_as_it_is_created(
    call: Caller, namespace: str, plural: str
) -> None:
    path = f"/apis/toys.example/v1/namespaces/{namespace}/{plural}"
    assert (await call("GET", path)).status == 404
    made = await call("POST", CRDS, definition(plural, version("v1", is_stored=True)))
    assert made.status == 201, made.body
    assert (await call("GET", path)).status == 200
    toy = {"apiVersion": "toys.example/v1", "kind": "Toy" + plural, "metadata": {"name": "one"}}
    first = await call("POST", path, {**toy, "spec": {"unknown": 1}})
    assert (first.status, first.json["spec"]) == (201, {"size": 1})
    assert first.warnings == ['299 - "unknown field \\"spec.unknown\\""']
    stored = (await call("GET", f"{CRDS}/{plural}.toys.example")).json
    conditions = {
        condition["type"]: condition["status"] for condition in stored["status"]["conditions"]
    }
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    listed = (await call("GET", "/apis/toys.example/v1")).json["resources"]
    assert plural in [item["name"] for item in listed]
    document = (await call("GET", "/openapi/v3/apis/toys.example/v1")).json
    assert any(name.endswith("Toy" + plural) for name in document["components"]["schemas"])


async def test_objects_follow_their_schema(call: Caller, namespace: str, plural: str) -> None:
    await call("POST", CRDS, definition(plural, version("v1", is_stored=True)))
    path = f"/apis/toys.example/v1/namespaces/{namespace}/{plural}"
    toy = {"apiVersion": "toys.example/v1", "kind": "Toy" + plural, "metadata": {"name": "one"}}
    for spec, field in (
        ({"size": -1}, "spec.size"),
        ({"size": 100}, "spec"),
        ({"colour": "blue"}, "spec.colour"),
        ({"size": "large"}, "spec.size"),
    ):
        refused = await call("POST", path, {**toy, "spec": spec})
        assert refused.status == 422, spec
        assert field in [cause["field"] for cause in refused.json["details"]["causes"]]
    await call("POST", path, {**toy, "spec": {"size": 3}})
    assert (await call("PATCH", f"{path}/one", {}, headers=STRATEGIC)).status == 415
    too_large = {"spec": {"size": 200}}
    assert (await call("PATCH", f"{path}/one", too_large, headers=MERGE)).status == 422


async def test_two_versions_show_one_object(call: Caller, namespace: str, plural: str) -> None:
    versions = (version("v1", is_stored=True), version("v1beta1", is_stored=False))
    await call("POST", CRDS, definition(plural, *versions))
    old = f"/apis/toys.example/v1beta1/namespaces/{namespace}/{plural}"
    new = f"/apis/toys.example/v1/namespaces/{namespace}/{plural}"
    toy = {"kind": "Toy" + plural, "metadata": {"name": "one"}, "spec": {"size": 2}}
    made = await call("POST", old, {**toy, "apiVersion": "toys.example/v1beta1"})
    assert made.json["apiVersion"] == "toys.example/v1beta1"
    seen = await call("GET", f"{new}/one")
    assert (seen.json["apiVersion"], seen.json["spec"]) == ("toys.example/v1", {"size": 2})
    async with call.watch(old) as stream:
        event = await stream.event()
        assert event is not None
        assert event["object"]["apiVersion"] == "toys.example/v1beta1"
    group = (await call("GET", "/apis/toys.example")).json
    assert group["preferredVersion"]["version"] == "v1"
    versions[1]["served"] = False
    spec = {"spec": {"versions": list(versions)}}
    assert (await call("PATCH", f"{CRDS}/{plural}.toys.example", spec, headers=MERGE)).status == 200
    assert (await call("GET", old)).status == 404
    assert (await call("GET", f"{new}/one")).status == 200


async def test_status_scale_and_columns_are_as_defined(
    call: Caller, namespace: str, plural: str
) -> None:
    await call("POST", CRDS, definition(plural, version("v1", is_stored=True, **WITH_DOORS)))
    path = f"/apis/toys.example/v1/namespaces/{namespace}/{plural}"
    toy = {"apiVersion": "toys.example/v1", "kind": "Toy" + plural, "metadata": {"name": "one"}}
    made = await call("POST", path, {**toy, "spec": {"colour": "red"}, "status": {"size": 7}})
    assert "status" not in made.json
    status = await call("PATCH", f"{path}/one/status", {"status": {"size": 7}}, headers=MERGE)
    assert status.json["status"] == {"size": 7}
    assert status.json["metadata"]["generation"] == 1
    scale = await call("GET", f"{path}/one/scale")
    assert (scale.json["spec"], scale.json["status"]["replicas"]) == ({"replicas": 1}, 7)
    scaled = await call("PATCH", f"{path}/one/scale", {"spec": {"replicas": 4}}, headers=MERGE)
    assert scaled.json["spec"] == {"replicas": 4}
    assert (await call("GET", f"{path}/one")).json["spec"]["size"] == 4
    table = (await call("GET", path, headers=TABLE)).json
    assert [column_definition["name"] for column_definition in table["columnDefinitions"]] == [
        "Name",
        "Size",
        "Colour",
    ]
    assert table["rows"][0]["cells"] == ["one", 4, "red"]


async def test_a_kind_that_is_removed_takes_its_objects_along(
    call: Caller, namespace: str, plural: str
) -> None:
    await call("POST", CRDS, definition(plural, version("v1", is_stored=True)))
    path = f"/apis/toys.example/v1/namespaces/{namespace}/{plural}"
    toy = {"apiVersion": "toys.example/v1", "kind": "Toy" + plural, "metadata": {"name": "one"}}
    await call("POST", path, toy)
    async with call.watch(path) as stream:
        await stream.event()
        assert (await call("DELETE", f"{CRDS}/{plural}.toys.example")).status == 200
        gone = await stream.event()
        assert gone is not None
        assert (gone["type"], gone["object"]["metadata"]["name"]) == ("DELETED", "one")

    async def is_gone() -> bool:
        return (await call("GET", f"{CRDS}/{plural}.toys.example")).status == 404

    await eventually(is_gone)
    assert (await call("GET", path)).status == 404
    again = await call("POST", CRDS, definition(plural, version("v1", is_stored=True)))
    assert again.status == 201
    assert (await call("GET", path)).json["items"] == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"names": {"plural": "x", "kind": "X"}}, "metadata.name", id="its name"),
        pytest.param({"versions": []}, "spec.versions", id="no version"),
        pytest.param({"scope": "Everywhere"}, "spec.scope", id="its scope"),
    ],
)
async def test_a_definition_that_makes_no_sense_is_refused(
    call: Caller, plural: str, change: Json, field: str
) -> None:
    body = definition(plural, version("v1", is_stored=True))
    body["spec"] |= change
    refused = await call("POST", CRDS, body)
    assert refused.status == 422
    assert field in [cause["field"] for cause in refused.json["details"]["causes"]]
