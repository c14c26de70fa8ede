"""What an agent writes, and how much of it."""

from __future__ import annotations

import pytest

from fairway.agent.drivers.simulated.objects import key_of
from fairway.api.work import ConditionRule, FeedbackPath, FeedbackRule, Manifest, PoolNodes, Work
from fairway.store.interface import Patch
from fairway.store.keys import CLUSTERS
from tests.agent.stage import HUB, Stage, cluster
from tests.contracts.drivers import config_map, job, service, work


async def test_nothing_new_is_not_told_again(stage: Stage) -> None:
    await stage.put(work("one"))
    await stage.until("Running", work("one"))
    await stage.passes(40)
    before = list(stage.reached.writes)
    await stage.passes(100)
    new = stage.reached.writes[len(before) :]
    assert {plural for _, plural in new} == {"leases"}
    assert len(new) == 10


async def test_a_work_that_passes_quickly_costs_no_status(stage: Stage) -> None:
    one = work("one", seconds=2)
    await stage.put(one)
    await stage.until("Succeeded", one)
    await stage.passes(60)
    assert stage.reached.count("works") == 0


async def test_a_hundred_works_at_once_share_few_reports(stage: Stage) -> None:
    await stage.passes(1)
    before = stage.reached.count("clusterreports")
    many = [work(f"w{number}", job(f"w{number}", cpu="10m"), seconds=1) for number in range(100)]
    for item in many:
        await stage.put(item)
    await stage.passes(5)
    states = await stage.states()
    assert {states[item.metadata.name].phase for item in many} == {"Succeeded"}
    assert stage.reached.count("clusterreports") - before <= 12


async def test_a_state_that_lasts_is_told_in_the_work_once(stage: Stage) -> None:
    one = work("one")
    await stage.put(one)
    await stage.passes(4)
    assert stage.reached.count("works") == 0
    await stage.passes(60)
    assert stage.reached.count("works") == 1
    told = await stage.work(one)
    assert told is not None
    assert (told.status.phase, told.status.attempt, told.status.term) == ("Running", 1, 1)
    assert [(c.type, c.status) for c in told.status.conditions] == [
        ("Applied", "True"),
        ("Available", "True"),
    ]
    assert told.status.manifests[0].name == "one"


async def test_a_failure_is_told_in_the_work_at_once(stage: Stage) -> None:
    one = work("one")
    await stage.put(one)
    await stage.until("Running", one)
    world = stage.worlds.world("here")
    (pod,) = world.pods(one.metadata.name) or ()
    world.fail_node(world.node(pod.node_name), stage.clock.now())
    await stage.passes(0.2)
    told = await stage.work(one)
    assert told is not None
    assert (told.status.phase, told.status.reason) == ("Failed", "NodeLost")


async def test_a_restart_does_not_write_the_same_statuses_again(stage: Stage) -> None:
    one = work("one")
    await stage.put(one)
    await stage.passes(40)
    await stage.crash()
    before = stage.reached.count("works")
    await stage.start()
    await stage.passes(60)
    assert stage.reached.count("works") == before


async def test_feedback_is_told_when_it_changes(stage: Stage) -> None:
    web = work(
        "web",
        Manifest(
            object=service("web", replicas=2),
            feedback=(
                FeedbackRule(type="WellKnown"),
                FeedbackRule(
                    type="JsonPaths",
                    paths=(FeedbackPath(name="wanted", path=".spec.replicas"),),
                ),
            ),
        ),
        pods=2,
    )
    await stage.put(web)
    await stage.passes(0.5)
    told = await stage.work(web)
    assert told is not None
    values = {item.name: (item.type, item.value) for item in told.status.manifests[0].feedback}
    assert values["ReadyReplicas"] == ("Integer", "2")
    assert values["wanted"] == ("Integer", "2")


async def test_a_complete_work_is_frozen(stage: Stage) -> None:
    rule = ConditionRule(
        condition="Complete", type="Cel", expressions=("object.data.done == 'yes'",)
    )

    def of(**data: str) -> Work:
        settings = Manifest(object=config_map("settings", **data), conditions=(rule,))
        return work("one", settings, job("one"))

    def made() -> dict:
        kept = stage.worlds.world("here").objects.get(key_of(config_map("settings")))
        assert kept is not None
        return kept.body["data"]

    await stage.put(of(done="no"))
    await stage.passes(1)
    await stage.put(of(done="yes"))
    await stage.passes(1)
    assert made() == {"done": "yes"}
    told = await stage.work(of())
    assert told is not None
    assert ("Complete", "True") in [(c.type, c.status) for c in told.status.conditions]
    await stage.put(of(done="no"))
    await stage.passes(600)
    assert made() == {"done": "yes"}


