"""What every driver promises; see `fairway.agent.drivers.interface`."""

from __future__ import annotations

import asyncio

import pytest

from fairway.agent.drivers.interface import DriverFault, LogQuery, Observation
from fairway.api.work import Manifest, Stop, Work
from tests.contracts.drivers import (
    Rig,
    config_map,
    has_no_pods,
    in_phase,
    is_absent,
    job,
    pods_of,
    seen,
    service,
    work,
)
from tests.waiting import PATIENCE_SECONDS

QUICK_STOP = Stop(grace_seconds=2)


async def test_a_cluster_has_nodes_with_room_and_no_works(rig: Rig) -> None:
    observation = await rig.driver.observe()
    assert observation.nodes
    assert all(node.is_ready and node.allocatable["cpu"] > 0 for node in observation.nodes)
    assert not observation.works


async def test_pods_of_an_applied_work_get_ready_on_nodes_of_the_cluster(rig: Rig) -> None:
    gang = work("gang", pods=2)
    await rig.driver.apply(gang)
    observation = await rig.until(in_phase(gang, "Ready", 2), "two ready pods")
    names = {node.name for node in observation.nodes}
    pods = pods_of(observation, gang)
    assert {pod.node for pod in pods} <= names
    assert {pod.attempt for pod in pods} == {1}
    assert all(pod.started_at is not None and pod.finished_at is None for pod in pods)


async def test_applying_twice_is_applying_once(rig: Rig) -> None:
    one = work("one")
    await rig.driver.apply(one)
    first = await rig.until(in_phase(one, "Ready"), "a ready pod")
    await rig.driver.apply(one)
    second = await rig.driver.observe()
    assert [(p.name, p.started_at) for p in pods_of(second, one)] == [
        (p.name, p.started_at) for p in pods_of(first, one)
    ]


async def test_a_work_that_ends_leaves_its_succeeded_pods_and_a_status(rig: Rig) -> None:
    short = work("short", seconds=rig.quick_seconds)
    await rig.driver.apply(short)
    observation = await rig.until(in_phase(short, "Succeeded"), "a succeeded pod")
    pod = pods_of(observation, short)[0]
    assert pod.exit_code == 0
    assert pod.containers == ("main",)
    assert pod.finished_at is not None

    def is_counted(observation: Observation) -> bool:
        found = seen(observation, short)
        return found is not None and found.objects[0]["status"].get("succeeded") == 1

    await rig.until(is_counted, "a status that counts it")


async def test_an_ended_work_is_not_run_again_when_it_is_applied_again(rig: Rig) -> None:
    short = work("short", seconds=rig.quick_seconds)
    await rig.driver.apply(short)
    before = await rig.until(in_phase(short, "Succeeded"), "a succeeded pod")
    await rig.driver.apply(short)
    assert pods_of(await rig.driver.observe(), short) == pods_of(before, short)


async def test_stop_ends_the_pods_and_leaves_the_objects(rig: Rig) -> None:
    one = work("one")
    await rig.driver.apply(one)
    await rig.until(in_phase(one, "Ready"), "a ready pod")
    await rig.driver.stop(one.metadata.name, QUICK_STOP)
    observation = await rig.until(has_no_pods(one), "the pod gone")
    found = seen(observation, one)
    assert found is not None
    assert found.objects[0]["metadata"]["name"] == "one"


async def test_remove_leaves_nothing(rig: Rig) -> None:
    one = work("one", config_map("settings", a="1"), job("one"))
    await rig.driver.apply(one)
    await rig.until(in_phase(one, "Ready"), "a ready pod")
    await rig.driver.remove(one.metadata.name)
    await rig.until(is_absent(one), "the work gone")


async def test_stopping_and_removing_what_is_not_there_is_harmless(rig: Rig) -> None:
    await rig.driver.stop("team.nobody", QUICK_STOP)
    await rig.driver.remove("team.nobody")
    assert not (await rig.driver.observe()).works


async def test_a_next_attempt_begins_only_once_the_earlier_one_has_ended(rig: Rig) -> None:
    first, second = work("one", attempt=1), work("one", attempt=2)
    await rig.driver.apply(first)
    await rig.until(in_phase(first, "Ready"), "a ready pod")
    await rig.driver.apply(second)
    overlaps: list[object] = []

    def is_next(observation: Observation) -> bool:
        pods = pods_of(observation, second)
        if len({pod.attempt for pod in pods}) > 1 and any(
            pod.attempt == 2 and pod.started_at for pod in pods
        ):
            overlaps.append(pods)
        return bool(pods) and all(pod.attempt == 2 and pod.phase == "Ready" for pod in pods)

    await rig.until(is_next, "a ready pod of the second attempt")
    assert not overlaps


async def test_changed_waits_until_there_is_something_new(rig: Rig) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:  # a real cluster may still be busy with what was there before
            await rig.driver.observe()
            waiting = asyncio.ensure_future(rig.driver.wait_for_change())
            await asyncio.sleep(0)
            if not waiting.done():
                break
        await rig.driver.apply(work("one"))
        await waiting
        await rig.driver.wait_for_change()  # nobody has looked yet


