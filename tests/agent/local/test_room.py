"""Room on a machine: amounts, and devices that no two pods share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairway.agent.drivers.local.gpus import Gpu
from fairway.agent.drivers.local.machine import look
from fairway.agent.drivers.local.slots import DoesNotFit, Share, Slots
from fairway.api.amounts import Amounts, Quantity
from fairway.api.work import Stop
from tests.agent.local.machines import machine, phase_of, pod, program
from tests.agent.local.test_processes import first_line, is_over, output
from tests.contracts.drivers import has_no_pods, in_phase, work

GPU = "nvidia.com/gpu"
H200 = Gpu(uuid="GPU-1", product="NVIDIA H200", memory_mib=143771)
OTHER = Gpu(uuid="GPU-2", product="NVIDIA H200", memory_mib=143771)


def slots(**gpus: int) -> Slots:
    return Slots(Amounts.of({"cpu": 8, "pods": 10, GPU: 4}), {GPU: ("0", "1", "2", "3")})


def test_devices_are_handed_out_one_by_one_and_come_back() -> None:
    room = slots()
    first, second = room.take("a", Amounts.of({GPU: 2})), room.take("b", Amounts.of({GPU: 2}))
    assert isinstance(first, Share)
    assert isinstance(second, Share)
    assert (first.devices[GPU], second.devices[GPU]) == (("0", "1"), ("2", "3"))
    refused = room.take("c", Amounts.of({GPU: 1, "cpu": 1}))
    assert isinstance(refused, DoesNotFit)
    assert refused.message == "0/1 nodes have room: missing nvidia.com/gpu 1"
    room.give_back("a")
    again = room.take("c", Amounts.of({GPU: 1}))
    assert isinstance(again, Share)
    assert again.devices[GPU] == ("0",)


def test_a_fraction_of_a_device_is_counted_and_given_no_name() -> None:
    room = slots()
    share = room.take("a", Amounts.of({GPU: "500m"}))
    assert isinstance(share, Share)
    assert not share.devices
    assert room.free()[GPU] == Quantity.of("3500m").nanos


@pytest.mark.parametrize(
    ("given", "gpus", "devices"),
    [
        pytest.param({}, [], {}, id="none are found"),
        pytest.param({}, [H200, OTHER], {GPU: ("GPU-1", "GPU-2")}, id="found ones have UUIDs"),
        pytest.param({GPU: "1"}, [H200, OTHER], {GPU: ("GPU-1",)}, id="fewer may be used"),
        pytest.param({GPU: "3"}, [H200], {GPU: ("0", "1", "2")}, id="more than found are slots"),
        pytest.param({GPU: "0"}, [H200], {}, id="none may be used"),
    ],
)
def test_devices_are_found_out_or_given(
    tmp_path: Path, given: dict[str, str], gpus: list[Gpu], devices: dict[str, tuple[str, ...]]
) -> None:
    found = look({name: Quantity.of(value) for name, value in given.items()}, gpus, tmp_path)
    assert found.devices == devices
    assert found.allocatable["cpu"] > 0
    assert found.allocatable["memory"] > 0
    assert found.labels["kubernetes.io/os"] == "linux"
    assert found.labels.get("nvidia.com/gpu.product") == ("NVIDIA-H200" if gpus else None)


async def test_pods_at_a_time_see_different_devices_and_the_rest_waits(tmp_path: Path) -> None:
    text = (
        "import json, os, time\n"
        "print(json.dumps([os.environ.get(n) for n in "
        "('CUDA_VISIBLE_DEVICES', 'NVIDIA_VISIBLE_DEVICES')]), flush=True)\n"
        "time.sleep(3600)"
    )
    async with machine(tmp_path, capacity={"cpu": "8", GPU: "4"}) as rig:
        works = [
            work(name, pod(name, *program(text), resources={GPU: str(count)}))
            for name, count in (("a", 2), ("b", 2), ("c", 1), ("d", 0))
        ]
        for other in works:
            await rig.driver.apply(other)
        told = [json.loads(await first_line(rig, works[n])) for n in (0, 1, 3)]
        assert told == [["0,1", "0,1"], ["2,3", "2,3"], ["", "void"]]
        seen = await rig.driver.observe()
        waits = seen.works[works[2].metadata.name].pods[0]
        assert (waits.phase, waits.reason, waits.node) == ("Pending", "Unschedulable", "")
        assert "nvidia.com/gpu 1" in waits.message
        await rig.driver.stop(works[0].metadata.name, Stop(grace_seconds=0))
        await rig.until(has_no_pods(works[0]), "the first gone")
        await rig.until(lambda seen: phase_of(seen, works[2]) == "Ready", "the third started")
        assert json.loads(await first_line(rig, works[2]))[0] == "0"


async def test_devices_of_pods_that_are_found_again_are_not_given_twice(tmp_path: Path) -> None:
    text = (
        "import os, time; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); time.sleep(3600)"
    )
    async with machine(tmp_path, capacity={"cpu": "8", GPU: "2"}) as rig:
        first, second = (
            work(name, pod(name, *program(text), resources={GPU: "1"})) for name in ("a", "b")
        )
        await rig.driver.apply(first)
        assert await first_line(rig, first) == "0"
        await rig.restart()
        await rig.driver.apply(second)
        assert await first_line(rig, second) == "1"


async def test_reserved_room_is_not_given_to_others(tmp_path: Path) -> None:
    async with machine(tmp_path, capacity={"cpu": "1", "memory": "1Gi"}) as rig:
        holder = work("a", pod("a", "echo", "ran", resources={"cpu": "1"}), desired="Reserve")
        await rig.driver.apply(holder)
        await rig.until(in_phase(holder, "Ready"), "a placeholder")
        other = work("b", pod("b", "true", resources={"cpu": "1"}))
        await rig.driver.apply(other)
        await rig.restart()
        assert phase_of(await rig.driver.observe(), other) == "Pending"
        running = work("a", pod("a", "echo", "ran", resources={"cpu": "1"}))
        await rig.driver.apply(running)
        await rig.until(is_over(running), "the end of the first")
        assert await output(rig, running) == "ran\n"
        await rig.until(is_over(other), "the end of the second")
