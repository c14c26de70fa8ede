"""Scorers on a hub: what they measure ranks clusters, and what fails or expires is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fairway.api import codec
from fairway.api.policy import PlacementPolicy
from fairway.api.scores import ClusterScore, Scorer, ScoreValue
from fairway.clock import VirtualClock, timestamp
from fairway.metrics.interface import Sample, Unreachable
from fairway.metrics.measurements import Measurement
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Write
from fairway.store.keys import (
    CLUSTER_SCORES,
    CLUSTERS,
    CONFIG_MAPS,
    POLICIES,
    SCORERS,
    SECRETS,
    WORKLOADS,
)
from tests.controllers.dials import Dials
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import job as any_job

USER = Write(user="ada", manager="ada")
FLEET = """
{apiVersion: fairway.dev/v1alpha1, kind: Fleet, metadata: {name: fleet},
 spec: {metrics: {prometheus: {url: "http://prometheus.example"}}}}
---
{apiVersion: fairway.dev/v1alpha1, kind: Flavor, metadata: {name: h100},
 spec: {nodeLabels: {gpu: h100}}}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec:
  uncovered: Unlimited
  resourceGroups:
  - resources: [nvidia.com/gpu]
    flavors: [{name: h100, quotas: [{resource: nvidia.com/gpu, nominal: 64}]}]
---
apiVersion: fairway.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: green, namespace: fairway-system}
spec:
  scoreMode: Exact
  numberOfClusters: 1
  moveMargin: 20
  scores: [{scorer: carbon, weight: 2, missing: -50}]
"""


def cluster(name: str, region: str) -> str:
    return f"""
---
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {{name: {name}, labels: {{region: {region}}}}}
spec:
  simulated:
    nodePools:
    - name: gpu
      count: 2
      shape: {{cpu: 64, memory: 256Gi, nvidia.com/gpu: 8, pods: 110}}
      labels: {{gpu: h100}}
