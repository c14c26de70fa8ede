"""Whom an agent believes: terms, attempts, what vanishes, and what nobody knows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairway.api.meta import ClusterSelector, LabelSelector
from fairway.api.work import Manifest, WorkPolicy
from fairway.store.keys import NAMESPACES, WORKS
from tests.agent.stage import HUB, NAMESPACE, Stage, cluster
from tests.agent.test_life import with_spec
from tests.contracts.drivers import job, work


async def test_a_work_of_a_lower_term_is_refused_and_told_the_highest(stage: Stage) -> None:
    await stage.put(work("first", term=7))
    await stage.until("Running", work("first"))
    old = work("second", term=6)
    await stage.put(old)
    await stage.passes(10)
    assert await stage.pods(old) == 0
    told = await stage.work(old)
    assert told is not None
    assert told.status.term == 7
    assert [(condition.type, condition.reason) for condition in told.status.conditions] == [
        ("Accepted", "TermTooLow")
    ]


async def test_a_change_of_a_lower_term_is_refused_and_the_work_goes_on(stage: Stage) -> None:
    one = work("one", term=7)
    await stage.put(one)
    await stage.until("Running", one)
    await stage.put(with_spec(one, term=6, tombstone=True, desired="Stop"))
    await stage.passes(30)
    assert await stage.pods(one) == 1


async def test_a_lower_attempt_is_refused(stage: Stage) -> None:
    second = work("one", attempt=2, term=5)
    await stage.put(second)
    await stage.until("Running", second)
    await stage.put(work("one", attempt=1, term=6))
    await stage.passes(10)
    assert (await stage.until("Running", second)).attempt == 2


async def test_a_work_that_vanishes_is_put_back_and_goes_on(stage: Stage) -> None:
    one = work("one")
    await stage.put(one)
    await stage.until("Running", one)
    await stage.delete(one)
    await stage.passes(1)
    again = await stage.work(one)
    assert again is not None
    assert again.metadata.labels["fairway.dev/adopted"] == "true"
    assert again.spec == one.spec
    assert await stage.pods(one) == 1
    await stage.bury(again)
    await stage.until("Gone", one)


async def test_what_is_left_of_a_finished_work_that_vanishes_is_removed(stage: Stage) -> None:
    one = work("one", seconds=5)
    await stage.put(one)
    await stage.until("Succeeded", one)
    await stage.delete(one)
    await stage.passes(2)
    assert await stage.work(one) is None
    assert await stage.states() == {}
    assert stage.worlds.world("here").pods(one.metadata.name) is None


async def test_works_that_vanish_with_their_namespace_are_all_put_back(stage: Stage) -> None:
    every = [work(f"work-{number}") for number in range(5)]
    for item in every:
        await stage.put(item)
    for entry in every:
        await stage.until("Running", entry)
    await stage.crash()
    await stage.store.delete(NAMESPACES, NAMESPACE, write=HUB)
    await stage.passes(1)
    assert [await stage.work(item) for item in every] == [None] * len(every)
    stage.reached.pause = lambda: stage.clock.sleep(0.2)  # so that calls overtake each other
    await stage.start()
    await stage.passes(20)
    assert None not in [await stage.work(item) for item in every]
    owners = (await stage.store.get(NAMESPACES, NAMESPACE)).object()["metadata"]["ownerReferences"]
    assert [owner["name"] for owner in owners] == ["here"]


async def test_works_that_vanish_while_the_agent_is_away_are_put_back(stage: Stage) -> None:
    one = work("one")
    await stage.put(one)
    await stage.until("Running", one)
    await stage.crash()
    await stage.delete(one)
    await stage.start()
    await stage.passes(2)
    assert await stage.work(one) is not None
    assert await stage.pods(one) == 1


async def test_what_nobody_knows_is_adopted(stage: Stage) -> None:
    one = work("one", pods=2)
    await stage.put(one)
    await stage.until("Running", one)
    await stage.crash()
    stage.forget()
    await stage.delete(one)
    await stage.start()
    await stage.passes(2)
    adopted = await stage.work(one)
    assert adopted is not None
    assert adopted.metadata.labels["fairway.dev/adopted"] == "true"
    assert adopted.spec.workload.namespace == "team"
    assert adopted.spec.workload.name == "one"
    assert adopted.spec.pod_sets[0].count == 2
    assert await stage.pods(one) == 2
    assert (await stage.until("Running", one)).attempt == 1


@pytest.mark.parametrize("described", [cluster(stopSeconds=20)])
async def test_the_tasks_of_a_sweep_that_nobody_knows_are_read_from_its_jobs(stage: Stage) -> None:
    jobs = []
    for tasks in ("0-1", "7"):
        manifest = job(f"sweep-{tasks[0]}")
        manifest["metadata"]["annotations"] = {"fairway.dev/tasks": tasks}
        jobs.append(manifest)
    sweep = work("sweep", *jobs, tasks="0-1,7")
    await stage.put(sweep)
    await stage.until("Running", sweep)
    await stage.crash()
    stage.forget()
    await stage.delete(sweep)
    await stage.start()
    await stage.passes(2)
    adopted = await stage.work(sweep)
    assert adopted is not None
    assert adopted.spec.tasks == "0,1,7"


async def test_what_nobody_knows_and_stops_is_not_started_again(stage: Stage) -> None:
    one = work("one")
    await stage.put(one)
    await stage.until("Running", one)
    buried = await stage.bury(one)
    await stage.until("Stopping", one)
    await stage.crash()
    stage.forget()
    await stage.delete(buried)
    await stage.start()
    await stage.passes(60)
    assert await stage.work(one) is None
    assert stage.worlds.world("here").pods(one.metadata.name) is None


async def test_reports_that_the_hub_has_lost_are_written_again_though_nothing_has_changed(
    stage: Stage,
) -> None:
    one = work("one")
    await stage.put(one)
    await stage.until("Running", one)
    await stage.passes(60)
    # As a hub that is restored, and whose works have not changed since its backup.
    await stage.reached.go_away()
    await stage.remove_reports()
    stage.reached.is_away = False
    await stage.until("Running", one)


async def test_a_refusal_that_the_hub_has_lost_is_told_again(stage: Stage) -> None:
    await stage.put(work("first", term=7))
    await stage.until("Running", work("first"))
    old = work("second", term=6)
    await stage.put(old)
    await stage.passes(10)
    # As a hub that is restored to before the refusal.
    stored = (await stage.store.get(WORKS, old.metadata.name, NAMESPACE)).object()
    lost = {**stored, "status": {}}
    await stage.store.update(WORKS, lost, namespace=NAMESPACE, subresource="status", write=HUB)
    await stage.passes(10)
    told = await stage.work(old)
    assert told is not None
    assert [condition.reason for condition in told.status.conditions] == ["TermTooLow"]


async def test_nothing_is_remembered_of_what_nobody_knew_once_it_is_gone(stage: Stage) -> None:
    one = work("one", seconds=5)
    await stage.put(one)
    await stage.until("Succeeded", one)
    await stage.crash()
    stage.forget()
    await stage.delete(one)
    await stage.start()
    await stage.passes(60)
    assert stage.worlds.world("here").pods(one.metadata.name) is None
    tender = stage.agent._parts.tender
    assert (tender._applied, tender._asked, tender._failures) == ({}, {}, {})


class TestModes:
    async def test_an_observed_cluster_is_reported_and_not_touched(self, stage: Stage) -> None:
        await stage.set_mode("Observe")
        await stage.passes(1)
        one = work("one")
        await stage.put(one)
        await stage.passes(30)
        assert await stage.pods(one) == 0
        assert len((await stage.reports())[0].spec.nodes.names) == 3
        await stage.set_mode("Manage")
        await stage.until("Running", one)

    async def test_what_runs_goes_on_when_a_cluster_is_only_observed(self, stage: Stage) -> None:
        one = work("one")
        await stage.put(one)
        await stage.until("Running", one)
        await stage.set_mode("Observe")
        await stage.passes(1)
        await stage.bury(one)
        await stage.passes(60)
        assert await stage.pods(one) == 1


EU = ClusterSelector(labels=LabelSelector(match_labels={"region": "eu"}))
OURS = WorkPolicy(name="p", registries=("ghcr.io",))
ONLY_EU = WorkPolicy(name="p", clusters=EU)


async def test_a_work_that_a_fleet_policy_forbids_is_refused_with_the_rule(stage: Stage) -> None:
    for policy, said in (
        (OURS, "image busybox, which is of no allowed registry: rule registries"),
        (ONLY_EU, "here: rule clusters"),
    ):
        item = work(f"by-{policy.name}-{said[:4].strip()}", policies=(policy,))
        await stage.put(item)
        await stage.passes(10)
        assert await stage.pods(item) == 0
        refused = await stage.work(item)
        assert refused is not None
        assert [(each.reason, each.message) for each in refused.status.conditions] == [
            ("PolicyViolated", f"fleet policy p does not allow {said}")
        ]
        await stage.bury(item)  # what it never took is gone, and it says so
        await stage.until("Gone", item)


async def test_a_change_that_a_fleet_policy_forbids_is_refused_and_the_work_goes_on(
    stage: Stage,
) -> None:
    item = work("one")
    await stage.put(item)
    await stage.until("Running", item)
    await stage.put(with_spec(item, policies=(OURS, replace(ONLY_EU, name="q"))))
    await stage.passes(10)
    again = await stage.work(item)
    assert again is not None
    assert not again.status.conditions  # what runs is the hub's to stop
    worse = job("one")
    worse["spec"]["template"]["spec"]["containers"][0]["image"] = "evil.io/x"
    await stage.put(with_spec(item, policies=(OURS,), manifests=(Manifest(object=worse),)))
    await stage.passes(10)
    again = await stage.work(item)
    assert again is not None
    assert again.status.conditions[-1].reason == "PolicyViolated"
    assert await stage.pods(item) == 1
    await stage.crash()
    stage.forget()
    await stage.start()
    await stage.passes(10)
    assert await stage.pods(item) == 1
