"""Devices of resource slices, claimed through a hub and allocated by a real kube-scheduler.

The test bed publishes the slices; no driver is needed to allocate what they list.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fairway.api.amounts import Quantity
from fairway.api.workload import Workload
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import Fleet, Member
from tests.kubernetes.hubs import HubRig, Json, basics, gang, hub_of
from tests.waiting import seen

pytestmark = IN_THE_FLEET
API = "resource.k8s.io/v1"
DRIVER, RESOURCE = "devices.example.com", "example.com/device"
CLASS = f"deviceclass.resource.kubernetes.io/{DRIVER}"
NODES = ("l4-0", "l4-1")


def published(node: str, count: int) -> Json:
    """A slice with the devices of a node."""
    product = {"productName": {"string": "Example-Accelerator-1"}}
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"device-{at}", "attributes": product} for at in range(count)],
    }
    metadata = {"name": f"{node}-devices"}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


def device_class(name: str, expression: str, **spec: Any) -> Json:
    selectors = [{"cel": {"expression": expression}}]
    metadata, kind = {"name": name}, "DeviceClass"
    spec = {"selectors": selectors, **spec}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


CLASSES = (
    device_class(
        DRIVER,
        f"device.attributes['{DRIVER}'].productName == 'Example-Accelerator-1'",
        extendedResourceName=RESOURCE,
    ),
    device_class("rare.example.com", f"device.attributes['{DRIVER}'].productName == 'Rare'"),
)


def template(name: str, request: Json) -> Json:
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"spec": {"devices": {"requests": [{"name": "all", **request}]}}},
    }


def exactly(count: int) -> Json:
    return {"exactly": {"deviceClassName": DRIVER, "count": count}}


EITHER = {
    "firstAvailable": [
        {"name": "rare", "deviceClassName": "rare.example.com", "count": 1},
        {"name": "usual", "deviceClassName": DRIVER, "count": 2},
    ]
}


def asking(name: str, claim: str, pods: int = 1) -> Json:
    """A gang whose pods get devices by a template."""
    made = gang(
        name, pods=pods, pod={"resourceClaims": [{"name": "d", "resourceClaimTemplateName": claim}]}
    )
    spec = made["spec"]["template"]["manifests"][0]["spec"]["template"]["spec"]
    spec["containers"][0]["resources"] = {"claims": [{"name": "d"}]}
    return made


def by_resource(name: str, count: int) -> Json:
    """A gang whose pod requests devices as an extended resource."""
    made = gang(name)
    spec = made["spec"]["template"]["manifests"][0]["spec"]["template"]["spec"]
    spec["containers"][0]["resources"] = {"limits": {RESOURCE: count}}
    return made


def objects(nominal: int) -> list[Json]:
    made = basics()
    for item in made:
        if item["kind"] == "Fleet":
            classes = (DRIVER, "rare.example.com")
            listed = [{"name": name, "resource": RESOURCE} for name in classes]
            item["spec"]["deviceClasses"] = listed
        if item["kind"] == "Queue":
            quotas = [{"resource": RESOURCE, "nominal": nominal}]
            flavors = [{"name": "l4", "quotas": quotas}]
            item["spec"]["resourceGroups"] = [{"resources": [RESOURCE], "flavors": flavors}]
    return made


@asynccontextmanager
async def devices_in(member: Member, count: int) -> AsyncIterator[None]:
    """The nodes of a member have devices for a while."""
    slices = [published(node, count) for node in NODES]
    await asyncio.to_thread(member.apply, *CLASSES, *slices)
    try:
        yield
    finally:
        left = [f"resourceslice/{node}-devices" for node in NODES]
        left += [f"deviceclass/{item['metadata']['name']}" for item in CLASSES]
        await asyncio.to_thread(member.kubectl, "delete", *left)


async def allocated(hub: HubRig) -> dict[str, list[str]]:
    """The devices that the scheduler allocated, by the pods they are reserved for."""
    told = await hub.kubectl("edge", "get", "resourceclaims", "--namespace=team", "-o", "json")
    return {
        pod["name"]: [
            f"{result['pool']}/{result['device']}"
            for result in claim["status"]["allocation"]["devices"]["results"]
        ]
        for claim in json.loads(told)["items"]
        for pod in claim.get("status", {}).get("reservedFor", ())
    }


async def free(hub: HubRig) -> int:
    found = await hub.client.get("clusters.fairway.dev", "edge")
    return int(found["status"].get("free", {}).get(CLASS, 0))


async def until_free(hub: HubRig, count: int) -> None:
    await seen(lambda: free(hub), lambda item: item == count, f"{count} free devices")


def charged(workload: Workload) -> Quantity:
    assert workload.status.claim is not None
    (pods,) = workload.status.claim.placements[0].pod_sets
    assert pods.flavors[RESOURCE] == "l4"
    return pods.requests[RESOURCE]


async def test_claims_templates_and_extended_resources_share_quota_and_devices(
    fleet: Fleet, tmp_path: Path
) -> None:
    async with (
        hub_of(fleet, tmp_path, "edge", objects=objects(8)) as hub,
        devices_in(hub.members["edge"], 4),
    ):
        await until_free(hub, 8)
        await hub.apply(template("three", exactly(3)), template("two", exactly(2)))
        await hub.apply(asking("train", "three", pods=2))
        running = await hub.until("train", "Running")
        assert charged(running) == Quantity.of(3)
        pods = {pod["metadata"]["name"] for pod in await hub.pods("edge", "train")}
        given = await allocated(hub)
        assert given.keys() == pods
        assert sorted(len(set(names)) for names in given.values()) == [3, 3]
        await hub.apply(by_resource("plain", 1))
        assert charged(await hub.until("plain", "Running")) == Quantity.of(1)
        given = await allocated(hub)
        assert len({name for names in given.values() for name in names}) == 7
        await hub.apply(asking("more", "two"))
        await hub.until("more", lambda item: item.status.reason == "QuotaExceeded", "no quota")
        await hub.apply(next(item for item in objects(64) if item["kind"] == "Queue"))
        await hub.until("more", lambda item: item.status.reason == "DoesNotFit", "no room")
        assert await hub.pods("edge", "more") == []
        await hub.cancel("train")
        await hub.until("more", "Running")


async def test_an_alternative_is_pinned_before_the_scheduler_sees_it(
    fleet: Fleet, tmp_path: Path
) -> None:
    async with (
        hub_of(fleet, tmp_path, "edge", objects=objects(64)) as hub,
        devices_in(hub.members["edge"], 2),
    ):
        await until_free(hub, 4)
        await hub.apply(template("either", EITHER), asking("train", "either"))
        running = await hub.until("train", "Running")
        assert running.status.claim is not None
        assert running.status.claim.alternative == "device-choice-2"
        assert charged(running) == Quantity.of(2)
        (names,) = (await allocated(hub)).values()
        assert len(names) == 2
        await hub.apply(asking("unknown", "absent"))
        refused = await hub.until("unknown", lambda item: bool(item.status.reason), "a reason")
        assert refused.status.reason == "DevicesNotCounted"
