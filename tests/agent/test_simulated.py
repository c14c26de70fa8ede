"""Simulated clusters beyond what every driver promises: nodes, pools, chance and strategies."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.agent.columns import columns_of
from fairway.agent.drivers.interface import Observation
from fairway.agent.drivers.simulated.objects import key_of
from fairway.agent.drivers.simulated.world import World
from fairway.api.amounts import NANO
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.work import Manifest, PoolNodes, Stop
from fairway.kinds.registry import built_in
from tests.agent.stage import cluster
from tests.contracts.drivers import config_map, job, pods_of, service, work

POOL = {
    "name": "burst",
    "shape": {"cpu": "8", "memory": "8Gi", "pods": 110},
    "countMax": 4,
    "unit": 2,
    "provisionSeconds": 60,
    "idleSeconds": 120,
}


def world(**described: Any) -> World:
    return World(decode(cluster(**described), Cluster), built_in().of, now=0.0)


def placed(observation: Observation, of: Any) -> dict[str, str]:
    return {pod.name: pod.node for pod in pods_of(observation, of)}


def pool(name: str, **more: Any) -> dict:
    return {"name": name, "count": 2, "shape": {"cpu": "4", "pods": 110}, **more}


def test_nodes_have_the_names_and_domains_that_plans_give_them() -> None:
    one = world(nodePools=[pool("a", count=3, domains=[{"label": "example.com/rack", "nodes": 2}])])
    assert [(n.name, n.labels["example.com/rack"]) for n in one.observe(0).nodes] == [
        ("a-0000", "a-rack-0"),
        ("a-0001", "a-rack-0"),
        ("a-0002", "a-rack-1"),
    ]


def test_a_node_without_a_number_of_pods_takes_any_number() -> None:
    silent = pool("b", count=1, shape={"cpu": "40"})
    here = world(nodePools=[pool("a", count=1, shape={"cpu": "40", "pods": 2}), silent])
    many = work("many", job("many", pods=30))
    here.apply(many, 0)
    nodes = sorted(placed(here.observe(1), many).values())
    assert nodes.count("a-0000") == 2
    assert nodes.count("b-0000") == 28
    (pods,) = (
        column for column in columns_of(here.observe(1).nodes).amounts if column.resource == "pods"
    )
    assert pods.allocatable[0] * pods.unit.nanos == 2 * NANO
    assert pods.allocatable[1] * pods.unit.nanos > 1_000_000 * NANO


PLACES = [
    ("a node selector is kept to", {"nodeSelector": {"model": "b"}}, "b"),
    (
        "required node affinity is kept to",
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "model", "operator": "NotIn", "values": ["a", "t"]}
                                ]
                            }
                        ]
                    }
                }
            }
        },
        "b",
    ),
    (
        "a taint is borne by who tolerates it",
        {
            "nodeSelector": {"model": "t"},
            "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
        },
        "t",
    ),
    ("a taint keeps away all others", {"nodeSelector": {"model": "t"}}, ""),
    ("what no node has finds none", {"nodeSelector": {"model": "z"}}, ""),
]


@pytest.mark.parametrize(
    ("asks", "goes_to"), [case[1:] for case in PLACES], ids=[case[0] for case in PLACES]
)
def test_pods_go_where_their_manifests_say(asks: dict, goes_to: str) -> None:
    taints = [{"key": "spot", "effect": "NoSchedule"}]
    one = world(
        nodePools=[
            pool("a", labels={"model": "a"}),
            pool("b", labels={"model": "b"}),
            pool("t", labels={"model": "t"}, taints=taints),
        ]
    )
    manifest = job("one")
    manifest["spec"]["template"]["spec"].update(asks)
    wanted = work("one", manifest)
    one.apply(wanted, 0)
    assert {node.partition("-")[0] for node in placed(one.observe(0), wanted).values()} == {goes_to}


def test_whole_nodes_are_kept_whole_and_no_node_is_overfull() -> None:
    one = world(nodePools=[pool("a", count=3)])
    small = [work(f"s{n}", job(f"s{n}", cpu="1")) for n in range(4)]
    for each in small:
        one.apply(each, 0)
    seen = one.observe(0)
    assert {node for each in small for node in placed(seen, each).values()} == {"a-0000"}
    big = work("big", job("big", pods=3, cpu="4"), pods=3)
    one.apply(big, 0)
    assert sorted(placed(one.observe(0), big).values()) == ["", "a-0001", "a-0002"]
    one.remove("team.s0", 1)
    for each in small:
        one.stop(each.metadata.name, Stop(), 1)
    assert sorted(placed(one.observe(10), big).values()) == ["a-0000", "a-0001", "a-0002"]


def test_a_job_runs_no_more_pods_at_a_time_than_it_says() -> None:
    one = world()
    manifest = job("ten", pods=2)
    manifest["spec"]["completions"] = 5
    wanted = work("ten", manifest, seconds=10)
    one.apply(wanted, 0)
    running = [
        sum(pod.phase == "Ready" for pod in pods_of(one.observe(at), wanted))
        for at in (0, 11, 21, 31)
    ]
    assert running == [2, 2, 1, 0]
    assert one.observe(31).works[wanted.metadata.name].objects[0]["status"]["succeeded"] == 5


class TestElasticPools:
    def asking(self, name: str, count: int) -> Any:
        return work(
            name, job(name, cpu="6"), seconds=30, provision=(PoolNodes(pool="burst", count=count),)
        )

    def test_nodes_come_in_units_after_a_while_and_go_as_units_when_they_are_idle(self) -> None:
        one = world(spec={"elasticPools": [POOL]})
        one.apply(self.asking("one", 1), 0)
        (seen,) = one.observe(0).pools
        assert (seen.nodes, seen.provisioning) == (0, 2)
        assert len(one.observe(59).nodes) == 3
        assert len(one.observe(60).nodes) == 5
        one.release(["burst-e0000", "burst-e0001"], 70)
        assert len(one.observe(70).nodes) == 5, "a pod is there"
        one.release(["burst-e0000"], 100)
        assert len(one.observe(100).nodes) == 5, "they go together"
        one.release(["burst-e0000", "burst-e0001", "pool-0000"], 100)
        assert len(one.observe(100).nodes) == 3

    def test_no_more_come_than_there_may_be(self) -> None:
        one = world(spec={"elasticPools": [POOL]})
        for number in range(5):
            one.apply(self.asking(f"w{number}", 1), 0)
        (seen,) = one.observe(0).pools
        assert seen.provisioning == 4

    def test_no_more_come_than_are_in_stock_and_the_stock_comes_back(self) -> None:
        one = world(spec={"elasticPools": [{**POOL, "stock": 3}]})
        one.apply(self.asking("one", 4), 0)
        (seen,) = one.observe(0).pools
        assert (seen.provisioning, seen.stock) == (2, 1)
        assert (seen.failures, seen.fault) == (1, "2 of 4 nodes of burst can be had")
        one.observe(1000)
        one.release(["burst-e0000", "burst-e0001"], 1000)
        (seen,) = one.observe(1000).pools
        assert (seen.nodes, seen.stock) == (0, 3)

    @pytest.mark.parametrize(
        ("moment", "fails"),
        [(99, False), (100, True), (149, True), (150, False), (300, True), (350, False)],
    )
    def test_a_pool_that_is_out_of_stock_says_so_only_to_who_asks(
        self, moment: float, fails: bool
    ) -> None:
        outs = {"pool": "burst", "afterSeconds": 100, "seconds": 50, "everySeconds": 200}
        one = world(spec={"elasticPools": [POOL]}, stockOuts=[outs])
        (seen,) = one.observe(moment).pools
        assert (seen.stock, seen.failures) == (None, 0)
        one.apply(self.asking("one", 2), moment)
        (seen,) = one.observe(moment).pools
        assert (seen.failures, seen.provisioning) == ((1, 0) if fails else (0, 2))

    def test_asking_again_brings_no_more(self) -> None:
        one = world(spec={"elasticPools": [POOL]})
        for _ in range(3):
            one.apply(self.asking("one", 1), 0)
        (seen,) = one.observe(0).pools
        assert seen.provisioning == 2


class TestChance:
    FAULTS = {"nodeFailuresPerDay": "20", "podFailuresPerHour": "2", "nodeRepairSeconds": 600}

    def story(self, seed: int) -> list[object]:
        one = world(seed=seed, faults=self.FAULTS)
        web = work("web", service("web", replicas=3), pods=3)
        one.apply(web, 0)
        told: list[object] = []
        for at in range(0, 86_400, 600):
            seen = one.observe(at)
            told.append([(n.name, n.is_ready) for n in seen.nodes])
            told.append(pods_of(seen, web))
        return told

    def test_the_same_seed_tells_the_same_story(self) -> None:
        assert self.story(1) == self.story(1)

    def test_another_seed_tells_another(self) -> None:
        assert self.story(1) != self.story(2)

    def test_nodes_fail_and_come_back_and_a_service_goes_on(self) -> None:
        story = self.story(1)
        nodes = [item for each in story[::2] for item in each]  # type: ignore[attr-defined]
        assert {is_ready for _, is_ready in nodes} == {True, False}
        pods = story[-1]
        assert max(pod.restarts for pod in pods) > 10  # type: ignore[attr-defined]


class TestStrategies:
    def applied(self, one: World, *manifests: Manifest, name: str = "one") -> None:
        one.apply(work(name, *manifests), 0)

    def body(self, one: World) -> dict:
        kept = one.objects.get(key_of(config_map("settings")))
        assert kept is not None
        return kept.body

    def test_create_only_leaves_what_is_there(self) -> None:
        one = world()
        self.applied(one, Manifest(object=config_map("settings", a="1"), update="CreateOnly"))
        self.applied(one, Manifest(object=config_map("settings", a="2"), update="CreateOnly"))
        assert self.body(one)["data"] == {"a": "1"}

    def test_update_changes_it_and_ignores_the_fields_it_is_told_to(self) -> None:
        one = world()
        ignored = ("/data/b",)
        self.applied(one, Manifest(object=config_map("settings", a="1", b="1")))
        self.applied(
            one,
            Manifest(
                object=config_map("settings", a="2", b="2"),
                update="Update",
                ignored_fields=ignored,
            ),
        )
        assert self.body(one)["data"] == {"a": "2", "b": "1"}
        assert self.body(one)["metadata"]["generation"] == 2

    def test_an_object_of_another_work_is_not_taken_without_force(self) -> None:
        one = world()
        self.applied(one, Manifest(object=config_map("settings", a="1")))
        theirs = Manifest(object=config_map("settings", a="2"), force=False)
        self.applied(one, theirs, name="two")
        assert "belongs to the work team.one" in one.observe(0).works["team.two"].faults[0]
        assert self.body(one)["data"] == {"a": "1"}

    def test_an_orphan_stays_when_its_work_goes(self) -> None:
        one = world()
        stays = Manifest(object=config_map("settings", a="1"), deletion="Orphan")
        self.applied(one, stays, Manifest(object=config_map("other")))
        one.remove("team.one", 1)
        assert self.body(one)["data"] == {"a": "1"}
        assert one.objects.get(key_of(config_map("other"))) is None

    def test_only_served_kinds_are_made(self) -> None:
        one = world(kinds=["jobset.x-k8s.io/v1alpha2/JobSet"])
        odd = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "r"}}
        self.applied(one, Manifest(object=odd))
        assert "RayJob" in one.observe(0).works["team.one"].faults[0]


def test_pods_on_a_node_that_is_taken_out_are_lost() -> None:
    one = world(nodePools=[pool("a", count=2)])
    web = work("web", service("web", replicas=2), pods=2)
    one.apply(web, 0)
    one.reshape(decode(cluster(nodePools=[pool("a", count=1)]), Cluster), 10)
    seen = one.observe(10)
    assert [n.name for n in seen.nodes] == ["a-0000"]
    assert set(placed(seen, web).values()) <= {"a-0000", ""}


def test_who_is_asked_with_time_enough_saves_its_work() -> None:
    one = world(stopSeconds=5)
    saves, fails = work("saves"), work("fails")
    for each in (saves, fails):
        one.apply(each, 0)
    one.stop(saves.metadata.name, Stop(grace_seconds=30), 10)
    one.stop(fails.metadata.name, Stop(grace_seconds=2), 10)
    seen = one.observe(20)
    assert seen.works[saves.metadata.name].checkpointed_at == 15
    assert seen.works[fails.metadata.name].checkpointed_at is None


def test_what_has_not_changed_is_the_same_value() -> None:
    one = world()
    one.apply(work("one"), 0)
    one.apply(work("two"), 0)
    first = one.observe(0)
    one.stop("team.two", Stop(), 1)
    second = one.observe(1)
    assert second.nodes is first.nodes
    assert second.works["team.one"] is first.works["team.one"]
    assert second.works["team.two"] is not first.works["team.two"]
