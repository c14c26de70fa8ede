"""Devices that pods ask for through resource claims: charged in quota, fitted by class."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.reasons import Code
from tests.builders import Plain, flavor, fleet, plan_of, pool, queue, told, workload
from tests.device_claims import (
    CLASS,
    GPU,
    MAPPED,
    asking,
    claim,
    devices,
    either,
    from_template,
    job,
    named,
    nodes,
    template,
)

GPUS, LARGE, SLICES = f"{CLASS}gpu.example.com", f"{CLASS}large.example.com", "example.com/slice"
SLICE = f"{CLASS}slice.example.com"
Q = queue("q", 8)
BOTH = queue("q", resourceGroups=[{"resources": [GPU, SLICES], "flavors": [
    {"name": "h100", "quotas": [{"resource": GPU, "nominal": 2},
                                {"resource": SLICES, "nominal": 8}]}]}])  # fmt: skip
TWO, THREE = template("two", devices(count=2)), template("three", devices(count=3))
CHOICE = template("choice", either(("gpu", 2), ("slice", 4)))
EAST = nodes("east", {GPUS: 8})


def large(count: int) -> Plain:
    return devices(deviceClassName="large.example.com", count=count)


FLEETS = {
    "devices of a template are charged to every pod": (
        [MAPPED, Q, EAST, TWO, asking("a", from_template("two"), count=4, waited=90),
         asking("b", from_template("two"))],
        ["a starts in east:4@h100", "b waits: QuotaExceeded, NoVictims"],
    ),
    "and need room on a node": (
        [MAPPED, queue("q", 64), nodes("east", {GPUS: 4}, {GPUS: 4}), THREE,
         asking("a", from_template("three"), count=2, waited=90),
         asking("b", from_template("three"))],
        ["a starts in east:2@h100", "b waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a claim that one pod names is charged once": (
        [MAPPED, Q, EAST, claim("own", devices(count=6)), asking("a", named("own"), waited=90),
         TWO, asking("b", from_template("two")), asking("c", from_template("two"), waited=50)],
        ["a starts in east:1@h100", "b starts in east:1@h100",
         "c waits: QuotaExceeded, NoVictims"],
    ),
    "several claims and requests of a pod add up, with its containers' own": (
        [MAPPED, Q, nodes("east", {GPUS: 8, GPU: 8}), TWO,
         template("more", devices("x"), devices("y", 2)),
         asking("a", from_template("two"), from_template("more"), requests={GPU: 3})],
        ["a starts in east:1@h100"],
    ),
    "and exceed quota together": (
        [MAPPED, Q, EAST, TWO, template("more", devices("x"), devices("y", 2)),
         asking("a", from_template("two"), from_template("more"), requests={GPU: 4})],
        ["a waits: QuotaTooSmall, NoVictims"],
    ),
    "a template may come with the workload": (
        [MAPPED, queue("q", 2), EAST, asking("a", from_template("two"), beside=(TWO,), waited=90),
         asking("b", from_template("two"), beside=(TWO,))],
        ["a starts in east:1@h100", "b waits: QuotaExceeded, NoVictims"],
    ),
    "the implicit resource of a class is charged as its devices are": (
        [MAPPED, queue("q", 2), EAST, asking("a", requests={GPUS: 2}, waited=90),
         asking("b", requests={GPUS: 1})],
        ["a starts in east:1@h100", "b waits: QuotaExceeded, NoVictims"],
    ),
    "an extended resource that a class offers takes the same devices": (
        [MAPPED, queue("q", 64), nodes("east", {GPUS: 4, GPU: 4}), TWO,
         asking("a", from_template("two"), waited=90), asking("b", requests={GPU: 2}),
         asking("c", from_template("two"), waited=50)],
        ["a starts in east:1@h100", "b starts in east:1@h100",
         "c waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "where no class and no kubelet offers it, it does not fit": (
        [MAPPED, queue("q", 64), nodes("east", {GPUS: 4}), TWO,
         asking("a", from_template("two"), waited=50), asking("b", requests={GPU: 1})],
        ["a starts in east:1@h100", "b waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a class fits only where it has devices": (
        [MAPPED, queue("q", 64), nodes("east", {GPUS: 8}), nodes("west", {GPUS: 8, LARGE: 2}),
         template("large", large(2)), asking("a", from_template("large"), waited=90),
         asking("b", from_template("large"))],
        ["a starts in west:1@h100", "b waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "a device that two classes select is taken once": (
        [MAPPED, queue("q", 64), nodes("west", {GPUS: 4, LARGE: 2}), template("large", large(2)),
         TWO, asking("a", from_template("large"), waited=90),
         asking("b", from_template("two")), asking("c", from_template("two"), waited=50)],
        ["a starts in west:1@h100", "b starts in west:1@h100",
         "c waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "devices are counted by flavor": (
        [MAPPED, flavor("a100"), queue("q", quotas={"a100": 2, "h100": 2}), TWO,
         nodes("east", {GPUS: 8}, model="a100"), nodes("west", {GPUS: 8}),
         asking("a", from_template("two"), waited=90), asking("b", from_template("two")),
         asking("c", from_template("two"), waited=50)],
        ["a starts in east:1@a100", "b starts in west:1@h100",
         "c waits: QuotaExceeded, NoVictims"],
    ),
    "a service is charged for every replica": (
        [MAPPED, queue("q", 5), EAST, TWO,
         asking("s", from_template("two"), mode="Divided", replicas=3)],
        ["s starts in east:2@h100", "s waits: QuotaExceeded, NoVictims, NoPool, PartlyPlaced"],
    ),
    "new nodes of a pool have devices": (
        [MAPPED, queue("q", 64), THREE,
         nodes("east", {GPUS: 1}, elasticPools=[
             {**pool("p", 0, stock=9), "shape": {"cpu": "64", GPUS: 8}}]),
         asking("a", from_template("three"), count=3)],
        ["a gets 2 of east/p", "a starts in east:3@h100"],
    ),
    "devices of what runs are charged, though its claim is older than their count": (
        [MAPPED, Q, EAST, TWO,
         asking("b", from_template("two"), count=2), {**asking("a", from_template("two"), count=3),
          "status": workload("a", "q", count=3, pod_sets=[
              {"name": "pod", "count": 3, "requests": {"cpu": "1"}}], running="east")["status"]}],
        ["b waits: QuotaExceeded, NoVictims"],
    ),
    "the first alternative that fits is taken": (
        [MAPPED, BOTH, nodes("east", {GPUS: 8, SLICE: 8}), CHOICE,
         asking("a", from_template("choice"), waited=90), asking("b", from_template("choice")),
         asking("c", from_template("choice"), waited=50),
         asking("d", from_template("choice"), waited=40)],
        ["a starts in east:1@h100", "b starts as device-choice-2 in east:1@h100",
         "c starts as device-choice-2 in east:1@h100", "d waits: QuotaExceeded, NoVictims"],
    ),
    "an alternative that no cluster has is passed over": (
        [MAPPED, BOTH, nodes("east", {SLICE: 8}), CHOICE, asking("a", from_template("choice"))],
        ["a starts as device-choice-2 in east:1@h100"],
    ),
    "a workload with alternatives of its own uses the first of each request": (
        [MAPPED, BOTH, nodes("east", {GPUS: 8, SLICE: 8}), CHOICE,
         asking("a", from_template("choice"), count=2, alternatives=[
             {"name": "fewer", "podSets": [{"name": "pod", "count": 1}]}])],
        ["a starts as fewer in east:1@h100"],
    ),
    "an alternative cannot take devices out of the count": (
        [MAPPED, queue("q", 1), EAST, TWO,
         asking("a", from_template("two"), alternatives=[
             {"name": "free", "podSets": [{"name": "pod", "requests": {GPU: 0, GPUS: 0}}]}])],
        ["a waits: QuotaTooSmall, NoVictims"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "expected"), FLEETS.values(), ids=FLEETS.keys())
def test_devices(objects: list[Plain], expected: list[str]) -> None:
    assert told(plan_of(*objects)) == expected


def asked(*requests: Plain) -> list[Plain]:
    return [template("t", *requests), asking("a", from_template("t"))]


PATH = "ResourceClaimTemplate t: spec.spec.devices.requests[0]"
POD = "pod set pod: spec.resourceClaims[0]"
SHARED = (
    "pods share ResourceClaim c; use a ResourceClaimTemplate, which gives each pod devices of its "
    "own"
)
UNCOUNTED: dict[str, tuple[list[Plain], str]] = {
    "all devices of a node": (
        asked(devices(allocationMode="All")),
        f"{PATH}.exactly.allocationMode: All takes what a node has; ask for a count",
    ),
    "devices of others": (
        asked(devices(adminAccess=True)),
        f"{PATH}.exactly.adminAccess: access to devices of others is not allowed in a workload",
    ),
    "a part of a device": (
        asked(devices(capacity={"requests": {"memory": "10Gi"}})),
        f"{PATH}.exactly.capacity: a part of a device cannot be counted; ask for whole devices",
    ),
    "an alternative that cannot be counted": (
        asked({"name": "x", "firstAvailable": [
            {"name": "a", "deviceClassName": "gpu.example.com"},
            {"name": "b", "deviceClassName": "gpu.example.com", "allocationMode": "All"}]}),
        f"{PATH}.firstAvailable[1].allocationMode: All takes what a node has; ask for a count",
    ),
    "a request that asks for nothing": (
        asked({"name": "x"}), f"{PATH}: neither exactly nor firstAvailable is set",
    ),
    "no class": (
        asked({"name": "x", "exactly": {"count": 2}}),
        f"{PATH}.exactly.deviceClassName: name a device class",
    ),
    "a class that counts as nothing": (
        asked(devices(deviceClassName="other.example.com")),
        "device class other.example.com is not in spec.deviceClasses of the Fleet",
    ),
    "the implicit resource of such a class": (
        [asking("a", requests={f"{CLASS}other.example.com": 1})],
        "device class other.example.com is not in spec.deviceClasses of the Fleet",
    ),
    "a template that is not there": (
        [asking("a", from_template("t"))],
        f"{POD}.resourceClaimTemplateName: the hub has no ResourceClaimTemplate t in the namespace",
    ),
    "a template of another namespace": (
        [template("t", devices(), namespace="other"), asking("a", from_template("t"))],
        f"{POD}.resourceClaimTemplateName: the hub has no ResourceClaimTemplate t in the namespace",
    ),
    "a claim that is not there": (
        [asking("a", named("c"))],
        f"{POD}.resourceClaimName: the hub has no ResourceClaim c in the namespace",
    ),
    "an entry that names neither": (
        [asking("a", {"name": "x"})],
        f"{POD}: name a resourceClaimTemplateName or a resourceClaimName",
    ),
    "a claim that pods share": (
        [claim("c", devices()), asking("a", named("c"), count=4)],
        f"{POD}.resourceClaimName: 4 {SHARED}",
    ),
    "a claim that replicas share": (
        [claim("c", devices()), asking("a", named("c"), mode="Divided", replicas=2)],
        f"{POD}.resourceClaimName: 2 {SHARED}",
    ),
    "too many combinations": (
        asked(*(either(("gpu", 1), ("slice", 1), name=f"r{at}") for at in range(4))),
        "firstAvailable: 16 combinations of alternatives, at most 8 are tried",
    ),
    "a template of an older form": (
        [{**TWO, "apiVersion": "resource.k8s.io/v1beta1"}, asking("a", from_template("two"))],
        "ResourceClaimTemplate two: apiVersion: write it as resource.k8s.io/v1",
    ),
    "pod sets that leave out the pods": (
        [TWO, asking("a", from_template("two"), podSets=[
            {"name": "other", "count": 1, "requests": {"cpu": "1"}}])],
        "spec.podSets: pods of pod ask for devices",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "expected"), UNCOUNTED.values(), ids=UNCOUNTED.keys())
def test_what_cannot_be_counted_is_refused(objects: list[Plain], expected: str) -> None:
    made = plan_of(MAPPED, queue("q", 64), EAST, *objects)
    assert told(made) == ["a waits: DevicesNotCounted"]
    (waiting,) = made.waiting
    assert [(reason.code, reason.other) for reason in waiting.reasons] == [
        (Code.DEVICES_NOT_COUNTED, expected)
    ]


def test_a_native_job_is_counted_too() -> None:
    native = job("a", from_template("three"))
    native["metadata"]["labels"] = {"fairway.dev/queue": "q"}
    objects: list[Any] = [MAPPED, queue("q", 2), EAST, THREE, native]
    assert told(plan_of(*objects)) == ["a waits: QuotaTooSmall, NoVictims"]


def test_without_a_class_in_the_fleet_claims_are_refused_and_others_run() -> None:
    objects = [queue("q", 8), EAST, TWO, asking("a", from_template("two")), asking("b")]
    assert told(plan_of(fleet(), *objects)) == [
        "b starts in east:1@-",
        "a waits: DevicesNotCounted",
    ]
