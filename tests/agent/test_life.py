"""The life of a work with its agent: run, told, ended, stopped, removed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairway.api.work import Work
from fairway.streams.requests import WELL, Ask, Channel
from tests.agent.stage import Stage, cluster
from tests.contracts.drivers import LONG, job, service, work
from tests.streams.lines import Listener


def with_spec(one: Work, **changes: object) -> Work:
    return replace(one, spec=replace(one.spec, **changes))


async def test_a_work_runs_and_succeeds_and_the_report_says_so(stage: Stage) -> None:
    one = work("one", pods=2, seconds=10)
    await stage.put(one)
    running = await stage.until("Running", one)
    assert running.attempt == 1
    assert running.ready_at is not None
    assert [(p.name, p.ready) for p in running.pods] == [("pod", 2)]
    done = await stage.until("Succeeded", one)
    assert done.finished_at is not None
    assert done.started_at is not None
    assert (done.finished_at - done.started_at).total_seconds() == 10


async def test_a_gang_runs_only_once_all_its_pods_are_ready(stage: Stage) -> None:
    big = work("big", job("big", pods=4, cpu="3"), pods=4)
    await stage.put(big)
    pending = await stage.until("Pending", big)
    await stage.passes(5)
    pending = await stage.until("Pending", big)
    assert pending.reason == "Unschedulable"
    assert [(p.ready, p.pending) for p in pending.pods] == [(3, 1)]


async def test_a_service_runs_with_one_pod(stage: Stage) -> None:
    manifest = service("web", replicas=4)
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "3"}}
    web = work("web", manifest, pods=4)
    await stage.put(web)
    running = await stage.until("Running", web)
    assert [(p.ready, p.pending) for p in running.pods] == [(3, 1)]


async def test_a_failure_is_told_with_reason_message_and_node(stage: Stage) -> None:
    gang = work("gang", pods=3)
    await stage.put(gang)
    await stage.until("Running", gang)
    world = stage.worlds.world("here")
    node = next(pod.node_name for pod in world.pods(gang.metadata.name) or ())
    world.fail_node(world.node(node), stage.clock.now())
    failed = await stage.until("Failed", gang)
    assert (failed.reason, failed.node) == ("NodeLost", node)
    assert node in failed.message
    assert failed.finished_at is not None


async def test_a_tombstone_stops_then_removes_then_is_confirmed(stage: Stage) -> None:
    one = work("one", desired="Run")
    await stage.put(one)
    await stage.until("Running", one)
    buried = await stage.bury(one)
    await stage.until("Stopping", one)
    assert (await stage.until("Gone", one)).attempt == 1
    assert stage.worlds.world("here").pods(one.metadata.name) is None
    await stage.delete(buried)
    await stage.passes(1)
    assert await stage.states() == {}
    assert await stage.work(one) is None  # and it was not put back


async def test_a_work_that_was_never_seen_and_is_buried_is_gone(stage: Stage) -> None:
    one = work("one", tombstone=True, desired="Stop")
    await stage.put(one)
    await stage.until("Gone", one)


async def test_a_next_attempt_runs_after_the_pods_of_the_last_have_ended(stage: Stage) -> None:
    first = work("one", attempt=1, term=1)
    await stage.put(first)
    await stage.until("Running", first)
    await stage.put(work("one", attempt=2, term=2))
    stopping = await stage.until("Stopping", first)
    assert stopping.attempt == 1
    assert (await stage.until("Running", first)).attempt == 2


async def test_an_attempt_that_is_gone_does_not_come_back(stage: Stage) -> None:
    one = work("one")
    await stage.put(one)
    await stage.until("Running", one)
    await stage.bury(one)
    await stage.until("Gone", one)
    await stage.put(one)
    await stage.passes(10)
    assert await stage.pods(one) == 0
    assert (await stage.until("Gone", one)).attempt == 1
    await stage.put(with_spec(one, attempt=2, term=2))
    assert (await stage.until("Running", one)).attempt == 2


async def test_a_work_that_is_stopped_is_held(stage: Stage) -> None:
    one = work("one")
    await stage.put(one)
    await stage.until("Running", one)
    await stage.put(with_spec(one, desired="Stop"))
    await stage.until("Held", one)
    assert await stage.pods(one) == 0


async def test_a_reserved_work_holds_its_place_until_it_runs(stage: Stage) -> None:
    one = work("one", pods=2, desired="Reserve")
    await stage.put(one)
    reserved = await stage.until("Reserved", one)
    assert sum(p.ready + p.bound for p in reserved.pods) == 2
    await stage.put(with_spec(one, desired="Run"))
    await stage.until("Running", one)


async def test_a_manifest_that_is_refused_is_told(stage: Stage) -> None:
    odd = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "odd"}}
    one = work("one", odd)
    await stage.put(one)
    await stage.passes(1)
    state = await stage.until("Pending", one)
    assert state.reason == "TemplateRefused"
    assert "Widget" in state.message


async def test_what_was_taken_away_while_it_ran_is_told_and_not_run_again(stage: Stage) -> None:
    one = work("one")
    await stage.put(one)
    await stage.until("Running", one)
    stage.worlds.world("here").lose(one.metadata.name, stage.clock.now())
    assert (await stage.until("Failed", one)).reason == "Vanished"
    await stage.passes(600)
    assert await stage.pods(one) == 0


async def test_more_tasks_go_on_in_the_same_attempt(stage: Stage) -> None:
    def tasks(*numbers: int) -> Work:
        jobs = []
        for number in numbers:
            manifest = job(f"sweep-{number}", seconds=5)
            manifest["metadata"]["annotations"] = {"fairway.dev/tasks": str(number)}
            jobs.append(manifest)
        text = ",".join(str(number) for number in numbers)
        return work("sweep", *jobs, seconds=5, tasks=text, pods=len(jobs))

    await stage.put(tasks(0, 1))
    done = await stage.until("Succeeded", tasks(0, 1))
    assert done.succeeded_tasks == "0,1"
    await stage.put(tasks(0, 1, 2))
    await stage.until("Running", tasks(0, 1, 2))
    assert (await stage.until("Succeeded", tasks(0, 1, 2))).succeeded_tasks == "0-2"


async def test_logs_come_from_the_driver(stage: Stage) -> None:
    one = work("one", seconds=5)
    await stage.put(one)
    await stage.until("Succeeded", one)
    assert stage.agent is not None
    listener = Listener()
    ask = Ask(kind="log", work=one.metadata.name)
    assert await stage.agent.answer(ask, listener) == WELL
    told = listener.of(Channel.OUTPUT)
    assert listener.has_begun
    assert b"started on node-" in told
    assert b"succeeded" in told


class TestDeletions:
    @pytest.fixture
    def described(self) -> dict:
        return cluster(stopSeconds=0)

    async def test_come_at_a_limited_rate(self, stage: Stage) -> None:
        many = [work(f"w{number}", seconds=LONG) for number in range(30)]
        for item in many:
            await stage.put(item)
        for entry in many:
            await stage.until("Running", entry)
        for value in many:
            await stage.bury(value)
        await stage.passes(0.95)
        left = sum([await stage.pods(item) for item in many])
        assert 10 <= left <= 20  # ten at once and ten a second
        await stage.passes(3)
        assert sum([await stage.pods(item) for item in many]) == 0