async def test_a_reserved_work_holds_nodes_and_then_runs_on_them(rig: Rig) -> None:
    reserved, running = work("one", desired="Reserve"), work("one", desired="Run")
    await rig.driver.apply(reserved)
    before = await rig.until(in_phase(reserved, "Ready"), "a ready placeholder")
    assert 0 not in before.works[reserved.metadata.name].objects
    placeholder = pods_of(before, reserved)[0]
    assert placeholder.node
    await rig.driver.apply(running)
    after = await rig.until(
        lambda item: (
            in_phase(running, "Ready")(item) and pods_of(item, running)[0].name != placeholder.name
        ),
        "a ready pod of its own",
    )
    assert pods_of(after, running)[0].node == placeholder.node


async def test_of_a_work_with_a_manifest_that_cannot_be_made_nothing_is_made(rig: Rig) -> None:
    odd = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "odd"}}
    mixed = work("mixed", job("mixed"), odd)
    await rig.driver.apply(mixed)
    found = (await rig.driver.observe()).works[mixed.metadata.name]
    assert "Widget" in found.faults[1]
    assert found.refused == {1}
    assert (found.pods, found.objects) == ((), {})


async def test_a_work_that_runs_goes_on_if_a_change_of_it_cannot_be_made(rig: Rig) -> None:
    good = work("good", job("good"))
    await rig.driver.apply(good)
    before = await rig.until(in_phase(good, "Ready"), "a ready pod")
    odd = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "odd"}}
    await rig.driver.apply(work("good", job("good"), odd))
    after = await rig.until(
        lambda item: bool(item.works[good.metadata.name].faults), "a fault of the change"
    )
    assert pods_of(after, good) == pods_of(before, good)


async def test_more_and_fewer_replicas_add_and_end_pods(rig: Rig) -> None:
    for count in (1, 3, 1):
        wanted = work("web", service("web", replicas=count), pods=count)
        await rig.driver.apply(wanted)
        await rig.until(in_phase(wanted, "Ready", count), f"{count} ready pods")


async def test_a_new_template_replaces_pods_few_at_a_time_and_their_revision_is_told(
    rig: Rig,
) -> None:
    for mark in ("one", "two"):
        web = service("web", replicas=3)
        web["spec"]["template"]["metadata"]["labels"]["fairway.dev/revision"] = mark
        web["spec"]["strategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
        }
        wanted = work("web", web, pods=3)
        await rig.driver.apply(wanted)
        lowest = 3

        def is_there(found: Observation, wanted: Work = wanted, mark: str = mark) -> bool:
            nonlocal lowest
            pods = [pod for pod in pods_of(found, wanted) if pod.phase == "Ready"]
            if mark == "two":
                lowest = min(lowest, len(pods))
            return len(pods) == 3 and {pod.revision for pod in pods} == {mark}

        await rig.until(is_there, f"three ready pods of revision {mark}")
    assert lowest == 2


async def test_a_job_of_more_or_fewer_pods_keeps_those_that_run(rig: Rig) -> None:
    before: dict[str, float | None] = {}
    for count in (2, 4, 1):
        wanted = work("grown", job("grown", pods=count), pods=count)
        await rig.driver.apply(wanted)
        seen = await rig.until(in_phase(wanted, "Ready", count), f"{count} ready pods")
        started = {pod.name: pod.started_at for pod in pods_of(seen, wanted)}
        same = before.keys() & started.keys()
        assert len(same) >= min(len(before), count)
        assert {name: started[name] for name in same} == {name: before[name] for name in same}
        before = {pod.name: pod.started_at for pod in pods_of(seen, wanted) if pod.phase == "Ready"}


async def test_what_is_only_looked_at_is_neither_made_nor_removed(rig: Rig) -> None:
    looked_at = Manifest(object=config_map("theirs"), update="ReadOnly")
    one = work("one", looked_at, job("one"))
    await rig.driver.apply(one)
    observation = await rig.until(in_phase(one, "Ready"), "a ready pod")
    assert set(observation.works[one.metadata.name].objects) == {1}


async def test_a_driver_that_starts_again_finds_what_it_left_running(rig: Rig) -> None:
    one = work("one")
    await rig.driver.apply(one)
    before = await rig.until(in_phase(one, "Ready"), "a ready pod")
    await rig.restart()
    after = await rig.until(in_phase(one, "Ready"), "the pod found again")
    assert [(p.name, p.started_at) for p in pods_of(after, one)] == [
        (p.name, p.started_at) for p in pods_of(before, one)
    ]
    await rig.driver.stop(one.metadata.name, QUICK_STOP)
    await rig.until(has_no_pods(one), "the pod gone")


async def test_logs_of_a_work_that_is_not_there_are_refused(rig: Rig) -> None:
    with pytest.raises(DriverFault):
        async for _ in rig.driver.logs(LogQuery(work="team.nobody")):
            pass


async def test_logs_of_an_ended_pod_come_to_an_end(rig: Rig) -> None:
    short = work("short", seconds=rig.quick_seconds)
    await rig.driver.apply(short)
    await rig.until(in_phase(short, "Succeeded"), "a succeeded pod")
    query = LogQuery(work=short.metadata.name, follow=True)
    output = [part async for part in rig.driver.logs(query)]
    assert all(isinstance(part, bytes) for part in output)
