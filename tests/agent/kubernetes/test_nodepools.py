"""Node pools of autoscalers as elastic pools, and what requests for nodes say."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.agent.drivers.kubernetes.nodepools import KARPENTER_GROUP, Found, find_pools
from fairway.agent.drivers.kubernetes.nodes import Node
from fairway.agent.drivers.kubernetes.provisioning_requests import read_request
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.pools import InstanceType
from fairway.store.interface import ResourceKey
from tests.kubernetes.autoscalers import INSTANCE_TYPE, machine_deployment, node_pool

POOLS = ResourceKey(KARPENTER_GROUP, "v1", "nodepools")
DEPLOYMENTS = ResourceKey("cluster.x-k8s.io", "v1beta1", "machinedeployments")


def types_of(*described: Any) -> tuple[InstanceType, ...]:
    """Instance types as the spec of a cluster lists them."""
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "c"},
        "spec": {"simulated": {}, "instanceTypes": list(described)},
    }
    return decode(body, Cluster).spec.instance_types


TYPE = types_of(INSTANCE_TYPE)[0]


def read(*bodies: Any, types: tuple[InstanceType, ...] = (TYPE,), nodes: Any = ()) -> Found:
    kinds = {"NodePool": POOLS, "MachineDeployment": DEPLOYMENTS}
    objects = {
        (
            kinds[body["kind"]],
            (body["metadata"].get("namespace", ""), body["metadata"]["name"]),
        ): body
        for body in bodies
    }
    return find_pools(objects, types, nodes)


def test_each_zone_and_capacity_type_of_a_node_pool_is_a_pool_and_they_share_its_limits() -> None:
    seen = read(node_pool())
    assert [(pool.name, pool.interruptible, str(pool.price_per_hour)) for pool in seen.pools] == [
        ("gpu-p5-48xlarge-zone-a", False, "98320m"),
        ("gpu-p5-48xlarge-zone-a-spot", True, "39100m"),
        ("gpu-p5-48xlarge-zone-b", False, "98320m"),
        ("gpu-p5-48xlarge-zone-b-spot", True, "39100m"),
    ]
    first = seen.pools[0]
    assert first.labels == {
        "accelerator": "h100",
        "karpenter.sh/nodepool": "gpu",
        "karpenter.sh/capacity-type": "on-demand",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "topology.kubernetes.io/zone": "zone-a",
    }
    assert (first.count_max, first.quota, first.provision_seconds) == (5, "gpu", 240)
    assert [taint.key for taint in first.taints] == ["gpu"]
    assert [(quota.name, str(quota.limits["nvidia.com/gpu"])) for quota in seen.quotas] == [
        ("gpu", "40")
    ]


def test_a_pool_costs_what_its_instance_type_costs_and_is_provisioned_as_fast() -> None:
    shape = INSTANCE_TYPE["shape"]
    types = types_of(
        {"name": "p5.48xlarge", "shape": shape, "pricePerHour": "80", "spotPricePerHour": "30"},
        {"name": "p5en.48xlarge", "shape": shape, "pricePerHour": "90", "provisionSeconds": 45},
    )
    pools = read(node_pool(), types=types).pools
    assert {
        pool.name: (str(pool.price_per_hour), pool.provision_seconds)
        for pool in pools
        if "zone-a" in pool.name
    } == {
        "gpu-p5-48xlarge-zone-a": ("80", 300),
        "gpu-p5-48xlarge-zone-a-spot": ("30", 300),
        "gpu-p5en-48xlarge-zone-a": ("90", 45),
        "gpu-p5en-48xlarge-zone-a-spot": ("None", 45),
    }


def test_what_an_instance_type_has_is_learned_from_a_node_where_nobody_lists_it() -> None:
    labels = {"node.kubernetes.io/instance-type": "p5en.48xlarge"}
    node = Node(allocatable={"cpu": 10**9 * 180, "nvidia.com/gpu": 8 * 10**9}, labels=labels)
    seen = read(node_pool(), types=(), nodes=[node])
    assert {pool.labels["node.kubernetes.io/instance-type"] for pool in seen.pools} == {
        "p5en.48xlarge"
    }
    assert {str(pool.shape["nvidia.com/gpu"]) for pool in seen.pools} == {"8"}


def test_a_node_that_karpenter_made_is_of_the_pool_whose_labels_it_has() -> None:
    seen = read(node_pool())
    labels = {**seen.pools[3].labels, "kubernetes.io/hostname": "n1"}
    assert seen.labels_of(Node(labels=labels)) == {"fairway.dev/pool": seen.pools[3].name}
    del labels["karpenter.sh/nodepool"]
    assert seen.labels_of(Node(labels=labels)) == {}, "it cannot be given back"


def test_a_node_group_of_cluster_api_says_what_its_nodes_will_have() -> None:
    (pool,) = read(machine_deployment()).pools
    assert (pool.name, pool.count_max, pool.count_min) == ("default-workers", 6, 1)
    assert {key: str(value) for key, value in pool.shape.items()} == {
        "cpu": "32",
        "memory": "256Gi",
        "pods": "110",
        "nvidia.com/gpu": "4",
    }
    assert pool.labels == {"accelerator": "l40s", "topology.kubernetes.io/zone": "zone-c"}
    assert [(taint.key, taint.value, taint.effect) for taint in pool.taints] == [
        ("gpu", "yes", "NoSchedule")
    ]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(node_pool(limits={"cpu": "many"}), id="limits that are no amounts"),
        pytest.param(
            {"kind": "MachineDeployment", "metadata": {"name": "d"}}, id="a group without a size"
        ),
        pytest.param({"kind": "NodePool", "metadata": {"name": "p"}, "spec": None}, id="no spec"),
    ],
)
def test_what_cannot_be_understood_is_not_offered(body: Any) -> None:
    assert read(body, types=()).pools == ()


def test_no_more_pools_are_offered_than_a_cluster_may_have() -> None:
    zones = [f"zone-{number}" for number in range(100)]
    body = node_pool()
    body["spec"]["template"]["spec"]["requirements"][1]["values"] = zones
    assert len(read(body).pools) == 64


@pytest.mark.parametrize(
    ("conditions", "outcome", "message"),
    [
        ([], "Waiting", ""),
        ([("Accepted", "True", "seen")], "Waiting", ""),
        ([("Accepted", "True", "seen"), ("Provisioned", "True", "here")], "Provisioned", "here"),
        ([("Provisioned", "False", "not yet")], "Waiting", ""),
        ([("Failed", "True", "no capacity in zone-a")], "Failed", "no capacity in zone-a"),
        ([("Provisioned", "True", "here"), ("CapacityRevoked", "True", "gone")], "Failed", "gone"),
    ],
)
def test_conditions_of_a_request_say_what_came_of_it(
    conditions: list[tuple[str, str, str]], outcome: str, message: str
) -> None:
    plain = [{"type": kind, "status": status, "message": told} for kind, status, told in conditions]
    body = {
        "metadata": {
            "labels": {"fairway.dev/attempt": "3"},
            "annotations": {
                "fairway.dev/work": "default.train",
                "fairway.dev/pool": "spot",
                "fairway.dev/nodes": "2",
            },
        },
        "status": {"conditions": plain},
    }
    read_as = read_request(body)
    assert (read_as.outcome, read_as.message) == (outcome, message)
    assert (read_as.work, read_as.attempt, read_as.pool, read_as.nodes) == (
        "default.train",
        3,
        "spot",
        2,
    )
