"""Idle nodes of elastic pools: which are, and in which order they should go."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.controllers.inventory.release import AT_ONCE_MOST, Idling, nodes_to_release
from fairway.core.provisioning.idle_nodes import Idle, idle_nodes
from fairway.view.view import View

NOW = 1_800_000_000.0
GROUP = "fairway.dev/v1alpha1"


def cluster(name: str, *, price: int, pool: str = "spot", count: int = 2) -> dict:
    return {
        "apiVersion": GROUP,
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {
            "simulated": {
                "nodePools": [
                    {
                        "name": f"{name}-{pool}",
                        "count": count,
                        "shape": {"cpu": "8", "nvidia.com/gpu": 8},
                        "labels": {"fairway.dev/pool": pool, "accelerator": "h100"},
                    },
                    {"name": f"{name}-standing", "count": 1, "shape": {"cpu": "8"}},
                ]
            },
            "elasticPools": [
                {
                    "name": pool,
                    "shape": {"cpu": "8", "nvidia.com/gpu": 8},
                    "countMax": 8,
                    "pricePerHour": str(price),
                    "idleSeconds": 100,
                }
            ],
        },
        "status": {"elasticPools": [{"name": pool, "nodes": count}]},
    }


POLICY = {
    "apiVersion": GROUP,
    "kind": "PlacementPolicy",
    "metadata": {"name": "home-first", "namespace": "default"},
    "spec": {
        "groups": [
            {"name": "home", "selector": {"names": ["home"]}},
            {"name": "away", "selector": {"names": ["far", "farther"]}},
        ]
    },
}


def idle(*objects: dict) -> list[tuple[str, str]]:
    view = View()
    for object_ in objects:
        view.put(object_)
    return [(idle_node.cluster, idle_node.node) for idle_node in idle_nodes(view.snapshot(NOW))]


def test_nodes_of_the_last_group_go_first_and_of_these_the_dearest() -> None:
    found = idle(
        cluster("home", price=90),
        cluster("far", price=10),
        cluster("farther", price=20),
        POLICY,
    )
    assert found == [
        ("farther", "farther-spot-0000"),
        ("farther", "farther-spot-0001"),
        ("far", "far-spot-0000"),
        ("far", "far-spot-0001"),
        ("home", "home-spot-0000"),
        ("home", "home-spot-0001"),
    ]


def held(count: int, *, gpus: int = 8) -> dict:
    claim = {
        "attempt": 1,
        "term": 1,
        "decidedAt": "2027-01-01T00:00:00Z",
        "queue": "q",
        "placements": [
            {
                "cluster": "home",
                "podSets": [
                    {"name": "main", "count": count, "requests": {"nvidia.com/gpu": str(gpus)}}
                ],
            }
        ],
    }
    return {
        "apiVersion": GROUP,
        "kind": "Workload",
        "metadata": {"name": "train", "namespace": "default", "resourceVersion": "1"},
        "spec": {
            "queue": "q",
            "podSets": [{"name": "main", "count": count, "requests": {"nvidia.com/gpu": gpus}}],
        },
        "status": {"phase": "Claimed", "claim": claim},
    }


@pytest.mark.parametrize(
    ("count", "left"),
    [
        (1, ["home-spot-0001"]),
        (2, []),
    ],
)
def test_a_node_that_something_is_claimed_on_is_not_idle_though_no_pod_is_there(
    count: int, left: list[str]
) -> None:
    queue = {
        "apiVersion": GROUP,
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"uncovered": "Unlimited"},
    }
    found = idle(cluster("home", price=1), queue, held(count))
    assert [node for _, node in found] == left


def read(plain: dict) -> Cluster:
    return codec.decode(plain, Cluster)


def spot(*nodes: str, is_settled: bool = True) -> list[Idle]:
    return [Idle(cluster="home", pool="spot", node=node, is_settled=is_settled) for node in nodes]


class TestLeaving:
    def test_a_node_leaves_once_it_was_idle_for_as_long_as_its_pool_says(self) -> None:
        clusters = {"home": read(cluster("home", price=1))}
        idling = Idling()
        idling.look(spot("a"), NOW)
        assert nodes_to_release(clusters, spot("a"), idling, NOW + 99) == {}
        (found,) = nodes_to_release(clusters, spot("a"), idling, NOW + 100)["home"]
        assert (found.name, found.may_go) == ("a", False)

    def test_it_may_go_only_after_nothing_new_came_for_a_while(self) -> None:
        plain = cluster("home", price=1)
        since = datetime.fromtimestamp(NOW, UTC).isoformat()
        plain["status"]["leavingNodes"] = [{"name": "a", "pool": "spot", "since": since}]
        clusters, idling = {"home": read(plain)}, Idling()
        idling.look(spot("a"), NOW - 1000)
        assert nodes_to_release(clusters, spot("a"), idling, NOW + 9) == {}
        (found,) = nodes_to_release(clusters, spot("a"), idling, NOW + 10)["home"]
        assert found.may_go
        assert nodes_to_release(clusters, [], idling, NOW + 9) == {"home": ()}, (
            "it was claimed after all"
        )
        unsettled = spot("a", is_settled=False)
        assert nodes_to_release(clusters, unsettled, idling, NOW + 10) == {"home": ()}
        assert nodes_to_release(
            clusters, spot("a"), Idling({("home", "a"): NOW + 900}), NOW + 901
        ) == {"home": ()}, "it does not go"

    def test_no_more_leave_at_a_time_than_is_bearable_and_the_first_go_first(self) -> None:
        plain = cluster("home", price=1, count=100)
        clusters, idling = {"home": read(plain)}, Idling()
        several = spot(*(f"n{number:03d}" for number in reversed(range(100))))
        idling.look(several, NOW - 1000)
        found = nodes_to_release(clusters, several, idling, NOW)["home"]
        assert [item.name for item in found] == [f"n{at:03d}" for at in range(68, 100)]
        assert len(found) == AT_ONCE_MOST

    def test_units_go_whole(self) -> None:
        plain = cluster("home", price=1, count=4)
        plain["spec"]["elasticPools"][0].update(unit=2, countMin=1)
        clusters, idling = {"home": read(plain)}, Idling()
        several = spot("a", "b", "c", "d")
        idling.look(several, NOW - 1000)
        assert len(nodes_to_release(clusters, several, idling, NOW)["home"]) == 2
