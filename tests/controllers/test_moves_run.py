"""Services that move on a whole hub: nothing is stopped before it can be spared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running, summary_of

GPU = "nvidia.com/gpu"


def cluster(name: str, gpus: int, **spec: Any) -> dict[str, Any]:
    pool = {
        "name": "gpu",
        "count": gpus,
        "shape": {"cpu": "8", "memory": "64Gi", GPU: "1", "pods": "10"},
    }
    simulated = {"nodePools": [pool], "startSeconds": 20, "stopSeconds": 5, "runSeconds": 0}
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": {"group": name}},
        "spec": {"simulated": simulated, **spec},
    }


def policy(**spec: Any) -> dict[str, Any]:
    groups = [
        {"name": name, "selector": {"labels": {"matchLabels": {"group": name}}}}
        for name in ("home", "cloud")
    ]
    home = {"enabled": True, "afterSeconds": 60, "replicasPerMinute": 10, "surge": 1}
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": "home-first", "namespace": "fairway-system"},
        "spec": {"groups": groups, "returnHome": {**home, **spec}},
    }


def queue(gpus: int) -> dict[str, Any]:
    quotas = [{"resource": GPU, "nominal": gpus}]
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": "serving"},
        "spec": {
            "uncovered": "Unlimited",
            "resourceGroups": [
                {"resources": [GPU], "flavors": [{"name": "any", "quotas": quotas}]}
            ],
        },
    }


FLAVOR = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "Flavor",
    "metadata": {"name": "any"},
    "spec": {},
}


def service(replicas: int, extra: tuple[dict[str, Any], ...] = (), **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "serving", "resources": {"limits": {GPU: 1}}}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "chat"},
        "spec": {
            "selector": {"matchLabels": {"app": "chat"}},
            "template": {
                "metadata": {"labels": {"app": "chat"}},
                "spec": {"containers": [container]},
            },
        },
    }
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "chat", "namespace": "default"},
        "spec": {
            "queue": "serving",
            "policy": "home-first",
            "mode": "Divided",
            "replicas": replicas,
            "template": {"manifests": [manifest, *extra]},
            **spec,
        },
    }


def budget(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "chat"},
        "spec": {"selector": {"matchLabels": {"app": "chat"}}, **spec},
    }


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        yield found


async def apply(fleet: Fleet, *objects: dict[str, Any]) -> None:
    await fleet.apply(yaml.safe_dump_all(objects))


async def counts(fleet: Fleet, name: str) -> tuple[int, int]:
    """Pods of a cluster that are ready, and those that hold a node."""
    agent = fleet.agents.get(name)
    assert agent is not None
    seen = await agent._driver.observe()
    phases = [pod.phase for work in seen.works.values() for pod in work.pods]
    held = sum(phase in ("Bound", "Ready", "Terminating") for phase in phases)
    return sum(phase == "Ready" for phase in phases), held


async def watch(fleet: Fleet, seconds: float) -> tuple[int, int, str]:
    """The fewest pods that were ready, the most that held a node, and where they are at last."""
    fewest, most = 99, 0
    for _ in range(int(seconds)):
        await fleet.clock.advance(1)
        seen = [await counts(fleet, name) for name in ("home", "cloud")]
        fewest = min(fewest, sum(ready for ready, _ in seen))
        most = max(most, sum(held for _, held in seen))
    return fewest, most, summary_of(await fleet.workload("chat"))


async def begin_away(fleet: Fleet, quota: int, chat: dict[str, Any], **rule: Any) -> None:
    """A service that runs in the cloud, since home took nothing when it came."""
    await apply(fleet, FLAVOR, cluster("home", 4, hold="Hold"), cluster("cloud", 6))
    await apply(fleet, queue(quota), policy(**rule), chat)
    await fleet.until("chat", lambda item: item.status.pods.ready == 4, 120)
    assert summary_of(await fleet.workload("chat")) == "cloud (4)"


async def test_replicas_come_home_one_by_one_and_none_is_missed(fleet: Fleet) -> None:
    await begin_away(fleet, 16, service(4))
    await fleet.change_cluster("home", {"spec": {"hold": "None"}})
    assert await watch(fleet, 55) == (4, 4, "cloud (4)")
    assert await watch(fleet, 240) == (4, 5, "home (4)")
    assert (await fleet.workload("chat")).status.releasing == ()


async def test_what_is_left_keeps_the_nodes_of_its_flavor_until_it_is_replaced(
    fleet: Fleet,
) -> None:
    places = []
    for name in ("home", "cloud"):
        place = cluster(name, 4, hold="Hold" if name == "home" else "None")
        place["spec"]["simulated"]["nodePools"][0]["labels"] = {"gpu": name}
        labels = {"nodeLabels": {"gpu": name}}
        places += [place, {**FLAVOR, "metadata": {"name": name}, "spec": labels}]
    quotas = [{"resource": GPU, "nominal": 8}]
    flavors = [{"name": name, "quotas": quotas} for name in ("home", "cloud")]
    tree = {**queue(8), "spec": {"resourceGroups": [{"resources": [GPU], "flavors": flavors}]}}
    await apply(fleet, *places, tree, policy(surge=2), service(4))
    await fleet.until("chat", lambda item: item.status.pods.ready == 4, 120)
    assert summary_of(await fleet.workload("chat")) == "cloud (4)"
    await fleet.change_cluster("home", {"spec": {"hold": "None"}})
    assert await watch(fleet, 300) == (4, 6, "home (4)")


async def test_a_larger_surge_brings_more_home_at_a_time(fleet: Fleet) -> None:
    await begin_away(fleet, 16, service(4), surge=2)
    await fleet.change_cluster("home", {"spec": {"hold": "None"}})
    assert await watch(fleet, 240) == (4, 6, "home (4)")


async def test_without_quota_for_both_one_at_a_time_stops_and_starts(fleet: Fleet) -> None:
    await begin_away(fleet, 4, service(4))
    await fleet.change_cluster("home", {"spec": {"hold": "None"}})
    assert await watch(fleet, 400) == (3, 4, "home (4)")


NO_BUDGET = {
    "of the workload": service(4, disruption={"maxUnavailable": 0}),
    "of its template": service(4, extra=(budget(minAvailable="100%"),)),
}


@pytest.mark.parametrize("chat", NO_BUDGET.values(), ids=list(NO_BUDGET))
async def test_where_none_may_be_missing_nothing_stops_first(
    fleet: Fleet, chat: dict[str, Any]
) -> None:
    await begin_away(fleet, 4, chat)
    await fleet.change_cluster("home", {"spec": {"hold": "None"}})
    assert await watch(fleet, 300) == (4, 4, "cloud (4)")
    await apply(fleet, queue(5))
    assert await watch(fleet, 300) == (4, 5, "home (4)")


async def test_a_move_that_comes_to_nothing_is_undone(fleet: Fleet) -> None:
    """The new place takes the pod and never gives it a node."""
    await begin_away(fleet, 16, service(4))
    stuck = cluster("home", 4)
    stuck["spec"]["simulated"]["startSeconds"] = 100_000
    await apply(fleet, stuck)
    fewest, most, _ = await watch(fleet, 300)
    assert (fewest, most) == (4, 5)
    await fleet.change_cluster("home", {"spec": {"simulated": {"faults": {"outage": True}}}})
    await fleet.change("chat", {"spec": {"onClusterLost": "AllowDuplicate"}})
    await fleet.clock.advance(900)
    found = await fleet.workload("chat")
    assert summary_of(found) == "cloud (4)"
    assert [placement.replicas for placement in found.status.claim.placements] == [4]
    assert found.status.releasing == ()
    assert (await counts(fleet, "cloud"))[0] == 4


async def test_room_that_comes_and_goes_brings_nobody_home(fleet: Fleet) -> None:
    await begin_away(fleet, 16, service(4))
    for _ in range(8):
        await fleet.change_cluster("home", {"spec": {"hold": "None"}})
        assert await watch(fleet, 40) == (4, 4, "cloud (4)")
        await fleet.change_cluster("home", {"spec": {"hold": "Hold"}})
        assert await watch(fleet, 20) == (4, 4, "cloud (4)")


@pytest.mark.parametrize(
    ("quota", "unavailable", "expected"),
    [
        pytest.param(16, 0, (4, 8, "cloud (4)"), id="with quota for both, none is missed"),
        pytest.param(4, 1, (3, 4, "cloud (4)"), id="without it, one at a time"),
        pytest.param(4, 0, (4, 4, ""), id="without it and a budget, nothing is stopped"),
    ],
)
async def test_a_drained_cluster_is_left_within_the_budget(
    fleet: Fleet, quota: int, unavailable: int, expected: tuple[int, int, str]
) -> None:
    await apply(fleet, FLAVOR, cluster("home", 4), cluster("cloud", 6), queue(quota), policy())
    await apply(fleet, service(4, disruption={"maxUnavailable": unavailable}))
    await fleet.until("chat", lambda item: item.status.pods.ready == 4, 120)
    assert summary_of(await fleet.workload("chat")) == "home (4)"
    await fleet.change_cluster("home", {"spec": {"hold": "HoldAndDrain"}})
    fewest, most, where = await watch(fleet, 300)
    assert (fewest, most, where) == expected


async def test_without_a_budget_a_drained_cluster_is_left_at_once(fleet: Fleet) -> None:
    await apply(fleet, FLAVOR, cluster("home", 4), cluster("cloud", 6), queue(16), policy())
    await apply(fleet, service(4))
    await fleet.until("chat", lambda item: item.status.pods.ready == 4, 120)
    await fleet.change_cluster("home", {"spec": {"hold": "HoldAndDrain"}})
    assert (await watch(fleet, 120))[2] == "cloud (4)"
