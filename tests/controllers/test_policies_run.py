"""What policies choose, published by a hub that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.api import codec
from fairway.api.errors import Invalid
from fairway.api.meta import Condition, ObjectMeta
from fairway.api.policy import PlacementPolicy, PlacementPolicyStatus
from fairway.clock import VirtualClock
from fairway.controllers.policies import status_of
from fairway.core.clusters.choice import Choice, Chosen
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Write
from fairway.store.keys import POLICIES
from tests.controllers.fleets import Fleet, running

SETTLED_SECONDS = 15
USER = Write(user="ada", manager="test")


def a_cluster(name: str, *, region: str, nodes: int = 1) -> str:
    return f"""
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {{name: {name}, labels: {{topology.kubernetes.io/region: {region}}}}}
spec:
  simulated:
    nodePools:
      - name: gpu
        count: {nodes}
        shape: {{cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}}
---"""


def a_policy(name: str, spec: str) -> str:
    return f"""
apiVersion: fairway.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: {name}}}
spec: {spec}
---"""


CLUSTERS = (
    a_cluster("east", region="e") + a_cluster("west", region="w") + a_cluster("west-2", region="w")
)


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(CLUSTERS)
        await found.clock.advance(SETTLED_SECONDS)
        yield found


async def status(fleet: Fleet, name: str) -> PlacementPolicyStatus:
    stored = await fleet.store.get(POLICIES, name, "default")
    return codec.decode(stored.raw, PlacementPolicy).status


async def choose(fleet: Fleet, name: str, spec: str) -> PlacementPolicyStatus:
    await fleet.apply(a_policy(name, spec))
    await fleet.clock.advance(SETTLED_SECONDS)
    return await status(fleet, name)


async def change(fleet: Fleet, name: str, spec: dict[str, Any]) -> PlacementPolicyStatus:
    patch = Patch(type="merge", body={"spec": spec})
    await fleet.store.patch(POLICIES, name, patch, namespace="default", write=USER)
    await fleet.clock.advance(SETTLED_SECONDS)
    return await status(fleet, name)


def names(status: PlacementPolicyStatus) -> list[str]:
    return [decision.cluster for decision in status.decisions]


def satisfied(status: PlacementPolicyStatus) -> Condition:
    (condition,) = status.conditions
    assert condition.type == "Satisfied"
    return condition


def test_more_clusters_than_a_status_lists_are_counted_and_said() -> None:
    policy = PlacementPolicy(metadata=ObjectMeta(name="all", generation=1))
    chosen = tuple(Chosen(cluster=f"c{number:03}", group="", score=0) for number in range(600))
    written = status_of(policy, Choice(chosen=chosen), 0.0)
    assert (written.chosen, len(written.decisions)) == (600, 512)
    condition = satisfied(written)
    assert condition.status == "True"
    assert condition.message == "the best 512 of 600 chosen clusters are listed"


async def test_a_policy_chooses_all_clusters_that_match(fleet: Fleet) -> None:
    chosen = await choose(fleet, "all", "{}")
    assert (names(chosen), chosen.chosen) == (["east", "west", "west-2"], 3)
    assert satisfied(chosen).reason == "AllChosen"
    assert chosen.observed_generation == 1


async def test_a_policy_chooses_as_many_as_it_wants_spread_as_it_asks(fleet: Fleet) -> None:
    chosen = await choose(fleet, "two", "{numberOfClusters: 2, spread: [{by: Region, least: 2}]}")
    assert names(chosen) == ["east", "west"]


async def test_too_few_clusters_are_a_condition(fleet: Fleet) -> None:
    condition = satisfied(await choose(fleet, "many", "{numberOfClusters: 5}"))
    assert (condition.status, condition.reason) == ("False", "NotEnoughClusters")
    assert condition.message == "2 more clusters are wanted than match"


async def test_a_choice_that_can_no_longer_be_made_is_kept(fleet: Fleet) -> None:
    first = await choose(fleet, "two", "{numberOfClusters: 2, spread: [{by: Region, least: 2}]}")
    kept = await change(fleet, "two", {"spread": [{"by": "Provider", "least": 2}]})
    assert names(kept) == names(first)
    assert satisfied(kept).reason == "SpreadUnmet"
    assert satisfied(kept).message == (
        "clusters of at least 2 providers are needed; the last choice is kept"
    )
    assert satisfied(await change(fleet, "two", {"spread": []})).status == "True"


async def test_a_chosen_cluster_is_left_only_for_one_that_is_better_by_the_margin(
    fleet: Fleet,
) -> None:
    scores = "[{builtIn: Allocatable}]"
    first = await choose(
        fleet,
        "one",
        f"{{numberOfClusters: 1, scoreMode: Exact, moveMargin: 300, scores: {scores}}}",
    )
    assert names(first) == ["east"]
    await fleet.apply(a_cluster("west", region="w", nodes=2))
    await fleet.clock.advance(60)
    stayed = await status(fleet, "one")
    assert names(stayed) == ["east"]
    assert stayed.decisions[0].chosen_at == first.decisions[0].chosen_at
    moved = await change(fleet, "one", {"moveMargin": 20})
    assert names(moved) == ["west"]


async def test_an_expression_that_does_not_compile_is_refused_with_its_place(fleet: Fleet) -> None:
    with pytest.raises(Invalid) as refused:
        await choose(fleet, "bad", """{selector: {expressions: ["cluster.name = 'a'"]}}""")
    assert "spec.selector.expressions[0]" in str(refused.value)
    assert "1:14: Syntax error" in str(refused.value)


async def test_policies_spread_over_clusters(fleet: Fleet) -> None:
    for name in ("a", "b", "c"):
        await choose(fleet, name, "{numberOfClusters: 1}")
    chosen = [names(await status(fleet, name)) for name in ("a", "b", "c")]
    assert sorted(chosen) == [["east"], ["west"], ["west-2"]]
    await fleet.clock.advance(600)
    assert [names(await status(fleet, name)) for name in ("a", "b", "c")] == chosen


async def test_chosen_clusters_come_in_batches(fleet: Fleet) -> None:
    chosen = await choose(fleet, "all", "{clustersPerBatch: 2}")
    assert [decision.batch for decision in chosen.decisions] == [0, 0, 1]


async def test_scores_alone_are_written_once_a_minute(fleet: Fleet) -> None:
    await choose(fleet, "all", "{scores: [{builtIn: AcceleratorsInCluster}]}")
    written = 0
    before = await fleet.store.get(POLICIES, "all", "default")
    for number in range(24):
        await fleet.apply(a_cluster("west", region="w", nodes=1 + number % 2))
        await fleet.clock.advance(10)
        after = await fleet.store.get(POLICIES, "all", "default")
        written += after.raw != before.raw
        before = after
    assert 2 <= written <= 5
