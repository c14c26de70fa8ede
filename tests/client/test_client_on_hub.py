"""The client against a real hub."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from fairway.api.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    NotFound,
    UnsupportedMediaType,
)
from fairway.api.meta import ObjectMeta
from fairway.api.workload import PodSet, Workload, WorkloadSpec
from fairway.client import Access, AsyncClient, Client, PatchType, Scope


def config_map(name: str, namespace: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"name": name}},
        "data": data,
    }


def workload(name: str, namespace: str) -> Workload:
    return Workload(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=WorkloadSpec(pod_sets=(PodSet(name="main", count=1),)),
    )


def deployment(name: str, namespace: str) -> dict[str, Any]:
    pods = {"containers": [{"name": "main", "image": "example"}]}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pods},
        },
    }


async def test_an_object_is_created_read_replaced_and_deleted(
    client: AsyncClient, namespace: str
) -> None:
    made = await client.create(config_map("a", namespace, key="1"))
    with pytest.raises(AlreadyExists):
        await client.create(config_map("a", namespace))
    read = await client.get("cm", "a", namespace=namespace)
    assert read == made
    replaced = await client.replace({**read, "data": {"key": "2"}})
    assert replaced["data"] == {"key": "2"}
    with pytest.raises(Conflict):
        await client.replace({**read, "data": {"key": "3"}})
    await client.delete("configmaps", "a", namespace=namespace)
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await client.get("configmaps", "a", namespace=namespace)


async def test_lists_are_read_page_by_page_and_by_selector(
    client: AsyncClient, namespace: str
) -> None:
    for number in range(5):
        await client.create(config_map(f"c{number}", namespace))
    scope = Scope(namespace=namespace)
    whole = await client.list("configmaps", scope=scope, page_size=2)
    assert [item["metadata"]["name"] for item in whole.items] == [f"c{n}" for n in range(5)]
    assert whole.items[0]["kind"] == "ConfigMap"
    page = await client.list_page("configmaps", scope=scope, limit=2)
    assert (len(page.items), bool(page.continue_token)) == (2, True)
    chosen = Scope(namespace=namespace, labels="name in (c1,c3)", fields="metadata.name!=c3")
    found = await client.list("configmaps", scope=chosen)
    assert [item["metadata"]["name"] for item in found.items] == ["c1"]


async def test_a_table_has_the_servers_columns_over_several_pages(
    client: AsyncClient, namespace: str
) -> None:
    for number in range(3):
        await client.create(config_map(f"c{number}", namespace, key="v"))
    scope = Scope(namespace=namespace)
    table = await client.table("cm", scope=scope, page_size=2, with_objects=True)
    assert [column_definition["name"] for column_definition in table["columnDefinitions"]] == [
        "Name",
        "Data",
        "Age",
    ]
    assert [row["cells"][:2] for row in table["rows"]] == [["c0", 1], ["c1", 1], ["c2", 1]]
    assert table["rows"][0]["object"]["data"] == {"key": "v"}


async def test_patches_of_every_sort(client: AsyncClient, namespace: str) -> None:
    await client.create(deployment("web", namespace))

    async def patch(body: object, form: PatchType) -> Any:
        return await client.patch("deploy", "web", body, type=form, namespace=namespace)

    merged = await patch({"spec": {"replicas": 2}}, PatchType.MERGE)
    assert merged["spec"]["replicas"] == 2
    steps = [{"op": "replace", "path": "/spec/replicas", "value": 3}]
    assert (await patch(steps, PatchType.JSON))["spec"]["replicas"] == 3
    sidecar = {"containers": [{"name": "side", "image": "example"}]}
    strategic = await patch({"spec": {"template": {"spec": sidecar}}}, PatchType.STRATEGIC)
    names = {container["name"] for container in strategic["spec"]["template"]["spec"]["containers"]}
    assert names == {"main", "side"}
    with pytest.raises(BadRequest):
        await patch({"not": "a list"}, PatchType.JSON)
    await client.apply(
        {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "Workload",
            "metadata": {"name": "w", "namespace": namespace},
            "spec": {"podSets": [{"name": "main", "count": 1}]},
        }
    )
    with pytest.raises(UnsupportedMediaType):
        await client.patch("wl", "w", {}, type=PatchType.STRATEGIC, namespace=namespace)


async def test_apply_shares_an_object_between_managers(client: AsyncClient, namespace: str) -> None:
    ours = config_map("a", namespace, ours="1")
    theirs = config_map("a", namespace, theirs="1")
    await client.apply(ours)
    both = await client.apply(theirs, manager="other")
    assert both["data"] == {"ours": "1", "theirs": "1"}
    with pytest.raises(Conflict, match="conflict"):
        await client.apply(config_map("a", namespace, ours="2"), manager="other")
    forced = await client.apply(config_map("a", namespace, ours="2"), manager="other", force=True)
    assert forced["data"] == {"ours": "2"}


async def test_a_dry_run_changes_nothing(client: AsyncClient, namespace: str) -> None:
    assert (await client.create(config_map("a", namespace), dry_run=True))["kind"] == "ConfigMap"
    with pytest.raises(NotFound):
        await client.get("cm", "a", namespace=namespace)


async def test_scale_and_status_are_parts_of_an_object(client: AsyncClient, namespace: str) -> None:
    await client.create(deployment("web", namespace))
    scale = await client.scale("deployments", "web", 4, namespace=namespace)
    assert scale["spec"]["replicas"] == 4
    status = {"status": {"replicas": 4}}
    await client.patch("deploy", "web", status, namespace=namespace, subresource="status")
    read = await client.get("deploy", "web", namespace=namespace)
    assert (read["spec"]["replicas"], read["status"]["replicas"]) == (4, 4)


async def test_a_watch_tells_what_is_and_what_becomes(client: AsyncClient, namespace: str) -> None:
    await client.create(config_map("a", namespace))
    seen: list[tuple[str, str]] = []
    async with aclosing(client.watch("cm", scope=Scope(namespace=namespace))) as events:
        async for event in events:
            name = event.object["metadata"].get("name", "")
            seen.append((event.type, name))
            if event.type == "BOOKMARK" and len(seen) == 2:
                await client.apply(config_map("b", namespace))
                await client.apply(config_map("b", namespace, key="2"))
                await client.delete("cm", "b", namespace=namespace)
            if event.type == "DELETED":
                break
    expected = [("ADDED", "a"), ("BOOKMARK", ""), ("ADDED", "b"), ("MODIFIED", "b")]
    assert seen == [*expected, ("DELETED", "b")]


async def test_a_new_kind_is_found_without_being_told(
    client: AsyncClient, access: Access, namespace: str
) -> None:
    await client.discovery.catalogue()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.test"},
        "spec": {
            "group": "example.test",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
    async with AsyncClient(access) as other:
        await other.create(definition)
    served = await client.discovery.resolve("gd")
    assert served.api_version == "example.test/v1"


async def test_typed_objects_make_the_round_trip(client: AsyncClient, namespace: str) -> None:
    workloads = client.kind(Workload)
    made = await workloads.create(workload("w", namespace))
    assert made.metadata.uid
    read = await workloads.get("w", namespace=namespace)
    assert read == made
    assert await workloads.list(scope=Scope(namespace=namespace)) == [read]
    async with aclosing(workloads.watch(scope=Scope(namespace=namespace))) as events:
        first = await anext(events)
    assert (first.type, first.object) == ("ADDED", read)
    await workloads.delete("w", namespace=namespace)
    assert await workloads.list(scope=Scope(namespace=namespace)) == []


async def test_many_calls_at_once_share_one_client(client: AsyncClient, namespace: str) -> None:
    names = [f"c{number}" for number in range(40)]
    await asyncio.gather(*(client.create(config_map(name, namespace)) for name in names))
    listing = await client.list("cm", scope=Scope(namespace=namespace))
    assert {item["metadata"]["name"] for item in listing.items} == set(names)


def test_the_same_calls_without_await(access: Access) -> None:
    with Client(access) as client:
        namespace = "synchronous"
        client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        client.apply(config_map("a", namespace, key="1"))
        assert client.get("cm", "a", namespace=namespace)["data"] == {"key": "1"}
        scope = Scope(namespace=namespace)
        events = client.watch("cm", scope=scope)
        assert next(events).type == "ADDED"
        assert next(events).type == "BOOKMARK"
        events.close()  # type: ignore[attr-defined]  # a generator
        typed = client.kind(Workload)
        typed.create(workload("w", namespace))
        assert [item.metadata.name for item in typed.list(scope=scope)] == ["w"]
        with pytest.raises(ApiError):
            typed.get("missing", namespace=namespace)
        assert client.resolve("wl").kind == "Workload"
        assert client.fetch("/version")["gitVersion"]