async def test_heartbeats_renew_the_lease(stage: Stage) -> None:
    await stage.passes(1)
    first = (await stage.lease())["spec"]["renewTime"]
    await stage.passes(10)
    second = (await stage.lease())["spec"]["renewTime"]
    assert first < second
    assert (await stage.lease())["spec"]["leaseDurationSeconds"] == 40


async def test_the_clusters_status_tells_nodes_and_what_is_free(stage: Stage) -> None:
    await stage.passes(1)
    status = (await stage.cluster()).status
    assert (status.nodes, status.ready_nodes) == (3, 3)
    assert str(status.allocatable["cpu"]) == "12"
    assert str(status.free["cpu"]) == "12"
    assert status.agent.epoch == 1
    assert status.driver_version == "simulated"
    await stage.put(work("one", job("one", cpu="2")))
    await stage.passes(10)
    free = (await stage.cluster()).status.free
    assert str(free["cpu"]) == "10"
    assert int(str(free["pods"])) == int(str(status.free["pods"])) - 1


async def test_reports_are_written_again_after_the_hub_was_away(stage: Stage) -> None:
    one = work("one", seconds=30)
    await stage.put(one)
    await stage.until("Running", one)
    stage.reached.is_away = True
    await stage.passes(60)
    assert (await stage.state(one)).phase == "Running"  # type: ignore[union-attr]
    stage.reached.is_away = False
    await stage.until("Succeeded", one)


async def test_reports_that_somebody_removed_are_written_again(stage: Stage) -> None:
    one = work("one", seconds=30)
    await stage.put(one)
    await stage.until("Running", one)
    await stage.remove_reports()
    assert (await stage.until("Succeeded", one)).attempt == 1


class TestElasticPools:
    @pytest.fixture
    def described(self) -> dict:
        pool = {
            "name": "burst",
            "shape": {"cpu": "8", "memory": "8Gi", "pods": 110},
            "countMax": 4,
            "stock": 3,
            "provisionSeconds": 60,
            "idleSeconds": 120,
        }
        return cluster(spec={"elasticPools": [pool]})

    async def test_nodes_that_a_work_asks_for_come_and_go(self, stage: Stage) -> None:
        one = work(
            "one",
            job("one", cpu="6"),
            seconds=30,
            provision=(PoolNodes(pool="burst", count=1),),
        )
        await stage.put(one)
        await stage.passes(1)
        (pool,) = (await stage.reports())[0].spec.pools
        assert (pool.nodes, pool.provisioning, pool.stock) == (0, 1, 2)
        await stage.until("Running", one)
        (report,) = await stage.reports()
        assert "burst-e0000" in report.spec.nodes.names
        await stage.until("Succeeded", one)
        since = "2026-01-01T00:00:00Z"
        leaving = {"name": "burst-e0000", "pool": "burst", "since": since}
        await stage.change_status({"leavingNodes": [leaving]})
        await stage.passes(10)
        assert "burst-e0000" in (await stage.reports())[0].spec.nodes.names, "it may not go yet"
        await stage.change_status({"leavingNodes": [{**leaving, "mayGo": True}]})
        await stage.passes(10)
        (report,) = await stage.reports()
        assert "burst-e0000" not in report.spec.nodes.names
        assert (await stage.cluster()).status.elastic_pools[0].stock == 3


async def test_a_report_says_what_each_pod_takes(stage: Stage) -> None:
    """So that pods which no claim accounts for are known by their size."""
    await stage.put(work("one", job("one", cpu="250m")))
    await stage.passes(5)
    pods = [other for report in await stage.reports() for other in report.spec.works]
    assert [{name: str(amount) for name, amount in pod.requests.items()} for pod in pods] == [
        {"cpu": "250m"}
    ]


async def test_the_clusters_status_is_told_again_to_a_hub_that_was_restored(stage: Stage) -> None:
    """The watch goes on, since no work has changed; the status is that of an earlier time."""
    await stage.passes(20)
    told = (await stage.cluster()).status
    assert told.nodes == 3
    await stage.reached.go_away()
    earlier = {"nodes": 1, "allocatable": {"cpu": "1", "example.com/gone": "4"}}
    patch = Patch(type="merge", body={"status": earlier})
    await stage.store.patch(CLUSTERS, "here", patch, subresource="status", write=HUB)
    stage.reached.is_away = False
    await stage.passes(40)
    again = (await stage.cluster()).status
    assert (again.nodes, again.allocatable) == (told.nodes, told.allocatable)
