"""Devices in resource slices are counted by class; those that cannot be counted say why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairway.agent.drivers.interface import PodSeen
from fairway.agent.drivers.kubernetes.device_classes import read_class
from fairway.agent.drivers.kubernetes.devices import read_allocation, read_slice
from fairway.agent.drivers.kubernetes.nodes import Node
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.agent.drivers.kubernetes.pods import OwnPod, Use
from fairway.api.amounts import NANO

Json = dict[str, Any]
DRIVER = "gpu.example.com"
GPUS, LARGE = (
    f"deviceclass.resource.kubernetes.io/{name}.example.com" for name in ("gpu", "large")
)
BY_DRIVER = f"device.driver == '{DRIVER}'"
BY_MEMORY = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"


def device(name: str, memory: str = "80Gi", **more: Any) -> Json:
    attributes = {
        "productName": {"string": "Example-1"},
        "uuid": {"string": f"uuid-{name}"},
        "index": {"int": 1},
        "sriov": {"bool": False},
        "driverVersion": {"version": "1.2.3"},
        "other.example.com/numa": {"int": 0},
    }
    return {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": memory}},
        **more,
    }


def some(count: int, **more: Any) -> list[Json]:
    return [device(f"d{number}", **more) for number in range(count)]


def published(*devices: Json, node: str = "n", of: int = 1, generation: int = 1) -> bytes:
    pool = {"name": "n", "generation": generation, "resourceSliceCount": of}
    spec = {"driver": DRIVER, "pool": pool, "devices": list(devices)}
    return json.dumps({"spec": {**spec, **({"nodeName": node} if node else {})}}).encode()


def sort(*expressions: str, resource: str = "") -> bytes:
    selectors = [{"cel": {"expression": text}} for text in expressions]
    named = {"extendedResourceName": resource} if resource else {}
    return json.dumps({"spec": {"selectors": selectors, **named}}).encode()


def allocated(*names: str, pod: str = "", **more: Any) -> bytes:
    results = [{"driver": DRIVER, "pool": "n", "device": name, **more} for name in names]
    reserved = [{"resource": "pods", "name": pod, "uid": "u"}] if pod else []
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    return json.dumps({"metadata": {"namespace": "team"}, "status": status}).encode()


def picture(**classes: bytes) -> Picture:
    made = Picture(changed=lambda: None, touched=lambda _: None)
    made.take_node("n", Node(allocatable={"cpu": 4 * NANO}))
    for name, raw in (classes or {"gpu": sort(BY_DRIVER)}).items():
        made.take_device_class(f"{name}.example.com", read_class(raw))
    return made


def counts(seen: Picture) -> tuple[dict[str, int], dict[str, int]]:
    """Devices of the node, and those that others use."""
    (node,) = seen.nodes_seen()
    has = {name: nanos // NANO for name, nanos in node.allocatable.items() if name != "cpu"}
    return has, {name: nanos // NANO for name, nanos in node.others.items() if nanos}


SELECTORS = [
    pytest.param([], 4, id="a class without selectors selects all"),
    pytest.param([BY_DRIVER], 4, id="by driver"),
    pytest.param(["device.driver == 'other'"], 0, id="by another driver"),
    pytest.param([BY_DRIVER, BY_MEMORY], 3, id="all selectors must hold, by capacity"),
    pytest.param([f"device.attributes['{DRIVER}'].productName == 'Example-1'"], 4, id="by name"),
    pytest.param(
        [f"device.attributes['{DRIVER}'].uuid.endsWith('d1')"], 1, id="by what each has alone"
    ),
    pytest.param(
        [f"device.attributes['{DRIVER}'].index > 0 && !device.attributes['{DRIVER}'].sriov"],
        4,
        id="by numbers and flags",
    ),
    pytest.param(
        [f"device.attributes['{DRIVER}'].driverVersion.isGreaterThan(semver('1.0.0'))"],
        4,
        id="by version",
    ),
    pytest.param(["device.attributes['other.example.com'].numa == 0"], 4, id="by another domain"),
    pytest.param(["device.attributes['absent'].x == 1"], 0, id="what a device lacks is no match"),
]


@pytest.mark.parametrize(("expressions", "count"), SELECTORS)
def test_a_class_selects_by_expressions(expressions: list[str], count: int) -> None:
    seen = picture(gpu=sort(*expressions))
    devices = [*some(3), device("d3", memory="20Gi")]
    seen.take_slice("s", read_slice(published(*devices)))
    assert counts(seen)[0].get(GPUS, 0) == count
    assert seen.devices.faults() == []


def test_a_device_counts_for_each_class_that_selects_it_and_for_its_extended_resource() -> None:
    seen = picture(gpu=sort(BY_DRIVER, resource="example.com/gpu"), large=sort(BY_MEMORY))
    seen.take_slice("s", read_slice(published(device("a"), device("b", memory="20Gi"))))
    assert counts(seen) == ({GPUS: 2, LARGE: 1, "example.com/gpu": 2}, {})
    seen.take_device_class("large.example.com", None)
    assert counts(seen) == ({GPUS: 2, "example.com/gpu": 2}, {})


def test_a_resource_that_the_kubelet_offers_is_the_kubelets() -> None:
    seen = picture(gpu=sort(BY_DRIVER, resource="example.com/gpu"))
    seen.take_node("n", Node(allocatable={"cpu": NANO, "example.com/gpu": 8 * NANO}))
    seen.take_slice("s", read_slice(published(*some(2))))
    assert counts(seen)[0] == {GPUS: 2, "example.com/gpu": 8}


def ours() -> OwnPod:
    seen = PodSeen(name="p", pod_set="pod", attempt=1, phase="Ready", node="n")
    use = Use(node="n", amounts={"cpu": NANO})
    return OwnPod(seen=seen, work="w", namespace="team", uid="u", use=use, containers=("main",))


def test_devices_of_others_are_used_and_those_of_works_are_charged_by_the_hub() -> None:
    seen = picture()
    seen.take_slice("s", read_slice(published(*some(4))))
    seen.take_claim(("team", "c"), read_allocation(allocated("d0", "d1", pod="p")))
    assert counts(seen) == ({GPUS: 4}, {GPUS: 2})
    seen.take_pod(("team", "p"), ours())
    assert counts(seen) == ({GPUS: 4}, {})
    seen.take_claim(("team", "other"), read_allocation(allocated("d2", pod="stranger")))
    assert counts(seen) == ({GPUS: 4}, {GPUS: 1})
    seen.take_pod(("team", "p"), None)
    assert counts(seen) == ({GPUS: 4}, {GPUS: 3})
    seen.take_claim(("team", "c"), None)
    assert counts(seen) == ({GPUS: 4}, {GPUS: 1})
    seen.take_claim(("team", "other"), read_allocation(allocated("d2", adminAccess=True)))
    assert counts(seen) == ({GPUS: 4}, {})


UNCOUNTED = [
    pytest.param(
        [published(device("a", consumesCounters=[{"counterSet": "x"}]), device("b"))],
        1,
        ["1 device with shared counters"],
        id="partitions",
    ),
    pytest.param(
        [published(device("a", allowMultipleAllocations=True))],
        0,
        ["1 device that may be allocated several times"],
        id="shared devices",
    ),
    pytest.param(
        [published(device("a", taints=[{"key": "x", "effect": "NoSchedule"}]))],
        0,
        ["1 device with a taint"],
        id="tainted devices",
    ),
    pytest.param(
        [published(device("a", taints=[{"key": "x", "effect": "None"}]))], 1, [], id="noted devices"
    ),
    pytest.param(
        [published(*some(3), node="")],
        0,
        ["3 devices of no single node"],
        id="devices of a network",
    ),
    pytest.param(
        [published(device("a", nodeName="n"), device("b", nodeName="m"), node="")],
        1,
        [],
        id="devices that name their nodes",
    ),
    pytest.param(
        [published(*some(3), of=2)],
        0,
        ["3 devices of a pool that is not complete"],
        id="half a pool",
    ),
    pytest.param(
        [published(*some(3), of=2), published(device("x"), of=2)], 4, [], id="both halves of a pool"
    ),
    pytest.param(
        [published(*some(3)), published(*some(2), generation=2)],
        2,
        ["3 devices of a pool that is not complete"],
        id="an older generation",
    ),
]


@pytest.mark.parametrize(("slices", "count", "faults"), UNCOUNTED)
def test_what_cannot_be_counted_says_why(
    slices: list[bytes], count: int, faults: list[str]
) -> None:
    seen = picture()
    for number, raw in enumerate(slices):
        seen.take_slice(f"s{number}", read_slice(raw))
    assert counts(seen)[0].get(GPUS, 0) == count
    assert seen.devices.faults() == faults


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        pytest.param("device.", "class gpu.example.com: 1:8", id="does not compile"),
        pytest.param(
            "1 / 0 == 1", "class gpu.example.com: division by zero", id="does not evaluate"
        ),
    ],
)
def test_a_class_that_cannot_be_evaluated_selects_nothing_and_says_why(
    expression: str, fault: str
) -> None:
    seen = picture(gpu=sort(expression))
    seen.take_slice("s", read_slice(published(*some(2))))
    assert counts(seen)[0] == {}
    (said,) = seen.devices.faults()
    assert said.startswith(fault)


def test_devices_go_with_their_slices() -> None:
    seen = picture()
    seen.take_slice("s", read_slice(published(*some(2))))
    seen.take_slice("s", read_slice(published(*some(3))))
    assert counts(seen)[0] == {GPUS: 3}
    assert seen.devices.models() == {"Example-1"}
    seen.take_slice("s", None)
    assert counts(seen) == ({}, {})