"""


def scorer(name: str = "carbon", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scores.fairway.dev/v1alpha1",
        "kind": "Scorer",
        "metadata": {"name": name},
        "spec": spec,
    }


TABLE = scorer(
    table={
        "rows": [
            {"clusters": {"labels": {"matchLabels": {"region": "north"}}}, "value": "50"},
            {"value": "450"},
        ]
    },
    scale={"worst": "500", "best": "0"},
)


def job(name: str, **settings: Any) -> str:
    return any_job(name, **settings).replace("queue: research", "queue: research\n  policy: green")


class Measuring:
    """Dials for the hub, and what agents measure; a cluster that is not set does not answer."""

    def __init__(self, **dials: Any) -> None:
        self.dials = Dials(dials)
        self.values: dict[str, float] = {}
        self.asked: list[tuple[str, Measurement]] = []

    async def measure(self, measurement: Measurement, cluster: str = "") -> tuple[Sample, ...]:
        if not cluster:
            return await self.dials.vector(measurement.query)
        self.asked.append((cluster, measurement))
        if cluster not in self.values:
            raise Unreachable("nobody answers")
        return (Sample(value=self.values[cluster], at=0.0),)


@asynccontextmanager
async def fleet_of(
    store: EmbeddedStore, clock: VirtualClock, folder: Path, **options: Any
) -> AsyncIterator[Fleet]:
    async with running(store, clock, folder, **options) as fleet:
        await fleet.apply(FLEET + cluster("berlin", "south") + cluster("oslo", "north"))
        await clock.advance(5)
        yield fleet


async def scores(fleet: Fleet, name: str) -> dict[str, ScoreValue]:
    """The scores of a cluster, by scorer and item."""
    items = (await fleet.store.list(CLUSTER_SCORES)).items
    for stored in items:
        score = codec.decode(stored.raw, ClusterScore)
        if score.metadata.name == name:
            return {"/".join(filter(None, (v.scorer, v.item))): v for v in score.spec.values}
    return {}


async def state(fleet: Fleet, name: str = "carbon") -> Scorer:
    return codec.decode((await fleet.store.get(SCORERS, name)).raw, Scorer)


async def chosen(fleet: Fleet) -> list[tuple[str, int]]:
    stored = await fleet.store.get(POLICIES, "green", "fairway-system")
    policy = codec.decode(stored.raw, PlacementPolicy)
    return [(decision.cluster, decision.score) for decision in policy.status.decisions]


async def change(fleet: Fleet, spec: dict[str, Any], name: str = "carbon") -> None:
    await fleet.store.patch(SCORERS, name, Patch(type="merge", body={"spec": spec}), write=USER)


async def test_a_stated_value_becomes_a_score_at_once_and_ranks_clusters(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with fleet_of(store, clock, tmp_path) as fleet:
        assert await chosen(fleet) == [("berlin", -100)], "without scores, the stated default"
        await fleet.apply(codec.to_yaml(TABLE))
        await clock.advance(2)
        north, south = [await scores(fleet, name) for name in ("oslo", "berlin")]
        assert (north["carbon"].value, south["carbon"].value) == (80, -80)
        assert (north["carbon"].measured, north["carbon"].source) == ("50", "Table")
        status = (await state(fleet)).status
        assert (status.clusters, status.source, status.conditions[0].status) == (2, "Table", "True")
        await clock.advance(6)
        assert await chosen(fleet) == [("oslo", 160)]
        await fleet.apply(job("train", gpus=8, seconds=60))
        claimed = await fleet.until("train", lambda item: item.status.claim is not None, 30)
        assert claimed.status.claim is not None
        assert claimed.status.claim.summary == "oslo"


async def test_an_edit_takes_effect_at_once_and_small_changes_move_nothing(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with fleet_of(store, clock, tmp_path) as fleet:
        await fleet.apply(codec.to_yaml(TABLE))
        await clock.advance(30)
        assert await chosen(fleet) == [("oslo", 160)]
        rows = [{"clusters": {"names": ["berlin"]}, "value": "45"}, {"value": "50"}]
        await change(fleet, {"table": {"rows": rows}})
        await clock.advance(25)
        assert (await scores(fleet, "berlin"))["carbon"].value == 82
        assert [name for name, _ in await chosen(fleet)] == ["oslo"], "4 points are less than 20"
        rows[0]["value"] = "0"
        await change(fleet, {"table": {"rows": rows}})
        await clock.advance(25)
        assert await chosen(fleet) == [("berlin", 200)]


async def test_a_score_that_is_late_is_missing_and_comes_back(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    dials = Measuring(carbon=[({"cluster": "oslo"}, 50.0), ({"cluster": "elsewhere"}, 1.0)])
    async with fleet_of(store, clock, tmp_path, measurer=dials) as fleet:
        await fleet.apply(codec.to_yaml(scorer(prometheus={"query": "carbon"}, intervalSeconds=30)))
        await clock.advance(8)
        assert await chosen(fleet) == [("oslo", 100)]
        dials.dials.set["carbon"] = None
        await clock.advance(31)
        status = (await state(fleet)).status
        assert status.conditions[0].reason == "Failed"
        assert "nobody answers" in status.conditions[0].message
        assert await chosen(fleet) == [("oslo", 100)], "it is valid for twice the interval"
        await clock.advance(40)
        assert await chosen(fleet) == [("oslo", -100)], "missing, and nothing else is better"
        dials.dials.set["carbon"] = [({"cluster": "oslo"}, 20.0), ({"cluster": "berlin"}, 70.0)]
        await clock.advance(120)
        assert await chosen(fleet) == [("berlin", 140)]


async def test_agents_measure_their_own_clusters(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    agents = Measuring()
    agents.values = {"oslo": 12.4}
    spec = {
        "query": "avg(load)",
        "server": {
            "url": "http://there.example",
            "token": {"namespace": "default", "name": "tokens", "key": "token"},
        },
    }
    async with fleet_of(store, clock, tmp_path, measurer=agents) as fleet:
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "tokens"},
            "data": {"token": "Zmlyc3Q="},
        }
        await store.create(SECRETS, secret, namespace="default", write=USER)
        await fleet.apply(codec.to_yaml(scorer(prometheus=spec, runBy="Agent")))
        await clock.advance(3)
        assert (await scores(fleet, "oslo"))["carbon"].value == 12
        assert await scores(fleet, "berlin") == {}
        status = (await state(fleet)).status
        assert [(fault.cluster, fault.message) for fault in status.faults] == [
            ("berlin", "nobody answers")
        ]
        assert status.conditions[0].reason == "FailedInClusters"
        asked = dict(agents.asked)
        assert sorted(asked) == ["berlin", "oslo"]
        assert asked["oslo"].server is not None
        assert asked["oslo"].server.token == "first"
        rotated = Patch(type="merge", body={"data": {"token": "c2Vjb25k"}})
        await store.patch(SECRETS, "tokens", rotated, namespace="default", write=USER)
        await clock.advance(70)
        latest = agents.asked[-1][1].server
        assert latest is not None
        assert latest.token == "second", "a rotated token counts at the next run"


async def test_items_masks_and_smoothing(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    def busy(value: float) -> list[tuple[dict[str, str], float]]:
        return [
            ({"cluster": "oslo", "model": "h100", "node": "a"}, value),
            ({"cluster": "oslo", "model": "h100", "node": "b"}, value + 20),
            ({"cluster": "oslo", "model": "a100", "node": "broken"}, 100.0),
            ({"cluster": "berlin", "model": "h100", "node": "a"}, 5.0),
        ]

    dials = Measuring(use=busy(0.0))
    spec = {
        "prometheus": {"query": "use"},
        "itemLabels": ["model"],
        "samples": {
            "matchExpressions": [{"key": "node", "operator": "NotIn", "values": ["broken"]}]
        },
        "clusters": {"names": ["oslo"]},
        "combine": "Max",
        "smoothingSeconds": 60,
        "intervalSeconds": 60,
    }
    async with fleet_of(store, clock, tmp_path, measurer=dials) as fleet:
        await fleet.apply(codec.to_yaml(scorer("use", **spec)))
        await clock.advance(3)
        assert {key: value.value for key, value in (await scores(fleet, "oslo")).items()} == {
            "use/h100": 20
        }
        assert await scores(fleet, "berlin") == {}
        dials.dials.set["use"] = busy(80.0)
        await clock.advance(70)
        value = (await scores(fleet, "oslo"))["use/h100"]
        assert 55 <= value.value <= 65, "half of the way after one half-life"
        assert (value.measured, value.samples) == ("100", 2)


async def test_an_expression_sees_what_the_cluster_reports(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    text = (
        "{'': cluster.free['nvidia.com/gpu'] / cluster.allocatable['nvidia.com/gpu'] * 100.0, "
        "'nodes': cluster.readyNodes}"
    )
    async with fleet_of(store, clock, tmp_path) as fleet:
        await fleet.apply(codec.to_yaml(scorer("room", expression=text)))
        await clock.advance(3)
        found = {key: value.value for key, value in (await scores(fleet, "oslo")).items()}
        assert found == {"room": 100, "room/nodes": 2}


async def test_distances_come_from_a_file_of_a_config_map(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    csv = "cluster,item,value\noslo,berlin,18\nberlin,oslo,18\nberlin,berlin,0\n"
    where = {"namespace": "default", "name": "distances", "key": "ms.csv"}
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "distances"},
        "data": {"ms.csv": csv},
    }
    table = {
        "csv": {"configMap": where},
        "rows": [{"clusters": {"names": ["oslo"]}, "item": "oslo", "value": "0"}],
    }
    async with fleet_of(store, clock, tmp_path) as fleet:
        await store.create(CONFIG_MAPS, config, namespace="default", write=USER)
        await fleet.apply(
            codec.to_yaml(scorer("distance", table=table, scale={"worst": "100", "best": "0"}))
        )
        await clock.advance(3)
        found = {key: value.value for key, value in (await scores(fleet, "oslo")).items()}
        assert found == {"distance/berlin": 64, "distance/oslo": 100}


async def test_scores_go_with_their_scorer_and_with_their_cluster(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with fleet_of(store, clock, tmp_path) as fleet:
        await fleet.apply(codec.to_yaml(TABLE))
        await clock.advance(20)
        mine = {"scorer": "mine", "item": "", "value": 7}
        body = (await store.get(CLUSTER_SCORES, "oslo")).object()
        body["spec"]["values"].append(mine)
        await store.update(CLUSTER_SCORES, body, write=USER)
        await store.delete(SCORERS, "carbon", write=USER)
        await clock.advance(20)
        assert list(await scores(fleet, "oslo")) == ["mine"], "what others wrote stays"
        await store.delete(CLUSTERS, "oslo", write=USER)
        await clock.advance(60)
        assert [
            item.object()["metadata"]["name"] for item in (await store.list(CLUSTER_SCORES)).items
        ] == ["berlin"]


async def test_scores_outlive_the_hub_that_wrote_them(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    dials = Measuring(carbon=[({"cluster": "oslo"}, 50.0)])
    async with fleet_of(store, clock, tmp_path, measurer=dials) as fleet:
        await fleet.apply(codec.to_yaml(scorer(prometheus={"query": "carbon"})))
        await clock.advance(8)
    dials.dials.set["carbon"] = None
    async with running(store, clock, tmp_path, measurer=dials) as fleet:
        await clock.advance(8)
        assert (await scores(fleet, "oslo"))["carbon"].value == 50
        assert await chosen(fleet) == [("oslo", 100)]


async def test_why_names_each_score_with_its_weight_value_and_age(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with fleet_of(store, clock, tmp_path) as fleet:
        await fleet.apply(codec.to_yaml(TABLE))
        await clock.advance(3)
        for name in ("first", "second", "large"):
            await fleet.apply(job(name, pods=2, seconds=600))
            await clock.advance(4)
        answer = await fleet.plane.explain("default", "large")
        assert answer is not None
        best, last = answer["ranking"]
        assert (best["cluster"], best["total"]) == ("oslo", 160)
        (points,) = best["scores"]
        assert points["name"] == "carbon"
        assert (points["value"], points["weight"]) == (80, 2)
        assert 10 <= points["ageSeconds"] <= 20
        assert last["message"].startswith("carbon -80 \N{MULTIPLICATION SIGN} 2 (measured 450, ")


async def test_attempts_that_fail_by_the_cluster_count_against_it(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    def past(attempt: int, cluster: str, blame: str) -> dict[str, Any]:
        ended = timestamp(clock.now() - 60)
        return {"attempt": attempt, "clusters": [cluster], "endedAt": ended, "blame": blame}

    ends = [past(1, "oslo", "Place"), past(2, "oslo", "Program"), past(3, "berlin", "Program"),
            past(4, "berlin", "Decision")]  # fmt: skip
    async with fleet_of(store, clock, tmp_path) as fleet:
        await fleet.apply(job("tried", pods=2))
        await fleet.until("tried", "Running", 30)
        await store.patch(
            WORKLOADS, "tried", Patch(type="merge", body={"status": {"history": ends}}),
            namespace="default", subresource="status", write=USER,
        )  # fmt: skip
        history = {"fact": "FailureRate", "halfLifeSeconds": 3600}
        spec = scorer("failures", history=history, scale={"worst": "1", "best": "0"})
        await fleet.apply(codec.to_yaml(spec))
        await clock.advance(3)
        found = [(await scores(fleet, name))["failures"].value for name in ("oslo", "berlin")]
        assert found == [0, 100], "half of the attempts in oslo, none in berlin"
